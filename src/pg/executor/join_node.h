// The running plan node over two inputs: a join whose condition is a distance within a radius, or
// an overlap of boxes. Both inputs are read once, to their ends: the compared values become
// datasets, and the columns that conditions and the target list need are kept (join_inputs.h);
// values that no input has are computed (join_operands.h).
// The engine finds the pairs of all values that it can take; the condition itself is evaluated for
// the pairs that the engine cannot decide: pairs of odd rows with all rows of the other side, and
// pairs within the rounding of the type's own arithmetic (join_work.h). Each pair that passes
// becomes a row (join_rows.h). Where the columns lie in a file, pairs go through a batch first
// (join_batch.h). Whole tables need not be read where gpujoin_service keeps their points
// (join_kept.h), nor all columns of large tables (join_blocks.h): then rows are fetched when their
// pairs are found. Further conditions may be keys, which the engine compares (join_keys.h).
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_pairs.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/resowner.h"
}

namespace gpujoin {

/// Whether some pair of the rows that were read needs the radius: see compute_eps().
enum class EpsNeed { kUnknown, kNone, kSome };

struct JoinNode;
struct JoinResult;
struct SumWork;
struct NearestWork;
struct TopWork;
struct Words;

/// Makes the next pair of rows; false when there are no more for now.
using PairSource = bool (*)(JoinNode* node, std::uint64_t* left, std::uint64_t* right);

/// Conditions over the scan tuple; null where there are none.
struct JoinConditions {
  ExprState* where;     ///< decides which rows of the join are wanted
  ExprState* order;     ///< what JoinPlanData::order describes
  ExprState* early;     ///< other conditions: before the engine's,
  ExprState* distance;  ///< the engine's, for pairs that it leaves open,
  ExprState* late;      ///< and after it
  ExprState* eps;
};

/// How far the rows of the join have been emitted.
struct RowOutput {
  TupleTableSlot* direct;  ///< the result slot, where it is a beginning of the scan tuple as it is
  int direct_columns;
  bool pairs_are_rows;       ///< rows come by next_pair_row(), the short way
  std::uint64_t left_shown;  ///< the row whose columns the scan tuple holds
  std::uint64_t empty_rows;  ///< rows still to be emitted of a batch without columns
  /// [left rows] where notes_matches(). Of a side that is fetched late the rows that have some are
  /// marked instead.
  std::uint64_t* matches;
  std::uint64_t total;                  ///< matches, where they are counted
  std::uint64_t last_left, last_right;  ///< rows of the last match
  bool draining;                        ///< pairs are done, left rows follow
  std::uint64_t drained;                ///< left rows done
  std::int64_t late_drained;            ///< the last marked row done; -1: none
};

/// For EXPLAIN: the data behind these figures may be forgotten by then.
struct PairReport {
  std::uint64_t evaluated;     ///< pairs for which the condition was evaluated
  std::uint64_t rejected;      ///< pairs that failed it, in all runs of the node
  std::uint64_t fetched_rows;  ///< late rows that were fetched one by one, but for open ones
  const char* loop_reason;     ///< why no engine joined the points; null: one did
  std::uint64_t odd_rows;      ///< of both sides
  double largest_radius;       ///< of any two rows that are not odd
};

/// Where the rows of both inputs come from. They are asked in this order.
enum class RowSource {
  kKept,    ///< the service has the points, and rows are fetched when pairs are found: join_kept.h
  kSummed,  ///< each row is a point, and no longer there when its sums are prepared: sum_reading.h
  kInputs,  ///< rows are read and kept: join_inputs.h
};

/// How the inputs are read, and what is known of both sides.
struct InputState {
  bool may_forget;  ///< nobody is expected to read the rows again
  bool finished;    ///< the last row was emitted, and what was read is forgotten
  /// Ids of the parameters in expressions that are evaluated while the inputs are read. All other
  /// expressions are evaluated after each start().
  Bitmapset* read_params;
  Bitmapset* early_params;  ///< likewise in conditions that come before the engine's
  EpsNeed eps_need;
  ResourceOwner
      operand_resources;     ///< of the operands' subtransaction, while it is open; else null
  RowBudget budget;          ///< of the rows kept of both sides
  ValueForm form;            ///< what becomes of the compared values
  bool approximate;          ///< some boxes are larger than what operators compare
  std::int32_t srid;         ///< of rows that are not odd
  bool tests_srids;          ///< note_srid() found odd rows, whose SRIDs may be others
  RowSource source;          ///< that the inputs were read from
  PairSelection kept_pairs;  ///< of a table with itself, of RowSource::kKept
};

/// The running node, which is made zeroed.
struct JoinNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  JoinPlanData data;
  JoinPlanExpressions expressions;
  JoinConditions conditions;
  MemoryContext context;     ///< holds the run, from one reading of the inputs to the next,
  MemoryContext rows;        ///< and all that was read
  MemoryContext asked;       ///< and the values of one pair while the condition is evaluated
  const JoinResult* result;  ///< what becomes of the pairs: join_result.h
  Side left, right;
  InputState inputs;
  PairStream pairs;
  SumWork* sums;         ///< null: pairs are not added up
  TopWork* top;          ///< null: all pairs are wanted, in any order
  NearestWork* nearest;  ///< null: not the nearest rows are wanted
  RowOutput output;
  PairReport report;
};

/// Whether the rows were read from this source.
inline bool comes_from(const JoinNode* node, RowSource source) {
  return node->inputs.source == source;
}

inline bool emits_unmatched(const JoinNode* node) {
  return node->data.join_type == JOIN_LEFT || node->data.join_type == JOIN_ANTI;
}
inline bool shows_right(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER || node->data.join_type == JOIN_LEFT;
}
/// Whether the engine may find pairs that only the condition decides.
inline bool has_open_pairs(const JoinNode* node) {
  return node->pairs.band.accept < node->pairs.band.select;
}

/// Whether the condition decides the pair that the engine emitted last.
inline bool is_open(const JoinNode* node) {
  return has_open_pairs(node) &&
         (node->pairs.run->request.output() != Output::kPairsWithDistances ||
          node->pairs.pair.distance > node->pairs.band.accept);
}

/// Whether pairs have radii of their own.
inline bool has_row_radii(const JoinNode* node) {
  return node->left.radii.value > 0 || node->right.radii.value > 0;
}

/// Whether it matters how many matches a left row has, or whether it has some.
inline bool notes_matches(const JoinNode* node) {
  return node->data.join_type != JOIN_INNER || node->data.grouped;
}
inline bool has_match(const JoinNode* node, std::uint64_t left) {
  const LateRows* const late = node->left.late;
  return late != nullptr ? is_marked(*late, static_cast<std::int64_t>(left))
                         : node->output.matches[left] > 0;
}

/// Whether the left row has the one match that the join asks for.
inline bool is_settled(const JoinNode* node, std::uint64_t left) {
  return !shows_right(node) && has_match(node, left);
}

/// Rows that are not in the stores are points. Of summed ones a row of each group is in them.
inline std::uint64_t row_count(const JoinNode* node, const Side& side) {
  const bool stored =
      !comes_from(node, RowSource::kSummed) && (side.late == nullptr || side.places.rows > 0);
  return stored ? side.shown.rows->rows : side.points.rows;
}

/// Sets the request of the run, and which ids the rows of its batches have.
void ask_engine(JoinNode* node, const JoinRequest& request);

/// Whether the engine names rows by their positions in the left side.
inline bool names_positions(const JoinNode* node) {
  const JoinRequest& request = node->pairs.run->request;
  return request.self_join() && !request.sides.in_file() && !comes_from(node, RowSource::kKept);
}

/// Whether the rows are not here: the service keeps their points, or sums alone were prepared.
inline bool lacks_rows(const JoinNode* node) { return !comes_from(node, RowSource::kInputs); }

/// Whether they are wanted after all: the inputs have to be read.
inline bool misses_rows(const JoinNode* node) {
  return lacks_rows(node) && node->pairs.run->exhausted;
}

}  // namespace gpujoin

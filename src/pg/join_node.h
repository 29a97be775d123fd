// The running plan node over two inputs: a join whose condition is a distance within a radius, or
// an overlap of boxes. Both inputs are read to their ends: the compared values become datasets,
// what the target list needs of the rows is kept aside (join_inputs.cpp). Then the engine finds the
// pairs, and each becomes a row (join_rows.cpp). Where the engine cannot stand in for the condition
// (values that are no points of one kind, a radius that is no number), the condition is asked for
// every pair instead.
#pragma once

#include "engine/pair_cursor.h"
#include "pg/custom_scan.h"
#include "pg/engine_run.h"
#include "pg/join_plan.h"
#include "pg/row_store.h"

namespace gpujoin {

/// Columns of the scan tuple that one input fills.
struct Columns {
  int count;
  int* targets;    ///< [count] their places in the scan tuple
  RowStore* rows;  ///< in the same order
};

/// What is known of one side's scores.
struct ScoreRange {
  double most;   ///< no score is further from 0
  double least;  ///< and none but 0 nearer
};

/// One input.
struct Side {
  PlanState* plan;
  AttrNumber value;  ///< the compared value in its rows
  AttrNumber score;  ///< and the score; 0: none is asked for
  Oid score_type;
  ScoreRange scores;
  bool keep_unmatched;  ///< rows that can match nothing are kept as well
  Columns shown;        ///< what every pair is asked for
  Columns tested;       ///< what the condition needs besides, for the few pairs that are open
  Dataset points;       ///< ids are numbers of rows
};

/// What becomes of the compared values.
enum class Reading {
  kPoints,
  kBoxes,
  kRows,  ///< nothing: all pairs are to be tested
};

/// A pair of rows that may be among the first of the query's order.
struct ScoredPair {
  double score;  ///< the engine's
  std::uint64_t left, right;
};

/// Pairs, best first.
struct ScoredPairs {
  ScoredPair* pairs;  ///< [room]
  std::uint64_t room, count;
  std::uint64_t told;  ///< of these, from the first on
};

enum class Mode {
  kUnread,
  kPairs,   ///< the engine hands over pairs
  kCounts,  ///< the engine counts the matches of each left row
  kTotal,   ///< the engine counts all matches
  kTop,     ///< the engine hands over the first pairs by their scores
  kLoop,    ///< the condition is asked for every pair
};

struct JoinNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  JoinPlanData data;
  JoinPlanExpressions expressions;
  ExprState* filter;          ///< null: none
  ExprState* condition;       ///< for pairs that the engine leaves open
  ExprState* all_conditions;  ///< for Mode::kLoop
  ExprState* eps;
  TupleTableSlot* direct;  ///< the result slot, where it is a beginning of the scan tuple as it is
  int direct_columns;

  MemoryContext context;  ///< holds what follows, from one reading of the inputs to the next
  EngineRun* run;
  Side left, right;
  Reading reading;
  bool approximate;  ///< as in PointShape
  Mode mode;
  EpsBand band;
  bool null_eps;
  PairCursor cursor;
  IdPair pair;
  bool pairs_are_rows;                  ///< rows come by next_pair_row(), the short way
  std::uint64_t left_shown;             ///< the row whose columns the scan tuple holds
  std::uint64_t loop_left, loop_right;  ///< next pair of Mode::kLoop
  std::uint64_t empty_rows;             ///< rows due of a batch that nobody looks into
  std::uint64_t rechecked;              ///< pairs for which the condition was asked
  std::uint64_t* matches;  ///< [left rows] of all joins but inner ones; of those that are counted
  std::uint64_t total;     ///< matches, where they are counted
  std::uint64_t last_left, last_right;  ///< rows of the last match
  const char* top_problem;    ///< why all pairs are handed over, where the first were wanted
  double score_error;         ///< see may_come_later(); 0 for distances
  ScoredPairs kept;           ///< of Mode::kTop
  ScoredPairs own;            ///< of rows with themselves, where the engine leaves those out
  bool reverse_due;           ///< the reverse of the last pair comes next, which it leaves out, too
  std::uint64_t handed_over;  ///< pairs by the engine
  bool draining;              ///< pairs are done, left rows follow
  std::uint64_t drained;      ///< left rows looked at
};

inline bool tells_unmatched(const JoinNode* node) {
  return node->data.join_type == JOIN_LEFT || node->data.join_type == JOIN_ANTI;
}
inline bool shows_right(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER || node->data.join_type == JOIN_LEFT;
}
/// Whether there may be pairs that only the condition decides.
inline bool has_open_pairs(const JoinNode* node) { return node->band.accept < node->band.select; }

/// Whether the pair that the engine handed over last is one of those.
inline bool is_open(const JoinNode* node) {
  return has_open_pairs(node) && (node->run->request.output != Output::kPairsWithDistances ||
                                  node->pair.distance > node->band.accept);
}

inline std::uint64_t row_count(const Side& side) { return side.shown.rows->rows; }

// ---- join_inputs.cpp

/// Reads both inputs from their beginnings, forgetting what was read before. False when a value
/// does not become what `reading` asks for.
bool read_inputs(JoinNode* node, Reading reading);

/// Forgets what was read.
void forget_inputs(JoinNode* node);

// ---- join_node.cpp

/// Starts the engine on what was read, and sets the mode.
void start_pairs(JoinNode* node);

// ---- join_rows.cpp

/// From the first row of the join, with the inputs that were read.
void start_rows(JoinNode* node);

/// The next row of the join in the scan tuple.
bool next_row(JoinNode* node);

/// The same where pairs_are_rows, in the result slot, whose columns are a beginning of the scan
/// tuple's.
bool next_pair_row(JoinNode* node, TupleTableSlot* slot);

/// The next pair that matches, in the scan tuple; of a semi or anti join, one for each left row.
bool next_match(JoinNode* node);

/// Puts a pair of rows into the scan tuple.
void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Whether a pair within the radius, which the scan tuple shows, fulfils what else is asked.
bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Whether conditions hold for the scan tuple; null: there are none.
bool holds(JoinNode* node, ExprState* conditions);

// ---- join_top.cpp

/// The score in a row of one side, for an engine; notes where it is none.
double read_score(JoinNode* node, Side* side, TupleTableSlot* slot);

/// Whether a pair of the same points scores as its reverse, and the engine may be asked for one of
/// both and for no row with itself. Where nothing but the distance decides that gains nothing.
bool may_halve_top(const JoinNode* node);

/// What is asked of the engine first, which may hold so many bytes. Sets top_problem where it can
/// not be asked.
Top first_top(JoinNode* node, std::uint64_t memory_limit);

/// The next pair that may be among the first, in the scan tuple. False at their end, or with
/// top_problem when they were not found; then all pairs are to be handed over.
bool next_top(JoinNode* node);

}  // namespace gpujoin

// The state of a node that adds pairs up, and what its parts share: join_sums.cpp, which adds;
// sum_reading.cpp, which reads rows that need not be kept; sum_request.cpp, which tells the engine
// what to add; and sum_words.cpp, which takes over what the engine found of a row.
#pragma once

#include "engine/request/group_sums.h"
#include "pg/executor/join_node.h"
#include "pg/executor/row_groups.h"
#include "pg/executor/sum_state.h"
#include "pg/store/huge_array.h"

namespace gpujoin {

/// Where the engine's words of a left row hold what belongs to an aggregate.
struct SumPlaces {
  int values;  ///< how many values there are; 0: as many as pairs
  int sum, squares;
  int sum_words, square_words;
  int least, most;  ///< of numbers that are combined with the left row's
};

/// What a column that the engine is told of holds of an aggregate's values.
enum class ColumnOf {
  kThere,  ///< 1 where there is a value, else 0
  kWhole,
  kLower,  ///< the lower 32 bits of it
  kUpper,  ///< the other ones
  kLeast,  ///< it, or what is greater than any
  kMost,
  kReal,     ///< it, or NaN
  kLeaf,     ///< a leaf of its program
  kFailure,  ///< 1 where some aggregate has no values of the row, else 0
};

struct ToldColumn {
  ColumnOf of;
  bool squared;
  int sum, leaf;
};

/// Where PairSums has a column.
enum class ToldKind { kLeft, kRight, kIntegers };

/// An aggregate of the plan.
struct Sum {
  SumPlan plan;
  SumExpressions expressions;
  ExprState *argument, *filter;  ///< null: none
  ExprState** leaves;            ///< [plan.leaf_count]
  SumPlaces places;
  FmgrInfo* finish;  ///< makes the result of the state; null: the state is it
  bool* met;         ///< [left rows] of SumState::kRows: the row is counted
};

/// The groups of left rows, and what was added up of each.
struct GroupTable {
  std::uint32_t* of_row;      ///< [row_room] kUnknown until it is asked for; null: no groups
  std::uint64_t* first_rows;  ///< [count] a row of each
  std::uint64_t* pairs;       ///< [count]
  Tally* tallies;             ///< [count] times the aggregates
  std::uint64_t row_room, count, first_room, pair_room, tally_room;
  std::uint64_t emitted;
};

/// What the node has of its aggregates, from its beginning, and then of a run.
struct SumWork {
  int count;
  Sum* sums;             ///< [count]
  RowGroups* groups;     ///< null: all left rows are one
  bool needs_left;       ///< some aggregate or filter is of left rows
  bool shows_values[2];  ///< some expression is of the compared value, which has to be rebuilt
  bool shows_values_to_engine[2];  ///< and so is one of what the engine is told
  bool keeps_rows;                 ///< pairs had to be asked for once: rows are kept from then on
  // What belongs to one run:
  MemoryContext context;
  const char* problem;  ///< why the engine does not add up the pairs; null: it may
  GroupTable table;
  PairSums asked;
  GroupSums found;      ///< of rows that engines of the session found; no groups: see group_sums()
  Size told_bytes;      ///< of its columns, with what else is in the context
  ToldColumn* told[3];  ///< by ToldKind
  FoldWord** columns[2];     ///< [columns][points] of the right side, of the left one; in memory
  std::uint64_t* places[2];  ///< [columns][chunks] likewise, in the file
  bool* left_fails;          ///< [left rows] some value is not to be had; null: all are
  int failures_place;        ///< word that counts pairs with such right rows; 0: there are none
};

/// An array of zeros.
template <class T>
T* allocate_rows(SumWork* work, std::uint64_t rows) {
  T* values = nullptr;
  resize_array(work->context, &values, rows);
  std::fill_n(values, rows, T{});
  return values;
}

/// Puts all columns that expressions need of a side's row into the scan tuple, the compared value
/// if it is needed.
void show_row(JoinNode* node, bool left, std::uint64_t row, bool value);

/// The context of expressions over the scan tuple as it is now.
ExprContext* over_scan_tuple(JoinNode* node);

/// Whether the filter lets the scan tuple pass.
bool passes_filter(const Sum& sum, ExprContext* expressions);

/// The argument over the scan tuple; false: it is NULL.
bool has_argument(const Sum& sum, ExprContext* expressions, Datum* value);

/// Whether the aggregate is of numbers of right rows.
inline bool is_of_right(const Sum& sum) {
  return sum.plan.of == SumOf::kRight ||
         (sum.plan.of == SumOf::kNothing && sum.plan.filter == SumOf::kRight);
}

/// Counts a left row, once.
inline void count_row(const Sum& sum, Tally* tally, std::uint64_t row) {
  tally->count += !std::exchange(sum.met[row], true);
}

inline bool combines(const Sum& sum) { return sum.plan.combination != Combination::kNone; }

/// The leaf of a combination that is of left rows, or of right ones.
inline int leaf_of(const Sum& sum, bool left) { return sum.plan.leaf_is_left[0] == left ? 0 : 1; }

/// Leaves that are columns of a program.
inline int program_leaves(const Sum& sum) { return combines(sum) ? 0 : sum.plan.leaf_count; }

/// A leaf of a combination over the scan tuple. False: it is NaN. Sets *is_null.
bool take_leaf(const Sum& sum, int leaf, ExprContext* expressions, std::int64_t* number,
               bool* is_null);

/// Notes the group of the next left row, which the scan tuple shows as `slot` has it. Of the rows
/// the first one of each group is kept.
void note_group(JoinNode* node, std::uint64_t row, const TupleTableSlot* slot);

// ---- sum_words.cpp

/// Adds the words of a left row with so many pairs, and whose expressions the scan tuple shows.
/// False: they are not right.
bool add_words(const Sum& sum, Tally* tally, std::uint64_t row, std::int64_t pairs,
               const FoldWord* words, ExprContext* expressions);

/// Whether the words of a left row, if it has some, are what PostgreSQL would find. `fails`: the
/// row has no values.
bool are_right(const SumWork* work, const FoldWord* words, bool fails);

// ---- sum_request.cpp

/// Computes the columns of both sides' points, and describes to the engine what it is to add up.
/// Sets work->problem where it cannot be told.
void make_sum_request(JoinNode* node);

/// Forgets what the engine was told.
void forget_sum_request(JoinNode* node);

/// What is read of the rows of both sides, before they are known to be points.
struct SumValues;
SumValues* begin_sum_values(JoinNode* node);

/// Reads what the engine is to know of the next point of a side, which the scan tuple shows. False:
/// it is special, or raises an error, so that pairs have to be asked for.
bool read_sum_values(JoinNode* node, SumValues* values, bool left, std::uint64_t point,
                     ExprContext* row);

/// The same as make_sum_request() once the values of all points of both sides have been read.
void tell_sum_values(JoinNode* node, SumValues* values);

// The entries of the result: see JoinResult.
void begin_sums(JoinNode* node);
void forget_sums(JoinNode* node);
void start_sums(JoinNode* node);
Mode mode_of_sums(const JoinNode* node);
bool next_group(JoinNode* node);
void explain_sums(const JoinNode* node, const Words& words, ExplainState* es);

/// Forgets what was added up, before pairs are found.
void clear_sums(JoinNode* node);

/// Whether the engine is to find more than how many pairs each left row has.
bool needs_measures(const JoinNode* node);

/// Computes what the engine is to know of the points' rows. False: it cannot be told.
bool prepare_sums(JoinNode* node);

/// The points of a side, or of `both`, which are the same, with what is known of their rows.
Dataset with_sums(JoinNode* node, bool left, bool both, Dataset points);

/// What the engine is to do, once that is prepared.
Output wanted_sums(JoinNode* node);

/// Takes over what the engine has added up. False: it had no memory, or met a value that only
/// pairs can be asked for; nothing is taken.
bool take_sums(JoinNode* node);

/// Before the engine starts: has sums come by the groups of left rows, where that is all that is
/// wanted of these rows.
void group_sums(JoinNode* node);

/// Whether more pairs of a left row change nothing: its group has a pair, and no aggregates.
bool is_group_complete(const JoinNode* node, std::uint64_t left);

}  // namespace gpujoin

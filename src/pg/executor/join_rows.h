// The rows of a join.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// From the first row of the join, with the inputs that were read.
void start_rows(JoinNode* node);

/// Sets the matches of all left rows, which are in their store, to 0.
void clear_matches(JoinNode* node);

/// Whether each pair that the engine emits is a row as it is.
bool are_pairs_rows(const JoinNode* node);

/// Puts NULLs in the place of columns.
void show_nothing(TupleTableSlot* slot, const Columns& columns);

/// Of rows, or numbers of them.
void explain_counts(const JoinNode* node, const Words& words, ExplainState* es);

/// The next row of the join, whatever becomes of it: of its first pairs all, and no groups. Sets
/// `last_left`.
bool next_joined_row(JoinNode* node);

/// The same where pairs_are_rows, in the result slot, whose columns are a beginning of the scan
/// tuple's. False when the short way ends; JoinResult::next() goes on.
bool next_pair_row(JoinNode* node, TupleTableSlot* slot);

/// Puts columns of a row into a slot.
void show(TupleTableSlot* slot, const Columns& columns, std::uint64_t row);

/// Puts a pair of rows into the scan tuple.
void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Puts a left row without a match into the scan tuple.
void show_left_alone(JoinNode* node, std::uint64_t row);

/// Whether the scan tuple fulfils the conditions. Null stands for no condition.
bool holds(JoinNode* node, ExprState* conditions);

}  // namespace gpujoin

// Reading the inputs of a join.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// RowSource::kInputs: reads both inputs from their beginnings, forgetting what was read before.
bool read_inputs(JoinNode* node);

/// Forgets all that was read, but not what the last run did.
void forget_rows(JoinNode* node);

/// Has both inputs begin again.
void rescan_inputs(JoinNode* node);

/// Before a side is read: it has no points.
void start_side(JoinNode* node, Side* side);

/// Reads an input to its end, row by row, with the values that the node computes.
void read_input(JoinNode* node, Side* side, ValueShape* shape);

/// Makes the compared value of a row, which is kept with this number, a point, a box, or odd; or
/// nothing where it holds a NULL and so matches nothing.
void add_row_value(JoinNode* node, Side* side, ValueShape* shape, std::int64_t row, Datum value,
                   TupleTableSlot* slot);

/// Ends the reading of a side.
void finish_side(JoinNode* node, Side* side, const ValueShape& shape);

/// Notes what was read, since `start`.
void report_reading(JoinNode* node, instr_time start, const ValueShape& shape);

/// Ends the fetching of a side's rows, if it was begun.
void close_late(JoinNode* node, Side* side);

/// Late rows that were fetched one by one.
std::uint64_t fetched_rows(const JoinNode* node);

/// Puts the columns that the condition needs, and that are not shown, into the scan tuple.
void show_tested(JoinNode* node, Side* side, std::uint64_t row);

/// Leaves the row's pairs to the condition.
void add_odd(JoinNode* node, Side* side, std::int64_t row, Datum value, const ValueExtent& extent);

/// Likewise of a row that is a point of these.
void add_odd_point(JoinNode* node, Side* side, const Dataset& points, std::uint64_t position,
                   std::int32_t srid);

/// Puts the odd rows in order, after some were added.
void sort_odd(Side* side);

/// A row's entry among the odd rows; null where it is not odd.
const OddRow* find_odd(const OddRows& odd, std::uint64_t row);

/// Returns the points that hold the point of a row, at *position; null if the row has none. May
/// load a chunk of the file.
const Dataset* find_row_point(Side* side, std::uint64_t row, std::uint64_t* position);

/// Begins a run in a context of its own, forgetting what was read before, and prepares the sides
/// for the source.
void begin_run(JoinNode* node);

}  // namespace gpujoin

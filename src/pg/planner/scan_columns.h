// How columns travel from the inputs of a join to its scan tuple.
#pragma once

#include "pg/executor/join_plan.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace gpujoin {

/// The scan tuple in the making.
struct ScanColumns {
  List* columns;  ///< of TargetEntry
  List* from_left;
  List* attributes;
  const List* left;  ///< target lists of the inputs
  const List* right;
  const List* computed;  ///< columns that the node itself computes
};

/// A copy of the expression with columns and placeholders as they stand in a target list: from
/// PostgreSQL 16 on the same column differs before and after an outer join, and one target list
/// serves for both.
void* with_columns_of(List* columns, void* expression);

/// Adds the columns that the expression uses and that are not there yet, in order of appearance. A
/// placeholder that no input computes is computed above, from its parts. Aggregates are numbers of
/// pairs.
void add_columns(ScanColumns* scan, void* expression);

/// Adds an expression that the node computes for what stands above it, if it is not there yet.
void add_computed(ScanColumns* scan, const Expr* expression);

/// Adds the column of an operand that an input computes, unless it is a column as it is. Comes
/// last: by then the other expressions have added the operand's own columns.
void add_operand(ScanColumns* scan, Expr* operand, bool from_left, AttrNumber attribute);

/// What the plan holds of the scan tuple.
void describe_columns(const ScanColumns& scan, JoinPlanData* data);

/// The node over the plans of its inputs, whose rows have these columns.
Plan* make_join_scan(uint32 flags, List* columns, Plan* left, Plan* right, const ScanColumns& scan,
                     const JoinPlanData& data, const JoinPlanExpressions& parts);

/// The attribute of the plan's rows that holds the value; the plan computes it if it does not yet.
AttrNumber place_value(Plan** plan, Expr* value);

}  // namespace gpujoin

// Inputs of a join that are scans of tables, and what of the tables their rows have.
#pragma once

#include "pg/reading/relation.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace gpujoin {

/// Whether tables may be read past the inputs that scan them: by the active snapshot, and not while
/// a row that changed meanwhile is rechecked (EvalPlanQual), for inputs give that row alone then.
bool may_read_tables(const EState* state);

/// The scan of a table that an input is, in parallel or not; null: it is something else.
const SeqScanState* table_scan(const PlanState* input);

/// The table's column that an input's rows have, maybe a system column; InvalidAttrNumber: a value
/// of another kind.
AttrNumber table_column(const PlanState* input, AttrNumber column);

/// Whether two inputs are scans of one table with the same conditions.
bool are_alike(const PlanState* left, const PlanState* right);

/// The columns to be read of an input's table, whose rows are known by their ctids: the one with
/// the compared value of this type, which becomes this. False: the input is no scan of a table, or
/// its rows have other values.
bool find_table_side(const PlanState* input, AttrNumber value, const ValueType& type,
                     ValueForm form, SideColumns* columns);

}  // namespace gpujoin

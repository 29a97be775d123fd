// Conditions of a scan, evaluated for the rows of a table's blocks by whoever reads them.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/params.h"
}

namespace gpujoin {

/// What a scan requires of its rows.
struct ScanFilter {
  List* conditions;  ///< over the table's columns; NIL: nothing
  bool may_raise;    ///< but what it raises can be dropped (can_drop_errors())
};

/// A filter at work.
struct RowFilter {
  ExprState* conditions;
  ExprContext* values;
  bool traps;  ///< errors about values are dropped
};

/// Whether workers can evaluate a plan's conditions, which are safe for them by PostgreSQL's
/// rules, as often as they like: they compute nothing but from a row, constants and parameters of
/// the query.
bool can_be_shared(List* conditions);

/// The conditions with the values of the query's parameters in their places, as another process
/// can read them.
List* with_values_of(List* conditions, ParamListInfo params);

/// In the current memory context; null where there are no conditions. `traps`: see passes().
RowFilter* start_filter(const ScanFilter& filter, bool traps);

/// Whether the row is wanted. Where the filter traps errors, one about the row's values sets
/// *raised, and the row is none.
bool passes(RowFilter* filter, TupleTableSlot* slot, bool* raised);

}  // namespace gpujoin

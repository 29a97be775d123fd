// Values of some of a table's rows, for estimates. Reading them leaves no trace: it is no scan, so
// none is counted, no predicate is locked, and no lock is kept.
#pragma once

#include "pg/types/value_type.h"

namespace gpujoin {

/// The column's values in some blocks of a table on which the planner holds a lock, evenly spread,
/// in the form that is asked for; numbered by their blocks. Values of another shape
/// are left out. The bytes that are read are bounded, so of wide values there are few, and none
/// where few would be too few.
PointBuffer sample_table(Oid table, AttrNumber column, const ValueType& type, ValueForm form,
                         ValueShape* shape);

}  // namespace gpujoin

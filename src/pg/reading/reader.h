// Rows of a relation -> Dataset.
#pragma once

#include "pg/reading/relation.h"
#include "pg/reading/row_values.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

/// Whether a query over the relation scans these tables: itself, or its partitions. Another
/// extension that plans queries may have the rows elsewhere, as Citus has those of a distributed
/// table: then only a query finds them.
bool has_rows_here(const SideColumns& columns, const List* tables);

/// Reads the columns of every row that the current user sees under the active snapshot, as a query
/// of theirs would: privileges, row-level security, views, partitions and foreign tables included.
/// Rows whose vector, box or score is NULL are left out. `points` comes with its context, its limit
/// and, where rows may go to a file, the file; coordinates are of its type `scalar`, which is
/// scalar_of(columns) or wider. Raises errors for rows that cannot take part. Sets *shape to what
/// the values have in common.
/// Rows that values divide are in memory, their keys, too. Where they do not fit and the values
/// have an order, all rows are read again, sorted by that value, without keys and with their
/// groups: `points` may then have the file `sorted`.
Dataset read_points(const SideColumns& columns, PointBuffer* points, ValueShape* shape,
                    GroupEnds* groups, SpillFile* sorted);

}  // namespace gpujoin

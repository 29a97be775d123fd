// Rows of a relation -> Dataset.
#pragma once

#include "pg/reading/relation.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

/// Reads the columns of every row that the current user sees under the active snapshot, as a query
/// of theirs would: privileges, row-level security, views, partitions and foreign tables included.
/// Rows whose vector, box or score is NULL are left out. The data lies in `context` and takes at
/// most `limit` bytes; coordinates are of type `scalar`, which is scalar_of(columns) or wider.
/// Raises errors for rows that cannot take part. Sets *shape to what the values have in common.
Dataset read_points(const SideColumns& columns, ScalarType scalar, std::uint64_t limit,
                    MemoryContext context, ValueShape* shape);

}  // namespace gpujoin

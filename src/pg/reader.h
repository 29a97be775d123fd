// Rows of a relation -> Dataset.
#pragma once

#include "engine/dataset.h"
#include "pg/relation.h"

namespace gpujoin {

/// Reads the columns of every row that the current user sees under the active snapshot, as a query
/// of theirs would: privileges, row-level security, views, partitions and foreign tables included.
/// Rows whose vector is NULL are left out. The data lies in `context` and takes at most `limit`
/// bytes; coordinates are of type `scalar`, which is scalar_of(columns) or wider. Raises errors for
/// rows that cannot take part.
Dataset read_points(const SideColumns& columns, ScalarType scalar, std::uint64_t limit,
                    MemoryContext context);

/// Bytes that a dataset read by read_points() occupies.
std::uint64_t dataset_bytes(const Dataset& data);

}  // namespace gpujoin

// One row's values -> a point or a box of a dataset; the errors for what is neither.
#pragma once

#include "pg/reading/relation.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

/// Rows of a relation on their way into a dataset.
struct RowCollector {
  const SideColumns* columns;
  PointBuffer* points;
  ValueShape shape;
};

/// Adds a row without NULLs. `values` are those of columns->attributes, numbers of type numeric as
/// float8 and boxes that reads_as_box() as PostgreSQL's. Raises errors for what cannot take part.
/// False where a value matches nothing, because it holds a NULL.
bool add_row(RowCollector* rows, std::int64_t id, const Datum* values);

/// Adds a row with its score, of columns->score_type or, for numeric, float8.
void add_scored_row(RowCollector* rows, std::int64_t id, const Datum* values, Datum score);

}  // namespace gpujoin

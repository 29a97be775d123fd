#include "pg/reading/repeated_ids.h"

#include <algorithm>

#include "pg/store/rows_by_id.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

bool ascend(const Dataset& points) {
  return std::adjacent_find(points.ids, points.ids + points.rows,
                            [](std::int64_t a, std::int64_t b) { return a >= b; }) ==
         points.ids + points.rows;
}

}  // namespace

bool find_repeated_id(const Dataset& points, std::uint64_t memory, std::int64_t* id) {
  if (ascend(points)) return false;
  if (rows_by_id_bytes(points.rows) > memory) return false;
  const RowsById table = make_rows_by_id(CurrentMemoryContext, points.ids, points.rows);
  bool found = false;
  for (std::uint64_t row = 0; row < points.rows && !found; ++row) {
    if (row % 4096 == 0) CHECK_FOR_INTERRUPTS();
    std::uint32_t* const place = place_of_id(table, points.ids[row]);
    found = *place != 0;
    *place = static_cast<std::uint32_t>(row + 1);
    *id = points.ids[row];
  }
  pfree(table.rows);
  return found;
}

}  // namespace gpujoin

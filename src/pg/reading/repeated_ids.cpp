#include "pg/reading/repeated_ids.h"

#include <algorithm>
#include <bit>

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
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
  // Rows, counted from 1, where the hash of their id or what lies before has led them.
  const std::uint64_t places = std::bit_ceil(2 * points.rows);
  const Size bytes = places * sizeof(std::uint32_t);
  if (bytes > memory) return false;
  std::uint32_t* const rows = static_cast<std::uint32_t*>(
      MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  bool found = false;
  for (std::uint64_t row = 0; row < points.rows && !found; ++row) {
    if (row % 4096 == 0) CHECK_FOR_INTERRUPTS();
    const std::uint64_t hash = static_cast<std::uint64_t>(points.ids[row]) * 0x9e3779b97f4a7c15u;
    std::uint64_t place = hash >> (64 - std::countr_zero(places));
    while (rows[place] != 0 && points.ids[rows[place] - 1] != points.ids[row])
      place = (place + 1) & (places - 1);
    found = rows[place] != 0;
    rows[place] = static_cast<std::uint32_t>(row + 1);
    *id = points.ids[row];
  }
  pfree(rows);
  return found;
}

}  // namespace gpujoin

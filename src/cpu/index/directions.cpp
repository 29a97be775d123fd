#include "cpu/index/directions.h"

#include <atomic>

#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {

Dataset Directions::view(const Dataset& points) const {
  Dataset view = {coordinates.data(), points.ids, points.rows, points.dims, ScalarType::kFloat32};
  view.keys = points.keys;
  view.key_columns = points.key_columns;
  return view;
}

Directions find_directions(WorkerPool& pool, MemoryBudget& budget, const Dataset& points) {
  Directions directions;
  if (points.rows == 0) return directions;
  directions.coordinates = Buffer<float>(budget, points.rows * points.dims);
  std::atomic<bool> extreme = false;
  for_row_blocks(pool, points, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row)
      if (write_direction(points, row, directions.coordinates.data() + row * points.dims))
        extreme = true;
  });
  directions.extreme = extreme;
  return directions;
}

}  // namespace gpujoin::cpu

#include "cpu/index/directions.h"

#include <atomic>

#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {

Dataset Directions::view(const Dataset& points) const {
  return {coordinates.data(), points.ids, points.rows, points.dims, ScalarType::kFloat32};
}

Directions find_directions(WorkerPool& pool, MemoryBudget& budget, const Dataset& points) {
  Directions directions;
  if (points.rows == 0) return directions;
  directions.coordinates = Buffer<float>(budget, points.rows * points.dims);
  std::atomic<bool> faint = false;
  for_row_blocks(pool, points, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row)
      if (write_direction(points, row, directions.coordinates.data() + row * points.dims))
        faint = true;
  });
  directions.faint = faint;
  return directions;
}

}  // namespace gpujoin::cpu

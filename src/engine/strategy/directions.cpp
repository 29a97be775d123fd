#include "engine/strategy/directions.h"

namespace gpujoin {

bool write_direction(const Dataset& data, std::uint64_t row, float* direction) {
  return data.scalar == ScalarType::kFloat32
             ? write_direction(point<float>(data, row), data.dims, direction)
             : write_direction(point<double>(data, row), data.dims, direction);
}

IndexedSample::IndexedSample(const JoinRequest& asked, std::uint64_t most_rows)
    : request(in_memory(asked)),
      left(sample_rows(request.left().rows, most_rows)),
      right(request.self_join() ? left : sample_rows(request.right().rows, most_rows)) {
  if (asked.metric() != Metric::kCosine) return;
  const std::uint32_t dims = request.left().dims;
  const auto directions_of = [&](const Dataset& data, std::vector<std::uint64_t>& rows,
                                 std::vector<float>& directions) -> Dataset {
    directions.resize(rows.size() * dims);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      write_direction(data, rows[i], directions.data() + i * dims);
      rows[i] = i;
    }
    return {directions.data(), nullptr, rows.size(), dims, ScalarType::kFloat32};
  };
  const Dataset left_side = directions_of(request.left(), left, left_directions_);
  const Dataset right_side =
      request.self_join() ? left_side : directions_of(request.right(), right, right_directions_);
  if (request.self_join()) right = left;
  request = request.asking(PointsWithin{Metric::kL2, direction_radius(asked.eps(), dims)});
  request.sides = request.sides.with_rows(left_side, right_side);
}

}  // namespace gpujoin

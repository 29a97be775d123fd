#include "engine/directions.h"

namespace gpujoin {

bool write_direction(const Dataset& data, std::uint64_t row, float* direction) {
  return data.scalar == ScalarType::kFloat32
             ? write_direction(point<float>(data, row), data.dims, direction)
             : write_direction(point<double>(data, row), data.dims, direction);
}

Dataset sampled_directions(const Dataset& data, std::uint32_t dims,
                           std::vector<std::uint64_t>& rows, std::vector<float>& directions) {
  directions.resize(rows.size() * dims);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    write_direction(data, rows[i], directions.data() + i * dims);
    rows[i] = i;
  }
  return {directions.data(), nullptr, rows.size(), dims, ScalarType::kFloat32};
}

JoinRequest join_of_directions(const JoinRequest& request, const Dataset& left,
                               const Dataset& right) {
  JoinRequest join = request;
  join.left = left;
  join.right = right;
  join.metric = Metric::kL2;
  join.eps = direction_radius(request.eps, request.left.dims);
  return join;
}

}  // namespace gpujoin

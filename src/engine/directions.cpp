#include "engine/directions.h"

namespace gpujoin {

bool write_direction(const Dataset& data, std::uint64_t row, float* direction) {
  const std::uint64_t at = row * data.dims;
  return data.scalar == ScalarType::kFloat32
             ? write_direction(static_cast<const float*>(data.coordinates) + at, data.dims,
                               direction)
             : write_direction(static_cast<const double*>(data.coordinates) + at, data.dims,
                               direction);
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

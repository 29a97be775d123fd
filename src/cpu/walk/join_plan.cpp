#include "cpu/walk/join_plan.h"

namespace gpujoin::cpu {

double JoinPlan::exact_raw(std::uint32_t position, std::uint32_t neighbor) const {
  const Dataset& a = *left_points;
  const Dataset& b = *right_points;
  const std::uint64_t i = left->rows[position], j = right->rows[neighbor];
  if (a.scalar == ScalarType::kFloat32)
    return raw_distance(metric, point<float>(a, i), point<float>(b, j), a.dims);
  return raw_distance(metric, point<double>(a, i), point<double>(b, j), a.dims);
}

}  // namespace gpujoin::cpu

#include "cpu/join_plan.h"

namespace gpujoin::cpu {

double JoinPlan::exact_raw(std::uint32_t position, std::uint32_t neighbor) const {
  const Dataset& a = *left_points;
  const Dataset& b = *right_points;
  const std::size_t i = std::size_t{left->rows[position]} * a.dims;
  const std::size_t j = std::size_t{right->rows[neighbor]} * b.dims;
  if (a.scalar == ScalarType::kFloat32)
    return raw_distance(metric, static_cast<const float*>(a.coordinates) + i,
                        static_cast<const float*>(b.coordinates) + j, a.dims);
  return raw_distance(metric, static_cast<const double*>(a.coordinates) + i,
                      static_cast<const double*>(b.coordinates) + j, a.dims);
}

}  // namespace gpujoin::cpu

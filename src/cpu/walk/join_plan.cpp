#include "cpu/walk/join_plan.h"

#include "core/hamming.h"
#include "core/several_distances.h"

namespace gpujoin::cpu {
namespace {

template <class T>
void find_raws(const JoinPlan& plan, std::uint32_t position, const std::uint32_t* neighbors,
               std::size_t count, double* raws) {
  const Dataset& right = *plan.right_points;
  const T* const a = point<T>(*plan.left_points, plan.left->rows[position]);
  const auto neighbor = [&](std::size_t i) {
    return point<T>(right, plan.right->rows[neighbors[i]]);
  };
  raw_distances(plan.metric, a, count, neighbor, right.dims, raws);
}

/// The distances of a row of bits and others.
void find_bits(const JoinPlan& plan, std::uint32_t position, const std::uint32_t* neighbors,
               std::size_t count, double* raws) {
  const auto* const a = point<std::uint64_t>(*plan.left_points, plan.left->rows[position]);
  const std::uint32_t words = plan.right_points->dims;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const b = point<std::uint64_t>(*plan.right_points, plan.right->rows[neighbors[i]]);
    raws[i] = bits_distance(plan.metric, a, b, words);
  }
}

}  // namespace

void JoinPlan::exact_raws(std::uint32_t position, const std::uint32_t* neighbors, std::size_t count,
                          double* raws) const {
  if (left_points->scalar == ScalarType::kBits)
    find_bits(*this, position, neighbors, count, raws);
  else if (left_points->scalar == ScalarType::kFloat32)
    find_raws<float>(*this, position, neighbors, count, raws);
  else
    find_raws<double>(*this, position, neighbors, count, raws);
}

}  // namespace gpujoin::cpu

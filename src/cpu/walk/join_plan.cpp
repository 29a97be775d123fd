#include "cpu/walk/join_plan.h"

#include <algorithm>

#include "core/hamming.h"
#include "cpu/scan/several_distances.h"

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
  for (std::size_t first = 0; first < count; first += kPairsAtOnce) {
    if (count - first == 1) {
      raws[first] = raw_distance(plan.metric, a, neighbor(first), right.dims);
      break;
    }
    const T* b[kPairsAtOnce];
    double found[kPairsAtOnce];
    for (std::size_t i = 0; i < kPairsAtOnce; ++i) b[i] = neighbor(std::min(first + i, count - 1));
    raw_distances(plan.metric, a, b, right.dims, found);
    std::copy_n(found, std::min<std::size_t>(kPairsAtOnce, count - first), raws + first);
  }
}

/// The distances of a row of bits and others.
void find_bits(const JoinPlan& plan, std::uint32_t position, const std::uint32_t* neighbors,
               std::size_t count, double* raws) {
  const auto* const a = point<std::uint64_t>(*plan.left_points, plan.left->rows[position]);
  const std::uint32_t words = plan.right_points->dims;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const b = point<std::uint64_t>(*plan.right_points, plan.right->rows[neighbors[i]]);
    raws[i] = plan.metric == Metric::kJaccard ? jaccard_distance(a, b, words)
                                              : hamming_distance(a, b, words);
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

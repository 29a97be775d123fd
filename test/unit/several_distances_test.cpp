// Distances of several pairs at a time: bit by bit what one pair alone has.

#include "core/several_distances.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

TEST(SeveralDistances, are_each_the_definition) {
  Random random(7);
  for (const std::uint32_t dims : {1u, 2u, 7u, 90u, 1000u}) {
    for (const double scale : {1.0, 1e-160, 1e160, 1e308}) {
      std::vector<double> a(dims), others(kPairsAtOnce * dims);
      for (double& x : a) x = scale * random.between(-1, 1);
      for (double& x : others) x = scale * random.between(-1, 1);
      if (scale == 1.0)
        others[random.index(others.size())] = random.pick<double>({kNan, kInf, -0.0});
      const double* b[kPairsAtOnce];
      for (std::uint32_t i = 0; i < kPairsAtOnce; ++i) b[i] = others.data() + i * dims;
      for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf, Metric::kCosine}) {
        double raws[kPairsAtOnce];
        raw_distances(
            metric, a.data(), kPairsAtOnce, [&](std::size_t i) { return b[i]; }, dims, raws);
        for (std::uint32_t i = 0; i < kPairsAtOnce; ++i) {
          const double expected = raw_distance(metric, a.data(), b[i], dims);
          ASSERT_TRUE(raws[i] == expected || (std::isnan(raws[i]) && std::isnan(expected)));
        }
        const double most = raws[0];
        double some[kPairsAtOnce];
        raw_distances(
            metric, a.data(), kPairsAtOnce, [&](std::size_t i) { return b[i]; }, dims, some, most);
        for (std::uint32_t i = 0; i < kPairsAtOnce; ++i)
          ASSERT_TRUE(raws[i] <= most ? some[i] == raws[i] : !(some[i] <= most));
      }
    }
  }
}

}  // namespace
}  // namespace gpujoin::test

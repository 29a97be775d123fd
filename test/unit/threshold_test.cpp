// Thresholds and screen bounds of src/core/threshold.h: the comparison without a square root gives
// the same answer as the one with it, and no other order of summation contradicts the definition
// outside the bounds.

#include "core/threshold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

/// Values of eps that are round, extreme, or next to such.
std::vector<double> nasty_eps() {
  std::vector<double> eps = {
      0,      kDenormal, 2 * kDenormal, DBL_MIN, 0x1p-538, 0x1p-537, 0x1p-511, 1e-160,
      1e-154, 1e-20,     0.1,           0.5,     1,        2,        3,        1e10,
      1e153,  1e154,     0x1p511,       0x1p512, 1e155,    1e300,    kMax};
  const std::vector<double> round = eps;
  for (const double x : round) {
    if (x > 0) eps.push_back(below(x));
    if (x < kMax) eps.push_back(above(x));
    const double root = std::sqrt(x);
    eps.insert(eps.end(), {root, above(root), below(root) < 0 ? 0 : below(root)});
  }
  return eps;
}

std::vector<double> random_eps(std::uint64_t seed, int count) {
  Random random(seed);
  std::vector<double> eps;
  for (int i = 0; i < count; ++i)
    eps.push_back(i % 2 ? std::abs(random.any_finite()) : random.between(0, 100));
  return eps;
}

void expect_raw_is_exact(double eps) {
  const Threshold threshold = make_threshold(Metric::kL2, eps);
  ASSERT_GE(threshold.raw, 0);
  EXPECT_LE(std::sqrt(threshold.raw), eps) << "eps " << eps;
  EXPECT_GT(std::sqrt(above(threshold.raw)), eps) << "eps " << eps;
  // Sums close by, and the square of eps wherever that falls.
  double low = threshold.raw, high = threshold.raw;
  for (int i = 0; i < 20; ++i) {
    for (const double sum : {low, high, eps * eps}) {
      EXPECT_EQ(std::sqrt(sum) <= eps, sum <= threshold.raw) << "eps " << eps << ", sum " << sum;
    }
    low = std::max(0.0, below(low));
    high = above(high);
  }
}

TEST(Threshold, raw_decides_like_the_square_root_for_nasty_eps) {
  for (const double eps : nasty_eps()) expect_raw_is_exact(eps);
}

TEST(Threshold, raw_decides_like_the_square_root_for_random_eps) {
  for (const double eps : random_eps(11, 3000)) expect_raw_is_exact(eps);
}

TEST(Threshold, squaring_eps_would_not_be_exact) {
  int different = 0;
  for (const double eps : random_eps(12, 1000))
    different += make_threshold(Metric::kL2, eps).raw != eps * eps;
  EXPECT_GT(different, 100) << "the eps tried cannot tell the threshold from the square";
}

TEST(Threshold, infinite_and_nan_sums_match_nothing) {
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf}) {
    const Threshold threshold = make_threshold(metric, kMax);
    EXPECT_FALSE(kInf <= threshold.raw);
    EXPECT_FALSE(kNan <= threshold.raw);
  }
}

TEST(Threshold, other_metrics_compare_with_eps_itself) {
  for (const double eps : nasty_eps()) {
    for (const Metric metric : {Metric::kL1, Metric::kLInf}) {
      EXPECT_EQ(make_threshold(metric, eps).raw, eps);
      EXPECT_EQ(make_threshold(metric, eps).reach, eps);
    }
  }
}

TEST(Threshold, cosine_distances_bound_no_coordinate) {
  for (const double eps : nasty_eps()) {
    EXPECT_EQ(make_threshold(Metric::kCosine, eps).raw, eps);
    EXPECT_EQ(make_threshold(Metric::kCosine, eps).reach, kMax);
  }
}

TEST(Threshold, reach_bounds_every_coordinate_of_a_match) {
  Random random(13);
  std::vector<double> all = nasty_eps();
  const std::vector<double> more = random_eps(14, 300);
  all.insert(all.end(), more.begin(), more.end());
  for (const double eps : all) {
    const Threshold threshold = make_threshold(Metric::kL2, eps);
    // The largest difference that still matches alone, and not a hair less.
    EXPECT_LE(std::sqrt(threshold.reach * threshold.reach), eps) << "eps " << eps;
    EXPECT_GT(std::sqrt(above(threshold.reach) * above(threshold.reach)), eps) << "eps " << eps;
    for (int i = 0; i < 50; ++i) {
      const double differences[] = {threshold.reach * random.between(0.9, 1.1),
                                    eps * random.between(0, 1.1),
                                    threshold.reach * random.unit() * random.unit()};
      const double zero[3] = {};
      if (!(raw_distance(Metric::kL2, differences, zero, 3) <= threshold.raw)) continue;
      for (const double difference : differences)
        EXPECT_LE(difference, threshold.reach) << "eps " << eps;
    }
  }
}

TEST(Threshold, reach_covers_squares_that_underflow) {
  // Points 2^-538 apart have distance 0 by the definition, so a join with eps 0 must be able to
  // find them.
  EXPECT_GE(make_threshold(Metric::kL2, 0).reach, 0x1p-538);
  EXPECT_LT(make_threshold(Metric::kL2, 0).reach, 0x1p-537);
  EXPECT_GE(make_threshold(Metric::kL2, 1e-300).reach, 0x1p-538);
}

TEST(Threshold, largest_double_finds_every_limit) {
  Random random(15);
  for (int i = 0; i < 1000; ++i) {
    const double limit = std::abs(random.any_finite());
    EXPECT_EQ(largest_double([limit](double x) { return x <= limit; }), limit);
  }
  EXPECT_EQ(largest_double([](double x) { return x <= 0; }), 0);
  EXPECT_EQ(largest_double([](double) { return true; }), kMax);
}

/// Sums of non-negative terms as fast paths may take them: other orders, lanes, fused multiply-add,
/// and a wider type, whose squares do not underflow.
std::vector<double> other_sums(Metric metric, Random& random, std::vector<double> differences) {
  std::vector<double> sums;
  const auto term = [&](double x) { return metric == Metric::kL2 ? x * x : std::abs(x); };
  for (int order = 0; order < 6; ++order) {
    double plain = 0, fused = 0, lanes[8] = {};
    long double wider = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const double x = differences[i];
      plain += term(x);
      fused = metric == Metric::kL2 ? std::fma(x, x, fused) : fused + term(x);
      lanes[i % 8] += term(x);
      wider += metric == Metric::kL2 ? static_cast<long double>(x) * x : std::abs(x);
    }
    sums.push_back(plain);
    sums.push_back(fused);
    sums.push_back(static_cast<double>(wider));
    sums.push_back(((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                   ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7])));
    if (order == 0) {
      std::sort(differences.begin(), differences.end(),
                [](double a, double b) { return std::abs(a) < std::abs(b); });
    } else if (order == 1) {
      std::reverse(differences.begin(), differences.end());
    } else {
      for (std::size_t i = differences.size(); i > 1; --i)
        std::swap(differences[i - 1], differences[random.index(i)]);
    }
  }
  return sums;
}

void expect_bounds_agree(Metric metric, Random& random, std::uint32_t dims, double scale,
                         int* disagreements) {
  std::vector<double> a(dims), zero(dims, 0.0);
  const bool wide = random.index(2) != 0;
  for (double& x : a)
    x = scale * (wide ? std::exp2(random.between(-40, 0)) : random.between(-1, 1));
  const double sum = raw_distance(metric, a.data(), zero.data(), dims);
  const std::vector<double> others = other_sums(metric, random, a);
  std::vector<double> thresholds = {sum, above(sum), std::max(0.0, below(sum))};
  thresholds.insert(thresholds.end(), others.begin(), others.end());
  for (const double threshold : thresholds) {
    if (threshold > kMax) continue;
    const ScreenBounds bounds = make_screen_bounds(metric, threshold, dims);
    for (const double other : others) {
      *disagreements += (other <= threshold) != (sum <= threshold);
      if (other <= bounds.accept) {
        ASSERT_LE(sum, threshold) << "dims " << dims << ", scale " << scale;
      }
      if (other > bounds.reject) {
        ASSERT_GT(sum, threshold) << "dims " << dims << ", scale " << scale;
      }
    }
  }
}

TEST(ScreenBounds, no_summation_order_contradicts_the_definition) {
  for (const Metric metric : {Metric::kL2, Metric::kL1}) {
    Random random(16);
    int disagreements = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(i % 10 ? 60 : 2000));
      const std::vector<double> scales = {1,      1,        1e-3,     1e5,    1e150,
                                          1e-150, 0x1p-535, 0x1p-530, 1e-300, 1e-308};
      expect_bounds_agree(metric, random, dims, random.pick(scales), &disagreements);
    }
    EXPECT_GT(disagreements, 1000) << "the orders tried do not differ, so nothing was tested";
  }
}

TEST(ScreenBounds, the_uncertain_band_is_thin) {
  for (const std::uint32_t dims : {1u, 33u, 784u, kMaxDimensions}) {
    for (const double threshold : {1e-200, 1.0, 1e200}) {
      const ScreenBounds bounds = make_screen_bounds(Metric::kL2, threshold, dims);
      EXPECT_GE(bounds.accept, threshold * (1 - 1e-10));
      EXPECT_LE(bounds.accept, threshold);
      EXPECT_LE(bounds.reject, threshold * (1 + 1e-10));
      EXPECT_GE(bounds.reject, threshold);
    }
  }
}

TEST(ScreenBounds, maximum_needs_no_second_look) {
  for (const double threshold : {0.0, kDenormal, 1.0, kMax}) {
    const ScreenBounds bounds = make_screen_bounds(Metric::kLInf, threshold, 100);
    EXPECT_EQ(bounds.accept, threshold);
    EXPECT_EQ(bounds.reject, threshold);
  }
}

TEST(ScreenBounds, nan_and_overflow_are_left_to_the_definition) {
  for (const double threshold : {0.0, 1.0, kMax}) {
    const ScreenBounds bounds = make_screen_bounds(Metric::kL2, threshold, 10);
    EXPECT_FALSE(kNan <= bounds.accept);
    EXPECT_FALSE(kInf <= bounds.accept);
  }
}

}  // namespace
}  // namespace gpujoin::test

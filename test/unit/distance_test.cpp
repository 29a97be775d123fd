// The definition of distance in src/core/distance.h: its arithmetic step by step, and IEEE's
// special values.

#include "core/distance.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <vector>

#include "oracle.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<Metric> kMetrics = {Metric::kL2, Metric::kL1, Metric::kLInf};

double raw(Metric metric, const std::vector<double>& a, const std::vector<double>& b) {
  return raw_distance(metric, a.data(), b.data(), static_cast<std::uint32_t>(a.size()));
}

TEST(Distance, sums_of_squares_are_not_fused) {
  // (1 + 2^-30)^2 rounds to 1 + 2^-29. Added to 2^-53 that is a tie, which goes to even; with the
  // square kept exact, its 2^-60 breaks the tie upwards.
  const std::vector<double> a = {0x1p-27, 0x1p-27, 1 + 0x1p-30};
  const std::vector<double> b = {0, 0, 0};
  const double fused = std::fma(a[2], a[2], std::fma(a[1], a[1], a[0] * a[0]));
  ASSERT_EQ(fused, 1 + 0x1p-29 + 0x1p-52);
  EXPECT_EQ(raw(Metric::kL2, a, b), 1 + 0x1p-29);
}

TEST(Distance, random_sums_are_not_fused) {
  Random random(1);
  int different = 0;
  for (int i = 0; i < 10000; ++i) {
    double sum = 0, fused = 0;
    std::vector<double> a(3), b(3);
    for (int d = 0; d < 3; ++d) {
      a[d] = random.between(-1, 1);
      b[d] = random.between(-1, 1);
      const volatile double difference = a[d] - b[d];
      const volatile double square = difference * difference;
      const volatile double next = sum + square;
      sum = next;
      fused = std::fma(difference, difference, fused);
    }
    ASSERT_EQ(raw(Metric::kL2, a, b), sum);
    different += sum != fused;
  }
  EXPECT_GT(different, 100) << "the data cannot tell fused from separate rounding";
}

TEST(Distance, sums_go_in_column_order) {
  // 1 swallows each 2^-54 that comes after it, but three of them before it add up to more than half
  // an ulp.
  const std::vector<double> large_first = {1, 0x1p-27, 0x1p-27, 0x1p-27};
  const std::vector<double> large_last = {0x1p-27, 0x1p-27, 0x1p-27, 1};
  const std::vector<double> zero(4, 0.0);
  EXPECT_EQ(raw(Metric::kL2, large_first, zero), 1);
  EXPECT_EQ(raw(Metric::kL2, large_last, zero), 1 + 0x1p-52);
  const std::vector<double> l1_first = {1, 0x1p-54, 0x1p-54, 0x1p-54};
  const std::vector<double> l1_last = {0x1p-54, 0x1p-54, 0x1p-54, 1};
  EXPECT_EQ(raw(Metric::kL1, l1_first, zero), 1);
  EXPECT_EQ(raw(Metric::kL1, l1_last, zero), 1 + 0x1p-52);
}

TEST(Distance, differences_are_rounded_before_squaring) {
  const std::vector<double> a = {1};
  const std::vector<double> b = {-0x1p-54};
  for (const Metric metric : kMetrics) EXPECT_EQ(raw(metric, a, b), 1);
}

TEST(Distance, floats_are_widened_exactly) {
  const float a[] = {0.1f, 16777216.0f, FLT_MAX, 1e-45f};
  const float b[] = {0.2f, 16777217.0f - 3.0f, -FLT_MAX, 0};
  std::vector<double> wide_a(a, a + 4), wide_b(b, b + 4);
  for (const Metric metric : kMetrics) {
    const double expected = definition_of_distance(metric, wide_a.data(), wide_b.data(), 4);
    EXPECT_EQ(distance_from_raw(metric, raw_distance(metric, a, b, 4)), expected);
    EXPECT_EQ(raw_distance(metric, a, wide_b.data(), 4), raw(metric, wide_a, wide_b))
        << "mixed types";
  }
  const float tenth[] = {0.1f}, fifth[] = {0.2f};
  EXPECT_EQ(raw_distance(Metric::kL1, tenth, fifth, 1),
            static_cast<double>(0.2f) - static_cast<double>(0.1f));
  EXPECT_NE(raw_distance(Metric::kL1, tenth, fifth, 1),
            static_cast<double>(0.2f - 0.1f) * (1 + 1e-9));
}

TEST(Distance, known_distances_of_all_metrics) {
  const std::vector<double> a = {1, 2, -3};
  const std::vector<double> b = {4, -2, 9};
  EXPECT_EQ(raw(Metric::kL2, a, b), 169);
  EXPECT_EQ(distance_from_raw(Metric::kL2, 169), 13);
  EXPECT_EQ(raw(Metric::kL1, a, b), 19);
  EXPECT_EQ(distance_from_raw(Metric::kL1, 19), 19);
  EXPECT_EQ(raw(Metric::kLInf, a, b), 12);
  EXPECT_EQ(distance_from_raw(Metric::kLInf, 12), 12);
}

TEST(Distance, no_dimensions_are_distance_zero) {
  for (const Metric metric : kMetrics) EXPECT_EQ(raw(metric, {}, {}), 0);
}

TEST(Distance, nan_in_any_column_stays) {
  for (const Metric metric : kMetrics) {
    for (std::size_t at = 0; at < 4; ++at) {
      std::vector<double> a = {1, 2, 3, 4};
      const std::vector<double> b = {5, 5, kInf, 5};
      a[at] = kNan;
      EXPECT_TRUE(std::isnan(raw(metric, a, b))) << "column " << at << " of the left point";
      EXPECT_TRUE(std::isnan(raw(metric, b, a))) << "column " << at << " of the right point";
    }
  }
}

TEST(Distance, infinities_follow_ieee) {
  for (const Metric metric : kMetrics) {
    EXPECT_EQ(raw(metric, {kInf, 0}, {0, 0}), kInf);
    EXPECT_EQ(raw(metric, {kInf, 0}, {-kInf, 0}), kInf);
    EXPECT_TRUE(std::isnan(raw(metric, {kInf, 0}, {kInf, 0})))
        << "inf - inf is NaN, so not even equal";
    EXPECT_TRUE(std::isnan(raw(metric, {0, -kInf}, {0, -kInf})));
  }
}

TEST(Distance, squares_overflow_and_underflow) {
  EXPECT_EQ(raw(Metric::kL2, {1e200}, {0}), kInf);
  EXPECT_EQ(raw(Metric::kL1, {1e200}, {0}), 1e200);
  EXPECT_EQ(raw(Metric::kL1, {kMax}, {-kMax}), kInf);
  EXPECT_EQ(raw(Metric::kL2, {1e-200}, {0}), 0);
  EXPECT_EQ(raw(Metric::kLInf, {kDenormal}, {0}), kDenormal);
  EXPECT_EQ(raw(Metric::kL2, {0x1p-537}, {0}), kDenormal);
  EXPECT_EQ(raw(Metric::kL2, {below(0x1p-537)}, {0}), kDenormal)
      << "more than half of the smallest double";
  EXPECT_EQ(raw(Metric::kL2, {0x1p-538}, {0}), 0);
}

TEST(Distance, zero_has_no_sign) {
  for (const Metric metric : kMetrics) {
    EXPECT_EQ(raw(metric, {-0.0, 1}, {0.0, 1}), 0);
    EXPECT_FALSE(std::signbit(raw(metric, {-0.0}, {-0.0})));
    EXPECT_FALSE(std::signbit(raw(metric, {0.0}, {-0.0})));
  }
}

TEST(Distance, known_cosine_distances) {
  const auto cosine = [](const std::vector<double>& a, const std::vector<double>& b) {
    return raw(Metric::kCosine, a, b);
  };
  EXPECT_EQ(cosine({3, 4}, {3, 4}), 0);
  EXPECT_EQ(cosine({3, 4}, {300, 400}), 0) << "lengths do not matter";
  EXPECT_EQ(cosine({3, 4}, {-3, -4}), 2);
  EXPECT_EQ(cosine({3, 4}, {-4, 3}), 1);
  EXPECT_EQ(cosine({1, 0}, {3, 4}), 1 - 3.0 / 5);
  EXPECT_EQ(cosine({-0.0, 1}, {0.0, 5}), 0);
  EXPECT_EQ(distance_from_raw(Metric::kCosine, 0.25), 0.25);
}

TEST(Distance, vectors_without_a_direction_have_no_cosine_distance) {
  const std::vector<double> one = {1, 1};
  for (const double x : {0.0, -0.0, 1e-200, 1e200, kInf, -kInf, kNan}) {
    EXPECT_TRUE(std::isnan(raw(Metric::kCosine, {x, 0}, one))) << x;
    EXPECT_TRUE(std::isnan(raw(Metric::kCosine, one, {0, x}))) << x;
    EXPECT_TRUE(std::isnan(raw(Metric::kCosine, {x, 0}, {x, 0}))) << x;
  }
  EXPECT_TRUE(std::isnan(raw(Metric::kCosine, {1e-200}, {1e200})))
      << "a dot product of 1 over a length of 0";
  EXPECT_EQ(raw(Metric::kCosine, {1e-161}, {1e154}), 0) << "squares as far out as they may be";
}

TEST(Distance, rounding_may_keep_a_vector_from_itself) {
  Random random(4);
  int apart = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<double> a = {random.unit(), random.unit(), random.unit()};
    const double distance = raw(Metric::kCosine, a, a);
    ASSERT_GE(distance, 0);
    ASSERT_LE(distance, 4 * DBL_EPSILON);
    apart += distance > 0;
  }
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, 1000);
}

TEST(Distance, is_symmetric_and_matches_the_definition_on_any_bits) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(5));
    std::vector<double> a(dims), b(dims);
    for (std::uint32_t d = 0; d < dims; ++d) {
      a[d] = std::bit_cast<double>(random.bits());
      b[d] = random.index(2) ? std::bit_cast<double>(random.bits())
                             : a[d] * random.between(0.999, 1.001);
    }
    for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf, Metric::kCosine}) {
      const double got = distance_from_raw(metric, raw(metric, a, b));
      const double expected = definition_of_distance(metric, a.data(), b.data(), dims);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
          << got << " for " << expected;
      const double reverse = distance_from_raw(metric, raw(metric, b, a));
      ASSERT_TRUE(got == reverse || (std::isnan(got) && std::isnan(reverse)));
    }
  }
}

TEST(Distance, partial_sums_never_shrink) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const double sum = std::abs(random.any_finite());
    const double a = random.any_finite(), b = random.any_finite();
    ASSERT_GE(add_coordinate<Metric::kL2>(sum, a, b), sum);
    ASSERT_GE(add_coordinate<Metric::kL1>(sum, a, b), sum);
    ASSERT_GE(add_coordinate<Metric::kLInf>(sum, a, b), sum);
  }
}

}  // namespace
}  // namespace gpujoin::test

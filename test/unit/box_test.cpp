// core/box.h: the definition against one in other words, and what indexes of boxes rest on: that
// it is monotone, and that a widened box overlaps every partner of the box.

#include "core/box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "boxes.h"
#include "oracle.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// Bounds that hurt and bounds that are near each other.
double any_bound(Random& random) {
  static const std::vector<double> special = {-kInf,     kInf,       -kMax,   kMax, 0,        -0.0,
                                              kDenormal, -kDenormal, DBL_MIN, 1,    above(1), -1};
  switch (random.index(4)) {
    case 0:
      return random.pick(special);
    case 1:
      return random.any_finite();
    case 2:
      return static_cast<double>(random.index(9)) * 0.1;
    default:
      return random.between(-2, 2);
  }
}

std::vector<double> any_box(Random& random, std::uint32_t dims) {
  std::vector<double> box(2 * dims);
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double a = any_bound(random), b = random.index(4) == 0 ? a : any_bound(random);
    box[d] = std::min(a, b);
    box[dims + d] = std::max(a, b);
  }
  return box;
}

double any_eps(Random& random) {
  static const std::vector<double> special = {0, kDenormal, 1e-200, 0.1, 0.3, 1, 1e200, kMax};
  return random.index(2) == 0 ? random.pick(special) : std::abs(random.any_finite());
}

TEST(Box, passes_is_the_definition) {
  Random random(301);
  std::uint64_t passed = 0;
  for (int round = 0; round < 200000; ++round) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(kMaxBoxDimensions));
    const std::vector<double> a = any_box(random, dims), b = any_box(random, dims);
    const double eps = any_eps(random);
    const Metric metric = kBoxMetrics[random.index(3)];
    const BoxTest test = make_box_test(metric, eps);
    const bool pass = passes(test, a.data(), b.data(), dims);
    ASSERT_EQ(pass, definition_of_box_distance(metric, eps, a.data(), b.data(), 2 * dims) <= eps);
    ASSERT_EQ(pass, passes(test, b.data(), a.data(), dims)) << "the same in both orders";
    passed += pass;
  }
  EXPECT_GT(passed, 10000u);
  EXPECT_LT(passed, 190000u);
}

TEST(Box, who_passes_with_a_box_passes_with_every_box_around_it) {
  Random random(302);
  std::uint64_t passed = 0;
  for (int round = 0; round < 200000; ++round) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(3));
    const std::vector<double> a = any_box(random, dims), b = any_box(random, dims);
    std::vector<double> around = any_box(random, dims);
    for (std::uint32_t d = 0; d < dims; ++d) {
      around[d] = std::min(around[d], b[d]);
      around[dims + d] = std::max(around[dims + d], b[dims + d]);
    }
    const BoxTest test = make_box_test(kBoxMetrics[random.index(3)], any_eps(random));
    if (!passes(test, a.data(), b.data(), dims)) continue;
    ++passed;
    ASSERT_TRUE(passes(test, a.data(), around.data(), dims));
  }
  EXPECT_GT(passed, 10000u);
}

TEST(Box, a_widened_box_overlaps_every_partner) {
  Random random(303);
  std::uint64_t apart = 0;
  for (int round = 0; round < 400000; ++round) {
    std::vector<double> a = any_box(random, 1), b = any_box(random, 1);
    double eps = any_eps(random);
    if (random.index(2) == 0 && b[0] > a[1] && b[0] - a[1] <= kMax) eps = b[0] - a[1];
    const BoxTest test = make_box_test(kBoxMetrics[random.index(3)], eps);
    if (!passes(test, a.data(), b.data(), 1)) continue;
    apart += !boxes_meet(a.data(), b.data(), 1);
    ASSERT_LE(b[0], widened_high(a[1], test.reach)) << a[1] << " " << eps;
    ASSERT_GE(b[1], widened_low(a[0], test.reach)) << a[0] << " " << eps;
  }
  EXPECT_GT(apart, 10000u);
}

TEST(Box, nothing_is_widened_where_boxes_have_to_touch) {
  const BoxTest test = make_box_test(Metric::kL2, 0);
  EXPECT_TRUE(test.meet);
  for (const double x : {0.0, 1.0, kMax, -kInf, kInf, kDenormal}) {
    EXPECT_EQ(widened_low(x, test.reach), x);
    EXPECT_EQ(widened_high(x, test.reach), x);
  }
}

TEST(Box, what_is_no_box) {
  const double ordinary[] = {0, 1, 0, 2}, point[] = {3, 4, 3, 4}, turned[] = {0, 2, 1, 1};
  const double nan_low[] = {kNan, 0, 1, 1}, nan_high[] = {0, 0, 1, kNan};
  const double endless[] = {-kInf, kInf, kInf, kInf};
  EXPECT_TRUE(is_box(ordinary, 2));
  EXPECT_TRUE(is_box(point, 2));
  EXPECT_TRUE(is_box(endless, 2));
  EXPECT_FALSE(is_box(turned, 2));
  EXPECT_FALSE(is_box(nan_low, 2));
  EXPECT_FALSE(is_box(nan_high, 2));
}

}  // namespace
}  // namespace gpujoin::test

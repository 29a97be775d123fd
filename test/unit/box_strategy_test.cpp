// choose_box_strategy(): what is asked for is taken, the choice is deterministic, and it picks what
// the data calls for in cases where there is no doubt.

#include "engine/strategy/box_strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "boxes.h"
#include "engine/strategy/choose_strategy.h"
#include "points.h"

namespace gpujoin::test {
namespace {

Points uniform_boxes(std::uint64_t rows, std::uint32_t dims, double side, std::uint64_t seed) {
  Random random(seed);
  return Points(2 * dims, make_boxes(Shape::kUniform, random, rows, dims, side),
                ScalarType::kFloat32);
}

TEST(BoxStrategy, takes_what_is_asked_for_and_says_why) {
  for (const std::uint64_t rows : {1u, 50u, 5000u}) {
    const Points boxes = uniform_boxes(rows, 2, 1, 501);
    JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 1);
    for (const BoxMethod method : kBoxMethods) {
      request.knobs.box_method = method;
      const BoxStrategy strategy = choose_box_strategy(request);
      EXPECT_NE(strategy.method, BoxMethod::kAuto);
      if (method != BoxMethod::kAuto) {
        EXPECT_EQ(strategy.method, method);
      }
      EXPECT_GT(std::strlen(strategy.reason), 0u);
      EXPECT_TRUE(std::isfinite(strategy.ms));
      EXPECT_LT(strategy.dimension, 2u);
    }
  }
}

TEST(BoxStrategy, is_deterministic) {
  const Points left = uniform_boxes(4000, 3, 2, 502), right = uniform_boxes(900, 3, 2, 503);
  const JoinRequest request = make_box_request(left, &right, Metric::kL1, 0.5);
  const BoxStrategy one = choose_box_strategy(request), two = choose_box_strategy(request);
  EXPECT_EQ(one.method, two.method);
  EXPECT_EQ(one.ms, two.ms);
  EXPECT_STREQ(one.reason, two.reason);
}

TEST(BoxStrategy, few_boxes_need_no_index) {
  const Points boxes = uniform_boxes(100, 2, 1, 504);
  EXPECT_EQ(choose_box_strategy(make_box_request(boxes, nullptr, Metric::kL2, 0)).method,
            BoxMethod::kNone);
}

TEST(BoxStrategy, many_small_boxes_need_one) {
  const Points boxes = uniform_boxes(60000, 2, 0.1, 505);
  const BoxStrategy strategy =
      choose_box_strategy(make_box_request(boxes, nullptr, Metric::kL2, 0));
  EXPECT_NE(strategy.method, BoxMethod::kNone);
  EXPECT_LT(strategy.candidates, 60000.0 * 60000 / 50);
}

TEST(BoxStrategy, boxes_that_all_overlap_are_compared_each_with_each) {
  const Points boxes = uniform_boxes(20000, 2, 100000, 506);
  EXPECT_EQ(choose_box_strategy(make_box_request(boxes, nullptr, Metric::kL2, 0)).method,
            BoxMethod::kNone);
}

TEST(BoxStrategy, a_sweep_takes_the_dimension_that_tells_boxes_apart) {
  Random random(507);
  std::vector<double> rows;
  for (int i = 0; i < 5000; ++i) {
    const double x = random.unit(), y = random.between(0, 1000), z = random.between(0, 10);
    append(rows, {x, y, z, x + 1, y + 1, z + 1});
  }
  const Points boxes(6, rows);
  JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
  request.knobs.box_method = BoxMethod::kSortSweep;
  EXPECT_EQ(choose_box_strategy(request).dimension, 1u);
}

TEST(BoxStrategy, the_smaller_side_is_indexed) {
  const Points few = uniform_boxes(1000, 2, 1, 508), many = uniform_boxes(30000, 2, 1, 509);
  EXPECT_TRUE(choose_box_strategy(make_box_request(few, &many, Metric::kL2, 0)).left_indexed);
  EXPECT_FALSE(choose_box_strategy(make_box_request(many, &few, Metric::kL2, 0)).left_indexed);
}

TEST(BoxStrategy, one_giant_does_not_widen_the_cells) {
  Random random(510);
  std::vector<double> rows = make_boxes(Shape::kUniform, random, 511, 1, 1);
  append(rows, {-1e6, 1e6});
  const Points boxes(2, rows);
  JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
  request.knobs.box_method = BoxMethod::kLayeredGrid;
  EXPECT_LT(choose_box_strategy(request).spreads[0].length, 1);
}

TEST(BoxStrategy, infinite_bounds_and_rows_that_are_no_boxes_do_not_matter) {
  std::vector<double> rows;
  for (int i = 0; i < 2000; ++i) {
    append(rows, {-kInf, kInf});
    append(rows, {kNan, 1});
    append(rows, {2, 1});
    append(rows, {-kMax, kMax});
  }
  const Points boxes(2, rows);
  for (const BoxMethod method : kBoxMethods) {
    JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 1e300);
    request.knobs.box_method = method;
    const BoxStrategy strategy = choose_box_strategy(request);
    EXPECT_TRUE(std::isfinite(strategy.spreads[0].length));
    EXPECT_TRUE(std::isfinite(strategy.ms));
  }
}

TEST(BoxStrategy, tells_how_long_a_core_takes) {
  const Points few = uniform_boxes(100, 2, 1, 511), many = uniform_boxes(60000, 2, 1, 512);
  const double short_ms = estimate_core_ms(make_box_request(few, nullptr, Metric::kL2, 0), 0);
  const double long_ms = estimate_core_ms(make_box_request(many, nullptr, Metric::kL2, 0), 0);
  EXPECT_GT(short_ms, 0);
  EXPECT_LT(short_ms, 1);
  EXPECT_GT(long_ms, 2);
  EXPECT_LT(long_ms, 100) << "less than each with each";
}

TEST(BoxStrategy, names_its_methods) {
  const std::string names[] = {to_string(BoxMethod::kAuto), to_string(BoxMethod::kLayeredGrid),
                               to_string(BoxMethod::kSortSweep), to_string(BoxMethod::kNone)};
  const std::string expected[] = {"auto", "layered_grid", "sort_sweep", "none"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(names[i], expected[i]);
}

}  // namespace
}  // namespace gpujoin::test

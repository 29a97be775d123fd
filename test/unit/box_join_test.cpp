// Joins of boxes by every method against brute force: shapes, dimensions, metrics, selections, and
// bounds that hurt.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "boxes.h"
#include "core/box.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class BoxJoin : public BoxEngineTest {
 protected:
  /// By every method, in both outputs and, of a self-join, each selection.
  void expect_exact(const Points& left, const Points* right, Metric metric, double eps) {
    const Oracle oracle = Oracle::of_boxes(left, right, metric, eps);
    JoinRequest request = make_box_request(left, right, metric, eps);
    for (const BoxMethod method : kBoxMethods) {
      for (const Output::Kind output : {Output::kPairs, Output::kTotal}) {
        for (const PairSelection pairs :
             {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}) {
          if (right != nullptr && pairs != PairSelection::kAll) continue;
          request.knobs.box_method = method;
          request.knobs.batch_pairs = pairs == PairSelection::kDistinct ? 3 : 0;
          request.resources.threads = method == BoxMethod::kNone ? 1 : 3;
          ask(request, output);
          select(request, pairs);
          const RunResult result = run_join(engine(), request);
          ASSERT_TRUE(matches_oracle(result, request, oracle));
          const BoxMethod ran = result.stats.box_method;
          const bool empty = left.rows() == 0 || (right != nullptr && right->rows() == 0);
          ASSERT_TRUE(empty || (method == BoxMethod::kAuto ? ran != method : ran == method));
        }
      }
    }
  }

  /// Rows of two sides: joined both ways, each with itself, in every metric, touching and within
  /// eps, in single and double precision.
  void expect_exact(std::uint32_t dims, const std::vector<double>& a, const std::vector<double>& b,
                    const std::vector<double>& radii) {
    for (const ScalarType scalar : {ScalarType::kFloat64, ScalarType::kFloat32}) {
      const Points left(2 * dims, a, scalar), right(2 * dims, b, scalar);
      for (const double eps : radii) {
        for (const Metric metric : kBoxMetrics) {
          expect_exact(left, &right, metric, eps);
          expect_exact(right, &left, metric, eps);
          expect_exact(left, nullptr, metric, eps);
          if (eps == 0) break;  // no metric is asked
        }
      }
    }
  }
};
GPUJOIN_ON_EVERY_ENGINE(BoxJoin);

TEST_P(BoxJoin, every_method_matches_brute_force_in_every_dimension) {
  Random random(201);
  for (std::uint32_t dims = 1; dims <= kMaxBoxDimensions; ++dims) {
    const double side = dims < 3 ? 4 : 30;
    expect_exact(dims, make_boxes(Shape::kUniform, random, 150, dims, side),
                 make_boxes(Shape::kUniform, random, 70, dims, side), {0, 5});
  }
}

TEST_P(BoxJoin, every_method_matches_brute_force_on_every_shape_of_data) {
  Random random(202);
  for (const Shape shape : kShapes)
    expect_exact(2, make_boxes(shape, random, 120, 2, 1), make_boxes(shape, random, 200, 2, 3),
                 {0, 0.5});
}

TEST_P(BoxJoin, dense_boxes_and_sparse_ones) {
  Random random(203);
  for (const double side : {0.0, 1.0, 60.0})
    expect_exact(2, make_boxes(Shape::kUniform, random, 130, 2, side),
                 make_boxes(Shape::kUniform, random, 130, 2, side / 8), {0, 2});
}

TEST_P(BoxJoin, boxes_enough_for_many_parts_and_blocks) {
  Random random(204);
  const Points left(4, make_boxes(Shape::kUniform, random, 3000, 2, 1.5), ScalarType::kFloat32);
  const Points right(4, make_boxes(Shape::kClustered, random, 900, 2, 0.5), ScalarType::kFloat32);
  expect_exact(left, &right, Metric::kL2, 0);
  expect_exact(right, &left, Metric::kL1, 0.3);
  expect_exact(left, nullptr, Metric::kLInf, 0.01);
}

/// Too many boxes for the oracle: each method is held against each with each.
TEST_P(BoxJoin, boxes_that_cover_very_many_cells) {
  Random random(212);
  std::vector<double> rows = make_boxes(Shape::kUniform, random, 20000, 2, 1);
  for (int i = 0; i < 300; ++i) {
    const double x = random.between(-50, 50), y = random.between(-50, 50);
    append(rows, {x, y, x + random.between(20, 90), y + random.between(20, 90)});
  }
  const Points boxes(4, rows, ScalarType::kFloat32);
  const Points others(4, make_boxes(Shape::kUniform, random, 30000, 2, 1), ScalarType::kFloat32);
  for (const Points* other : {static_cast<const Points*>(nullptr), &others}) {
    JoinRequest request = make_box_request(boxes, other, Metric::kL2, 0.1);
    if (other == nullptr) select(request, PairSelection::kUnordered);
    request.knobs.box_method = BoxMethod::kNone;
    const RunResult expected = run_join(engine(), request);
    ASSERT_GT(expected.pairs.size(), 500000u);
    for (const BoxMethod method : {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep}) {
      request.knobs.box_method = method;
      const RunResult result = run_join(engine(), request);
      EXPECT_TRUE(result.pairs == expected.pairs);
      EXPECT_LT(result.stats.candidates, expected.stats.candidates / 2);
    }
  }
}

TEST_P(BoxJoin, more_boxes_than_parts_of_the_least_size) {
  constexpr std::uint64_t kMany = 1200000;
  Random random(213);
  std::vector<double> rows(4 * kMany);
  for (std::uint64_t row = 0; row < kMany; ++row) {
    double* const box = &rows[4 * row];
    box[0] = random.unit();
    box[1] = random.unit();
    box[2] = box[0] + 1e-3;
    box[3] = box[1] + 1e-3;
  }
  const Points boxes(4, rows, ScalarType::kFloat32);
  JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
  ask(request, Output::kTotal);
  request.knobs.box_method = BoxMethod::kSortSweep;
  const RunResult expected = run_join(engine(), request);
  EXPECT_GT(expected.total, 2 * kMany);
  request.knobs.box_method = BoxMethod::kLayeredGrid;
  const RunResult result = run_join(engine(), request);
  EXPECT_EQ(result.total, expected.total);
  EXPECT_LT(result.stats.candidates, 200 * kMany);
}

TEST_P(BoxJoin, very_unequal_sizes) {
  Random random(205);
  std::vector<double> mixed = make_boxes(Shape::kUniform, random, 400, 2, 1);
  for (int i = 0; i < 12; ++i) {
    const double x = random.between(-50, 50), y = random.between(-50, 50);
    append(mixed, {x, y, x + 80, y + 0.1});
    append(mixed, {-1e30, y, 1e30, y + 40});
  }
  append(mixed, {-1e300, -1e300, 1e300, 1e300});
  expect_exact(2, mixed, make_boxes(Shape::kUniform, random, 90, 2, 0.1), {0, 1});
}

TEST_P(BoxJoin, infinite_bounds) {
  const std::vector<double> hostile = {
      -kInf, -kInf, kInf,  kInf, 0,     0,     kInf, 1,      -kInf, 5,     -kInf,     9,
      kInf,  kInf,  kInf,  kInf, -kMax, -kMax, kMax, kMax,   kMax,  kMax,  kMax,      kMax,
      -kInf, 0,     -kMax, 0,    kMax,  0,     kInf, 0,      -kInf, -kInf, -kInf,     -kInf,
      -1,    -1,    -1,    -1,   1e38,  1e38,  3e38, 3.2e38, -3e38, -1e38, -kMax / 2, kMax / 4};
  Random random(206);
  const std::vector<double> plain = make_boxes(Shape::kLattice, random, 30, 2, 4);
  expect_exact(2, hostile, plain, {0, 1, 1e38, 1e300, kMax});
  expect_exact(2, hostile, hostile, {0, 1, kMax});
}

TEST_P(BoxJoin, rows_that_are_no_boxes_match_nothing) {
  Random random(207);
  std::vector<double> rows = make_boxes(Shape::kLattice, random, 80, 2, 2);
  for (std::size_t row = 0; row < 80; row += 4) {
    rows[row * 4 + row % 3] = row % 8 == 0 ? kNan : 1e6;  // a low bound above its high one
    if (row % 3 == 2) rows[row * 4] = kInf;
  }
  expect_exact(2, rows, make_boxes(Shape::kLattice, random, 50, 2, 2), {0, 1});
  const Points nothing(4, {kNan, 0, 1, 1, 0, 2, 1, 1}), some(4, rows);
  expect_exact(nothing, &some, Metric::kL2, 1);
  expect_exact(some, &nothing, Metric::kL2, 0);
  expect_exact(nothing, nullptr, Metric::kL2, 0);
}

TEST_P(BoxJoin, boxes_that_touch_at_corners_and_edges) {
  std::vector<double> tiles;
  for (int x = 0; x < 12; ++x)
    for (int y = 0; y < 12; ++y) append(tiles, {x * 0.1, y * 0.1, (x + 1) * 0.1, (y + 1) * 0.1});
  expect_exact(2, tiles, tiles, {0, 0.1, 0.2});
}

TEST_P(BoxJoin, neighbours_one_ulp_apart_do_not_touch) {
  std::vector<double> left, right;
  for (const double x : {1.0, 0.1, 1e300, -7.0, 0.0}) {
    append(left, {x, x});
    for (const double low : {x, above(x), above(above(x))}) append(right, {low, kMax});
    for (const double high : {x, below(x), below(below(x))}) append(right, {-kMax, high});
  }
  expect_exact(1, left, right, {0, 1e-17, kDenormal});
  for (const float x : {1.0f, 0.1f, -7.0f}) {  // one ulp of single precision
    const Points point(2, {x, x}, ScalarType::kFloat32);
    const Points others(2, {std::nextafter(x, 1e9f), 1e9, -1e9, std::nextafter(x, -1e9f)},
                        ScalarType::kFloat32);
    expect_exact(point, &others, Metric::kL2, 0);
    EXPECT_EQ(run_join(engine(), make_box_request(point, &others, Metric::kL2, 0)).total, 0u);
  }
}

TEST_P(BoxJoin, gaps_whose_squares_underflow_are_gaps) {
  const std::vector<double> left = {-1, 0}, right = {kDenormal, 1};
  expect_exact(1, left, right, {0, kDenormal, 1e-200});
  const Points a(2, left), b(2, right);
  EXPECT_EQ(run_join(engine(), make_box_request(a, &b, Metric::kL2, 0)).total, 0u);
  EXPECT_EQ(run_join(engine(), make_box_request(a, &b, Metric::kL2, 1e-300)).total, 1u);
}

TEST_P(BoxJoin, gaps_of_exactly_eps_count) {
  Random random(208);
  std::vector<double> rows;
  for (int i = 0; i < 60; ++i) {
    const double x = static_cast<double>(random.index(20)) * 0.3;
    const double y = static_cast<double>(random.index(20)) * 0.4;
    append(rows, {x, y, x, y});
  }
  const std::vector<double> radii = {0.3, 0.4, 0.5, below(0.5), above(0.5), 0.7};
  expect_exact(2, rows, rows, radii);
}

TEST_P(BoxJoin, boxes_that_are_all_equal) {
  std::vector<double> rows, points;
  for (int i = 0; i < 90; ++i) {
    append(rows, {1, 2, 3, 4});
    append(points, {3, 4, 3, 4});
  }
  expect_exact(2, rows, points, {0, 1});
}

TEST_P(BoxJoin, zeros_of_either_sign_are_one) {
  const std::vector<double> left = {-1, -0.0, 0.0, 5}, right = {0.0, 2, -0.0, -0.0};
  expect_exact(1, left, right, {0, 1});
}

TEST_P(BoxJoin, an_empty_side_has_no_pairs) {
  expect_exact(1, {}, {0, 1, 2, 3}, {0, 1});
  expect_exact(1, {}, {}, {0, 1});
  expect_exact(3, {0, 0, 0, 1, 1, 1}, {}, {0, 1});
}

TEST_P(BoxJoin, a_single_box_of_a_side) {
  Random random(209);
  const std::vector<double> many = make_boxes(Shape::kUniform, random, 500, 3, 20);
  expect_exact(3, {0, 0, 0, 10, 10, 10}, many, {0, 3});
}

TEST_P(BoxJoin, pairs_are_named_by_their_ids) {
  Random random(210);
  std::vector<std::int64_t> ids(90), others(40);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 37 % 91) - 50;
  for (std::size_t i = 0; i < others.size(); ++i) others[i] = INT64_MAX - static_cast<int>(i / 2);
  const Points left = Points(4, make_boxes(Shape::kLattice, random, 90, 2, 2)).with_ids(ids);
  const Points right = Points(4, make_boxes(Shape::kLattice, random, 40, 2, 2)).with_ids(others);
  expect_exact(left, &right, Metric::kL2, 0);
  expect_exact(right, &left, Metric::kL2, 1);
  expect_exact(left, nullptr, Metric::kL2, 0);
  expect_exact(right, nullptr, Metric::kL1, 0.5);
}

TEST_P(BoxJoin, random_bounds_of_every_magnitude) {
  Random random(211);
  for (int round = 0; round < 4; ++round) {
    const std::uint32_t dims = 1 + round % 3;
    std::vector<double> rows, others;
    for (int i = 0; i < 60; ++i) {
      for (std::vector<double>* side : {&rows, &others}) {
        std::vector<double> low(dims), high(dims);
        for (std::uint32_t d = 0; d < dims; ++d) {
          const double a = random.any_finite(), b = random.any_finite();
          low[d] = std::min(a, b);
          high[d] = random.index(3) == 0 ? low[d] : std::max(a, b);
        }
        append(*side, box_of(low, high));
      }
    }
    expect_exact(dims, rows, others, {0, std::abs(random.any_finite())});
  }
}

TEST_P(BoxJoin, what_no_join_of_boxes_is_gets_an_error) {
  const Points boxes(4, {0, 0, 1, 1}), odd(3, {0, 0, 1}), many(18, std::vector<double>(18, 0.0));
  JoinRequest request = make_box_request(boxes, nullptr, Metric::kCosine, 0.1);
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
  request = make_box_request(odd, nullptr, Metric::kL2, 0);
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
  request = make_box_request(many, nullptr, Metric::kL2, 0);
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gpujoin::test

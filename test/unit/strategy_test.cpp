// choose_strategy(): knobs are followed, the choice is deterministic and within bounds, and it
// picks what the data calls for in cases where there is no doubt.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "boxes.h"
#include "engine/strategy/box_strategy.h"
#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/cluster_requests.h"
#include "engine/strategy/index_plan.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

Points uniform_points(std::uint64_t rows, std::uint32_t dims, std::uint64_t seed = 41) {
  Random random(seed);
  return Points(dims, make_values(Shape::kUniform, random, rows, dims));
}

/// What holds for every strategy, whatever was asked.
void expect_within_bounds(const Strategy& strategy, std::uint32_t dims) {
  EXPECT_NE(strategy.index, IndexMethod::kAuto);
  EXPECT_NE(strategy.access_pattern, AccessPattern::kAuto);
  EXPECT_NE(strategy.cell_order, CellOrder::kAuto);
  EXPECT_EQ(strategy.index == IndexMethod::kReferencePoints, strategy.reference_points > 0);
  EXPECT_LE(strategy.reference_points, kMaxReferencePoints);
  // The columns of an index are the data's, or the distances to reference points after them.
  const std::uint32_t first = strategy.reference_points > 0 ? dims : 0;
  const std::uint32_t count = strategy.reference_points > 0 ? strategy.reference_points : dims;
  ASSERT_LE(strategy.grid_dims, std::min(count, kMaxGridDimensions));
  std::set<std::int64_t> columns;
  for (std::uint32_t k = 0; k < strategy.grid_dims; ++k) {
    EXPECT_GE(strategy.grid_columns[k], first);
    EXPECT_LT(strategy.grid_columns[k], first + count);
    columns.insert(strategy.grid_columns[k]);
  }
  if (strategy.sort_column != kNoColumn) {
    EXPECT_GE(strategy.sort_column, static_cast<std::int64_t>(first));
    EXPECT_LT(strategy.sort_column, static_cast<std::int64_t>(first + count));
    columns.insert(strategy.sort_column);
  }
  EXPECT_EQ(columns.size(), strategy.grid_dims + (strategy.sort_column != kNoColumn))
      << "a column is used twice";
  EXPECT_GE(strategy.estimate().candidates, 0);
  EXPECT_GE(strategy.estimated_pairs, 0);
  EXPECT_GT(std::strlen(strategy.reason), 0u);
}

/// How far cells of neighbours differ, see make_cluster_cells().
TEST(Strategy, clusters_have_small_cells_where_points_are_dense) {
  const Points points = uniform_points(20000, 2);
  const auto radius = [&](double eps, bool may_be_wide) {
    const JoinRequest request = cluster_cells_request(
        make_request(points, nullptr, Metric::kL2, eps).asking(Output::clusters(5)));
    return plan_index(
               request, choose_strategy(request),
               {.value_bits = 0, .single_distances = false, .wide_cluster_cells = may_be_wide})
        .cell_radius;
  };
  EXPECT_EQ(radius(0.5, true), 1u);
  EXPECT_EQ(radius(0.5, false), 2u);
  EXPECT_EQ(radius(10, true), 2u);
}

/// As many groups as columns make of two values each: three columns tell eight of them apart.
std::vector<double> two_valued(Random& random, std::uint64_t rows, std::uint32_t dims) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < rows * dims; ++i)
    values.push_back((random.index(2) == 0 ? 0 : 100) + random.unit());
  return values;
}

TEST(Strategy, clusters_go_by_tiles_where_three_columns_leave_much_to_compare) {
  // Costs as on a device.
  constexpr WalkCosts kCosts{.neighbor = 0.08,
                             .window = 0,
                             .lookup = 0,
                             .candidate = 0.0005,
                             .dimension = 0.00025,
                             .tile_pair = 0.00038,
                             .tile_dimension = 0.000002,
                             .tile_boxes = 0.065,
                             .tile_match = 0.13,
                             .writing = 3};
  const auto worth = [&](const Points& points, Metric metric, double eps) {
    return are_tiles_worth_for_clusters(
        make_request(points, nullptr, metric, eps).asking(Output::clusters(5)), kCosts);
  };
  Random random(47);
  const Points groups(8, two_valued(random, 300000, 8));
  EXPECT_TRUE(worth(groups, Metric::kL2, 0.5));
  EXPECT_FALSE(worth(groups, Metric::kL1, 0.5)) << "tiles screen L2";
  EXPECT_FALSE(worth(groups, Metric::kL2, 1000)) << "all rows are neighbors";
  EXPECT_FALSE(worth(Points(8, two_valued(random, 3000, 8)), Metric::kL2, 0.5)) << "few rows";
  EXPECT_FALSE(worth(uniform_points(300000, 3), Metric::kL2, 1)) << "cells of all columns";
  EXPECT_FALSE(worth(uniform_points(300000, 4), Metric::kL2, 1)) << "cells hold few rows";
}

TEST(Strategy, stays_within_bounds_for_every_shape) {
  std::size_t requests = 0;
  for (const Shape shape : kShapes) {
    for (const std::uint32_t dims : {1u, 2u, 3u, 8u, 9u, 20u, 100u}) {
      Random random(42);
      const Points points(dims, make_values(shape, random, 300, dims), ScalarType::kFloat32);
      for (const double eps : {0.0, 1e-300, 0.5, 10.0, 1e300}) {
        JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
        for (const IndexMethod index : {IndexMethod::kAuto, IndexMethod::kReferencePoints}) {
          for (const std::uint32_t forced : {0u, 1u, 3u, 10u}) {
            if (kSanitized && ++requests % 3 != 0) continue;  // of each points others
            request.knobs.index = index;
            request.knobs.indexed_dimensions = forced;
            request.knobs.reference_points = 2 * forced;
            expect_within_bounds(choose_strategy(request), dims);
          }
        }
      }
    }
  }
}

TEST(Strategy, stays_within_bounds_for_special_data) {
  for (const double value : {0.0, -0.0, kNan, kInf, -kInf, kMax, kDenormal}) {
    for (const std::uint64_t rows : {0, 1, 2, 600}) {
      const Points points(3, std::vector<double>(rows * 3, value));
      JoinRequest request = make_request(points, nullptr, Metric::kL1, 1);
      expect_within_bounds(choose_strategy(request), 3);
      request.knobs.index = IndexMethod::kReferencePoints;
      expect_within_bounds(choose_strategy(request), 3);
    }
  }
}

TEST(Strategy, is_deterministic) {
  const Points points = uniform_points(5000, 6);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 4);
  const Strategy first = choose_strategy(request);
  const Strategy second = choose_strategy(request);
  EXPECT_EQ(first.grid_dims, second.grid_dims);
  EXPECT_TRUE(
      std::equal(first.grid_columns, first.grid_columns + first.grid_dims, second.grid_columns));
  EXPECT_EQ(first.sort_column, second.sort_column);
  EXPECT_EQ(first.estimate().candidates, second.estimate().candidates);
  EXPECT_EQ(first.estimated_pairs, second.estimated_pairs);
  EXPECT_STREQ(first.reason, second.reason);
}

TEST(Strategy, follows_index_and_number_of_dimensions) {
  const Points points = uniform_points(1000, 6);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 2);
  for (std::uint32_t k = 1; k <= 6; ++k) {
    request.knobs.indexed_dimensions = k;
    request.knobs.index = IndexMethod::kGrid;
    EXPECT_EQ(choose_strategy(request).grid_dims, k);
    EXPECT_EQ(choose_strategy(request).index, IndexMethod::kGrid);
  }
  request.knobs.indexed_dimensions = 99;
  EXPECT_EQ(choose_strategy(request).grid_dims, 6u);
  request.knobs.index = IndexMethod::kNone;
  EXPECT_EQ(choose_strategy(request).index, IndexMethod::kNone);
}

TEST(Strategy, follows_reference_points_and_placement) {
  const Points points = uniform_points(1000, 3);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 2);
  request.knobs.index = IndexMethod::kReferencePoints;
  EXPECT_EQ(choose_strategy(request).reference_points, 6u) << "as COSS has";
  EXPECT_EQ(choose_strategy(request).reference_placement, ReferencePlacement::kOuter);
  request.knobs.reference_placement = ReferencePlacement::kInner;
  for (std::uint32_t count = 1; count <= kMaxReferencePoints; ++count) {
    request.knobs.reference_points = count;
    request.knobs.indexed_dimensions = 0;
    const Strategy strategy = choose_strategy(request);
    EXPECT_EQ(strategy.index, IndexMethod::kReferencePoints);
    EXPECT_EQ(strategy.reference_points, count);
    EXPECT_EQ(strategy.reference_placement, ReferencePlacement::kInner);
    request.knobs.indexed_dimensions = 5;
    EXPECT_EQ(choose_strategy(request).grid_dims, std::min(count, 5u));
  }
  request.knobs.reference_points = 99;
  EXPECT_EQ(choose_strategy(request).reference_points, kMaxReferencePoints);
}

TEST(Strategy, reference_points_are_weighed_in_long_joins_of_some_dimensions) {
  const auto estimate = [](const Points& points) {
    const Strategy strategy = choose_strategy(make_request(points, nullptr, Metric::kL2, 30));
    return strategy.estimates[static_cast<int>(IndexMethod::kReferencePoints)].ms;
  };
  EXPECT_EQ(estimate(uniform_points(20000, 3)), 0);
  EXPECT_EQ(estimate(uniform_points(100, 12)), 0);
  EXPECT_GT(estimate(uniform_points(20000, 12)), 0);
}

TEST(Strategy, reference_points_where_no_column_tells_points_apart) {
  // Each row is zero but for one column of many: any one column separates few rows.
  constexpr std::uint32_t kDims = 64;
  constexpr std::uint64_t kRows = 20000;
  Random random(47);
  std::vector<double> values(kRows * kDims);
  for (std::uint64_t row = 0; row < kRows; ++row)
    values[row * kDims + random.index(kDims)] = random.between(0, 1000);
  const Points points(kDims, values);
  EXPECT_EQ(choose_strategy(make_request(points, nullptr, Metric::kL2, 1)).index,
            IndexMethod::kReferencePoints);
}

TEST(Strategy, grid_is_used_where_asked_for_even_if_useless) {
  const Points points = uniform_points(100, 2);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1e6);
  EXPECT_NE(choose_strategy(request).index, IndexMethod::kGrid);
  request.knobs.index = IndexMethod::kGrid;
  EXPECT_EQ(choose_strategy(request).index, IndexMethod::kGrid);
}

TEST(Strategy, follows_the_switches) {
  const Points wide = uniform_points(500, 12);
  JoinRequest request = make_request(wide, nullptr, Metric::kL2, 30);
  request.knobs.index = IndexMethod::kGrid;
  request.knobs.indexed_dimensions = 2;

  request.knobs.sort_unindexed = Switch::kOff;
  EXPECT_EQ(choose_strategy(request).sort_column, kNoColumn);
  request.knobs.sort_unindexed = Switch::kOn;
  EXPECT_NE(choose_strategy(request).sort_column, kNoColumn);

  request.knobs.short_circuit = Switch::kOff;
  EXPECT_FALSE(choose_strategy(request).short_circuit);
  request.knobs.short_circuit = Switch::kOn;
  EXPECT_TRUE(choose_strategy(request).short_circuit);

  request.knobs.reorder_dimensions = Switch::kOff;
  EXPECT_FALSE(choose_strategy(request).reorder_dimensions);
  request.knobs.reorder_dimensions = Switch::kOn;
  EXPECT_TRUE(choose_strategy(request).reorder_dimensions);
}

TEST(Strategy, few_dimensions_are_screened_only_for_a_short_circuit) {
  const Points points = uniform_points(500, kMaxDirectDimensions);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 10);
  request.knobs.index = IndexMethod::kGrid;
  EXPECT_FALSE(choose_strategy(request).screened);
  EXPECT_FALSE(choose_strategy(request).short_circuit);
  request.knobs.short_circuit = Switch::kOn;
  EXPECT_TRUE(choose_strategy(request).screened);
  const Points more = uniform_points(500, kMaxDirectDimensions + 1);
  EXPECT_TRUE(choose_strategy(make_request(more, nullptr, Metric::kL2, 10)).screened);
}

TEST(Strategy, without_reordering_columns_are_taken_in_order) {
  const Points points = uniform_points(500, 6);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  request.knobs.reorder_dimensions = Switch::kOff;
  request.knobs.sort_unindexed = Switch::kOff;
  request.knobs.index = IndexMethod::kGrid;
  request.knobs.indexed_dimensions = 4;
  const Strategy strategy = choose_strategy(request);
  ASSERT_EQ(strategy.grid_dims, 4u);
  for (std::uint32_t k = 0; k < 4; ++k) EXPECT_EQ(strategy.grid_columns[k], k);
}

TEST(Strategy, follows_pattern_and_cell_order) {
  const Points points = uniform_points(500, 3);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  request.knobs.index = IndexMethod::kGrid;
  for (const AccessPattern pattern :
       {AccessPattern::kFull, AccessPattern::kLinearId, AccessPattern::kUnicomp}) {
    request.knobs.access_pattern = pattern;
    EXPECT_EQ(choose_strategy(request).access_pattern, pattern);
  }
  for (const CellOrder order : {CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert}) {
    request.knobs.cell_order = order;
    EXPECT_EQ(choose_strategy(request).cell_order, order);
  }
}

TEST(Strategy, two_datasets_and_counts_use_the_full_pattern) {
  const Points left = uniform_points(500, 3), right = uniform_points(400, 3, 43);
  JoinRequest two = make_request(left, &right, Metric::kL2, 3);
  JoinRequest counts = make_request(left, nullptr, Metric::kL2, 3);
  ask(counts, Output::kCountPerRow);
  counts.knobs.index = IndexMethod::kGrid;
  for (const AccessPattern pattern :
       {AccessPattern::kAuto, AccessPattern::kLinearId, AccessPattern::kUnicomp}) {
    two.knobs.access_pattern = pattern;
    counts.knobs.access_pattern = pattern;
    EXPECT_EQ(choose_strategy(two).access_pattern, AccessPattern::kFull);
    EXPECT_EQ(choose_strategy(counts).access_pattern, AccessPattern::kFull);
  }
}

TEST(Strategy, tiles_serve_the_metric_they_know_and_half_a_walk_serves_all) {
  const Points left = uniform_points(500, 30), right = uniform_points(400, 30, 43);
  JoinRequest request = make_request(left, nullptr, Metric::kL2, 100);
  request.knobs.index = IndexMethod::kTiles;
  ask(request, Output::kCountPerRow);
  EXPECT_EQ(choose_strategy(request).index, IndexMethod::kTiles);
  EXPECT_EQ(choose_strategy(request).access_pattern, AccessPattern::kLinearId);
  JoinRequest two = make_request(left, &right, Metric::kL2, 100);
  two.knobs.index = IndexMethod::kTiles;
  EXPECT_EQ(choose_strategy(two).access_pattern, AccessPattern::kFull);
  for (const Metric metric : {Metric::kL1, Metric::kLInf}) {
    request = request.asking(PointsWithin{metric, 100}, Output::count_per_row());
    EXPECT_EQ(choose_strategy(request).index, IndexMethod::kGrid);
  }
}

TEST(Strategy, many_dimensions_that_no_grid_separates_are_for_tiles) {
  for (const std::uint32_t dims : {32u, 64u, 200u, 784u, 2000u}) {
    const Points points = uniform_points(1000, dims);
    const JoinRequest request = make_request(points, nullptr, Metric::kL2, 4.0 * dims);
    EXPECT_EQ(choose_strategy(request).index, IndexMethod::kTiles) << dims;
  }
  const Points plane = uniform_points(50000, 2);
  EXPECT_EQ(choose_strategy(make_request(plane, nullptr, Metric::kL2, 0.1)).index,
            IndexMethod::kGrid);
}

TEST(Strategy, few_rows_of_many_dimensions_need_no_index) {
  constexpr std::uint32_t kDims = 64;
  const Points few = uniform_points(300, kDims), more = uniform_points(1000, kDims);
  JoinRequest request = make_request(few, nullptr, Metric::kL2, 4.0 * kDims);
  EXPECT_EQ(choose_strategy(request).index, IndexMethod::kNone);
  request.resources.memory_limit = 300 * kDims * sizeof(double);  // has no room for copies
  EXPECT_EQ(choose_strategy(request).index, IndexMethod::kTiles);
  EXPECT_EQ(choose_strategy(make_request(more, nullptr, Metric::kL2, 4.0 * kDims)).index,
            IndexMethod::kTiles);
  const Points plane = uniform_points(300, 2);
  EXPECT_EQ(choose_strategy(make_request(plane, nullptr, Metric::kL2, 0.1)).index,
            IndexMethod::kGrid);
}

TEST(Strategy, chooses_as_ever_where_methods_lie_well_apart) {
  // 50,000 points; the method chosen was expected to take at most two thirds of what others take.
  struct Case {
    Shape shape;
    std::uint32_t dims;
    double eps;
    IndexMethod index;
  };
  constexpr IndexMethod kGrid = IndexMethod::kGrid, kTiles = IndexMethod::kTiles;
  const Case cases[] = {
      {Shape::kUniform, 2, 5.7, kGrid},      {Shape::kUniform, 3, 2.8, kGrid},
      {Shape::kUniform, 4, 6.4, kGrid},      {Shape::kUniform, 5, 12, kGrid},
      {Shape::kUniform, 5, 32, kTiles},      {Shape::kUniform, 7, 48, kTiles},
      {Shape::kUniform, 8, 28, kTiles},      {Shape::kUniform, 9, 33, kTiles},
      {Shape::kUniform, 10, 42, kTiles},     {Shape::kUniform, 16, 70, kTiles},
      {Shape::kUniform, 90, 300, kTiles},    {Shape::kExponential, 2, 0.83, kGrid},
      {Shape::kExponential, 4, 3.5, kGrid},  {Shape::kExponential, 5, 1.7, kGrid},
      {Shape::kExponential, 6, 2.5, kGrid},  {Shape::kExponential, 7, 3.3, kGrid},
      {Shape::kExponential, 8, 4.3, kGrid},  {Shape::kExponential, 9, 11, kTiles},
      {Shape::kExponential, 10, 12, kTiles}, {Shape::kExponential, 32, 25, kTiles},
      {Shape::kClustered, 3, 0.052, kGrid},  {Shape::kClustered, 5, 0.16, kGrid},
      {Shape::kClustered, 6, 0.58, kTiles},  {Shape::kClustered, 9, 0.44, kTiles},
      {Shape::kClustered, 16, 0.84, kTiles}, {Shape::kClustered, 90, 3.4, kTiles},
  };
  for (const Case& c : cases) {
    Random random(c.dims);
    const Points points(c.dims, make_values(c.shape, random, 50000, c.dims), ScalarType::kFloat32);
    JoinRequest request = make_request(points, nullptr, Metric::kL2, c.eps);
    ask(request, Output::kTotal);
    const Strategy strategy = choose_strategy(request);
    EXPECT_STREQ(to_string(strategy.index), to_string(c.index))
        << to_string(c.shape) << ", " << c.dims << " dims, eps " << c.eps;
  }
}

TEST(Strategy, picks_the_one_column_that_varies) {
  for (const std::uint32_t dims : {3u, 9u, 64u}) {
    for (const std::uint32_t varying : {0u, dims / 2, dims - 1}) {
      Random random(44);
      std::vector<double> values(1000 * dims, 5.0);
      for (std::uint64_t row = 0; row < 1000; ++row)
        values[row * dims + varying] = random.between(0, 1000);
      const Points points(dims, values);
      const Strategy strategy = choose_strategy(make_request(points, nullptr, Metric::kL2, 1));
      EXPECT_EQ(strategy.index, IndexMethod::kGrid);
      const bool sorted = strategy.sort_column == static_cast<std::int32_t>(varying);
      EXPECT_TRUE(sorted || (strategy.grid_dims > 0 && strategy.grid_columns[0] == varying))
          << "dims " << dims;
    }
  }
}

TEST(Strategy, no_grid_when_everything_is_within_eps) {
  const Points points = uniform_points(1000, 4);
  EXPECT_NE(choose_strategy(make_request(points, nullptr, Metric::kL2, 1e4)).index,
            IndexMethod::kGrid);
  EXPECT_EQ(choose_strategy(make_request(points, nullptr, Metric::kLInf, 100)).index,
            IndexMethod::kNone);
  const Points equal(2, std::vector<double>(2000, 1.0));
  EXPECT_NE(choose_strategy(make_request(equal, nullptr, Metric::kL2, 0)).index,
            IndexMethod::kGrid);
}

TEST(Strategy, estimates_the_number_of_pairs) {
  const Points points = uniform_points(2000, 2);  // in a square of side 100
  const Strategy strategy = choose_strategy(make_request(points, nullptr, Metric::kLInf, 10));
  const Oracle oracle(points, nullptr, Metric::kLInf, 10);
  const double pairs = static_cast<double>(oracle.total(PairSelection::kAll));
  EXPECT_GT(strategy.estimated_pairs, 0.5 * pairs);
  EXPECT_LT(strategy.estimated_pairs, 2 * pairs);
}

TEST(Strategy, estimates_the_number_of_pairs_of_many_dimensions) {
  for (const std::uint32_t dims : {12, 40}) {
    const Points points = uniform_points(2000, dims);
    const double eps = dims == 12 ? 100 : 220;
    const Strategy strategy = choose_strategy(make_request(points, nullptr, Metric::kL2, eps));
    const double pairs =
        static_cast<double>(Oracle(points, nullptr, Metric::kL2, eps).total(PairSelection::kAll));
    ASSERT_GT(pairs, 10 * 2000.0) << "eps " << eps;
    EXPECT_GT(strategy.estimated_pairs, 0.5 * pairs) << "dims " << dims;
    EXPECT_LT(strategy.estimated_pairs, 2 * pairs) << "dims " << dims;
  }
}

TEST(Strategy, best_pairs_by_threshold_are_expected_to_cost_less_than_all_pairs) {
  const Points points = uniform_points(5000, 2).with_scores(std::vector<double>(5000, 1.0));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 30);
  const double all_pairs = estimate_core_ms(request, 0);
  request = request.asking(Output::top_pairs({{ScoreFunction::kSum, false, {1, 1}}, 10}));
  const auto expected_ms = [&](TopkMethod method) {
    request.knobs.topk_method = method;
    return estimate_core_ms(request, 0);
  };
  EXPECT_GT(expected_ms(TopkMethod::kAuto), 0);
  EXPECT_LT(expected_ms(TopkMethod::kAuto), all_pairs / 2);
  EXPECT_EQ(expected_ms(TopkMethod::kAuto), expected_ms(TopkMethod::kThreshold));
  EXPECT_GT(expected_ms(TopkMethod::kHeap), all_pairs / 2);
  EXPECT_EQ(expected_ms(TopkMethod::kHeap), expected_ms(TopkMethod::kSort));
}

TEST(Strategy, joins_of_boxes_are_expected_to_cost_what_their_own_strategy_says) {
  Random random(43);
  const Points boxes(4, make_boxes(Shape::kUniform, random, 3000, 2, 1));
  const JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
  EXPECT_GT(estimate_core_ms(request, 0), 0);
  EXPECT_EQ(estimate_core_ms(request, 0), choose_box_strategy(request).ms);
  EXPECT_EQ(estimate_core_ms(make_box_request(boxes, nullptr, Metric::kCosine, 0), 0), 0);
}

TEST(Strategy, names_are_the_settings_values) {
  EXPECT_STREQ(gpujoin::to_string(IndexMethod::kNone), "none");
  EXPECT_STREQ(gpujoin::to_string(IndexMethod::kGrid), "grid");
  EXPECT_STREQ(gpujoin::to_string(IndexMethod::kReferencePoints), "reference_points");
  EXPECT_STREQ(gpujoin::to_string(IndexMethod::kTiles), "tiles");
  EXPECT_STREQ(gpujoin::to_string(ReferencePlacement::kOuter), "outer");
  EXPECT_STREQ(gpujoin::to_string(ReferencePlacement::kInner), "inner");
  EXPECT_STREQ(gpujoin::to_string(AccessPattern::kLinearId), "linear_id");
  EXPECT_STREQ(gpujoin::to_string(AccessPattern::kUnicomp), "unicomp");
  EXPECT_STREQ(gpujoin::to_string(AccessPattern::kFull), "full");
  EXPECT_STREQ(gpujoin::to_string(CellOrder::kZOrder), "zorder");
  EXPECT_STREQ(gpujoin::to_string(CellOrder::kHilbert), "hilbert");
  EXPECT_STREQ(gpujoin::to_string(CellOrder::kLinear), "linear");
  EXPECT_STREQ(gpujoin::to_string(Metric::kL2), "l2");
  EXPECT_STREQ(gpujoin::to_string(Metric::kL1), "l1");
  EXPECT_STREQ(gpujoin::to_string(Metric::kLInf), "linf");
  EXPECT_STREQ(gpujoin::to_string(Metric::kCosine), "cosine");
  EXPECT_STREQ(gpujoin::to_string(TopkMethod::kAuto), "auto");
  EXPECT_STREQ(gpujoin::to_string(TopkMethod::kThreshold), "threshold");
  EXPECT_STREQ(gpujoin::to_string(TopkMethod::kHeap), "heap");
  EXPECT_STREQ(gpujoin::to_string(TopkMethod::kSort), "sort");
  EXPECT_STREQ(gpujoin::to_string(ScoreFunction::kSum), "sum");
  EXPECT_STREQ(gpujoin::to_string(ScoreFunction::kProduct), "product");
  EXPECT_STREQ(gpujoin::to_string(ScoreFunction::kMin), "min");
  EXPECT_STREQ(gpujoin::to_string(ScoreFunction::kMax), "max");
  EXPECT_STREQ(gpujoin::to_string(ScoreFunction::kDistance), "distance");
}

}  // namespace
}  // namespace gpujoin::test

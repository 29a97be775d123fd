// Nearest-neighbour joins against brute force: every metric, few and many dimensions, k from one to
// all, points that make ties, lie far away, are the same or are no numbers.

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "engine/stopwatch.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

JoinRequest make_nearest_request(const Points& left, const Points* right, Metric metric,
                                 std::uint64_t k, double eps = DBL_MAX) {
  return make_request(left, right, metric, eps).asking(Output::nearest(k));
}

/// In parts of a few rows, of memory and of a file.
void expect_exact_in_parts(const Points& left, const Points* right, JoinRequest request,
                           const Oracle& oracle) {
  request.knobs = {};
  SmallParts::rows = std::max<std::uint64_t>(7, left.rows() / 4);
  for (const std::uint64_t fitting : {SmallParts::kAll, std::uint64_t{150}}) {
    SmallParts::rows_that_fit = fitting;
    EXPECT_TRUE(matches_oracle(run_join(engine_of_parts(), request), request, oracle))
        << "parts in memory, k " << request.neighbors() << " dims " << left.dims();
  }
  SmallParts::rows_that_fit = SmallParts::kAll;
  MemoryFile file;
  StoredPoints left_chunks(left, 5), right_chunks(right == nullptr ? left : *right, 6);
  set_sides(request, left_chunks.in_file(file), right_chunks.in_file(file));
  request.resources.scratch = file.functions();
  for (const EngineTable* const engine : {&engine_of_parts(), cpu_engine()})
    EXPECT_TRUE(matches_oracle(run_join(*engine, request), request, oracle))
        << "in a file, k " << request.neighbors() << " dims " << left.dims();
  SmallParts::rows = 100;
}

class NearestJoins : public EngineTest {
 protected:
  void expect_exact(const Points& left, const Points* right, Metric metric, std::uint64_t k,
                    double eps = DBL_MAX) const {
    const Oracle oracle(left, right, metric, eps);
    JoinRequest request = make_nearest_request(left, right, metric, k, eps);
    static unsigned calls = 0;
    for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kDistinct}) {
      if (right != nullptr && pairs != PairSelection::kAll) continue;
      select(request, pairs);
      ++calls;
      for (const IndexMethod index : {IndexMethod::kTiles, IndexMethod::kNone})
        for (const std::uint64_t batch_pairs : {0u, 3u}) {
          // A sanitizer sees both sizes of a batch with each index, but not in each call.
          if (kSanitized && (calls + (index == IndexMethod::kTiles) + batch_pairs) % 2 != 0)
            continue;
          request.knobs.index = index;
          request.knobs.batch_pairs = batch_pairs;
          EXPECT_TRUE(matches_oracle(run(request), request, oracle))
              << "k " << k << " dims " << left.dims() << " index " << to_string(index);
        }
      // Joins of many parts take their time.
      if (!is_device(engine()) && calls % (kSanitized ? 14 : 7) == 1)
        expect_exact_in_parts(left, right, request, oracle);
    }
  }

  RunResult run(const JoinRequest& request) const { return run_join(engine(), request); }
};

TEST_P(NearestJoins, match_brute_force_in_every_shape_and_metric) {
  Random random(801);
  std::uint64_t turn = 0;
  for (const Shape shape : kShapes)
    for (const std::uint32_t dims : {1u, 2u, 5u, 8u, 9u, 20u}) {
      const ScalarType scalar = dims % 2 == 0 ? ScalarType::kFloat32 : ScalarType::kFloat64;
      const Points left(dims, make_values(shape, random, 90, dims), scalar);
      const Points right(dims, make_values(shape, random, 160, dims), scalar);
      for (const Metric metric : kMetrics) {
        expect_exact(left, &right, metric, std::array{1u, 8u, 70u}[turn++ % 3]);
        expect_exact(right, nullptr, metric, 5);
      }
    }
}

/// Rows that differ along few directions, a few lie far away, and some come twice.
std::vector<double> make_flat_values(Random& random, std::uint64_t rows, std::uint32_t dims) {
  constexpr std::uint32_t kDirections = 6;
  std::vector<double> directions(std::size_t{kDirections} * dims), values;
  for (double& x : directions) x = random.between(-1, 1);
  for (std::uint64_t row = 0; row < rows; ++row) {
    double parts[kDirections];
    for (double& part : parts) part = random.between(-1, 1) * (row % 97 == 5 ? 1e4 : 1);
    for (std::uint32_t d = 0; d < dims; ++d) {
      double x = 1e-3 * random.unit();
      for (std::uint32_t i = 0; i < kDirections; ++i) x += parts[i] * directions[i * dims + d];
      values.push_back(row % 10 == 7 ? values[values.size() - dims] : x);
    }
  }
  return values;
}

TEST_P(NearestJoins, turned_columns_lose_no_neighbor) {
  Random random(809);
  for (const std::uint32_t dims : {100u, 170u})
    for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64}) {
      const std::vector<double> all = make_flat_values(random, 500, dims);
      const std::vector<double> some(all.begin(), all.begin() + 150 * dims);
      std::vector<double> odd = all;
      odd[5 * dims + 3] = NAN;
      odd[6 * dims] = INFINITY;
      if (scalar == ScalarType::kFloat64) odd[8 * dims + 1] = 1e300;
      const Points points(dims, all, scalar), left(dims, some, scalar), right(dims, odd, scalar);
      for (const Metric metric : {Metric::kL2, Metric::kCosine})
        for (const std::uint64_t k : {1u, 10u, 40u}) {
          expect_exact(left, &right, metric, k);
          if (k == 10) expect_exact(right, nullptr, metric, k);
        }
      const JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 10);
      const RunResult result = run(request);
      EXPECT_EQ(result.stats.strategy.index, IndexMethod::kTiles);
      if (is_device(engine())) continue;
      EXPECT_NE(std::string(result.stats.strategy.reason).find("turned"), std::string::npos);
    }
}

TEST_P(NearestJoins, of_rows_in_a_file_are_those_of_rows_in_memory) {
  Random random(820);
  const std::uint64_t rows = kSanitized ? 6000 : 30000;
  for (const std::uint32_t dims : {2u, 24u}) {
    const Points left =
        Points(dims, make_values(Shape::kUniform, random, rows, dims)).with_ids(shuffled_ids(rows));
    const Points right =
        Points(dims, make_values(Shape::kUniform, random, rows, dims)).with_ids(shuffled_ids(rows));
    for (const bool self : {true, false})
      for (const std::uint64_t k : {1u, 10u}) {
        JoinRequest request = make_nearest_request(left, self ? nullptr : &right, Metric::kL2, k);
        if (self) select(request, PairSelection::kDistinct);
        RunResult whole = run(request);
        ASSERT_EQ(whole.status.code, StatusCode::kEnd) << whole.status.message;
        MemoryFile file;
        StoredPoints left_chunks(left, 10), right_chunks(right, 9);
        const Dataset left_file = left_chunks.in_file(file);
        set_sides(request, left_file, self ? left_file : right_chunks.in_file(file));
        request.resources.scratch = file.functions();
        std::uint64_t& limit = is_device(engine()) ? request.resources.device_memory_limit
                                                   : request.resources.memory_limit;
        limit = rows * (is_device(engine()) ? 8 : 4) * (32 + 8 * dims);
        RunResult parts = run(request);
        ASSERT_EQ(parts.status.code, StatusCode::kEnd) << parts.status.message;
        if (!is_device(engine())) {
          EXPECT_GT(parts.stats.parts, 1u);
        }
        std::sort(whole.pairs.begin(), whole.pairs.end());
        std::sort(parts.pairs.begin(), parts.pairs.end());
        EXPECT_TRUE(parts.pairs == whole.pairs) << dims << " dims, k " << k;
      }
  }
}

TEST_P(NearestJoins, tiles_that_lie_apart_are_left_out) {
  Random random(810);
  constexpr std::uint32_t kDims = 20;
  const std::uint64_t rows = 1024;
  std::vector<double> values;
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint32_t d = 0; d < kDims; ++d)
      values.push_back((row % 2 == 0 ? 100 : 0) + random.unit());
  const Points points(kDims, values);
  expect_exact(points, nullptr, Metric::kL2, 7);
  if (is_device(engine())) return;  // a device screens all tiles
  const JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 7);
  EXPECT_LT(run(request).stats.candidates, rows * rows * 3 / 4);
}

TEST_P(NearestJoins, equal_rows_of_many_dimensions_are_told_by_their_ids) {
  std::vector<std::int64_t> ids(300);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(i * 77 % ids.size()) - 150;
  const Points same = Points(30, std::vector<double>(30 * ids.size(), 0.1)).with_ids(ids);
  for (const Metric metric : {Metric::kL2, Metric::kCosine})
    for (const std::uint64_t k : {1u, 32u, 33u, 299u}) expect_exact(same, nullptr, metric, k);
}

TEST_P(NearestJoins, give_all_rows_where_there_are_no_more) {
  Random random(802);
  const Points few(2, make_values(Shape::kUniform, random, 7, 2));
  const Points many(2, make_values(Shape::kUniform, random, 100, 2));
  for (const std::uint64_t k : {6u, 7u, 8u, 10000u}) {
    expect_exact(many, &few, Metric::kL2, k);
    expect_exact(few, nullptr, Metric::kL2, k);
  }
  const Points none(2, {});
  expect_exact(none, &few, Metric::kL2, 3);
  expect_exact(few, &none, Metric::kL2, 3);
}

TEST_P(NearestJoins, stay_within_eps) {
  Random random(803);
  for (const std::uint32_t dims : {2u, 12u}) {
    const Points points(dims, make_values(Shape::kLattice, random, 400, dims));
    for (const double eps : {0.0, 1.0, 3.0})
      for (const Metric metric : kMetrics)
        expect_exact(points, nullptr, metric, 4, metric == Metric::kCosine ? eps / 10 : eps);
  }
}

TEST(NearestJoinsInParts, indexes_that_do_not_fit_take_parts) {
  Random random(811);
  const Points points(2, make_values(Shape::kClustered, random, 3000, 2)),
      others(2, make_values(Shape::kUniform, random, 2000, 2));
  for (const Points* const right : {static_cast<const Points*>(nullptr), &others}) {
    JoinRequest request = make_nearest_request(points, right, Metric::kL2, 5);
    if (right == nullptr) select(request, PairSelection::kDistinct);
    request.resources.memory_limit = 250'000;
    const RunResult result = run_join(*cpu_engine(), request);
    EXPECT_TRUE(matches_oracle(result, request, Oracle(points, right, Metric::kL2, DBL_MAX)));
    EXPECT_GT(result.stats.parts, 4u);
    EXPECT_LE(result.stats.memory_peak, request.resources.memory_limit);
  }
}

TEST(NearestJoinsInParts, parts_that_lie_apart_do_not_meet) {
  std::vector<double> values(2000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 2000);
  const Points points(1, values);
  const JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 3);
  const RunResult result = run_join(engine_of_parts(), request);
  EXPECT_EQ(result.status.code, StatusCode::kEnd);
  // Each part meets itself and those beside it.
  EXPECT_LE(result.stats.parts, 4 * (2000 / SmallParts::rows + 3));
}

TEST_P(NearestJoins, ties_go_to_the_smaller_id) {
  Random random(804);
  std::vector<std::int64_t> ids(500);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(i * 77 % 500) - 250;
  for (const std::uint32_t dims : {1u, 2u, 10u}) {
    const Points points =
        Points(dims, make_values(Shape::kLattice, random, 500, dims)).with_ids(ids);
    for (const Metric metric : kMetrics)
      for (const std::uint64_t k : {1u, 40u}) expect_exact(points, nullptr, metric, k);
  }
  const Points same = Points(2, std::vector<double>(1000, 2.5)).with_ids(ids);
  for (const std::uint64_t k : {1u, 10u, 499u, 500u}) expect_exact(same, nullptr, Metric::kL2, k);
}

/// Ids, in no order, decide among the rows of each of three places.
TEST_P(NearestJoins, of_many_equal_rows_take_no_quadratic_time) {
  if (is_device(engine())) return;  // of which it is not claimed
  constexpr std::int64_t kRows = kSanitized ? 3000 : 18000, kPlaces = 3;
  for (const std::uint32_t dims : {2u, 10u}) {
    std::vector<std::int64_t> ids;
    std::vector<double> values;
    for (std::int64_t row = 0; row < kRows; ++row) {
      ids.push_back(row * 7919 % kRows);
      values.insert(values.end(), dims, static_cast<double>(ids.back() % kPlaces));
    }
    const Points points = Points(dims, values).with_ids(ids);
    for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
      for (const std::int64_t k : {1, 40}) {
        const auto wanted = static_cast<std::uint64_t>(k);
        const RunResult result = run(make_nearest_request(points, nullptr, metric, wanted));
        ASSERT_EQ(result.pairs.size(), static_cast<std::size_t>(kRows) * wanted);
        for (const FoundPair& pair : result.pairs) {
          ASSERT_EQ(pair.distance, 0);
          ASSERT_EQ(pair.id2 % kPlaces, pair.id1 % kPlaces);
          ASSERT_LT(pair.id2, k * kPlaces);
        }
        EXPECT_LT(result.stats.candidates, static_cast<std::uint64_t>(kRows) * 4000)
            << "k " << k << " dims " << dims;
      }
  }
}

TEST_P(NearestJoins, roots_that_round_to_one_distance_are_ties) {
  // Squares that differ in the last bits and have the same root.
  std::vector<double> values;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 64; ++i) {
    values.push_back(1);
    values.push_back(std::ldexp(1.0, -26) * std::sqrt(i / 16.0));
    ids.push_back(63 - i);
  }
  const Points right = Points(2, values).with_ids(ids);
  const Points left(2, {0, 0});
  for (const std::uint64_t k : {1u, 5u, 33u, 63u}) expect_exact(left, &right, Metric::kL2, k);
}

TEST_P(NearestJoins, numbers_that_are_none_or_huge_or_tiny) {
  const double inf = INFINITY, nan = NAN;
  const std::vector<double> odd = {
      0,       0,      nan, 1,     inf,   1,     -inf,   inf, 1e308, 1e308, -1e308, 1e308, 1e-310,
      -1e-310, 5e-324, 0,   1e154, 1e154, 2e154, -1e154, 1,   1,     -0.0,  0.0,    3,     4};
  const Points points(2, odd);
  for (const Metric metric : kMetrics)
    for (const std::uint64_t k : {1u, 4u, 13u}) {
      expect_exact(points, nullptr, metric, k);
      expect_exact(points, &points, metric, k);
    }
  const Points none(2, {nan, nan, inf, 0});
  expect_exact(points, &none, Metric::kL2, 2);
}

TEST_P(NearestJoins, cosine_of_extreme_and_of_zero_vectors) {
  Random random(805);
  std::vector<double> values = make_values(Shape::kUniform, random, 60, 3);
  for (const double scale : {0.0, 1e-200, 1e-300, 1e200}) {
    for (int i = 0; i < 20; ++i)
      for (int d = 0; d < 3; ++d) values.push_back(scale * random.between(-1, 1));
    const Points points(3, values);
    expect_exact(points, nullptr, Metric::kCosine, 6);
  }
}

TEST_P(NearestJoins, several_threads_find_the_neighbors_of_many_points) {
  Random random(806);
  const std::uint64_t rows = kSanitized ? 800 : 2500;
  const Points points(2, make_values(Shape::kClustered, random, rows, 2), ScalarType::kFloat32);
  JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 9);
  select(request, PairSelection::kDistinct);
  request.resources.threads = 4;
  const RunResult result = run(request);
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, DBL_MAX)));
  EXPECT_EQ(result.stats.strategy.index, IndexMethod::kKdTree);
  EXPECT_LT(result.stats.candidates, rows * rows / 4);  // the tree leaves most pairs out
}

/// Several left points at a time, where lanes need the same leaves and where they need others, and
/// one at a time: beyond kMostLaneNeighbors, and with few left points.
TEST_P(NearestJoins, points_are_looked_for_together_and_alone) {
  Random random(817);
  for (const std::uint32_t dims : {1u, 3u, 4u, 8u}) {
    const Shape shape = dims == 3 || dims == 4 ? Shape::kUniform : Shape::kLattice;
    const Points points(dims, make_values(shape, random, 603, dims));
    const Points many(dims, make_values(shape, random, 85, dims));
    const Points few(dims, make_values(shape, random, 70, dims));
    for (const std::uint64_t k : {5u, 128u, 129u}) {
      expect_exact(points, nullptr, Metric::kL2, k);
      expect_exact(many, &points, Metric::kL1, k);
      expect_exact(few, &points, Metric::kLInf, k);
    }
  }
}

TEST_P(NearestJoins, memory_and_arguments_are_checked) {
  Random random(807);
  const Points points(2, make_values(Shape::kUniform, random, 5000, 2));
  JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 3);
  request.resources.memory_limit = 1000;
  EXPECT_EQ(run(request).status.code, StatusCode::kMemoryLimit);
  request.resources.memory_limit = 0;
  for (const std::uint64_t k : {std::uint64_t{0}, kMaxRows + 1})
    EXPECT_EQ(run(request.asking(Output::nearest(k))).status.code, StatusCode::kInvalidArgument);
  select(request, PairSelection::kUnordered);
  EXPECT_EQ(run(request).status.code, StatusCode::kInvalidArgument);
}

TEST_P(NearestJoins, an_early_end_leaves_nothing_behind) {
  Random random(808);
  const Points points(2, make_values(Shape::kUniform, random, 20000, 2));
  JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 8);
  request.knobs.batch_pairs = 50;
  const std::int64_t before = live_allocations();
  for (const int batches : {0, 1, 3}) {
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&request, &join).ok());
    ResultBatch batch;
    for (int i = 0; i < batches; ++i) ASSERT_TRUE(engine().next_batch(join, &batch).ok());
    engine().close(join);
  }
  expect_no_leak(engine(), before);
}

/// So many that there are several rounds of the screen, several slices of left points, or both.
TEST_P(NearestJoins, many_points_in_many_dimensions) {
  Random random(811);
  const std::uint64_t rows = kSanitized ? 500 : 1100;
  constexpr std::uint32_t kDims = 40;
  std::vector<double> values = make_values(Shape::kClustered, random, rows, kDims);
  for (std::uint64_t row = 0; row < rows; row += 9)  // the same as the row after
    for (std::uint32_t d = 0; d < kDims; ++d)
      values[row * kDims + d] = values[std::min(row + 1, rows - 1) * kDims + d];
  values[17 * kDims] = NAN;
  values[18 * kDims + 1] = INFINITY;
  std::vector<std::int64_t> ids(rows);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % rows);
  const Points points = Points(kDims, values, ScalarType::kFloat32).with_ids(ids);
  const Points some(kDims, make_values(Shape::kClustered, random, 200, kDims),
                    ScalarType::kFloat32);
  for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
    expect_exact(points, nullptr, metric, 10);
    expect_exact(some, &points, metric, 200);
    expect_exact(points, &some, metric, 3);
  }
}

/// Dense and empty places, and rows far away from all others.
TEST_P(NearestJoins, points_far_from_all_data) {
  Random random(812);
  const std::uint64_t rows = kSanitized ? 300 : 900;
  for (const std::uint32_t dims : {1u, 2u, 3u, 6u}) {
    std::vector<double> values = make_values(Shape::kExponential, random, rows, dims);
    for (std::uint64_t row = 0; row < rows; row += 50)
      for (std::uint32_t d = 0; d < dims; ++d) values[row * dims + d] = 1e6 * random.unit();
    for (std::uint64_t row = 1; row < rows; row += 3)
      for (std::uint32_t d = 0; d < dims; ++d) values[row * dims + d] = 3 + 1e-9 * random.unit();
    values[2 * dims] = 1e300;
    const Points points(dims, values);
    std::vector<double> other = make_values(Shape::kUniform, random, 100, dims);
    other[0] = -1e250;
    for (std::uint32_t d = 0; d < dims; ++d) other[5 * dims + d] = 1e12;
    const Points far(dims, other);
    for (const std::uint64_t k : {1u, 8u, 20u, 300u}) {
      expect_exact(far, &points, Metric::kL2, k);
      if (k == 8) expect_exact(points, nullptr, Metric::kL2, k);
    }
  }
}

TEST_P(NearestJoins, blocks_of_left_rows_come_one_after_the_other) {
  constexpr std::uint64_t kBlock = 100;
  Random random(811);
  const Points left(2, make_values(Shape::kUniform, random, 1050, 2));
  const Points right(2, make_values(Shape::kClustered, random, 700, 2));
  const JoinRequest any = make_nearest_request(left, &right, Metric::kL2, 3);
  JoinRequest request = any.asking(Output::nearest(3, kBlock));
  request.resources.threads = 1;
  EXPECT_TRUE(
      matches_oracle(run(request), request, Oracle(left, &right, Metric::kL2, request.eps())));
  if (is_device(engine())) return;  // which may take them in any order
  for (const bool blocks : {false, true}) {
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(blocks ? &request : &any, &join).ok());
    ResultBatch batch{};
    std::uint64_t last = 0, rows = 0;
    bool in_order = true;
    while (engine().next_batch(join, &batch).ok())
      for (std::uint64_t i = 0; i < batch.row_count; ++i, ++rows) {
        const auto block = static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]) / kBlock;
        in_order = in_order && block >= last;
        last = block;
      }
    engine().close(join);
    EXPECT_EQ(rows, left.rows());
    EXPECT_EQ(in_order, blocks);
  }
}

GPUJOIN_ON_EVERY_ENGINE(NearestJoins);

class NearestJoinsOnDevices : public NearestJoins {
 protected:
  static constexpr std::uint64_t kMegabyte = 1 << 20;
};
GPUJOIN_ON_DEVICES(NearestJoinsOnDevices);

TEST_P(NearestJoinsOnDevices, little_memory_makes_small_slices) {
  Random random(813);
  for (const std::uint32_t dims : {2u, 24u}) {
    const Points points(dims, make_values(Shape::kClustered, random, 1200, dims));
    const Oracle oracle(points, nullptr, Metric::kL2, DBL_MAX);
    JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 60);
    request.resources.device_memory_limit = 4 * kMegabyte;
    const RunResult result = run(request);
    EXPECT_TRUE(matches_oracle(result, request, oracle));
    EXPECT_GT(result.batches, 1u) << dims;
    EXPECT_LE(result.stats.device_memory_peak, 4 * kMegabyte);
    request.resources.device_memory_limit = kMegabyte / 64;
    EXPECT_EQ(run(request).status.code, StatusCode::kMemoryLimit);
  }
}

TEST_P(NearestJoinsOnDevices, can_be_interrupted_and_go_on) {
  Random random(814);
  for (const std::uint32_t dims : {2u, 24u}) {
    const Points points(dims, make_values(Shape::kUniform, random, 900, dims));
    JoinRequest request = make_nearest_request(points, nullptr, Metric::kL2, 5);
    volatile int interrupt = 1;
    request.resources.interrupt = &interrupt;
    const RunResult result = run_join(engine(), request, &interrupt);
    EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, DBL_MAX)));
    EXPECT_EQ(result.interruptions, 1u);
  }
}

/// A thread may look at every point for each of many others: kernels leave when they are told to.
TEST_P(NearestJoinsOnDevices, end_early_while_all_points_are_looked_at) {
  Random random(815);
  const std::uint64_t rows = 200000;
  const Points points(16, make_values(Shape::kUniform, random, rows, 16), ScalarType::kFloat32);
  JoinRequest request = make_nearest_request(points, nullptr, Metric::kL1, 3);
  volatile int interrupt = 0;
  request.resources.interrupt = &interrupt;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch;
  interrupt = 1;
  for (int call = 0; call < 20; ++call)
    ASSERT_NE(engine().next_batch(join, &batch).code, StatusCode::kEnd);
  const Stopwatch watch;
  engine().close(join);
  EXPECT_LT(watch.milliseconds(), 1000);
}

}  // namespace
}  // namespace gpujoin::test

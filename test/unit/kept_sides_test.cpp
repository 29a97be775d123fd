// What engines keep of datasets with a key: which joins reuse it, when it goes, and that joins of
// several threads may share it.

#include <gtest/gtest.h>

#include <atomic>
#include <cfloat>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/joins/side_cache.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{64} << 20;

class KeptSides : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (!IsSkipped()) engine().keep(kPlenty, kPlenty);
  }
  void TearDown() override {
    if (!IsSkipped()) engine().keep(0, 0);
  }

  /// The bytes kept, on host and device together.
  std::uint64_t kept(std::uint64_t identity) const {
    std::uint64_t host = 0, device = 0;
    engine().kept(identity, &host, &device);
    return host + device;
  }

  /// Runs and compares; true: no side was indexed.
  bool reuses(const JoinRequest& request, const Oracle& oracle) const {
    const RunResult result = run_join(engine(), request);
    EXPECT_TRUE(matches_oracle(result, request, oracle));
    EXPECT_GT(result.stats.indexed_sides + result.stats.reused_sides, 0u) << describe(request);
    return result.stats.indexed_sides == 0;
  }
};
GPUJOIN_ON_EVERY_ENGINE(KeptSides);

/// The points' rows under a key.
Dataset keyed(const Points& points, std::uint64_t identity, std::uint64_t version = 1) {
  Dataset data = points.view();
  data.key = {identity, version};
  return data;
}

JoinRequest keyed_request(const Points& left, const Points* right, double eps,
                          Metric metric = Metric::kL2) {
  JoinRequest request = make_request(left, right, metric, eps);
  set_sides(request, keyed(left, 1), keyed(right != nullptr ? *right : left, 2));
  return request;
}

Points some_points(std::uint64_t seed, std::uint64_t rows, std::uint32_t dims = 2) {
  Random random(seed);
  std::vector<double> values = make_values(Shape::kUniform, random, rows, dims);
  std::vector<std::int64_t> ids(rows);
  for (std::uint64_t row = 0; row < rows; ++row)
    ids[row] = static_cast<std::int64_t>(row * 7919 % (rows + 13)) - 5;
  return Points(dims, values).with_ids(ids);
}

TEST_P(KeptSides, a_join_finds_what_an_earlier_one_has_prepared) {
  for (const std::uint32_t dims : {1u, 2u, 5u, 20u}) {
    const Points left = some_points(dims, 300, dims), right = some_points(dims + 30, 200, dims);
    for (const Metric metric : kMetrics) {
      const double eps = metric == Metric::kCosine ? 0.02 : 8.0 * dims;
      for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
        const Oracle oracle(left, other, metric, eps);
        JoinRequest request = keyed_request(left, other, eps, metric);
        for (const IndexMethod index : {IndexMethod::kAuto, IndexMethod::kGrid, IndexMethod::kTiles,
                                        IndexMethod::kReferencePoints, IndexMethod::kNone}) {
          if (is_device(engine()) && metric == Metric::kCosine && index != IndexMethod::kAuto)
            continue;
          request.knobs.index = index;
          for (const Output::Kind output : {Output::kPairs, Output::kPairsWithDistances,
                                            Output::kCountPerRow, Output::kTotal}) {
            ask(request, output);
            reuses(request, oracle);
            EXPECT_TRUE(reuses(request, oracle)) << describe(request);
          }
        }
        engine().forget(1);
        engine().forget(2);
      }
    }
  }
}

TEST_P(KeptSides, rows_may_lie_somewhere_else_by_then) {
  for (const IndexMethod index :
       {IndexMethod::kGrid, IndexMethod::kTiles, IndexMethod::kReferencePoints}) {
    const Points left = some_points(1, 300, 12), right = some_points(2, 250, 12);
    const Oracle oracle(left, &right, Metric::kL2, 90);
    {
      const Points first_left = some_points(1, 300, 12), first_right = some_points(2, 250, 12);
      JoinRequest request = keyed_request(first_left, &first_right, 90);
      request.knobs.index = index;
      EXPECT_FALSE(reuses(request, oracle));
    }
    JoinRequest request = keyed_request(left, &right, 90);
    request.knobs.index = index;
    EXPECT_TRUE(reuses(request, oracle));
    ask(request, Output::kPairsWithDistances);
    EXPECT_FALSE(reuses(request, oracle)) << "in 12 dimensions outputs have indexes of their own";
    EXPECT_TRUE(reuses(request, oracle));
  }
}

TEST_P(KeptSides, outputs_in_two_dimensions_share_an_index) {
  const Points points = some_points(3, 700);
  const Oracle oracle(points, nullptr, Metric::kL2, 15);
  JoinRequest request = keyed_request(points, nullptr, 15);
  ask(request, Output::kTotal);
  EXPECT_FALSE(reuses(request, oracle));
  for (const Output::Kind output :
       {Output::kPairs, Output::kCountPerRow, Output::kPairsWithDistances, Output::kTotal}) {
    for (const PairSelection pairs :
         {PairSelection::kUnordered, PairSelection::kDistinct, PairSelection::kAll}) {
      ask(request, output);
      select(request, pairs);
      EXPECT_TRUE(reuses(request, oracle)) << describe(request);
    }
  }
}

TEST_P(KeptSides, one_table_on_both_sides_is_indexed_once) {
  const Points points = some_points(4, 700);
  const Oracle oracle(points, &points, Metric::kL2, 15);
  JoinRequest request = make_request(points, &points, Metric::kL2, 15);
  set_sides(request, keyed(points, 1), keyed(points, 1));
  const RunResult first = run_join(engine(), request);
  EXPECT_TRUE(matches_oracle(first, request, oracle));
  EXPECT_EQ(first.stats.indexed_sides, 1u);
  EXPECT_TRUE(every_output_matches(engine(), request, oracle));
  EXPECT_TRUE(reuses(request, oracle));
}

TEST_P(KeptSides, best_pairs_are_found_among_kept_rows) {
  std::vector<double> scores(600);
  Random random(5);
  for (double& score : scores) score = random.unit();
  const Points left = some_points(5, 600).with_scores(scores);
  const Points right = some_points(6, 600).with_scores(scores);
  for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
    const Oracle oracle(left, other, Metric::kL2, 20);
    JoinRequest request = keyed_request(left, other, 20);
    for (const ScoreFunction function : {ScoreFunction::kSum, ScoreFunction::kDistance}) {
      for (const TopkMethod method :
           {TopkMethod::kThreshold, TopkMethod::kHeap, TopkMethod::kSort}) {
        request.knobs.topk_method = method;
        request = request.asking(Output::top_pairs({{function, true, {1, 1}}, 90}));
        for (int time = 0; time < 3; ++time)
          EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
      }
    }
  }
}

TEST_P(KeptSides, other_questions_are_answered_anew) {
  const Points points = some_points(7, 500);
  JoinRequest request = keyed_request(points, nullptr, 10);
  EXPECT_FALSE(reuses(request, Oracle(points, nullptr, Metric::kL2, 10)));
  for (const double eps : {4.0, 30.0})
    EXPECT_FALSE(
        reuses(keyed_request(points, nullptr, eps), Oracle(points, nullptr, Metric::kL2, eps)));
  EXPECT_FALSE(reuses(keyed_request(points, nullptr, 10, Metric::kL1),
                      Oracle(points, nullptr, Metric::kL1, 10)));
  EXPECT_TRUE(reuses(request, Oracle(points, nullptr, Metric::kL2, 10)));
  request.knobs.cell_order = CellOrder::kHilbert;
  EXPECT_FALSE(reuses(request, Oracle(points, nullptr, Metric::kL2, 10)));
}

TEST_P(KeptSides, an_index_of_the_cpu_serves_smaller_radii) {
  if (is_device(engine())) GTEST_SKIP() << "on a device a radius has its own";
  for (const std::uint32_t dims : {1u, 2u}) {
    // Whole numbers: many points are exactly 12 or 8 apart.
    Random random(dims + 20);
    std::vector<double> values = make_values(Shape::kUniform, random, 150, dims);
    for (double& value : values) value = std::round(value);
    const Points left(dims, values), right = some_points(21, 100, dims);
    for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf}) {
      for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
        if (kSanitized && other != nullptr && metric != Metric::kL2) continue;
        for (const IndexMethod index :
             {IndexMethod::kAuto, IndexMethod::kGrid, IndexMethod::kReferencePoints}) {
          const auto asks = [&](double eps) {
            JoinRequest request = keyed_request(left, other, eps, metric);
            request.knobs.index = index;
            const Oracle oracle(left, other, metric, eps);
            const bool reused = reuses(request, oracle);
            EXPECT_TRUE(every_output_matches(engine(), request, oracle)) << describe(request);
            return !reused;
          };
          EXPECT_TRUE(asks(std::nextafter(12.0, 0)));
          for (const double eps : {12.0, 11.99, 8.0, std::nextafter(8.0, 0), 6.0, 12.0})
            EXPECT_FALSE(asks(eps)) << eps;
          EXPECT_TRUE(asks(5.9)) << "the cells of 12 are too wide";
          EXPECT_FALSE(asks(5.905)) << "has the nearest";
          EXPECT_TRUE(asks(12.1));
          EXPECT_TRUE(asks(0));
          EXPECT_FALSE(asks(0));
          engine().forget(1);
          engine().forget(2);
        }
      }
    }
  }
}

TEST_P(KeptSides, tiles_and_directions_are_for_one_radius) {
  const Points plane = some_points(22, 400), space = some_points(23, 400, 3);
  const auto asks = [&](const Points& points, Metric metric, IndexMethod index, double eps) {
    JoinRequest request = keyed_request(points, nullptr, eps, metric);
    request.knobs.index = index;
    return !reuses(request, Oracle(points, nullptr, metric, eps));
  };
  for (const double eps : {10.0, 9.0}) {
    EXPECT_TRUE(asks(plane, Metric::kL2, IndexMethod::kTiles, eps));
    EXPECT_TRUE(asks(plane, Metric::kCosine, IndexMethod::kAuto, eps / 500));
    engine().forget(1);
    EXPECT_TRUE(asks(space, Metric::kL2, IndexMethod::kAuto, eps + 10));
    EXPECT_TRUE(asks(space, Metric::kL2, IndexMethod::kAuto, eps + 9.5));
    engine().forget(1);
  }
}

TEST_P(KeptSides, another_version_has_its_own_pairs) {
  const Points before = some_points(8, 500), after = some_points(9, 500);
  const Oracle first(before, nullptr, Metric::kL2, 10), second(after, nullptr, Metric::kL2, 10);
  JoinRequest request = make_request(before, nullptr, Metric::kL2, 10);
  set_sides(request, keyed(before, 1, 1), keyed(before, 1, 1));
  EXPECT_FALSE(reuses(request, first));
  EXPECT_TRUE(reuses(request, first));
  const std::uint64_t bytes = kept(1);
  EXPECT_GT(bytes, 500u * 8);
  set_sides(request, keyed(after, 1, 2), keyed(after, 1, 2));
  EXPECT_FALSE(reuses(request, second));
  EXPECT_TRUE(reuses(request, second));
  EXPECT_LT(kept(1), bytes + bytes / 2) << "the version before is gone";
}

/// Searches use the index of an earlier version while joins use that of the current one.
TEST_P(KeptSides, the_base_of_a_version_stays_beside_it) {
  const Points before = some_points(8, 500), after = some_points(9, 500), one = some_points(7, 1);
  const Oracle nearest(one, &before, Metric::kL2, DBL_MAX), pairs(after, nullptr, Metric::kL2, 10);
  JoinRequest search = make_request(one, &before, Metric::kL2, DBL_MAX).asking(Output::nearest(5));
  const auto searches_version = [&](std::uint64_t version) {
    Dataset right = keyed(before, 1, version);
    right.key.base = version;
    set_sides(search, one.view(), right);
    const RunResult result = run_join(engine(), search);
    EXPECT_TRUE(matches_oracle(result, search, nearest));
    return result.stats.reused_sides == 1;
  };
  JoinRequest join = make_request(after, nullptr, Metric::kL2, 10);
  const auto joins_version = [&](std::uint64_t version, std::uint64_t base) {
    Dataset rows = keyed(after, 1, version);
    rows.key.base = base;
    set_sides(join, rows, rows);
    return reuses(join, pairs);
  };
  EXPECT_FALSE(searches_version(1));
  joins_version(2, 1);
  EXPECT_TRUE(joins_version(2, 1));
  const std::uint64_t bytes = kept(1);
  joins_version(3, 1);
  EXPECT_TRUE(joins_version(3, 1));
  EXPECT_LT(kept(1), bytes + bytes / 4) << "version 2 is gone";
  EXPECT_TRUE(searches_version(1));
  joins_version(4, 4);
  EXPECT_LT(kept(1), bytes) << "version 1 is gone, too";
}

TEST_P(KeptSides, rows_without_a_key_are_not_kept) {
  const Points points = some_points(10, 500);
  const Oracle oracle(points, nullptr, Metric::kL2, 10);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 10);
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_FALSE(reuses(request, oracle));
  JoinRequest half = make_request(points, &points, Metric::kL2, 10);
  set_sides(half, keyed(points, 1), points.view());
  const Oracle two(points, &points, Metric::kL2, 10);
  EXPECT_FALSE(reuses(half, two));
  EXPECT_FALSE(reuses(half, two));
}

TEST_P(KeptSides, nothing_is_kept_unless_asked_for) {
  const Points points = some_points(11, 500);
  const Oracle oracle(points, nullptr, Metric::kL2, 10);
  const JoinRequest request = keyed_request(points, nullptr, 10);
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_GT(kept(1), 0u);
  engine().keep(0, 0);
  EXPECT_EQ(kept(1), 0u);
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_EQ(kept(1), 0u);
}

TEST_P(KeptSides, what_is_forgotten_is_indexed_again) {
  const Points left = some_points(12, 500), right = some_points(13, 300);
  const Oracle oracle(left, &right, Metric::kL2, 10);
  const JoinRequest request = keyed_request(left, &right, 10);
  EXPECT_FALSE(reuses(request, oracle));
  engine().forget(3);
  EXPECT_TRUE(reuses(request, oracle));
  EXPECT_GT(kept(1), 0u);
  EXPECT_GT(kept(2), 0u);
  engine().forget(2);
  EXPECT_EQ(kept(2), 0u);
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_TRUE(reuses(request, oracle));
}

TEST_P(KeptSides, an_open_join_keeps_what_is_forgotten) {
  const Points points = some_points(14, 800);
  const Oracle oracle(points, nullptr, Metric::kL2, 20);
  JoinRequest request = keyed_request(points, nullptr, 20);
  EXPECT_FALSE(reuses(request, oracle));
  request.knobs.batch_pairs = 100;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  RunResult result;
  for (int calls = 0;; ++calls) {
    ResultBatch batch{};
    result.status = engine().next_batch(join, &batch);
    if (!result.status.ok()) break;
    collect(request, batch, &result);
    if (calls == 1) engine().forget(1);
  }
  engine().stats(join, &result.stats);
  engine().close(join);
  sort_result(request, &result);
  EXPECT_TRUE(matches_oracle(result, request, oracle));
  EXPECT_EQ(kept(1), 0u);
}

TEST_P(KeptSides, what_was_used_longest_ago_goes_first) {
  const Points points = some_points(15, 4000);
  const auto request = [&](std::uint64_t identity) {
    JoinRequest join = make_request(points, nullptr, Metric::kL2, 1);
    ask(join, Output::kTotal);
    set_sides(join, keyed(points, identity), keyed(points, identity));
    return join;
  };
  const auto indexed = [&](std::uint64_t identity) {
    return run_join(engine(), request(identity)).stats.indexed_sides > 0;
  };
  EXPECT_TRUE(indexed(1));
  const std::uint64_t bytes = kept(1), limit = 2 * bytes + bytes / 2;
  ASSERT_GT(bytes, 4000u * 20);
  engine().keep(limit, limit);
  const auto kept_of_all = [&] {
    std::uint64_t sum = 0;
    for (std::uint64_t identity = 1; identity < 8; ++identity) sum += kept(identity);
    return sum;
  };
  for (std::uint64_t identity = 2; identity < 7; ++identity) {
    EXPECT_TRUE(indexed(identity));
    EXPECT_LE(kept_of_all(), limit);
  }
  EXPECT_EQ(kept(1), 0u);
  EXPECT_FALSE(indexed(6));
  EXPECT_FALSE(indexed(5));
  EXPECT_TRUE(indexed(7));
  // A device may go without rows as they came, and keep one index more.
  if (!is_device(engine())) {
    EXPECT_EQ(kept(6), 0u);
  }
  EXPECT_FALSE(indexed(5));
  EXPECT_FALSE(indexed(7));
  EXPECT_TRUE(indexed(1));
  engine().keep(bytes / 4, bytes / 4);
  EXPECT_EQ(kept_of_all(), 0u);
  EXPECT_TRUE(indexed(1));
  EXPECT_EQ(kept(1), 0u) << "what exceeds the limit goes after its join";
}

TEST_P(KeptSides, directions_too_faint_to_decide_are_indexed_once) {
  Random random(16);
  std::vector<double> values(3 * 400);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = random.between(-1, 1) * (i < 30 ? 1e-320 : 1);
  const Points points(3, values);
  const Oracle oracle(points, nullptr, Metric::kCosine, 0.05);
  const JoinRequest request = keyed_request(points, nullptr, 0.05, Metric::kCosine);
  EXPECT_FALSE(reuses(request, oracle));
  EXPECT_TRUE(reuses(request, oracle));
}

/// A device is called by one thread at a time, each time by another one.
TEST_P(KeptSides, joins_of_several_threads_share_a_side) {
  constexpr int kThreads = 8, kRounds = kSanitized ? 4 : 12;
  const Points points = some_points(17, kSanitized ? 300 : 900);
  const std::vector<double> radii = {5, 10, 20};
  std::vector<Oracle> oracles;
  for (const double eps : radii) oracles.emplace_back(points, nullptr, Metric::kL2, eps);
  std::mutex device;
  std::atomic<int> failures = 0;
  const auto call = [&](const auto& body) {
    std::unique_lock<std::mutex> lock(device, std::defer_lock);
    if (is_device(engine())) lock.lock();
    return body();
  };
  const auto run = [&](int number) {
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t which = static_cast<std::size_t>(number + round) % radii.size();
      JoinRequest request = keyed_request(points, nullptr, radii[which]);
      request.knobs.batch_pairs = 200;
      ask(request, round % 2 ? Output::kPairs : Output::kCountPerRow);
      Join* join = nullptr;
      RunResult result;
      result.status = call([&] { return engine().open(&request, &join); });
      while (result.status.ok()) {
        ResultBatch batch{};
        result.status = call([&] { return engine().next_batch(join, &batch); });
        if (result.status.ok()) collect(request, batch, &result);
      }
      call([&] {
        engine().stats(join, &result.stats);
        engine().close(join);
        return 0;
      });
      sort_result(request, &result);
      if (!matches_oracle(result, request, oracles[which])) ++failures;
      if (round % 4 == 3)
        call([&] {
          engine().forget(1);
          return 0;
        });
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back(run, number);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

/// Left rows that differ from join to join, near the right ones and far away.
Points left_points(std::uint64_t seed, std::uint32_t dims, double scale) {
  Random random(seed);
  std::vector<double> values = make_values(Shape::kUniform, random, 40, dims);
  for (double& x : values) x *= scale;
  return Points(dims, values);
}

TEST_P(KeptSides, nearest_rows_of_other_left_rows_find_the_right_side_prepared) {
  for (const std::uint32_t dims : {1u, 2u, 7u, 20u, 120u})
    for (const Metric metric : kMetrics) {
      const Points right = some_points(dims, 400, dims);
      bool first = true;
      for (const double scale : {1.0, 0.1, 50.0})
        for (const std::uint64_t k : {3u, 5u}) {
          const Points left = left_points(dims + k, dims, scale);
          JoinRequest request =
              make_request(left, &right, metric, DBL_MAX).asking(Output::nearest(k));
          set_sides(request, left.view(), keyed(right, 2));
          const RunResult result = run_join(engine(), request);
          EXPECT_TRUE(matches_oracle(result, request, Oracle(left, &right, metric, DBL_MAX)));
          EXPECT_EQ(result.stats.reused_sides, first ? 0u : 1u) << describe(request);
          first = false;
        }
      JoinRequest request =
          make_request(right, nullptr, metric, DBL_MAX).asking(Output::nearest(4));
      set_sides(request, keyed(right, 2), keyed(right, 2));
      reuses(request, Oracle(right, nullptr, metric, DBL_MAX));
      EXPECT_TRUE(reuses(request, Oracle(right, nullptr, metric, DBL_MAX))) << describe(request);
      EXPECT_GT(kept(2), 0u);
      engine().forget(2);
      EXPECT_EQ(kept(2), 0u);
    }
}

/// One row at a time: of many columns its points are screened in bytes, whose steps follow from the
/// data. Rows are near each other, equal, tiny, large, or zero, beside one far away.
TEST_P(KeptSides, nearest_rows_of_one_row_are_the_oracles) {
  for (const std::uint32_t dims : {2u, 17u, 130u})
    for (const double unit : {1.0, 1e-13, 1e14})
      for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
        Random random(dims);
        std::vector<double> numbers;
        const int rows = dims == 17 ? 9000 : 333;  // more than a device takes for a sample, too
        for (int row = 0; row < rows; ++row)
          for (std::uint32_t d = 0; d < dims; ++d) {
            const double center = row % 3, spread = row % 3 == 0 ? 1 : row % 3 == 1 ? 1e-4 : 0;
            numbers.push_back(unit * (center + spread * random.unit() + (row == 77 ? 1e7 : 0)));
          }
        const Points right(dims, numbers);
        for (const double at : {0.0, 1e-9, 0.5, 1.00003, 2.0, 3e5, 1e7})
          for (const std::uint64_t k : {1u, 7u, 200u, 400u}) {
            std::vector<double> one;
            for (std::uint32_t d = 0; d < dims; ++d)
              one.push_back(unit * (at + 1e-5 * random.unit()));
            const Points left(dims, one);
            for (const double eps : {DBL_MAX, metric == Metric::kL2 ? 2.5 * unit : 1e-4}) {
              JoinRequest request =
                  make_request(left, &right, metric, eps).asking(Output::nearest(k));
              set_sides(request, left.view(), keyed(right, 2));
              EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                                         Oracle(left, &right, metric, eps)))
                  << describe(request) << ", unit " << unit << ", at " << at;
            }
          }
        engine().forget(2);
      }
}

/// Of an extreme vector directions prove nothing: of many columns a tree is searched, then.
TEST_P(KeptSides, nearest_rows_of_an_extreme_vector_are_found_beside_what_is_kept) {
  const Points right = some_points(7, 300, 20);
  for (const double factor : {1.0, 1e-170, 1.0}) {
    const Points left = left_points(9, 20, factor);
    JoinRequest request = make_request(left, &right, Metric::kCosine, 2).asking(Output::nearest(5));
    set_sides(request, left.view(), keyed(right, 2));
    EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                               Oracle(left, &right, Metric::kCosine, 2)));
  }
}

/// Of joins that come at once, one prepares, and the others wait for it.
TEST(KeptSidesOfTheCpu, are_prepared_once_for_joins_that_come_together) {
  const EngineTable& engine = *cpu_engine();
  engine.keep(kPlenty, 0);
  const Points points = some_points(18, kSanitized ? 4000 : 20000);
  JoinRequest request = keyed_request(points, nullptr, 0.5);
  ask(request, Output::kTotal);
  std::atomic<std::uint32_t> indexed = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number)
    threads.emplace_back([&] { indexed += run_join(engine, request).stats.indexed_sides; });
  for (std::thread& thread : threads) thread.join();
  engine.keep(0, 0);
  EXPECT_EQ(indexed, 1u);
}

TEST(SideSlots, a_join_that_waits_for_another_can_be_stopped) {
  struct Stop {};
  SideSlot slot;
  const SideSlot::Turn turn(slot, [] {});
  EXPECT_THROW(SideSlot::Turn(slot, [] { throw Stop{}; }), Stop);
}

}  // namespace
}  // namespace gpujoin::test

// Top-k joins: every method, score function and order against brute force, on scores and points
// that make ties, overflow, or are all the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<ScoreFunction> kFunctions = {ScoreFunction::kSum, ScoreFunction::kProduct,
                                               ScoreFunction::kMin, ScoreFunction::kMax,
                                               ScoreFunction::kDistance};
const std::vector<TopkMethod> kMethods = {TopkMethod::kAuto, TopkMethod::kThreshold,
                                          TopkMethod::kHeap, TopkMethod::kSort};

Top top_of(ScoreFunction function, bool lowest_first, std::uint64_t k, double first_weight = 1,
           double second_weight = 1) {
  return {{function, lowest_first, {first_weight, second_weight}}, k};
}

JoinRequest make_top_request(const Points& left, const Points* right, Metric metric, double eps,
                             const Top& top) {
  return make_request(left, right, metric, eps).asking(Output::top_pairs(top));
}

std::vector<double> random_scores(Random& random, std::uint64_t rows, double low, double high) {
  std::vector<double> scores(rows);
  for (double& score : scores) score = random.between(low, high);
  return scores;
}

class TopkJoins : public EngineTest {
 protected:
  /// By every method.
  void expect_exact(JoinRequest request, const Oracle& oracle) {
    for (const TopkMethod method : kMethods) {
      request.knobs.topk_method = method;
      const RunResult result = run_join(engine(), request);
      EXPECT_TRUE(matches_oracle(result, request, oracle));
      EXPECT_NE(result.stats.topk_method, TopkMethod::kAuto);
      EXPECT_GE(result.stats.topk_rounds, 1u);
    }
  }

  /// By every function, in both orders, for several k.
  void expect_every_function(const Points& left, const Points* right, Metric metric, double eps,
                             double first_weight = 1, double second_weight = 1) {
    const Oracle oracle(left, right, metric, eps);
    for (const ScoreFunction function : kFunctions)
      for (const bool lowest_first : {false, true})
        for (const std::uint64_t k : {1u, 10u, 300u})
          expect_exact(
              make_top_request(left, right, metric, eps,
                               top_of(function, lowest_first, k, first_weight, second_weight)),
              oracle);
  }
};
GPUJOIN_ON_EVERY_ENGINE(TopkJoins);

TEST_P(TopkJoins, match_brute_force_by_every_function_in_both_orders) {
  Random random(301);
  for (const std::uint32_t dims : {1u, 2u, 6u}) {
    const Points left = Points(dims, make_values(Shape::kClustered, random, 300, dims))
                            .with_scores(random_scores(random, 300, -5, 10));
    const Points right =
        Points(dims, make_values(Shape::kClustered, random, 200, dims), ScalarType::kFloat64)
            .with_scores(random_scores(random, 200, -1, 1));
    expect_every_function(left, &right, Metric::kL2, 2);
    expect_every_function(left, nullptr, Metric::kL2, 2);
  }
}

TEST_P(TopkJoins, weights_tell_the_first_point_from_the_second) {
  Random random(302);
  std::vector<std::int64_t> ids(200);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.index(100000)) - 50000;
  const Points left = Points(2, make_values(Shape::kUniform, random, 200, 2))
                          .with_ids(ids)
                          .with_scores(random_scores(random, 200, -5, 5));
  const Points right = Points(2, make_values(Shape::kUniform, random, 150, 2))
                           .with_scores(random_scores(random, 150, 0, 10));
  expect_every_function(left, &right, Metric::kL2, 20, 2, -0.5);
  expect_every_function(left, nullptr, Metric::kL2, 20, -3, 0.25);
  expect_every_function(left, nullptr, Metric::kL2, 20, 0, 1);
}

TEST_P(TopkJoins, know_every_metric) {
  Random random(303);
  const Points points =
      Points(3, make_values(Shape::kUniform, random, 250, 3), ScalarType::kFloat32)
          .with_scores(random_scores(random, 250, 0, 1));
  for (const Metric metric : kMetrics)
    expect_every_function(points, nullptr, metric, metric == Metric::kCosine ? 0.2 : 25);
}

TEST_P(TopkJoins, ties_are_decided_by_ids) {
  Random random(304);
  std::vector<std::int64_t> ids(150);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(i * 77 % 150) - 75;
  const std::vector<double> values = make_values(Shape::kLattice, random, 150, 2);
  std::vector<double> few(150);
  for (double& score : few) score = static_cast<double>(random.index(3)) - 1;
  for (const std::vector<double>& scores : {std::vector<double>(150, 2.5), few}) {
    const Points points = Points(2, values).with_ids(ids).with_scores(scores);
    expect_every_function(points, nullptr, Metric::kL2, 1);
    expect_every_function(points, &points, Metric::kL2, 1);
  }
}

TEST_P(TopkJoins, unordered_points_with_the_same_id_are_ordered_by_score) {
  Random random(305);
  const Points points = Points(1, make_values(Shape::kLattice, random, 60, 1))
                            .with_ids(std::vector<std::int64_t>(60, 7))
                            .with_scores(random_scores(random, 60, -2, 2));
  expect_every_function(points, nullptr, Metric::kL2, 1, 3, -1);
}

TEST_P(TopkJoins, of_disjoint_parts_of_one_put_the_smaller_id_first) {
  Random random(306);
  std::vector<std::int64_t> even(120), odd(90);
  for (std::size_t i = 0; i < even.size(); ++i) even[i] = static_cast<std::int64_t>(2 * i);
  for (std::size_t i = 0; i < odd.size(); ++i) odd[i] = static_cast<std::int64_t>(2 * i + 1);
  const Points left = Points(2, make_values(Shape::kLattice, random, 120, 2))
                          .with_ids(even)
                          .with_scores(random_scores(random, 120, -2, 5));
  const Points right = Points(2, make_values(Shape::kLattice, random, 90, 2))
                           .with_ids(odd)
                           .with_scores(random_scores(random, 90, -5, 2));
  const Oracle oracle(left, &right, Metric::kL2, 1);
  for (const ScoreFunction function : kFunctions) {
    for (const bool lowest_first : {false, true}) {
      Top top = top_of(function, lowest_first, 40, 2, -1);
      top.parts_of_one = true;
      expect_exact(make_top_request(left, &right, Metric::kL2, 1, top), oracle);
    }
  }
}

TEST_P(TopkJoins, deliver_all_pairs_where_there_are_fewer_than_k) {
  Random random(307);
  const Points points = Points(2, make_values(Shape::kUniform, random, 80, 2))
                            .with_scores(random_scores(random, 80, 0, 1));
  for (const double eps : {0.0, 1.0, 30.0, 1000.0}) {
    const Oracle oracle(points, nullptr, Metric::kL2, eps);
    for (const std::uint64_t k : {std::uint64_t{1}, std::uint64_t{5000}, kMostTopPairs})
      for (const ScoreFunction function : kFunctions)
        expect_exact(make_top_request(points, nullptr, Metric::kL2, eps, top_of(function, true, k)),
                     oracle);
  }
}

TEST_P(TopkJoins, of_duplicate_points_at_eps_0) {
  Random random(308);
  const Points points = Points(2, make_values(Shape::kLattice, random, 300, 2))
                            .with_scores(random_scores(random, 300, -1, 1));
  expect_every_function(points, nullptr, Metric::kL2, 0);
  expect_every_function(points, &points, Metric::kL2, 0);
}

TEST_P(TopkJoins, of_empty_sides_have_no_pairs) {
  const Points none(2, {});
  const Points some = Points(2, {1, 2, 3, 4}).with_scores({1, 2});
  expect_every_function(none, nullptr, Metric::kL2, 1);
  expect_every_function(none, &some, Metric::kL2, 1);
  expect_every_function(some, &none, Metric::kL2, 1);
  expect_every_function(none, &none, Metric::kL2, 1);
}

TEST_P(TopkJoins, points_that_match_nothing_do_not_matter) {
  const Points points =
      Points(2, {kNan, 0, 0, 0, 0, 1, kInf, 0, 0, -1, 5, 5}).with_scores({100, 1, 2, 100, 3, 100});
  expect_every_function(points, nullptr, Metric::kL2, 1);
  expect_every_function(points, &points, Metric::kL2, 1);
}

TEST_P(TopkJoins, of_hostile_scores) {
  Random random(309);
  const std::vector<double> hostile = {0.0, -0.0, kMax,  -kMax,  kDenormal, -kDenormal,     1e-300,
                                       1,   -1,   1e154, -1e200, below(1),  above(kMax / 2)};
  std::vector<double> scores(120);
  for (double& score : scores) score = random.pick(hostile);
  const Points points = Points(1, make_values(Shape::kLattice, random, 120, 1)).with_scores(scores);
  for (const auto& [first, second] :
       std::vector<std::pair<double, double>>{{1, 1}, {-2, 3}, {kMax, -kMax}, {0, kMax}}) {
    expect_every_function(points, nullptr, Metric::kL2, 1, first, second);
    expect_every_function(points, &points, Metric::kL2, 1, first, second);
  }
}

TEST_P(TopkJoins, of_scores_that_follow_the_place) {
  Random random(310);
  const std::vector<double> values = make_values(Shape::kUniform, random, 400, 2);
  std::vector<double> along(400), against(400);
  for (std::size_t i = 0; i < 400; ++i) {
    along[i] = values[2 * i] + 50;
    against[i] = -values[2 * i];
  }
  // Pairs of high scores lie together; or what is high on one side has no high ones near it.
  const Points left = Points(2, values).with_scores(along);
  const Points right = Points(2, values).with_scores(against);
  expect_every_function(left, nullptr, Metric::kL2, 4);
  expect_every_function(left, &right, Metric::kL2, 4);
}

TEST_P(TopkJoins, do_not_depend_on_the_knobs_of_range_joins) {
  Random random(311);
  const Points left = Points(4, make_values(Shape::kLattice, random, 200, 4))
                          .with_scores(random_scores(random, 200, -5, 5));
  const Points right = Points(4, make_values(Shape::kLattice, random, 150, 4))
                           .with_scores(random_scores(random, 150, -5, 5));
  for (const Points* const other : {static_cast<const Points*>(nullptr), &right}) {
    const Oracle oracle(left, other, Metric::kL2, 1);
    for (const IndexMethod index : {IndexMethod::kNone, IndexMethod::kGrid, IndexMethod::kTiles,
                                    IndexMethod::kReferencePoints}) {
      for (const AccessPattern pattern : {AccessPattern::kFull, AccessPattern::kUnicomp}) {
        for (const ScoreFunction function : {ScoreFunction::kProduct, ScoreFunction::kDistance}) {
          JoinRequest request =
              make_top_request(left, other, Metric::kL2, 1, top_of(function, true, 25, 1, 2));
          request.knobs.index = index;
          request.knobs.access_pattern = pattern;
          request.knobs.batch_pairs = 7;
          request.resources.threads = 3;
          expect_exact(request, oracle);
        }
      }
    }
  }
}

TEST_P(TopkJoins, batches_have_no_more_pairs_than_asked_for) {
  Random random(312);
  const Points points = Points(2, make_values(Shape::kClustered, random, 200, 2))
                            .with_scores(random_scores(random, 200, 0, 1));
  const Oracle oracle(points, nullptr, Metric::kL2, 1);
  for (const std::uint64_t batch_pairs : {1u, 7u, 100u}) {
    JoinRequest request =
        make_top_request(points, nullptr, Metric::kL2, 1, top_of(ScoreFunction::kSum, false, 100));
    request.knobs.batch_pairs = batch_pairs;
    const RunResult result = run_join(engine(), request);
    ASSERT_TRUE(matches_oracle(result, request, oracle));
    EXPECT_EQ(result.largest_batch, batch_pairs);
    EXPECT_EQ(result.batches, (100 + batch_pairs - 1) / batch_pairs);
    EXPECT_EQ(result.stats.batches, result.batches);
  }
}

TEST_P(TopkJoins, what_the_caller_has_better_pairs_for_may_be_left_out_and_nothing_else) {
  Random random(313);
  const Points left = Points(2, make_values(Shape::kUniform, random, 300, 2))
                          .with_scores(random_scores(random, 300, 0, 1));
  for (const ScoreFunction function : kFunctions) {
    for (const bool lowest_first : {false, true}) {
      Top top = top_of(function, lowest_first, 50);
      std::vector<FoundPair> expected = Oracle(left, nullptr, Metric::kL2, 20).top(top);
      ASSERT_EQ(expected.size(), 50u);
      const double least = expected[19].distance;
      top.least_key = score_key(lowest_first, least);
      JoinRequest request = make_top_request(left, nullptr, Metric::kL2, 20, top);
      const auto matters = [&](const FoundPair& pair) {
        return lowest_first ? pair.distance <= least : pair.distance >= least;
      };
      for (const TopkMethod method : kMethods) {
        request.knobs.topk_method = method;
        const RunResult result = run_join(engine(), request);
        ASSERT_EQ(result.status.code, StatusCode::kEnd);
        ASSERT_GE(result.pairs.size(), 20u) << describe(request);
        for (std::size_t i = 0; i < result.pairs.size() && matters(expected[i]); ++i)
          EXPECT_EQ(result.pairs[i], expected[i]) << describe(request);
      }
    }
  }
}

TEST_P(TopkJoins, invalid_ones_are_refused) {
  const Points points = Points(1, {1, 2}).with_scores({1, 2});
  const Points unscored(1, {1, 2});
  const auto message = [&](const JoinRequest& request) -> std::string {
    Join* join = nullptr;
    const Status status = engine().open(&request, &join);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(join, nullptr);
    return status.message;
  };
  const Top top = top_of(ScoreFunction::kSum, false, 1);
  for (const std::uint64_t k : {std::uint64_t{0}, kMostTopPairs + 1}) {
    const Top bad = top_of(ScoreFunction::kSum, false, k);
    EXPECT_NE(message(make_top_request(points, nullptr, Metric::kL2, 1, bad)).find("k must be"),
              std::string::npos);
  }
  const Top endless = top_of(ScoreFunction::kSum, false, 1, 1, kInf);
  EXPECT_NE(message(make_top_request(points, nullptr, Metric::kL2, 1, endless)).find("weights"),
            std::string::npos);
  EXPECT_NE(message(make_top_request(unscored, nullptr, Metric::kL2, 1, top)).find("scores"),
            std::string::npos);
  EXPECT_NE(message(make_top_request(points, &unscored, Metric::kL2, 1, top)).find("scores"),
            std::string::npos);
}

TEST_P(TopkJoins, a_memory_limit_that_is_too_small_is_told) {
  Random random(314);
  const Points points = Points(2, make_values(Shape::kUniform, random, 20000, 2))
                            .with_scores(random_scores(random, 20000, 0, 1));
  for (const TopkMethod method : kMethods) {
    for (const std::uint64_t k : {std::uint64_t{10}, kMostTopPairs}) {
      JoinRequest request =
          make_top_request(points, nullptr, Metric::kL2, 1, top_of(ScoreFunction::kSum, false, k));
      request.resources.memory_limit = request.resources.device_memory_limit = 1 << 14;
      request.knobs.topk_method = method;
      const std::int64_t before = live_allocations();
      {
        const RunResult result = run_join(engine(), request);
        EXPECT_EQ(result.status.code, StatusCode::kMemoryLimit) << describe(request);
        EXPECT_STRNE(result.status.hint, "");
      }
      expect_no_leak(engine(), before);
    }
  }
}

TEST_P(TopkJoins, stay_within_their_memory_limit) {
  Random random(315);
  const Points points = Points(2, make_values(Shape::kUniform, random, 3000, 2))
                            .with_scores(random_scores(random, 3000, 0, 1));
  const Oracle oracle(points, nullptr, Metric::kL2, 5);
  for (const TopkMethod method : kMethods) {
    JoinRequest request =
        make_top_request(points, nullptr, Metric::kL2, 5, top_of(ScoreFunction::kSum, false, 500));
    request.resources.memory_limit = 4 << 20;
    request.knobs.topk_method = method;
    const RunResult result = run_join(engine(), request);
    EXPECT_TRUE(matches_oracle(result, request, oracle));
    if (!is_device(engine())) {
      EXPECT_GT(result.stats.memory_peak, 0u);
      EXPECT_LE(result.stats.memory_peak, request.resources.memory_limit);
    }
  }
}

/// One point with `rows` partners in one place: ids and scores decide, where they do.
void expect_ties(const EngineTable& engine, std::uint64_t rows,
                 const std::vector<std::int64_t>& ids) {
  const std::uint64_t k = 16;
  const Points left = Points(2, {1, 1}).with_ids({7}).with_scores({1});
  const Points right = Points(2, std::vector<double>(2 * rows, 1.0))
                           .with_ids(ids)
                           .with_scores(std::vector<double>(rows, 2));
  std::vector<std::int64_t> first = ids;
  std::sort(first.begin(), first.end());
  for (const ScoreFunction function : {ScoreFunction::kSum, ScoreFunction::kDistance}) {
    for (const TopkMethod method : kMethods) {
      JoinRequest request =
          make_top_request(left, &right, Metric::kL2, 1, top_of(function, true, k));
      request.knobs.topk_method = method;
      const RunResult result = run_join(engine, request);
      ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
      ASSERT_EQ(result.pairs.size(), k);
      for (std::size_t i = 0; i < k; ++i) {
        ASSERT_EQ(result.pairs[i].id1, 7);
        ASSERT_EQ(result.pairs[i].id2, first[i]) << i << ", " << describe(request);
        ASSERT_EQ(result.pairs[i].distance, function == ScoreFunction::kSum ? 3 : 0);
      }
    }
  }
}

// More pairs of one point than a device has room for at a time.
constexpr std::uint64_t kManyTies = 1'200'000;

TEST_P(TopkJoins, end_where_one_point_has_very_many_pairs_of_one_rank) {
  expect_ties(engine(), kManyTies, std::vector<std::int64_t>(kManyTies, 7));
}

TEST_P(TopkJoins, find_the_few_among_very_many_pairs_of_one_rank) {
  std::vector<std::int64_t> ids(kManyTies, 7);
  for (std::int64_t i = 0; i < 20; ++i) ids[kManyTies / 20 * (i + 1) - 1] = i % 10 - 2;  // -2 .. 7
  expect_ties(engine(), kManyTies, ids);
}

TEST_P(TopkJoins, end_where_ranks_of_very_many_pairs_are_few) {
  std::vector<std::int64_t> ids(kManyTies);
  for (std::size_t i = 0; i < kManyTies; ++i) ids[i] = static_cast<std::int64_t>(i * 2 / kManyTies);
  ids[kManyTies - 1] = -1;
  expect_ties(engine(), kManyTies, ids);
}

TEST_P(TopkJoins, can_be_interrupted_at_any_time_and_go_on) {
  Random random(316);
  const Points points = Points(2, make_values(Shape::kUniform, random, 2000, 2))
                            .with_scores(random_scores(random, 2000, 0, 1));
  const Oracle oracle(points, nullptr, Metric::kL2, 5);
  for (const TopkMethod method : kMethods) {
    volatile int flag = 1;
    JoinRequest request =
        make_top_request(points, nullptr, Metric::kL2, 5, top_of(ScoreFunction::kSum, false, 200));
    request.resources.interrupt = &flag;
    request.knobs.topk_method = method;
    request.knobs.batch_pairs = 50;
    const RunResult result = run_join(engine(), request, &flag);
    EXPECT_TRUE(matches_oracle(result, request, oracle));
    EXPECT_GE(result.interruptions, 1u) << describe(request);
  }
}

TEST_P(TopkJoins, can_be_closed_at_any_time) {
  Random random(317);
  const Points points = Points(2, make_values(Shape::kUniform, random, 5000, 2))
                            .with_scores(random_scores(random, 5000, 0, 1));
  for (const TopkMethod method : kMethods) {
    for (int calls = 0; calls < 3; ++calls) {
      JoinRequest request = make_top_request(points, nullptr, Metric::kL2, 5,
                                             top_of(ScoreFunction::kSum, false, 200));
      request.knobs.topk_method = method;
      request.knobs.batch_pairs = 10;
      const std::int64_t before = live_allocations();
      Join* join = nullptr;
      ASSERT_TRUE(engine().open(&request, &join).ok());
      ResultBatch batch{};
      for (int call = 0; call < calls; ++call) EXPECT_TRUE(engine().next_batch(join, &batch).ok());
      engine().close(join);
      expect_no_leak(engine(), before);
    }
  }
}

/// Scores that the best pairs do not have: high ones on the left are far from high ones on the
/// right.
std::vector<double> scores_along(const std::vector<double>& values, double sign) {
  std::vector<double> scores(values.size() / 2);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = sign * values[2 * i];
  return scores;
}

TEST_P(TopkJoins, go_on_where_a_guess_was_too_high) {
  Random random(318);
  const std::vector<double> a = make_values(Shape::kUniform, random, 2500, 2);
  const std::vector<double> b = make_values(Shape::kUniform, random, 2000, 2);
  const Points left = Points(2, a).with_scores(scores_along(a, 1));
  const Points right = Points(2, b).with_scores(scores_along(b, -1));
  const Oracle oracle(left, &right, Metric::kL2, 1);
  // Both scores have to be good, and no two good ones are near each other.
  for (const Scoring& scoring :
       {Scoring{ScoreFunction::kSum, false, {1, 1}}, Scoring{ScoreFunction::kSum, true, {1, 1}},
        Scoring{ScoreFunction::kMin, false, {1, 1}}, Scoring{ScoreFunction::kMax, true, {1, 1}}}) {
    JoinRequest request = make_top_request(left, &right, Metric::kL2, 1, {scoring, 20});
    request.knobs.topk_method = TopkMethod::kThreshold;
    const RunResult result = run_join(engine(), request);
    EXPECT_TRUE(matches_oracle(result, request, oracle));
    EXPECT_GE(result.stats.topk_rounds, 2u) << describe(request);
  }
}

TEST_P(TopkJoins, go_on_where_a_radius_was_too_short) {
  // Nothing between 0 and 1.
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Points points(1, values);
  const Oracle oracle(points, nullptr, Metric::kL2, 100);
  JoinRequest request = make_top_request(points, nullptr, Metric::kL2, 100,
                                         top_of(ScoreFunction::kDistance, true, 10));
  request.knobs.topk_method = TopkMethod::kThreshold;
  const RunResult result = run_join(engine(), request);
  EXPECT_TRUE(matches_oracle(result, request, oracle));
  EXPECT_GE(result.stats.topk_rounds, 2u);
}

TEST_P(TopkJoins, where_a_few_points_outshine_all_others) {
  Random random(320);
  std::vector<double> a = random_scores(random, 1500, 0, 1), b = random_scores(random, 1200, -1, 1);
  for (int i = 0; i < 5; ++i) {
    a[random.index(a.size())] = random.between(-1e9, 1e9);
    b[random.index(b.size())] = random.between(-1e9, 1e9);
  }
  const Points left = Points(2, make_values(Shape::kUniform, random, 1500, 2)).with_scores(a);
  const Points right = Points(2, make_values(Shape::kUniform, random, 1200, 2)).with_scores(b);
  expect_every_function(left, &right, Metric::kL2, 4, 1, -1);
  expect_every_function(left, nullptr, Metric::kL2, 4, 1, 2);
}

TEST_P(TopkJoins, of_one_dataset_whose_good_pairs_are_all_of_two_bands) {
  // The lowest products are those of a negative score with a positive one.
  Random random(323);
  std::vector<double> scores(1000);
  for (double& score : scores)
    score = random.index(6) == 0 ? random.between(1, 2) : -random.between(0.5, 1);
  const Points points =
      Points(2, make_values(Shape::kUniform, random, 1000, 2)).with_scores(scores);
  const Oracle oracle(points, nullptr, Metric::kL2, 10);
  for (const std::uint64_t k : {1u, 20u, 300u, 1500u, 2500u})
    for (const ScoreFunction function : {ScoreFunction::kProduct, ScoreFunction::kSum})
      expect_exact(make_top_request(points, nullptr, Metric::kL2, 10, top_of(function, true, k)),
                   oracle);
}

TEST_P(TopkJoins, look_at_little_where_scores_tell_most_pairs_apart) {
  Random random(321);
  constexpr std::uint64_t kRows = 100000;
  std::vector<double> values(2 * kRows);
  for (double& x : values) x = random.unit();
  const Points left =
      Points(2, values, ScalarType::kFloat32).with_scores(random_scores(random, kRows, 0, 1));
  for (double& x : values) x = random.unit();
  const Points right =
      Points(2, values, ScalarType::kFloat32).with_scores(random_scores(random, kRows, 0, 1));
  for (const Points* const other : {static_cast<const Points*>(nullptr), &right}) {
    for (const ScoreFunction function : kFunctions) {
      if (function == ScoreFunction::kMax) continue;  // a high score makes pairs with any other
      JoinRequest request =
          make_top_request(left, other, Metric::kL2, 0.01,
                           top_of(function, function == ScoreFunction::kDistance, 100));
      request.knobs.topk_method = TopkMethod::kHeap;
      const RunResult all = run_join(engine(), request);
      request.knobs.topk_method = TopkMethod::kAuto;
      const RunResult little = run_join(engine(), request);
      ASSERT_EQ(little.status.code, StatusCode::kEnd) << little.status.message;
      ASSERT_EQ(all.status.code, StatusCode::kEnd) << all.status.message;
      EXPECT_EQ(all.pairs.size(), 100u);
      EXPECT_TRUE(little.pairs == all.pairs) << describe(request);
      if (function == ScoreFunction::kDistance) continue;  // windows are what a short radius leaves
      if (is_device(engine())) continue;                   // where all pairs may be the cheapest
      EXPECT_LT(little.stats.candidates, all.stats.candidates / 3) << describe(request);
    }
  }
}

TEST_P(TopkJoins, need_no_more_memory_by_guessing_than_without) {
  Random random(322);
  const Points points = Points(2, make_values(Shape::kUniform, random, 1500, 2))
                            .with_scores(random_scores(random, 1500, 0, 1));
  if (is_device(engine())) return;  // a limit on the host's memory says little there
  int enough = 0, too_little = 0;
  for (double limit = 1 << 16; limit < 1 << 23; limit *= 1.15) {
    JoinRequest request = make_top_request(points, nullptr, Metric::kL2, 5,
                                           top_of(ScoreFunction::kSum, false, 10000));
    request.resources.memory_limit = static_cast<std::uint64_t>(limit);
    request.knobs.topk_method = TopkMethod::kAuto;  // too small for guessing
    const RunResult whole = run_join(engine(), request);
    ASSERT_LE(whole.stats.topk_rounds, 1u);
    request.knobs.topk_method = TopkMethod::kThreshold;
    const RunResult guessed = run_join(engine(), request);
    ASSERT_EQ(guessed.status.code, whole.status.code) << describe(request);
    ++(whole.status.code == StatusCode::kEnd ? enough : too_little);
    EXPECT_EQ(guessed.pairs, whole.pairs);
    EXPECT_LE(guessed.stats.memory_peak, request.resources.memory_limit);
  }
  EXPECT_GT(enough, 2);
  EXPECT_GT(too_little, 2);
}

}  // namespace
}  // namespace gpujoin::test

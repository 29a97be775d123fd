// Strata of scores, and plans of joins between them: that no pair of rows which can have a key is
// left out, and none is joined twice.

#include "engine/joins/score_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/joins/score_bounds.h"
#include "points.h"

namespace gpujoin::test {
namespace {

Dataset scored(const std::vector<double>& scores) {
  Dataset data{};
  data.rows = scores.size();
  data.scores = scores.data();
  return data;
}

JoinRequest top_request(const Sides& sides, const Top& top) {
  return JoinRequest(sides, PointsWithin{Metric::kL2, 0}, Output::top_pairs(top));
}

/// Many shapes of scores: spread evenly, few values, one value, with a few far above the rest, of
/// both signs.
std::vector<std::vector<double>> score_shapes(Random& random, std::size_t rows) {
  std::vector<std::vector<double>> shapes(6, std::vector<double>(rows));
  for (std::size_t i = 0; i < rows; ++i) {
    shapes[0][i] = random.unit();
    shapes[1][i] = static_cast<double>(random.index(5));
    shapes[2][i] = 2.5;
    shapes[3][i] = i % 100 == 3 ? 1e6 * random.unit() : random.unit();
    shapes[4][i] = random.between(-3, 2);
    shapes[5][i] = random.any_finite();
  }
  return shapes;
}

TEST(ScoreStrata, hold_every_row_once_in_the_order_of_scores) {
  Random random(421);
  for (const std::size_t rows : {1u, 2u, 3u, 50u, 3000u, 40000u}) {
    for (const std::vector<double>& scores : score_shapes(random, rows)) {
      MemoryBudget budget(0);
      const ScoreStrata strata = cut_by_score(budget, scored(scores));
      std::vector<std::uint64_t> counts(kMostStrata);
      for (std::size_t row = 0; row < rows; ++row) {
        const std::uint32_t stratum = strata.of_row[row];
        ASSERT_LT(stratum, kMostStrata);
        ++counts[stratum];
        ASSERT_LE(strata.range[stratum].low, scores[row]);
        ASSERT_GE(strata.range[stratum].high, scores[row]);
      }
      StrataSet all = 0;
      double highest = -kInf;
      for (std::uint32_t i = 0; i < kMostStrata; ++i) {
        ASSERT_EQ(strata.rows[i], counts[i]);
        all |= StrataSet{1} << i;
        if (counts[i] == 0) continue;
        ASSERT_GT(strata.range[i].low, highest);
        highest = strata.range[i].high;
      }
      EXPECT_EQ(strata.rows_of(all), rows);
      EXPECT_EQ(strata.range_of(all).low, *std::min_element(scores.begin(), scores.end()));
      EXPECT_EQ(strata.range_of(all).high, *std::max_element(scores.begin(), scores.end()));
    }
  }
}

TEST(ScoreStrata, tell_the_ends_apart_best) {
  Random random(422);
  std::vector<double> scores(100000);
  for (double& score : scores) score = random.unit();
  MemoryBudget budget(0);
  const ScoreStrata strata = cut_by_score(budget, scored(scores));
  EXPECT_LT(strata.rows[0], 100u);
  std::uint32_t last = kMostStrata - 1;
  while (strata.rows[last] == 0) --last;
  EXPECT_LT(strata.rows[last], 100u);
}

/// A plan and its request.
class ScorePlans : public testing::Test {
 protected:
  /// In each function and direction, for several keys.
  template <class Check>
  void for_every_plan(const Check& check) {
    Random random(423);
    const std::vector<std::vector<double>> lefts = score_shapes(random, 300);
    const std::vector<std::vector<double>> rights = score_shapes(random, 250);
    for (int function = 0; function < 4; ++function) {
      for (int kind = 0; kind < 6; ++kind) {
        for (std::size_t shape = 0; shape < lefts.size(); ++shape) {
          const Dataset left = scored(lefts[shape]);
          const Dataset right = scored(rights[(shape + 1) % rights.size()]);
          Top top{{static_cast<ScoreFunction>(function), kind % 2 == 0, {1, -0.5}}, kMostTopPairs};
          top.parts_of_one = kind / 2 == 2;
          check(top_request(
              kind / 2 == 0 ? Sides::one(left, PairSelection::kAll) : Sides::two(left, right),
              top));
        }
      }
    }
  }
};

TEST_F(ScorePlans, meet_every_pair_that_can_have_the_key_once) {
  for_every_plan([](const JoinRequest& request) {
    MemoryBudget budget(0);
    const ScoreStrata left = cut_by_score(budget, request.left());
    const ScoreStrata right = cut_by_score(budget, request.right());
    // What costs differently is cut differently.
    for (const ScoreCosts& costs :
         {ScoreCosts{1, 1, 1}, ScoreCosts{1000, 0, 1}, ScoreCosts{0, 1, 1}}) {
      const ScorePlanner planner(request, left, right, costs);
      for (const double row_pairs : {1.0, 100.0, 20000.0, 1e9}) {
        const std::uint64_t key = planner.key_of(row_pairs);
        double ns = 0;
        const std::vector<ScoreStep> steps = planner.plan(key, &ns);
        for (std::uint64_t a = 0; a < request.left().rows; a += 3) {
          for (std::uint64_t b = 0; b < request.right().rows; b += 3) {
            const double x = request.left().scores[a], y = request.right().scores[b];
            const std::uint32_t i = left.of_row[a], j = right.of_row[b];
            int met = 0;
            bool best_told = true;
            const KeyRange own = reachable_keys(request, {x, x}, {y, y});
            for (const ScoreStep& step : steps) {
              const bool here =
                  (contains(step.left, i) && contains(step.right, j)) ||
                  (request.self_join() && contains(step.left, j) && contains(step.right, i));
              met += here;
              if (here && step.best_key < own.best) best_told = false;
            }
            ASSERT_LE(met, 1);
            ASSERT_TRUE(met == 1 || own.best < key);
            ASSERT_TRUE(best_told);
          }
        }
      }
    }
  });
}

TEST_F(ScorePlans, a_key_is_had_by_as_many_pairs_as_asked_for) {
  for_every_plan([](const JoinRequest& request) {
    MemoryBudget budget(0);
    const ScoreStrata left = cut_by_score(budget, request.left());
    const ScoreStrata right = cut_by_score(budget, request.right());
    const ScorePlanner planner(request, left, right, {1, 1, 1});
    for (const double row_pairs : {1.0, 1000.0, 20000.0}) {
      const std::uint64_t key = planner.key_of(row_pairs);
      EXPECT_GE(planner.row_pairs(key), row_pairs);
      double have = 0;
      for (std::uint64_t a = 0; a < request.left().rows; ++a) {
        for (std::uint64_t b = 0; b < request.right().rows; ++b) {
          const double x = request.left().scores[a], y = request.right().scores[b];
          have += reachable_keys(request, {x, x}, {y, y}).worst >= key;
        }
      }
      EXPECT_GE(have * (request.self_join() ? 0.5 : 1), planner.row_pairs(key));
    }
    EXPECT_EQ(planner.key_of(1e9), 0u) << "more than there are";
  });
}

TEST_F(ScorePlans, of_sums_join_little_for_the_best) {
  Random random(424);
  std::vector<double> a(100000), b(100000);
  for (double& score : a) score = random.unit();
  for (double& score : b) score = random.unit();
  const JoinRequest request = top_request(Sides::two(scored(a), scored(b)),
                                          {{ScoreFunction::kSum, false, {1, 1}}, kMostTopPairs});
  MemoryBudget budget(0);
  const ScoreStrata left = cut_by_score(budget, request.left());
  const ScoreStrata right = cut_by_score(budget, request.right());
  const ScorePlanner planner(request, left, right, {100, 1e-3, 1e5});
  double ns = 0;
  std::uint64_t rows = 0;
  for (const ScoreStep& step : planner.plan(planner.key_of(1e6), &ns))
    rows += left.rows_of(step.left) + right.rows_of(step.right);
  EXPECT_LT(rows, 20000u) << "of which some 3000 make a million pairs";
}

TEST_F(ScorePlans, cut_bands_where_one_row_outshines_all) {
  // Its pairs are the best whatever they are made with; without bands nothing could be left out.
  std::vector<double> scores(50000);
  Random random(425);
  for (double& score : scores) score = random.unit();
  for (std::size_t i = 0; i < 30; ++i) scores[1000 * i + 77] = 1e6;
  for (const bool self_join : {false, true}) {
    const Dataset data = scored(scores);
    const JoinRequest request =
        top_request(self_join ? Sides::one(data, PairSelection::kAll) : Sides::two(data, data),
                    {{ScoreFunction::kMax, false, {1, 1}}, kMostTopPairs});
    MemoryBudget budget(0);
    const ScoreStrata strata = cut_by_score(budget, request.left());
    const ScorePlanner planner(request, strata, strata, {100, 1e-2, 1e4});
    double ns = 0;
    double row_pairs = 0;
    for (const ScoreStep& step : planner.plan(score_key(false, 1e6), &ns))
      row_pairs += static_cast<double>(strata.rows_of(step.left)) *
                   static_cast<double>(strata.rows_of(step.right));
    EXPECT_LT(row_pairs, 0.02 * 50000 * 50000);
  }
}

}  // namespace
}  // namespace gpujoin::test

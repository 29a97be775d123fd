// Scores of pairs, their bounds and their keys, on numbers that overflow, underflow and have no
// sign to speak of.

#include "core/score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<ScoreFunction> kFunctions = {ScoreFunction::kSum, ScoreFunction::kProduct,
                                               ScoreFunction::kMin, ScoreFunction::kMax};

const std::vector<double> kHostile = {0.0,    -0.0, kDenormal, -kDenormal,  1e-300, -1e-300,
                                      1,      -1,   below(1),  1e154,       -1e154, 1e200,
                                      -1e200, kMax, -kMax,     below(kMax), 0.1,    -3};

const std::vector<double> kWeights = {1, -1, 0, -0.0, 0.5, -2, kMax, -kMax, kDenormal};

/// Calls check(scoring) for every function and pair of weights.
template <class Check>
void for_every_scoring(const Check& check) {
  for (const ScoreFunction function : kFunctions)
    for (const double first : kWeights)
      for (const double second : kWeights) check(Scoring{function, false, {first, second}});
}

TEST(Scores, are_what_the_definition_says) {
  for_every_scoring([](const Scoring& scoring) {
    for (const double a : kHostile)
      for (const double b : kHostile)
        ASSERT_EQ(pair_score(scoring, a, b), definition_of_score(scoring, a, b)) << a << " " << b;
  });
}

TEST(Scores, are_numbers_and_never_negative_zero) {
  for_every_scoring([](const Scoring& scoring) {
    for (const double a : kHostile) {
      for (const double b : kHostile) {
        const double score = pair_score(scoring, a, b);
        ASSERT_FALSE(std::isnan(score)) << a << " " << b;
        ASSERT_FALSE(score == 0 && std::signbit(score)) << a << " " << b;
      }
    }
  });
}

TEST(Scores, are_bounded_by_those_of_the_corners) {
  Random random(401);
  std::vector<double> numbers = kHostile;
  for (int i = 0; i < 6; ++i) numbers.push_back(random.any_finite());
  for_every_scoring([&](const Scoring& scoring) {
    for (int trial = 0; trial < 60; ++trial) {
      double first[3], second[3];
      for (double& x : first) x = random.pick(numbers);
      for (double& x : second) x = random.pick(numbers);
      std::sort(first, first + 3);
      std::sort(second, second + 3);
      const Interval bounds = score_bounds(scoring, {first[0], first[2]}, {second[0], second[2]});
      for (const double a : first) {
        for (const double b : second) {
          ASSERT_LE(bounds.low, pair_score(scoring, a, b));
          ASSERT_GE(bounds.high, pair_score(scoring, a, b));
        }
      }
    }
  });
}

TEST(Scores, bounds_of_single_scores_are_the_score) {
  const Scoring scoring{ScoreFunction::kProduct, false, {-1, 3}};
  for (const double a : kHostile) {
    for (const double b : kHostile) {
      const Interval bounds = score_bounds(scoring, {a, a}, {b, b});
      ASSERT_EQ(bounds.low, pair_score(scoring, a, b));
      ASSERT_EQ(bounds.high, pair_score(scoring, a, b));
    }
  }
}

TEST(ScoreKeys, are_in_the_order_of_scores) {
  std::vector<double> scores = kHostile;
  scores.push_back(kInf);
  scores.push_back(-kInf);
  for (const double a : scores) {
    for (const double b : scores) {
      ASSERT_EQ(score_key(false, a) < score_key(false, b), a < b) << a << " " << b;
      ASSERT_EQ(score_key(true, a) < score_key(true, b), a > b) << a << " " << b;
      ASSERT_EQ(score_key(true, a) == score_key(true, b), a == b) << a << " " << b;
    }
  }
}

TEST(ScoreKeys, tell_their_scores) {
  Random random(402);
  for (int i = 0; i < 10000; ++i) {
    const double score = i < 2 ? (i == 0 ? kInf : -kInf) : random.any_finite();
    for (const bool lowest_first : {false, true})
      ASSERT_EQ(score_of_key(lowest_first, score_key(lowest_first, score)), score);
  }
  EXPECT_FALSE(std::signbit(score_of_key(false, score_key(false, -0.0))));
}

TEST(ScoreKeys, the_best_one_of_bounds_is_that_of_the_better_end) {
  EXPECT_EQ(best_key(false, {-1, 2}), score_key(false, 2));
  EXPECT_EQ(best_key(true, {-1, 2}), score_key(true, -1));
}

TEST(UnorderedPoints, the_smaller_id_comes_first_and_then_the_lower_score) {
  EXPECT_TRUE(comes_first(-2, 9, 1, 0));
  EXPECT_FALSE(comes_first(1, 0, -2, 9));
  EXPECT_TRUE(comes_first(3, 1, 3, 2));
  EXPECT_FALSE(comes_first(3, 2, 3, 1));
  EXPECT_TRUE(comes_first(3, 2, 3, 2)) << "it does not matter";
}

}  // namespace
}  // namespace gpujoin::test

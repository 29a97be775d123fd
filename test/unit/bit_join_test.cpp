// Joins of bits by Hamming and by Jaccard distance against brute force over zeros and ones: every
// output, both ways to find pairs, words of which the last is not full, keys, parts, little memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "bits.h"
#include "core/cluster.h"
#include "cpu/scan/bit_scan.h"
#include "engine/strategy/bit_strategy.h"
#include "engine/strategy/choose_strategy.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

class BitJoin : public EngineTest {};
GPUJOIN_ON_EVERY_ENGINE(BitJoin);

constexpr IndexMethod kMethods[] = {IndexMethod::kAuto, IndexMethod::kNone,
                                    IndexMethod::kPigeonhole};

TEST_P(BitJoin, matches_brute_force_in_every_output) {
  Random random(2101);
  for (const std::uint32_t bits : {1u, 32u, 63u, 64u, 65u, 130u, 1000u})
    for (const double eps : {0.0, 3.5, 7.0}) {
      const std::uint64_t rows = bits > 200 ? 90 : 200;
      const Bits left = random_bits(random, bits, rows, 7).with_ids(shuffled_ids(rows));
      const Bits right = random_bits(random, bits, rows / 2, 5);
      const Oracle self = oracle_of(left, nullptr, eps), two = oracle_of(left, &right, eps);
      for (const IndexMethod index : kMethods) {
        JoinRequest request = make_request(left, nullptr, eps);
        request.knobs.index = index;
        request.knobs.batch_pairs = index == IndexMethod::kNone ? 3 : 0;
        EXPECT_TRUE(every_output_matches(engine(), request, self)) << bits << " bits";
        request.knobs.access_pattern = AccessPattern::kFull;
        request.knobs.batch_pairs = 100;
        EXPECT_TRUE(every_output_matches(engine(), request, self)) << bits << " bits, full";
        request = make_request(left, &right, eps);
        request.knobs.index = index;
        request.resources.threads = 3;
        EXPECT_TRUE(every_output_matches(engine(), request, two)) << bits << " bits";
      }
    }
}

TEST_P(BitJoin, meets_each_of_many_pairs_once) {
  Random random(2102);
  const Bits rows = random_bits(random, 64, 3000, 9);
  for (const double eps : {2.0, 6.0, 9.0}) {
    const Oracle oracle = oracle_of(rows, nullptr, eps);
    for (const IndexMethod index : {IndexMethod::kNone, IndexMethod::kPigeonhole})
      for (const unsigned threads : {1u, 2u, 5u, 40u}) {
        JoinRequest request = make_request(rows, nullptr, eps);
        request.knobs.index = index;
        request.resources.threads = threads;
        const RunResult result = run_join(engine(), request);
        EXPECT_TRUE(matches_oracle(result, request, oracle)) << threads << " threads";
        if (!is_device(engine())) {
          EXPECT_EQ(result.stats.strategy.index,
                    index == IndexMethod::kNone ? IndexMethod::kTiles : index);
        }
      }
  }
}

TEST_P(BitJoin, all_rows_alike_and_none) {
  for (const std::uint64_t word : {std::uint64_t{0}, ~std::uint64_t{0}})
    for (const std::size_t count : {0, 1, 2, 33, 400}) {
      const Bits rows(64, std::vector<std::uint64_t>(count, word));
      const Bits empty(64, {});
      for (const IndexMethod index : kMethods) {
        JoinRequest request = make_request(rows, nullptr, 3);
        request.knobs.index = index;
        EXPECT_TRUE(every_output_matches(engine(), request, oracle_of(rows, nullptr, 3)));
        for (const auto& [left, right] :
             {std::pair{&rows, &empty}, std::pair{&empty, &rows}, std::pair{&rows, &rows}}) {
          request = make_request(*left, right, 3);
          request.knobs.index = index;
          EXPECT_TRUE(every_output_matches(engine(), request, oracle_of(*left, right, 3)));
        }
      }
    }
}

TEST_P(BitJoin, every_pair_is_within_as_many_bits_as_there_are) {
  Random random(2103);
  const Bits rows = random_bits(random, 70, 90, 60);
  for (const double eps : {69.0, 70.0, 1e9, kMax})
    for (const IndexMethod index : kMethods) {
      JoinRequest request = make_request(rows, nullptr, eps);
      request.knobs.index = index;
      EXPECT_TRUE(every_output_matches(engine(), request, oracle_of(rows, nullptr, eps)));
    }
}

TEST_P(BitJoin, jaccard_matches_brute_force_in_every_output) {
  if (is_device(engine())) GTEST_SKIP() << "the device knows no Jaccard distance";
  Random random(2120);
  for (const std::uint32_t bits : {1u, 6u, 65u, 200u})
    for (const double eps : {0.0, 0.2, 1 / 3.0, 0.9, 1.0}) {
      const Bits left = random_bits(random, bits, 120, 7).with_ids(shuffled_ids(120));
      const Bits right = random_bits(random, bits, 90, 5);
      const Bits none(bits, std::vector<std::uint64_t>((bits + 63) / 64 * 40, 0));
      for (const Bits* other : {static_cast<const Bits*>(nullptr), &right, &none}) {
        const Oracle oracle = jaccard_oracle_of(left, other, eps);
        for (const AccessPattern pattern : {AccessPattern::kAuto, AccessPattern::kFull}) {
          JoinRequest request = make_request(left, other, eps, Metric::kJaccard);
          request.knobs.access_pattern = pattern;
          request.knobs.batch_pairs = pattern == AccessPattern::kFull ? 3 : 0;
          request.knobs.index = IndexMethod::kPigeonhole;
          EXPECT_TRUE(every_output_matches(engine(), request, oracle)) << bits << " bits, " << eps;
        }
      }
    }
}

TEST_P(BitJoin, jaccard_clusters_match_brute_force) {
  if (is_device(engine())) GTEST_SKIP() << "the device knows no Jaccard distance";
  Random random(2121);
  const Bits rows = random_bits(random, 64, 400, 5).with_ids(shuffled_ids(400));
  for (const double eps : {0.0, 0.1, 0.3, 0.7}) {
    const Oracle oracle = jaccard_oracle_of(rows, nullptr, eps);
    for (const std::uint64_t min_points : {1u, 2u, 8u})
      for (const BorderRule borders : {BorderRule::kNearest, BorderRule::kFirst}) {
        const JoinRequest request = make_request(rows, nullptr, eps, Metric::kJaccard)
                                        .asking(Output::clusters(min_points, borders));
        EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle)) << eps;
      }
  }
}

TEST_P(BitJoin, clusters_match_brute_force) {
  if (is_device(engine())) GTEST_SKIP() << "the device finds no clusters of bits";
  Random random(2104);
  for (const std::uint32_t bits : {20u, 64u, 100u}) {
    const Bits rows = random_bits(random, bits, 400, 5).with_ids(shuffled_ids(400));
    for (const double eps : {0.0, 2.0, 5.0}) {
      const Oracle oracle = oracle_of(rows, nullptr, eps);
      for (const std::uint64_t min_points : {1u, 2u, 3u, 8u, 1000u})
        for (const IndexMethod index : kMethods) {
          JoinRequest request =
              make_request(rows, nullptr, eps).asking(Output::clusters(min_points));
          request.knobs.index = index;
          EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
        }
    }
  }
}

TEST_P(BitJoin, best_pairs_match_brute_force) {
  Random random(2105);
  std::vector<double> scores(500);
  for (double& score : scores) score = std::floor(random.between(-5, 6));
  const Bits rows = random_bits(random, 64, 500, 8).with_scores(scores);
  const Oracle oracle = oracle_of(rows, nullptr, 10);
  for (const ScoreFunction function : {ScoreFunction::kDistance, ScoreFunction::kSum})
    for (const std::uint64_t k : {1u, 10u, 100000u})
      for (const bool lowest : {false, true}) {
        Top top{};
        top.scoring = {function, lowest, {1, 1}};
        top.k = k;
        const JoinRequest request = make_request(rows, nullptr, 10).asking(Output::top_pairs(top));
        EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
      }
}

TEST_P(BitJoin, nearest_rows_match_brute_force) {
  if (is_device(engine())) GTEST_SKIP() << "the device finds no nearest rows of bits";
  Random random(2122);
  for (const std::uint32_t bits : {3u, 64u, 130u}) {
    const Bits left = random_bits(random, bits, 80, 7).with_ids(shuffled_ids(80));
    const Bits right = random_bits(random, bits, 5000, 9);
    for (const auto& [metric, eps] : {std::pair{Metric::kHamming, 5.0},
                                      {Metric::kHamming, kMax},
                                      {Metric::kJaccard, 0.3},
                                      {Metric::kJaccard, kMax}}) {
      const bool jaccard = metric == Metric::kJaccard;
      const auto oracle_for = [&, eps = eps](const Bits* other) {
        return jaccard ? jaccard_oracle_of(left, other, eps) : oracle_of(left, other, eps);
      };
      const Oracle of_both = oracle_for(&right), of_one = oracle_for(nullptr);
      for (const std::uint64_t k : {1u, 7u, 6000u})
        for (const unsigned threads : {1u, 3u}) {
          JoinRequest request = make_request(left, &right, eps, metric).asking(Output::nearest(k));
          request.resources.threads = threads;
          EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, of_both))
              << bits << " bits, " << k << " within " << eps;
          for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kDistinct}) {
            request = make_request(left, nullptr, eps, metric).asking(Output::nearest(k));
            request.sides = Sides::one(left.view(), pairs);
            EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, of_one));
          }
        }
    }
  }
}

TEST_P(BitJoin, duplicates_follow_the_greedy_walk) {
  Random random(2106);
  const Bits rows = random_bits(random, 64, 600, 8);
  const Dataset data = rows.view();
  std::vector<FoundPair> expected;
  std::vector<std::uint64_t> staying;
  for (std::uint64_t row = 0; row < data.rows; ++row) {
    FoundPair nearest{0, 0, 1e9};
    for (const std::uint64_t other : staying) {
      const auto distance = static_cast<double>(
          std::popcount(*point<std::uint64_t>(data, row) ^ *point<std::uint64_t>(data, other)));
      if (distance <= 7 && distance < nearest.distance)
        nearest = {static_cast<std::int64_t>(row), static_cast<std::int64_t>(other), distance};
    }
    if (nearest.distance < 1e9)
      expected.push_back(nearest);
    else
      staying.push_back(row);
  }
  EXPECT_GT(expected.size(), 100u);
  for (const IndexMethod index : kMethods) {
    JoinRequest request = make_request(rows, nullptr, 7).asking(Output::duplicates(false));
    request.knobs.index = index;
    const RunResult result = run_join(engine(), request);
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    EXPECT_EQ(result.pairs, expected);
  }
}

TEST(BitJoins, have_keys) {
  Random random(2107);
  constexpr std::uint64_t kRows = 700;
  const Bits rows = random_bits(random, 64, kRows, 6);
  PairKeys keys{2, {0, 5}, {3, 0}};
  std::vector<double> columns, whole;
  std::vector<double> row(64);
  for (std::uint64_t i = 0; i < kRows; ++i) {
    columns.push_back(i % 50 == 7 ? kNan : static_cast<double>(random.index(4)));
    columns.push_back(std::floor(random.between(0, 20)));
    const double* const bits = rows.points().row(i, row);
    whole.insert(whole.end(), bits, bits + 64);
    whole.insert(whole.end(), columns.end() - 2, columns.end());
  }
  const Points keyed(66, whole);
  for (const auto& [metric, eps] :
       {std::pair{Metric::kHamming, 4.0}, {Metric::kHamming, 9.0}, {Metric::kJaccard, 0.2}}) {
    const DistanceOfRows distance = metric == Metric::kJaccard ? jaccard_of_ones : hamming_of_ones;
    const Oracle oracle(keyed, nullptr, eps, [&](const double* a, const double* b, std::uint32_t) {
      for (int k = 0; k < 2; ++k)
        if (!(std::abs(a[64 + k] - b[64 + k]) <= keys.reach[k])) return kNan;
      return distance(a, b, 64);
    });
    for (const IndexMethod index : kMethods) {
      JoinRequest request = make_request(rows, nullptr, eps, metric);
      Dataset data = request.left();
      data.keys = columns.data();
      data.key_columns = 2;
      request.sides = Sides::one(data, PairSelection::kAll);
      request.keys = keys;
      request.knobs.index = index;
      EXPECT_TRUE(every_output_matches(*cpu_engine(), request, oracle));
    }
  }
}

TEST(BitJoins, are_joined_in_parts) {
  Random random(2108);
  const Bits left = random_bits(random, 130, 500, 6), right = random_bits(random, 130, 300, 6);
  const double eps = 8;
  EXPECT_TRUE(every_output_matches(engine_of_parts(), make_request(left, nullptr, eps),
                                   oracle_of(left, nullptr, eps)));
  EXPECT_TRUE(every_output_matches(engine_of_parts(), make_request(left, &right, eps),
                                   oracle_of(left, &right, eps)));
  const JoinRequest nearest = make_request(left, &right, kMax).asking(Output::nearest(5));
  EXPECT_TRUE(
      matches_oracle(run_join(engine_of_parts(), nearest), nearest, oracle_of(left, &right, kMax)));
  EXPECT_TRUE(every_output_matches(engine_of_parts(),
                                   make_request(left, &right, 0.3, Metric::kJaccard),
                                   jaccard_oracle_of(left, &right, 0.3)));
}

TEST(BitJoins, keep_to_the_memory_limit) {
  Random random(2109);
  const Bits rows = random_bits(random, 64, 20000, 5);
  JoinRequest request = make_request(rows, nullptr, 4).asking(Output::total());
  request.knobs.index = IndexMethod::kPigeonhole;
  const RunResult free = run_join(*cpu_engine(), request);
  ASSERT_EQ(free.status.code, StatusCode::kEnd);
  EXPECT_EQ(free.stats.strategy.index, IndexMethod::kPigeonhole);
  for (const std::uint64_t kilobytes : {300u, 500u, 800u, 1500u, 4000u}) {
    request.resources.memory_limit = kilobytes << 10;
    const RunResult result = run_join(*cpu_engine(), request);
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    EXPECT_EQ(result.total, free.total) << kilobytes << " kB";
    EXPECT_LE(result.stats.memory_peak, kilobytes << 10);
  }
}

TEST(BitJoins, lie_in_chunks) {
  Random random(2110);
  const Bits rows = random_bits(random, 70, 500, 6);
  const StoredPoints stored(rows.view(), 6);
  JoinRequest request = make_request(rows, nullptr, 5);
  request.sides = Sides::one(stored.in_chunks(), PairSelection::kAll);
  for (const IndexMethod index : kMethods) {
    request.knobs.index = index;
    EXPECT_TRUE(every_output_matches(*cpu_engine(), request, oracle_of(rows, nullptr, 5)));
  }
}

TEST(BitJoins, refuse_what_is_not_theirs) {
  Random random(2111);
  const Bits rows = random_bits(random, 64, 10, 3);
  const Points points(1, {1, 2, 3});
  const auto refusal = [](const JoinRequest& request) {
    return run_join(*cpu_engine(), request).status;
  };
  EXPECT_EQ(refusal(make_request(points, nullptr, Metric::kHamming, 1)).code,
            StatusCode::kInvalidArgument);
  JoinRequest request(Sides::one(rows.view(), PairSelection::kAll), PointsWithin{Metric::kL2, 1},
                      Output::pairs());
  EXPECT_EQ(refusal(request).code, StatusCode::kInvalidArgument);
  const JoinRequest bits = make_request(rows, nullptr, 2);
  EXPECT_STREQ(refusal(bits.asking(Output::spanning_tree(2))).message,
               "spanning trees are not found by Hamming distance");
  EXPECT_EQ(refusal(bits.asking(Output::stable_clusters(2, 2))).code, StatusCode::kInvalidArgument);
}

/// Segments of a choice are disjoint, and leave out what is the same in all rows.
TEST(BitStrategies, cut_bits_that_differ) {
  Random random(2112);
  std::vector<std::uint64_t> words(5000);
  for (std::uint64_t& word : words) word = random.bits() & 0xffffffff00ff00ffull;
  const Bits rows(64, words);
  const BitStrategy chosen = choose_bit_strategy(make_request(rows, nullptr, 3));
  ASSERT_GT(chosen.segments.count, 3u);
  EXPECT_EQ(chosen.strategy.index, IndexMethod::kPigeonhole);
  EXPECT_EQ(chosen.segments.equal, chosen.segments.count - 3);
  std::uint64_t all = 0;
  for (const std::uint64_t mask : chosen.segments.masks) {
    EXPECT_EQ(all & mask, 0u);
    all |= mask;
  }
  EXPECT_EQ(all, 0xffffffff00ff00ffull);
  EXPECT_STRNE(chosen.strategy.reason, "");
  EXPECT_TRUE(is_for_cores(make_request(rows, nullptr, 3)));
  EXPECT_FALSE(is_for_cores(make_request(rows, nullptr, 30)));
}

TEST(BitStrategies, compare_every_pair_where_segments_leave_none_out) {
  const Bits alike(64, std::vector<std::uint64_t>(5000, 12345));
  EXPECT_EQ(choose_bit_strategy(make_request(alike, nullptr, 3)).segments.count, 0u);
  Random random(2113);
  const Bits rows = random_bits(random, 64, 5000, 3);
  EXPECT_EQ(choose_bit_strategy(make_request(rows, nullptr, 50)).segments.count, 0u);
  JoinRequest request = make_request(rows, nullptr, 3);
  request.knobs.index = IndexMethod::kNone;
  EXPECT_EQ(choose_bit_strategy(request).segments.count, 0u);
}

}  // namespace
}  // namespace gpujoin::test

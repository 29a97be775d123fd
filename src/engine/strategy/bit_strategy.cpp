#include "engine/strategy/bit_strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/sample.h"

namespace gpujoin {
namespace {

// Measured on one core of a current server processor, in nanoseconds.
constexpr double kPairNs = 0.06;       // of all pairs, for each word
constexpr double kRowNs = 14;          // of a row in a pass: its place among the others
constexpr double kLookNs = 8;          // of a left row in a pass: its look at those that agree
constexpr double kCandidateNs = 0.25;  // of such a pair, for each word

/// Passes at most, and pairs of which an estimate is not worth its while.
constexpr double kMostPasses = 2048, kFewPairs = 4e6;
constexpr std::uint32_t kMostSpareSegments = 12;

/// Sampled rows, one after the other, [rows][words].
std::vector<std::uint64_t> words_of(const Dataset& data, const std::vector<std::uint64_t>& rows) {
  std::vector<std::uint64_t> words;
  words.reserve(rows.size() * data.dims);
  for (const std::uint64_t row : rows) {
    const auto* const at = point<std::uint64_t>(data, row);
    words.insert(words.end(), at, at + data.dims);
  }
  return words;
}

/// What a sample says about single bits.
struct BitShares {
  std::vector<std::uint32_t> bits;  ///< those that differ among rows, the most telling first
  std::vector<double> equal;        ///< [bits of a row] the share of pairs that agree in it
};

class BitPlanner {
 public:
  explicit BitPlanner(const JoinRequest& request)
      : request_(request),
        words_(request.left().dims),
        most_(most_differing_bits(request)),
        left_rows_(static_cast<double>(request.left().rows)),
        right_rows_(static_cast<double>(request.right().rows)) {}

  double pairs() const { return left_rows_ * right_rows_ * (request_.self_join() ? 0.5 : 1); }

  MethodEstimate all_pairs() const {
    return {left_rows_ * right_rows_ * share_of_keys_, pairs() * share_of_keys_ * pair_ms()};
  }

  void sample() {
    const JoinRequest there = in_memory(request_);
    sample_ = take_sample(there);
    left_ = words_of(there.left(), sample_.left);
    right_ = there.self_join() ? left_ : words_of(there.right(), sample_.right);
    count_shares(sample_.left.size(), sample_.right.size());
    std::uint64_t near = 0, same = 0, seen = 0;
    visit_pairs(sample_, 1, [&](std::size_t left, std::size_t right) {
      const bool keys = are_keys_near(request_.keys, there.left(), sample_.left[left],
                                      there.right(), sample_.right[right]);
      near += keys && is_near(left_row(left), right_row(right));
      same += keys;
      ++seen;
    });
    if (seen == 0) return;
    share_near_ = static_cast<double>(near) / static_cast<double>(seen);
    share_of_keys_ =
        static_cast<double>(std::max<std::uint64_t>(same, 1)) / static_cast<double>(seen);
  }

  double expected_pairs() const { return left_rows_ * right_rows_ * share_near_; }

  /// The segments that cost the least; none where no choice of them can leave pairs out.
  BitSegments choose(MethodEstimate* estimate) const {
    BitSegments best;
    *estimate = {};
    const auto varying = static_cast<std::uint32_t>(shares_.bits.size());
    const std::uint32_t last = std::min({kMostSegments, varying, most_ + 1 + kMostSpareSegments});
    double least = INFINITY;
    for (std::uint32_t count = most_ + 1; count <= last; ++count) {
      if (!(sets_of(count - most_, count) <= kMostPasses)) break;
      const BitSegments segments = cut(count);
      const MethodEstimate cost = cost_of(segments);
      if (!(cost.ms < least)) continue;
      least = cost.ms;
      best = segments;
      *estimate = cost;
    }
    return best;
  }

 private:
  double pair_ms() const { return kPairNs * words_ / 1e6; }
  bool is_near(const std::uint64_t* a, const std::uint64_t* b) const {
    if (request_.metric() == Metric::kJaccard)
      return jaccard_distance(a, b, words_) <= request_.eps();
    return hamming_distance(a, b, words_) <= most_;
  }
  const std::uint64_t* left_row(std::size_t number) const { return left_.data() + number * words_; }
  const std::uint64_t* right_row(std::size_t number) const {
    return right_.data() + number * words_;
  }

  static double share_of_ones(const std::vector<std::uint64_t>& rows, std::size_t count,
                              std::uint32_t words, std::uint32_t bit) {
    std::size_t ones = 0;
    for (std::size_t row = 0; row < count; ++row)
      ones += rows[row * words + bit / kBitsPerWord] >> bit % kBitsPerWord & 1;
    return count == 0 ? 0 : static_cast<double>(ones) / static_cast<double>(count);
  }

  void count_shares(std::size_t left, std::size_t right) {
    for (std::uint32_t bit = 0; bit < words_ * kBitsPerWord; ++bit) {
      const double a = share_of_ones(left_, left, words_, bit);
      const double b = share_of_ones(right_, right, words_, bit);
      shares_.equal.push_back(a * b + (1 - a) * (1 - b));
      if (shares_.equal.back() < 1) shares_.bits.push_back(bit);
    }
    std::stable_sort(
        shares_.bits.begin(), shares_.bits.end(),
        [this](std::uint32_t a, std::uint32_t b) { return shares_.equal[a] < shares_.equal[b]; });
  }

  /// So many segments, as telling as each other: each bit goes to the one that pairs agree in most.
  BitSegments cut(std::uint32_t count) const {
    BitSegments segments;
    segments.count = count;
    segments.equal = count - most_;
    segments.masks.assign(std::size_t{count} * words_, 0);
    std::vector<double> agree(count, 1);
    for (const std::uint32_t bit : shares_.bits) {
      const auto to =
          static_cast<std::size_t>(std::max_element(agree.begin(), agree.end()) - agree.begin());
      agree[to] *= std::max(shares_.equal[bit], 0x1p-10);
      segments.masks[to * words_ + bit / kBitsPerWord] |= std::uint64_t{1} << bit % kBitsPerWord;
    }
    return segments;
  }

  /// How many passes two rows meet in, on average over all pairs: as the sample has it, or as it
  /// would be if bits knew nothing of each other, whichever is more.
  double meetings(const BitSegments& segments) const {
    // choices[k]: the sum over all choices of k segments of the share of pairs that agree in them.
    std::vector<double> choices(segments.equal + 1, 0);
    choices[0] = 1;
    for (std::uint32_t s = 0; s < segments.count; ++s) {
      double agree = 1;
      for (const std::uint32_t bit : shares_.bits)
        if ((segments.masks[std::size_t{s} * words_ + bit / kBitsPerWord] >> bit % kBitsPerWord &
             1) != 0)
          agree *= shares_.equal[bit];
      for (std::uint32_t k = segments.equal; k > 0; --k) choices[k] += choices[k - 1] * agree;
    }
    constexpr std::size_t kMostCompared = 1 << 15;
    const std::size_t step = 1 + sample_.pair_count() * words_ / kMostCompared;
    double seen = 0, met = 0;
    visit_pairs(sample_, step, [&](std::size_t left, std::size_t right) {
      const std::uint64_t equal = equal_segments(left_row(left), 1, right_row(right), 1, words_,
                                                 segments.masks.data(), segments.count);
      met += sets_of(segments.equal, count_bits(equal));
      ++seen;
    });
    return std::max(choices.back(), seen > 0 ? met / seen : 0);
  }

  MethodEstimate cost_of(const BitSegments& segments) const {
    const auto passes = static_cast<double>(segments.passes());
    const double rows = left_rows_ + (request_.self_join() ? 0 : right_rows_);
    const double met = meetings(segments);
    const double ns = passes * (rows * (kRowNs + words_) + left_rows_ * kLookNs) +
                      pairs() * met * kCandidateNs * words_;
    return {left_rows_ * right_rows_ * met, ns / 1e6};
  }

  const JoinRequest& request_;
  const std::uint32_t words_;
  const std::uint32_t most_;
  const double left_rows_, right_rows_;
  Sample sample_{};
  std::vector<std::uint64_t> left_, right_;  ///< sampled rows
  BitShares shares_;
  double share_near_ = 0, share_of_keys_ = 1;
};

Strategy bare_strategy(const JoinRequest& request, IndexMethod index) {
  Strategy strategy{};
  strategy.index = index;
  strategy.sort_column = kNoColumn;
  strategy.access_pattern = pattern_of(request, index);
  return strategy;
}

void explain(BitStrategy& chosen, const JoinRequest& request, bool asked) {
  Strategy& strategy = chosen.strategy;
  const BitSegments& segments = chosen.segments;
  if (segments.count > 0)
    std::snprintf(
        strategy.reason, sizeof strategy.reason,
        "%u of %u segments equal, %llu passes, about %.3g candidates a row expected",
        segments.equal, segments.count, static_cast<unsigned long long>(segments.passes()),
        strategy.estimate().candidates / std::max(1.0, static_cast<double>(request.left().rows)));
  else
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  request.metric() == Metric::kJaccard
                      ? "every pair with about as many ones, which its distance bounds"
                  : asked ? "every pair, as gpujoin.index asks"
                          : "every pair: no segments leave enough of them out");
}

}  // namespace

std::uint32_t most_differing_bits(const JoinRequest& request) {
  const double bits = static_cast<double>(kBitsPerWord) * request.left().dims;
  return static_cast<std::uint32_t>(std::min(std::floor(request.eps()), bits));
}

double estimate_bits_ms(const JoinRequest& request) { return BitPlanner(request).all_pairs().ms; }

BitStrategy choose_bit_strategy(const JoinRequest& request) {
  const IndexMethod asked = request.knobs.index;
  const bool by_ones = request.metric() == Metric::kJaccard;  // which segments do not bound
  const bool asks_for_all = by_ones || asked == IndexMethod::kNone || asked == IndexMethod::kTiles;
  BitPlanner planner(request);
  BitStrategy chosen;
  chosen.strategy = bare_strategy(request, IndexMethod::kTiles);
  const auto tiles = static_cast<int>(IndexMethod::kTiles);
  const auto pigeonhole = static_cast<int>(IndexMethod::kPigeonhole);
  const bool many = planner.pairs() > kFewPairs || asked == IndexMethod::kPigeonhole;
  const bool samples = many && request.sides.has_pairs();
  if (samples) planner.sample();
  const MethodEstimate all = planner.all_pairs();
  chosen.strategy.estimates[tiles] = all;
  if (samples) {
    chosen.strategy.estimated_pairs = planner.expected_pairs();
    MethodEstimate cost;
    BitSegments segments = asks_for_all ? BitSegments{} : planner.choose(&cost);
    if (segments.count > 0) chosen.strategy.estimates[pigeonhole] = cost;
    if (segments.count > 0 && (asked == IndexMethod::kPigeonhole || cost.ms < all.ms)) {
      chosen.segments = std::move(segments);
      chosen.strategy.index = IndexMethod::kPigeonhole;
    }
  }
  explain(chosen, request, asks_for_all);
  return chosen;
}

}  // namespace gpujoin

// What the engine has added up of a left row, and how it is added to the row's group.
#include "pg/executor/join_sums.h"

namespace gpujoin {
namespace {

__int128 wide_sum(const FoldWord* words, int place, int count) {
  if (count == 1) return words[place].integer;
  return (static_cast<__int128>(words[place + 1].integer) << 32) + words[place].number;
}

__int128 combine(Combination combination, __int128 a, __int128 b) {
  switch (combination) {
    case Combination::kTimes:
      return a * b;
    case Combination::kPlus:
      return a + b;
    default:
      return a - b;
  }
}

/// Adds a left row's number, combined with the right ones of `count` pairs. False: PostgreSQL
/// raises an error for one of them, or the number is NaN.
bool add_combined(const Sum& sum, Tally* tally, std::int64_t count, const FoldWord* words,
                  ExprContext* expressions) {
  const SumPlaces& places = sum.places;
  const Combination combination = sum.plan.combination;
  const int leaf = leaf_of(sum, true);
  std::int64_t number;
  bool is_null;
  if (!take_leaf(sum, leaf, expressions, &number, &is_null)) return false;
  if (is_null || count == 0) return true;
  const auto with = [&](__int128 other) {
    return leaf == 0 ? combine(combination, number, other) : combine(combination, other, number);
  };
  // All that lies between is in range with them.
  const __int128 one = with(words[places.least].integer), other = with(words[places.most].integer);
  if (!is_in_range(sum.plan.type, one) || !is_in_range(sum.plan.type, other)) return false;
  const SumArithmetic arithmetic = arithmetic_of(sum.plan.state);
  if (arithmetic == SumArithmetic::kNone) {
    tally->count += count;
  } else if (is_extreme(arithmetic)) {
    const bool least = arithmetic == SumArithmetic::kLeast;
    add_extreme(sum.plan, tally, count,
                static_cast<std::int64_t>(least ? std::min(one, other) : std::max(one, other)));
  } else {
    const __int128 others = wide_sum(words, places.sum, places.sum_words);
    const bool times = combination == Combination::kTimes;
    const __int128 own = static_cast<__int128>(number) * (times ? 1 : count);
    add_integers(tally, count,
                 leaf == 0 ? combine(combination, own, others) : combine(combination, others, own),
                 0);
  }
  return true;
}

}  // namespace

bool add_words(const Sum& sum, Tally* tally, std::uint64_t row, std::int64_t pairs,
               const FoldWord* words, ExprContext* expressions) {
  if (sum.plan.filter == SumOf::kLeft && !passes_filter(sum, expressions)) return true;
  if (sum.plan.of != SumOf::kPair && !is_of_right(sum)) {
    Datum value = 0;
    if (sum.met != nullptr)
      count_row(sum, tally, row);
    else if (has_argument(sum, expressions, &value))
      add_value(sum.plan, tally, value, pairs);
    return true;
  }
  const SumPlaces& places = sum.places;
  const std::int64_t count = places.values > 0 ? words[places.values].integer : pairs;
  const SumArithmetic arithmetic = arithmetic_of(sum.plan.state);
  if (combines(sum)) return add_combined(sum, tally, count, words, expressions);
  if (count == 0) return true;
  if (sum.met != nullptr) {
    count_row(sum, tally, row);
  } else if (arithmetic == SumArithmetic::kNone) {
    tally->count += count;
  } else if (adds_integers(arithmetic)) {
    add_integers(tally, count, wide_sum(words, places.sum, places.sum_words),
                 places.squares > 0 ? wide_sum(words, places.squares, places.square_words) : 0);
  } else if (arithmetic == SumArithmetic::kFloats) {
    const DoubleSum values = {words[places.sum].real, words[places.sum + 1].real};
    double deviations = 0;
    if (places.squares > 0)
      deviations = deviations_of(count, values,
                                 {words[places.squares].real, words[places.squares + 1].real});
    add_floats(sum.plan, tally, count, values, deviations);
  } else {
    add_extreme(sum.plan, tally, count, words[places.sum].integer);
  }
  return true;
}

bool are_right(const SumWork* work, const FoldWord* words, bool fails) {
  if (fails) return false;
  if (words == nullptr) return true;
  if (words[0].number > 0) return false;
  if (work->failures_place > 0 && words[work->failures_place].number > 0) return false;
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    if (arithmetic_of(sum.plan.state) != SumArithmetic::kFloats || sum.places.sum == 0) continue;
    if (!std::isfinite(words[sum.places.sum].real)) return false;
    if (sum.places.squares > 0 && !std::isfinite(words[sum.places.squares].real)) return false;
  }
  return true;
}

}  // namespace gpujoin

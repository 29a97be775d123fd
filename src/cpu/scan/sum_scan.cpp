#include "cpu/scan/sum_scan.h"

#include <algorithm>
#include <cmath>

#include "cpu/scan/instruction_sets.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/sum_scan.cpp"
#include "hwy/foreach_target.h"  // keep before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kMostLanes = 8;
using Lanes = hn::CappedTag<double, kMostLanes>;
using Vector = hn::Vec<Lanes>;

void roots(double* numbers, std::size_t count) {
  const Lanes lanes;
  std::size_t i = 0;
  for (; i + hn::Lanes(lanes) <= count; i += hn::Lanes(lanes))
    hn::StoreU(hn::Sqrt(hn::LoadU(lanes, numbers + i)), lanes, numbers + i);
  for (; i < count; ++i) numbers[i] = std::sqrt(numbers[i]);
}

/// A DoubleSum in each lane.
struct LaneSums {
  Vector high, low;

  HWY_INLINE LaneSums() : high(hn::Set(Lanes(), no_sum().high)), low(hn::Zero(Lanes())) {}
  HWY_INLINE void add(Vector x) {
    const Vector sum = hn::Add(high, x);
    const Vector part = hn::Sub(sum, high);
    low = hn::Add(low, hn::Add(hn::Sub(high, hn::Sub(sum, part)), hn::Sub(x, part)));
    high = sum;
  }
  HWY_INLINE void add(const LaneSums& other) {
    add(other.high);
    low = hn::Add(low, other.low);
  }
  /// Lanes are added two by two, which waits less than one after the other.
  void add_to(DoubleSum* sum) const {
    const Lanes lanes;
    double highs[kMostLanes], lows[kMostLanes];
    hn::StoreU(high, lanes, highs);
    hn::StoreU(low, lanes, lows);
    for (std::size_t half = hn::Lanes(lanes) / 2; half > 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) {
        DoubleSum both{highs[lane], lows[lane]};
        both.add(highs[lane + half], lows[lane + half]);
        highs[lane] = both.high;
        lows[lane] = both.low;
      }
    sum->add(highs[0], lows[0]);
  }
};

/// The numbers of some lanes; the others change no sum.
template <class Mask>
HWY_INLINE Vector terms(Mask mask, Vector numbers) {
  return hn::IfThenElse(mask, numbers, hn::Set(Lanes(), no_sum().high));
}

void sum_up(const double* values, std::size_t count, DoubleSum* sum) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const auto numbers = [&](Vector x) HWY_ATTR { return terms(hn::Eq(x, x), x); };
  LaneSums even, odd;  // neither waits for the other
  std::size_t i = 0;
  for (; i + 2 * step <= count; i += 2 * step) {
    even.add(numbers(hn::LoadU(lanes, values + i)));
    odd.add(numbers(hn::LoadU(lanes, values + i + step)));
  }
  for (; i < count; i += step) {
    double last[kMostLanes];
    std::fill_n(last, kMostLanes, no_sum().high);
    std::copy_n(values + i, std::min(step, count - i), last);
    even.add(numbers(hn::LoadU(lanes, last)));
  }
  even.add(odd);
  even.add_to(sum);
}

/// Calls add(place, position) for the vectors of the windows' tiles.
template <class Add>
HWY_INLINE void for_vectors(const SpreadPairs& pairs, const Add& add) {
  const std::size_t step = hn::Lanes(Lanes());
  std::size_t place = 0;
  for (std::size_t w = 0; w < pairs.window_count; ++w) {
    const Window tiles = tiles_around(pairs.windows[w]);
    for (std::size_t at = tiles.begin; at < tiles.end; at += step, place += step) add(place, at);
  }
}

/// Adds up one sum or `Two`. `Distances`: the first is theirs.
template <bool Distances, bool Two>
void add_some(const SpreadPairs& pairs, bool squared, PlainSum* sums) {
  const Lanes lanes;
  const auto add_numbers = [&](Vector x, auto is_pair, LaneSums& sum, PlainSum& to) HWY_ATTR {
    const auto counts = hn::And(is_pair, hn::Eq(x, x));
    sum.add(terms(counts, x));
    to.numbers += hn::CountTrue(lanes, counts);
  };
  LaneSums first, second;
  for_vectors(pairs, [&](std::size_t place, std::size_t position) HWY_ATTR {
    const Vector raw = hn::LoadU(lanes, pairs.raws + place);
    const auto is_pair = hn::Eq(raw, raw);
    if constexpr (Distances) {
      const Vector known = hn::IfThenElseZero(is_pair, raw);
      first.add(squared ? hn::Sqrt(known) : known);
    } else {
      add_numbers(hn::LoadU(lanes, sums[0].column + position), is_pair, first, sums[0]);
    }
    if constexpr (Two)
      add_numbers(hn::LoadU(lanes, sums[1].column + position), is_pair, second, sums[1]);
  });
  first.add_to(&sums[0].sum);
  if constexpr (Two) second.add_to(&sums[1].sum);
}

/// Two at once: the processor finds square roots while it adds the others.
void add_up(const SpreadPairs& pairs, bool squared, PlainSum* sums, std::size_t count) {
  for (; count > 0; sums += 2, count -= std::min<std::size_t>(2, count)) {
    if (sums->column == nullptr)
      count > 1 ? add_some<true, true>(pairs, squared, sums)
                : add_some<true, false>(pairs, squared, sums);
    else
      count > 1 ? add_some<false, true>(pairs, squared, sums)
                : add_some<false, false>(pairs, squared, sums);
  }
}

std::uint64_t sum_integers(const SpreadPairs& pairs, const std::int64_t* column) {
  const Lanes lanes;
  const hn::RebindToUnsigned<Lanes> words;
  auto sum = hn::Zero(words);
  for_vectors(pairs, [&](std::size_t place, std::size_t position) HWY_ATTR {
    const Vector raw = hn::LoadU(lanes, pairs.raws + place);
    const auto x = hn::LoadU(words, reinterpret_cast<const std::uint64_t*>(column + position));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(words, hn::Eq(raw, raw)), x));
  });
  return hn::GetLane(hn::SumOfLanes(words, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(roots);
HWY_EXPORT(sum_up);
HWY_EXPORT(add_up);
HWY_EXPORT(sum_integers);

void take_roots(double* numbers, std::size_t count) { HWY_DYNAMIC_DISPATCH(roots)(numbers, count); }

void add_values(const double* values, std::size_t count, DoubleSum* sum) {
  HWY_DYNAMIC_DISPATCH(sum_up)(values, count, sum);
}

void add_up(const SpreadPairs& pairs, bool squared, PlainSum* sums, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_up)(pairs, squared, sums, count);
}

std::uint64_t sum_integers(const SpreadPairs& pairs, const std::int64_t* column) {
  return HWY_DYNAMIC_DISPATCH(sum_integers)(pairs, column);
}

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

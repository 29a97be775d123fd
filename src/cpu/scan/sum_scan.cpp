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

  HWY_INLINE LaneSums() : high(hn::Zero(Lanes())), low(hn::Zero(Lanes())) {}
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

void sum_up(const double* values, std::size_t count, DoubleSum* sum) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const auto numbers = [&](Vector x) HWY_ATTR { return hn::IfThenElseZero(hn::Eq(x, x), x); };
  LaneSums even, odd;  // neither waits for the other
  std::size_t i = 0;
  for (; i + 2 * step <= count; i += 2 * step) {
    even.add(numbers(hn::LoadU(lanes, values + i)));
    odd.add(numbers(hn::LoadU(lanes, values + i + step)));
  }
  for (; i < count; i += step) {
    double last[kMostLanes] = {};
    std::copy_n(values + i, std::min(step, count - i), last);
    even.add(numbers(hn::LoadU(lanes, last)));
  }
  even.add(odd);
  even.add_to(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(roots);
HWY_EXPORT(sum_up);

void take_roots(double* numbers, std::size_t count) { HWY_DYNAMIC_DISPATCH(roots)(numbers, count); }

void add_values(const double* values, std::size_t count, DoubleSum* sum) {
  HWY_DYNAMIC_DISPATCH(sum_up)(values, count, sum);
}

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

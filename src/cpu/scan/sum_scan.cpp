#include "cpu/scan/sum_scan.h"

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
  void add_to(DoubleSum* sum) const {
    const Lanes lanes;
    double highs[kMostLanes], lows[kMostLanes];
    hn::StoreU(high, lanes, highs);
    hn::StoreU(low, lanes, lows);
    for (std::size_t lane = 0; lane < hn::Lanes(lanes); ++lane) sum->add(highs[lane], lows[lane]);
  }
};

void sum_up(const double* values, std::size_t count, DoubleSum* sum) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const auto load = [&](std::size_t at) HWY_ATTR {
    const Vector x = hn::LoadU(lanes, values + at);
    return hn::IfThenElseZero(hn::Eq(x, x), x);
  };
  std::size_t i = 0;
  if (count >= 2 * step) {
    LaneSums even, odd;  // neither waits for the other
    for (; i + 2 * step <= count; i += 2 * step) {
      even.add(load(i));
      odd.add(load(i + step));
    }
    even.add_to(sum);
    odd.add_to(sum);
  }
  for (; i < count; ++i)
    if (values[i] == values[i]) sum->add(values[i]);
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

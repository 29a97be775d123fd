#include "cpu/scan/scan.h"

#include "cpu/scan/instruction_sets.h"
#include "cpu/scan/lane_table.h"
#include "engine/strategy/choose_strategy.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/scan.cpp"
#include "hwy/foreach_target.h"
// Behind it, for each instruction set again:
#include "cpu/scan/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<double, kTilePoints>;
using Vector = hn::Vec<Lanes>;
using Mask = hn::Mask<Lanes>;

template <Metric M>
HWY_INLINE Vector combine(Vector a, Vector b) {
  return M == Metric::kLInf ? hn::Max(a, b) : hn::Add(a, b);
}

/// Sums in column order: the definition itself.
template <Metric M, class T, std::uint32_t D>
struct Direct {
  Vector query[D];

  explicit HWY_INLINE Direct(const Scan& scan) {
    for (std::uint32_t d = 0; d < D; ++d) query[d] = hn::Set(Lanes(), scan.query[d]);
  }
  HWY_INLINE Vector raw(const Scan& scan, std::size_t position) const {
    const T* const column = tile_place(static_cast<const T*>(scan.tiles), position, D);
    Vector sum = hn::Zero(Lanes());
    for (std::uint32_t d = 0; d < D; ++d)
      sum = add_coordinate<M>(sum, query[d], load_column(Lanes(), column + d * kTilePoints));
    return sum;
  }
};

/// Sums in four interleaved parts, which keeps the adders busy, and stops once no lane can pass any
/// more (SHORTC [GPU-Join, section 4.4]).
template <Metric M, class T>
struct Screened {
  explicit HWY_INLINE Screened(const Scan&) {}
  HWY_INLINE Vector raw(const Scan& scan, std::size_t position) const {
    constexpr std::uint32_t kStep = 16;
    const Lanes lanes;
    const T* const column = tile_place(static_cast<const T*>(scan.tiles), position, scan.dims);
    const Vector threshold = hn::Set(lanes, scan.threshold);
    Vector part0 = hn::Zero(lanes), part1 = part0, part2 = part0, part3 = part0;
    Vector sum = part0;
    const auto add = [&](Vector part, std::uint32_t d) HWY_ATTR {
      return add_coordinate<M>(part, hn::Set(lanes, scan.query[d]),
                               load_column(Lanes(), column + std::size_t{d} * kTilePoints));
    };
    std::uint32_t d = 0;
    for (; d + kStep <= scan.dims; d += kStep) {
      for (std::uint32_t e = d; e < d + kStep; e += 4) {
        part0 = add(part0, e);
        part1 = add(part1, e + 1);
        part2 = add(part2, e + 2);
        part3 = add(part3, e + 3);
      }
      sum = combine<M>(combine<M>(part0, part1), combine<M>(part2, part3));
      if (scan.short_circuit && hn::AllFalse(lanes, hn::Le(sum, threshold))) return sum;
    }
    for (; d < scan.dims; ++d) sum = add(sum, d);
    return sum;
  }
};

/// Calls visit(position, raw, mask) for each vector of a window that holds a point which passes or
/// may pass.
template <class Summation, class Visit>
HWY_INLINE void scan_window(const Scan& scan, const Summation& summation, Window window,
                            const Visit& visit) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const Vector threshold = hn::Set(lanes, scan.threshold);
  const std::size_t end = window.end;
  std::size_t position = window.begin & ~(step - 1);

  Mask inside = hn::Not(hn::FirstN(lanes, window.begin - position));
  for (bool last = false; !last; position += step) {
    last = position + step >= end;
    if (last) inside = hn::And(inside, hn::FirstN(lanes, end - position));
    const Vector raw = summation.raw(scan, position);
    visit(position, raw, hn::And(inside, hn::Le(raw, threshold)));
    inside = hn::FirstN(lanes, step);
  }
}

template <class Summation>
std::uint64_t count(const Scan& scan, const Window* windows, std::size_t window_count) {
  const Lanes lanes;
  const Summation summation(scan);
  std::uint64_t passed = 0;
  for (std::size_t w = 0; w < window_count; ++w)
    scan_window(scan, summation, windows[w], [&](std::size_t, Vector, Mask pass) HWY_ATTR {
      passed += hn::CountTrue(lanes, pass);
    });
  return passed;
}

template <class Summation>
std::size_t collect(const Scan& scan, const Window* windows, std::size_t window_count,
                    std::uint32_t* positions, double* raws) {
  const Lanes lanes;
  const hn::Rebind<std::uint8_t, Lanes> bytes;
  const hn::Rebind<std::uint32_t, Lanes> narrow;
  const hn::RebindToUnsigned<Lanes> wide;
  const Summation summation(scan);
  std::size_t found = 0;
  const auto visit = [&](std::size_t position, Vector raw, Mask pass) HWY_ATTR {
    std::uint8_t mask[8] = {};
    hn::StoreMaskBits(lanes, pass, mask);
    const auto members =
        hn::PromoteTo(narrow, hn::LoadU(bytes, &kLanesOfMask[mask[0] * std::size_t{8}]));
    const auto base = hn::Set(narrow, static_cast<std::uint32_t>(position));
    hn::StoreU(hn::Add(members, base), narrow, positions + found);
    if (raws != nullptr) {
      const auto indices = hn::IndicesFromVec(lanes, hn::PromoteTo(wide, members));
      hn::StoreU(hn::TableLookupLanes(raw, indices), lanes, raws + found);
    }
    found += hn::CountTrue(lanes, pass);
  };
  for (std::size_t w = 0; w < window_count; ++w) scan_window(scan, summation, windows[w], visit);
  return found;
}

template <class Summation>
std::uint64_t spread(const Scan& scan, const Window* windows, std::size_t window_count,
                     double* raws) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const Summation summation(scan);
  const Vector threshold = hn::Set(lanes, scan.threshold), none = hn::NaN(lanes);
  std::uint64_t passed = 0;
  for (std::size_t w = 0; w < window_count; ++w) {
    const Window tiles = tiles_around(windows[w]);
    for (std::size_t position = tiles.begin; position < tiles.end; position += step) {
      const std::size_t begin = windows[w].begin, end = windows[w].end;
      const Mask inside = hn::AndNot(hn::FirstN(lanes, begin > position ? begin - position : 0),
                                     hn::FirstN(lanes, end > position ? end - position : 0));
      const Vector raw = summation.raw(scan, position);
      const Mask pass = hn::And(inside, hn::Le(raw, threshold));
      hn::StoreU(hn::IfThenElse(pass, raw, none), lanes, raws);
      raws += step;
      passed += hn::CountTrue(lanes, pass);
    }
  }
  return passed;
}

/// A right point with as many left ones as there are lanes: the definition, as in Direct.
template <Metric M, class T, std::uint32_t D>
HWY_INLINE Vector raw_of(const Vector (&left)[D], const T* tiles, std::size_t position) {
  const T* const column = tile_place(tiles, position, D);
  Vector sum = hn::Zero(Lanes());
  for (std::uint32_t d = 0; d < D; ++d)
    sum = add_coordinate<M>(
        sum, left[d], hn::Set(Lanes(), static_cast<double>(column[std::size_t{d} * kTilePoints])));
  return sum;
}

template <Metric M, class T, std::uint32_t D>
std::uint64_t count_block(const Scan& scan, const void* left_tiles, Window block, bool among,
                          const Window* windows, std::size_t window_count) {
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const Vector threshold = hn::Set(lanes, scan.threshold), one = hn::Set(lanes, 1.0);
  const T* const right = static_cast<const T*>(scan.tiles);
  const T* const left_points = static_cast<const T*>(left_tiles);
  Vector total = hn::Zero(lanes);  // of whole numbers
  for (std::size_t first = block.begin & ~(step - 1); first < block.end; first += step) {
    Vector left[D];
    for (std::uint32_t d = 0; d < D; ++d)
      left[d] = load_column(lanes, tile_place(left_points, first, D) + d * kTilePoints);
    Vector passed = hn::Zero(lanes);
    for (std::size_t w = 0; w < window_count; ++w)
      for (std::size_t at = windows[w].begin; at < windows[w].end; ++at) {
        const Mask near = hn::Le(raw_of<M, T, D>(left, right, at), threshold);
        passed = hn::Add(passed, hn::IfThenElseZero(near, one));
      }
    for (std::size_t at = block.begin + 1; among && at < block.end; ++at) {
      const Mask before = hn::FirstN(lanes, at > first ? at - first : 0);
      const Mask near = hn::Le(raw_of<M, T, D>(left, right, at), threshold);
      passed = hn::Add(passed, hn::IfThenElseZero(hn::And(before, near), one));
    }
    const Mask inside = hn::AndNot(hn::FirstN(lanes, block.begin > first ? block.begin - first : 0),
                                   hn::FirstN(lanes, block.end - first));
    total = hn::Add(total, hn::IfThenElseZero(inside, passed));
  }
  return static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(lanes, total)));
}

template <class Summation>
constexpr ScanKernel kernel_of() {
  return {count<Summation>, collect<Summation>, spread<Summation>, nullptr};
}

template <Metric M, class T, std::uint32_t D>
constexpr ScanKernel direct_kernel() {
  return {count<Direct<M, T, D>>, collect<Direct<M, T, D>>, spread<Direct<M, T, D>>,
          count_block<M, T, D>};
}

template <Metric M, class T>
ScanKernel choose_for(std::uint32_t dims, bool screened) {
  static_assert(kMaxDirectDimensions == 8);
  switch (screened ? 0 : dims) {
    case 1:
      return direct_kernel<M, T, 1>();
    case 2:
      return direct_kernel<M, T, 2>();
    case 3:
      return direct_kernel<M, T, 3>();
    case 4:
      return direct_kernel<M, T, 4>();
    case 5:
      return direct_kernel<M, T, 5>();
    case 6:
      return direct_kernel<M, T, 6>();
    case 7:
      return direct_kernel<M, T, 7>();
    case 8:
      return direct_kernel<M, T, 8>();
    default:
      return kernel_of<Screened<M, T>>();
  }
}

template <Metric M>
ScanKernel choose_for(ScalarType scalar, std::uint32_t dims, bool screened) {
  return scalar == ScalarType::kFloat32 ? choose_for<M, float>(dims, screened)
                                        : choose_for<M, double>(dims, screened);
}

ScanKernel choose(Metric metric, ScalarType scalar, std::uint32_t dims, bool screened) {
  switch (metric) {
    case Metric::kL1:
      return choose_for<Metric::kL1>(scalar, dims, screened);
    case Metric::kLInf:
      return choose_for<Metric::kLInf>(scalar, dims, screened);
    default:
      return choose_for<Metric::kL2>(scalar, dims, screened);
  }
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose);
HWY_EXPORT(target_name);

ScanKernel choose_scan_kernel(Metric metric, ScalarType scalar, std::uint32_t dims, bool screened) {
  return HWY_DYNAMIC_DISPATCH(choose)(metric, scalar, dims, screened);
}

const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

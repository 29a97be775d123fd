#include "cpu/scan/box_scan.h"

#include "cpu/scan/instruction_sets.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/box_scan.cpp"
#include <bit>

#include "hwy/foreach_target.h"
// Behind it, for each instruction set again:
#include "cpu/scan/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The low bounds along the first dimension of the boxes from `position` on.
template <class T>
HWY_INLINE const T* tile_at(const BoxScan& scan, std::size_t position) {
  return static_cast<const T*>(scan.tiles) +
         position / kTileBoxes * (std::size_t{scan.dims} * 2 * kTileBoxes) + position % kTileBoxes;
}

/// boxes_meet() for as many boxes as there are lanes. D dimensions, or with a D of 0 scan.dims.
template <class T, std::uint32_t D>
struct Meet {
  using Lanes = hn::CappedTag<T, kTileBoxes>;
  static constexpr std::uint32_t kDims = D == 0 ? kMaxBoxDimensions : D;
  hn::Vec<Lanes> low[kDims], high[kDims];

  explicit HWY_INLINE Meet(const BoxScan& scan) {
    const T* const query = static_cast<const T*>(scan.query);
    const std::uint32_t dims = D == 0 ? scan.dims : D;
    for (std::uint32_t d = 0; d < dims; ++d) {
      low[d] = hn::Set(Lanes(), query[d]);
      high[d] = hn::Set(Lanes(), query[dims + d]);
    }
  }
  HWY_INLINE hn::Mask<Lanes> passes(const BoxScan& scan, std::size_t position) const {
    const Lanes lanes;
    const std::uint32_t dims = D == 0 ? scan.dims : D;
    const T* const tile = tile_at<T>(scan, position);
    const auto overlap = [&](std::uint32_t d) HWY_ATTR {
      return hn::And(hn::Le(hn::Load(lanes, tile + d * kTileBoxes), high[d]),
                     hn::Le(low[d], hn::Load(lanes, tile + (dims + d) * kTileBoxes)));
    };
    auto pass = overlap(0);
    for (std::uint32_t d = 1; d < dims; ++d) pass = hn::And(pass, overlap(d));
    return pass;
  }
};

/// box_raw_distance() for as many boxes as there are lanes, compared with the threshold. There is a
/// gap on one side of a box at most, and where there is one its length is no NaN.
template <Metric M, class T, std::uint32_t D>
struct Near {
  using Lanes = hn::CappedTag<double, kTileBoxes>;
  using Vector = hn::Vec<Lanes>;
  static constexpr std::uint32_t kDims = D == 0 ? kMaxBoxDimensions : D;
  Vector low[kDims], high[kDims], threshold;

  explicit HWY_INLINE Near(const BoxScan& scan) : threshold(hn::Set(Lanes(), scan.threshold)) {
    const T* const query = static_cast<const T*>(scan.query);
    const std::uint32_t dims = D == 0 ? scan.dims : D;
    for (std::uint32_t d = 0; d < dims; ++d) {
      low[d] = hn::Set(Lanes(), static_cast<double>(query[d]));
      high[d] = hn::Set(Lanes(), static_cast<double>(query[dims + d]));
    }
  }
  HWY_INLINE hn::Mask<Lanes> passes(const BoxScan& scan, std::size_t position) const {
    const Lanes lanes;
    const std::uint32_t dims = D == 0 ? scan.dims : D;
    const T* const tile = tile_at<T>(scan, position);
    Vector raw = hn::Zero(lanes);
    for (std::uint32_t d = 0; d < dims; ++d) {
      const Vector its_low = load_column(lanes, tile + d * kTileBoxes);
      const Vector its_high = load_column(lanes, tile + (dims + d) * kTileBoxes);
      const Vector after = hn::IfThenElseZero(hn::Gt(its_low, high[d]), hn::Sub(its_low, high[d]));
      const Vector gap = hn::IfThenElse(hn::Gt(low[d], its_high), hn::Sub(low[d], its_high), after);
      raw = add_difference<M>(raw, gap);
    }
    return hn::Le(raw, threshold);
  }
};

/// Calls visit(position, bits) for each vector of a window with a box that passes: bit i is box
/// position + i.
template <class Test, class Visit>
HWY_INLINE void scan_window(const BoxScan& scan, const Test& test, Window window,
                            const Visit& visit) {
  const typename Test::Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  for (std::size_t position = window.begin & ~(step - 1); position < window.end; position += step) {
    const auto pass = test.passes(scan, position);
    if (hn::AllFalse(lanes, pass)) continue;
    std::uint32_t bits = bits_of(lanes, pass);
    if (position < window.begin) bits &= ~0u << (window.begin - position);
    if (position + step > window.end) bits &= (1u << (window.end - position)) - 1;
    visit(position, bits);
  }
}

template <class Test>
std::uint64_t count(const BoxScan& scan, const Window* windows, std::size_t window_count) {
  const Test test(scan);
  std::uint64_t passed = 0;
  for (std::size_t w = 0; w < window_count; ++w)
    scan_window(scan, test, windows[w], [&](std::size_t, std::uint32_t bits) HWY_ATTR {
      passed += static_cast<std::uint32_t>(std::popcount(bits));
    });
  return passed;
}

template <class Test>
std::size_t collect(const BoxScan& scan, const Window* windows, std::size_t window_count,
                    std::uint32_t* positions) {
  const Test test(scan);
  std::size_t found = 0;
  for (std::size_t w = 0; w < window_count; ++w)
    scan_window(scan, test, windows[w], [&](std::size_t position, std::uint32_t bits) HWY_ATTR {
      for (; bits != 0; bits &= bits - 1)
        positions[found++] = static_cast<std::uint32_t>(position) +
                             static_cast<std::uint32_t>(std::countr_zero(bits));
    });
  return found;
}

template <class Test>
constexpr BoxScanKernel kernel_of() {
  return {count<Test>, collect<Test>};
}

template <class T, std::uint32_t D>
BoxScanKernel choose_for(const BoxTest& test) {
  if (test.meet) return kernel_of<Meet<T, D>>();
  switch (test.metric) {
    case Metric::kL1:
      return kernel_of<Near<Metric::kL1, T, D>>();
    case Metric::kLInf:
      return kernel_of<Near<Metric::kLInf, T, D>>();
    default:
      return kernel_of<Near<Metric::kL2, T, D>>();
  }
}

template <class T>
BoxScanKernel choose_for(const BoxTest& test, std::uint32_t dims) {
  switch (dims) {
    case 1:
      return choose_for<T, 1>(test);
    case 2:
      return choose_for<T, 2>(test);
    case 3:
      return choose_for<T, 3>(test);
    case 4:
      return choose_for<T, 4>(test);
    default:
      return choose_for<T, 0>(test);
  }
}

BoxScanKernel choose(const BoxTest& test, ScalarType scalar, std::uint32_t dims) {
  return scalar == ScalarType::kFloat32 ? choose_for<float>(test, dims)
                                        : choose_for<double>(test, dims);
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose);

BoxScanKernel choose_box_scan(const BoxTest& test, ScalarType scalar, std::uint32_t dims) {
  return HWY_DYNAMIC_DISPATCH(choose)(test, scalar, dims);
}

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

#include "cpu/scan/row_scan.h"

#include "cpu/scan/instruction_sets.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/row_scan.cpp"
#include "hwy/foreach_target.h"  // keep before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<double, 8>;
using Vector = hn::Vec<Lanes>;

template <class T>
HWY_INLINE Vector load(const T* values) {
  const Lanes lanes;
  if constexpr (sizeof(T) == sizeof(double)) {
    return hn::LoadU(lanes, values);
  } else {
    return hn::PromoteTo(lanes, hn::LoadU(hn::Rebind<float, Lanes>(), values));
  }
}

HWY_INLINE Vector add_square(Vector a, Vector b, Vector sum) {
  const Vector difference = hn::Sub(a, b);
  return hn::MulAdd(difference, difference, sum);
}

template <class T>
HWY_INLINE double squares_of_pair(const T* a, const T* b, std::uint32_t dims) {
  constexpr std::uint32_t kLanes = hn::MaxLanes(Lanes());
  Vector sum[4];
  for (Vector& part : sum) part = hn::Zero(Lanes());
  std::uint32_t d = 0;
  for (; d + 4 * kLanes <= dims; d += 4 * kLanes) {
    HWY_UNROLL(4) for (std::uint32_t i = 0; i < 4; ++i) {
      sum[i] = add_square(load(a + d + i * kLanes), load(b + d + i * kLanes), sum[i]);
    }
  }
  for (; d + kLanes <= dims; d += kLanes) sum[0] = add_square(load(a + d), load(b + d), sum[0]);
  double squares = hn::GetLane(
      hn::SumOfLanes(Lanes(), hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
  for (; d < dims; ++d) {
    const double difference = static_cast<double>(a[d]) - static_cast<double>(b[d]);
    squares += difference * difference;
  }
  return squares;
}

template <class T>
void squares(const void* row, const void* const* others, std::size_t count, std::uint32_t dims,
             double* sums) {
  for (std::size_t i = 0; i < count; ++i)
    sums[i] = squares_of_pair(static_cast<const T*>(row), static_cast<const T*>(others[i]), dims);
}

void products(const double* rows, std::size_t stride, std::uint32_t dims, const double* matrix,
              std::uint32_t columns, double* products) {
  const Lanes lanes;
  constexpr std::uint32_t kLanes = hn::MaxLanes(Lanes());
  constexpr std::uint32_t kVectors = 2;
  for (std::uint32_t column = 0; column < columns; column += kVectors * kLanes) {
    Vector sum[kProductRows][kVectors];
    for (auto& row : sum)
      for (Vector& part : row) part = hn::Zero(lanes);
    const double* factors = matrix + column;
    for (std::uint32_t d = 0; d < dims; ++d, factors += columns) {
      const Vector first = hn::Load(lanes, factors), second = hn::Load(lanes, factors + kLanes);
      HWY_UNROLL(4) for (std::uint32_t i = 0; i < kProductRows; ++i) {
        const Vector row = hn::Set(lanes, rows[i * stride + d]);
        sum[i][0] = hn::MulAdd(row, first, sum[i][0]);
        sum[i][1] = hn::MulAdd(row, second, sum[i][1]);
      }
    }
    for (std::uint32_t i = 0; i < kProductRows; ++i)
      for (std::uint32_t v = 0; v < kVectors; ++v)
        hn::Store(sum[i][v], lanes, products + i * std::size_t{columns} + column + v * kLanes);
  }
}

RowScan choose_scan(ScalarType scalar) {
  return {scalar == ScalarType::kFloat32 ? squares<float> : squares<double>, products};
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose_scan);

RowScan choose_row_scan(ScalarType scalar) { return HWY_DYNAMIC_DISPATCH(choose_scan)(scalar); }

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

#include "cpu/scan/tile_scan.h"

#include "cpu/scan/instruction_sets.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/tile_scan.cpp"
#include "hwy/foreach_target.h"
// Behind it, for each instruction set again:
#include "cpu/scan/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Lanes>;
using Mask = hn::Mask<Lanes>;

// A block is kRows x kVectors sums in registers: enough of them to keep the multipliers busy for
// as long as one addition takes, with room left for the factors.
constexpr std::uint32_t kLanes = hn::MaxLanes(Lanes());
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64  // 32 registers
constexpr std::uint32_t kRows = 8;
#else
constexpr std::uint32_t kRows = 4;
#endif
constexpr std::uint32_t kVectors = 2;
constexpr std::uint32_t kColumns = kVectors * kLanes;
static_assert(kGroupPoints % kRows == 0 && kGroupPoints % kColumns == 0);

/// Rows of one group against some points of another.
struct Block {
  Vector sum[kRows][kVectors];

  HWY_INLINE void clear() {
    HWY_UNROLL(8) for (std::uint32_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(4) for (std::uint32_t v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(Lanes());
    }
  }

  /// Adds the products of the columns first .. end - 1.
  HWY_INLINE void add(const float* a, const float* b, std::uint32_t first, std::uint32_t end) {
    const Lanes lanes;
    a += std::size_t{first} * kGroupPoints;
    b += std::size_t{first} * kGroupPoints;
    for (std::uint32_t d = first; d < end; ++d, a += kGroupPoints, b += kGroupPoints) {
      Vector factor[kVectors];
      HWY_UNROLL(4) for (std::uint32_t v = 0; v < kVectors; ++v) {
        factor[v] = hn::Load(lanes, b + v * kLanes);
      }
      HWY_UNROLL(8) for (std::uint32_t i = 0; i < kRows; ++i) {
        const Vector row = hn::Set(lanes, a[i]);
        HWY_UNROLL(4) for (std::uint32_t v = 0; v < kVectors; ++v) {
          sum[i][v] = hn::MulAdd(row, factor[v], sum[i][v]);
        }
      }
    }
  }

  /// Whether any sum reaches its pair's threshold, which is the sum of two numbers.
  HWY_INLINE bool any_reaches(const float* a, const float* b) const {
    const Lanes lanes;
    Mask any = hn::MaskFromVec(hn::Zero(lanes));
    HWY_UNROLL(8) for (std::uint32_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(4) for (std::uint32_t v = 0; v < kVectors; ++v) {
        const Vector threshold = hn::Add(hn::Set(lanes, a[i]), hn::Load(lanes, b + v * kLanes));
        any = hn::Or(any, hn::Ge(sum[i][v], threshold));
      }
    }
    return !hn::AllFalse(lanes, any);
  }

  /// Which sums reach their thresholds, and which exceed them by enough to be sure; sets these bits
  /// in the rows' words, from `bit` on.
  HWY_INLINE void tell(const float* reject_a, const float* reject_b, const float* accept_a,
                       const float* accept_b, std::uint32_t bit, std::uint32_t* possible,
                       std::uint32_t* sure) const {
    const Lanes lanes;
    HWY_UNROLL(8) for (std::uint32_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(4) for (std::uint32_t v = 0; v < kVectors; ++v) {
        const Vector threshold =
            hn::Add(hn::Set(lanes, reject_a[i]), hn::Load(lanes, reject_b + v * kLanes));
        const Vector margin =
            hn::Add(hn::Set(lanes, accept_a[i]), hn::Load(lanes, accept_b + v * kLanes));
        const Mask reaches = hn::Ge(sum[i][v], threshold);
        const Mask exceeds = hn::Ge(hn::Sub(sum[i][v], threshold), margin);
        possible[i] |= bits_of(lanes, reaches) << (bit + v * kLanes);
        sure[i] |= bits_of(lanes, hn::And(reaches, exceeds)) << (bit + v * kLanes);
      }
    }
  }
};

bool screen_groups(const Checkpoints& checkpoints, const PackedGroup& a, const PackedGroup& b,
                   GroupPairs* pairs) {
  const std::uint32_t last = checkpoints.count - 1;
  const std::size_t accept = std::size_t{checkpoints.count} * kGroupPoints;
  bool found = false;
  for (std::uint32_t column = 0; column < kGroupPoints; column += kColumns) {
    for (std::uint32_t row = 0; row < kGroupPoints; row += kRows) {
      Block block;
      block.clear();
      std::uint32_t checkpoint = 0;
      for (std::uint32_t d = 0; checkpoint <= last; d = checkpoints.end[checkpoint++]) {
        block.add(a.values + row, b.values + column, d, checkpoints.end[checkpoint]);
        const std::size_t at = std::size_t{checkpoint} * kGroupPoints;
        if (!block.any_reaches(a.thresholds + at + row, b.thresholds + at + column)) break;
      }
      if (checkpoint <= last) continue;
      if (!found) *pairs = {};
      found = true;
      const std::size_t at = std::size_t{last} * kGroupPoints;
      block.tell(a.thresholds + at + row, b.thresholds + at + column, a.thresholds + accept + row,
                 b.thresholds + accept + column, column, pairs->possible + row, pairs->sure + row);
    }
  }
  return found;
}

std::uint32_t screen_bytes(const float* point, const std::int8_t* values, const float* norms,
                           std::uint32_t columns, const ByteThreshold& threshold) {
  const Lanes lanes;
  const hn::Rebind<std::int32_t, Lanes> integers;
  const hn::Rebind<std::int8_t, Lanes> bytes;
  constexpr std::uint32_t kAll = kGroupPoints / kLanes;
  Vector sum[kAll];
  HWY_UNROLL(8) for (std::uint32_t v = 0; v < kAll; ++v) sum[v] = hn::Zero(lanes);
  for (std::uint32_t column = 0; column < columns; ++column, values += kGroupPoints) {
    const Vector factor = hn::Set(lanes, point[column]);
    HWY_UNROLL(8) for (std::uint32_t v = 0; v < kAll; ++v) {
      const auto widened = hn::PromoteTo(integers, hn::LoadU(bytes, values + v * kLanes));
      sum[v] = hn::MulAdd(factor, hn::ConvertTo(lanes, widened), sum[v]);
    }
  }
  std::uint32_t possible = 0;
  HWY_UNROLL(8) for (std::uint32_t v = 0; v < kAll; ++v) {
    const Vector limit =
        hn::MulAdd(hn::Set(lanes, threshold.times), hn::LoadU(lanes, norms + v * kLanes),
                   hn::Set(lanes, threshold.base));
    possible |= bits_of(lanes, hn::Ge(sum[v], limit)) << (v * kLanes);
  }
  return possible;
}

GroupScreen choose_screen() { return screen_groups; }
ByteScreen choose_screen_of_bytes() { return screen_bytes; }

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose_screen);
HWY_EXPORT(choose_screen_of_bytes);

GroupScreen choose_group_screen() { return HWY_DYNAMIC_DISPATCH(choose_screen)(); }
ByteScreen choose_byte_screen() { return HWY_DYNAMIC_DISPATCH(choose_screen_of_bytes)(); }

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

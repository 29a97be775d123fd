#include "cpu/scan/bit_scan.h"

#define GPUJOIN_COUNTS_BITS
#include "cpu/scan/instruction_sets.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scan/bit_scan.cpp"
#include "hwy/foreach_target.h"
// Behind it, for each instruction set again:
#include "cpu/scan/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<std::uint64_t, 8>;
using Signed = hn::RebindToSigned<Lanes>;
using Vector = hn::Vec<Lanes>;
using Count = hn::Vec<Signed>;
using Mask = hn::Mask<Signed>;

constexpr std::uint32_t kLanes = hn::MaxLanes(Lanes());
constexpr std::uint32_t kVectors = kGroupPoints / kLanes;  // of a word of a group
static_assert(kLanes <= kBitPadding);

HWY_INLINE Count count_differing(Vector a, Vector b) {
  return hn::BitCast(Signed(), hn::PopulationCount(hn::Xor(a, b)));
}

/// The bits in which a row differs from the rows of a group.
HWY_INLINE void compare_row(const std::uint64_t* row, const std::uint64_t* group,
                            std::uint32_t words, Count (&counts)[kVectors]) {
  const Lanes lanes;
  Vector word = hn::Set(lanes, row[0]);
  for (std::uint32_t v = 0; v < kVectors; ++v)
    counts[v] = count_differing(word, hn::Load(lanes, group + v * kLanes));
  for (std::uint32_t w = 1; w < words; ++w) {
    word = hn::Set(lanes, row[w * kGroupPoints]);
    const std::uint64_t* const others = group + std::size_t{w} * kGroupPoints;
    for (std::uint32_t v = 0; v < kVectors; ++v)
      counts[v] = hn::Add(counts[v], count_differing(word, hn::Load(lanes, others + v * kLanes)));
  }
}

/// Most groups have no pair, which their least counts tell.
HWY_INLINE bool any_near(const std::uint64_t* a, const std::uint64_t* b, std::uint32_t words,
                         Count limit) {
  Count least[kVectors], counts[kVectors];
  compare_row(a, b, words, least);
  for (std::uint32_t i = 1; i < kGroupPoints; ++i) {
    compare_row(a + i, b, words, counts);
    for (std::uint32_t v = 0; v < kVectors; ++v) least[v] = hn::Min(least[v], counts[v]);
  }
  for (std::uint32_t v = 1; v < kVectors; ++v) least[0] = hn::Min(least[0], least[v]);
  return !hn::AllFalse(Signed(), hn::Lt(least[0], limit));
}

bool screen_groups(const std::uint64_t* a, const std::uint64_t* b, std::uint32_t words,
                   std::uint32_t most, GroupPairs* pairs) {
  const Count limit = hn::Set(Signed(), std::int64_t{most} + 1);
  if (!any_near(a, b, words, limit)) return false;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    Count counts[kVectors];
    compare_row(a + i, b, words, counts);
    std::uint32_t near = 0;
    for (std::uint32_t v = 0; v < kVectors; ++v)
      near |= bits_of(Signed(), hn::Lt(counts[v], limit)) << v * kLanes;
    pairs->possible[i] = pairs->sure[i] = near;
  }
  return true;
}

std::size_t collect(const std::uint64_t* query, const BitRows& rows, std::uint32_t words,
                    std::uint32_t most, Window window, std::uint32_t* found) {
  const Lanes lanes;
  const Count limit = hn::Set(Signed(), std::int64_t{most} + 1);
  std::size_t count = 0;
  for (std::uint32_t first = window.begin; first < window.end; first += kLanes) {
    const std::uint64_t* at = rows.words + first;
    Count differing = count_differing(hn::Set(lanes, query[0]), hn::LoadU(lanes, at));
    for (std::uint32_t w = 1; w < words; ++w) {
      at += rows.stride;
      differing =
          hn::Add(differing, count_differing(hn::Set(lanes, query[w]), hn::LoadU(lanes, at)));
    }
    const Mask near = hn::Lt(differing, limit);
    if (HWY_LIKELY(hn::AllFalse(Signed(), near))) continue;
    const std::uint32_t left = window.end - first;
    const std::uint32_t wanted = left < kLanes ? (1u << left) - 1 : ~0u;
    for_bits(bits_of(Signed(), near) & wanted,
             [&](std::uint32_t lane) { found[count++] = first + lane; });
  }
  return count;
}

BitScan choose_scan_of_bits() { return {screen_groups, collect}; }

const char* target_of_bits() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose_scan_of_bits);
HWY_EXPORT(target_of_bits);

BitScan choose_bit_scan() { return HWY_DYNAMIC_DISPATCH(choose_scan_of_bits)(); }

const char* bit_instruction_set() { return HWY_DYNAMIC_DISPATCH(target_of_bits)(); }

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

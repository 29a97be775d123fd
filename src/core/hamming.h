// Rows of bits: how many differ, and segments of bits of which a pair that is near has some in
// common; and the distance of sets, whose members the bits are. For host and device: no allocation,
// no state.
//
// Pigeonhole: where the bits are cut into s segments, r differing bits touch at most r of them, so
// that the other s - r are equal. Rows that agree in some s - r segments are found by sorting; each
// choice of so many segments is a pass [Manku]. A pair may agree in more segments, and so in
// several passes, and is met in the one of its first s - r equal segments.
#pragma once

#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kBitsPerWord = 64;

/// Segments at most: a set of them is a word.
inline constexpr std::uint32_t kMostSegments = 63;

GPUJOIN_HD inline std::uint32_t count_bits(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(word));
#endif
}

/// The definition of Metric::kHamming: the bits in which two rows of so many words differ. Words of
/// a row lie `stride` apart.
GPUJOIN_HD inline std::uint32_t hamming_distance(const std::uint64_t* a, std::uint64_t a_stride,
                                                 const std::uint64_t* b, std::uint64_t b_stride,
                                                 std::uint32_t words) {
  std::uint32_t bits = 0;
  for (std::uint32_t w = 0; w < words; ++w) bits += count_bits(a[w * a_stride] ^ b[w * b_stride]);
  return bits;
}

GPUJOIN_HD inline std::uint32_t hamming_distance(const std::uint64_t* a, const std::uint64_t* b,
                                                 std::uint32_t words) {
  return hamming_distance(a, 1, b, 1, words);
}

/// The definition of Metric::kJaccard, from how many bits two rows have in common, and how many
/// ones both have together, the common ones twice: 1 - |a & b| / |a | b|, and 1 where no bit is
/// common, rounded as pgvector does. Of rows with so many ones it falls with each bit that is
/// common.
GPUJOIN_HD inline double jaccard_distance(std::uint32_t common, std::uint32_t ones) {
  if (common == 0) return 1;
  return 1 - static_cast<double>(common) / static_cast<double>(ones - common);
}

/// The same of rows of so many words.
inline double jaccard_distance(const std::uint64_t* a, const std::uint64_t* b,
                               std::uint32_t words) {
  std::uint32_t common = 0, ones = 0;
  for (std::uint32_t w = 0; w < words; ++w) {
    common += count_bits(a[w] & b[w]);
    ones += count_bits(a[w]) + count_bits(b[w]);
  }
  return jaccard_distance(common, ones);
}

/// Returns the distance of two rows by kHamming or kJaccard.
inline double bits_distance(Metric metric, const std::uint64_t* a, const std::uint64_t* b,
                            std::uint32_t words) {
  return metric == Metric::kJaccard ? jaccard_distance(a, b, words) : hamming_distance(a, b, words);
}

/// The bits in which rows that have so many ones together differ at most, where their Jaccard
/// distance is within eps; negative where none is. They are as many as the ones, less the common
/// ones on both sides, of which too few make the distance too large.
inline std::int64_t most_differing(std::uint32_t ones, double eps) {
  std::uint32_t low = 0, high = ones / 2 + 1;  // the fewest in common lie in low .. high
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (jaccard_distance(middle, ones) <= eps)
      high = middle;
    else
      low = middle + 1;
  }
  return std::int64_t{ones} - 2 * std::int64_t{low};
}

/// The lowest `count` members of a set that has as many or more.
GPUJOIN_HD inline std::uint64_t first_members(std::uint64_t set, std::uint32_t count) {
  std::uint64_t rest = set;
  for (std::uint32_t i = 0; i < count; ++i) rest &= rest - 1;
  return set ^ rest;
}

/// The next larger set with as many members, of which there is one or more [HAKMEM, item 175].
GPUJOIN_HD inline std::uint64_t next_set(std::uint64_t set) {
  const std::uint64_t lowest = set & (~set + 1), carried = set + lowest;
  return carried | ((set ^ carried) >> 2) / lowest;
}

/// Sets of `chosen` among `count` members; 2^53 or more may be rounded.
GPUJOIN_HD inline double sets_of(std::uint32_t chosen, std::uint32_t count) {
  if (chosen > count) return 0;
  double sets = 1;
  for (std::uint32_t i = 1; i <= chosen; ++i) sets = sets * (count - chosen + i) / i;
  return sets;
}

/// In which segments two rows are equal; `masks` has the bits of each, [segments][words].
GPUJOIN_HD inline std::uint64_t equal_segments(const std::uint64_t* a, std::uint64_t a_stride,
                                               const std::uint64_t* b, std::uint64_t b_stride,
                                               std::uint32_t words, const std::uint64_t* masks,
                                               std::uint32_t segments) {
  std::uint64_t equal = 0;
  for (std::uint32_t s = 0; s < segments; ++s) {
    std::uint64_t differing = 0;
    for (std::uint32_t w = 0; w < words; ++w)
      differing |= (a[w * a_stride] ^ b[w * b_stride]) & masks[s * words + w];
    equal |= static_cast<std::uint64_t>(differing == 0) << s;
  }
  return equal;
}

/// Mixes a word into a hash, whose high bits are good ones.
GPUJOIN_HD inline std::uint64_t mix_word(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

/// The hash of the bits of a row that `mask` has, [words].
GPUJOIN_HD inline std::uint64_t hash_of_bits(const std::uint64_t* row, std::uint64_t stride,
                                             const std::uint64_t* mask, std::uint32_t words) {
  std::uint64_t hash = 0;
  for (std::uint32_t w = 0; w < words; ++w)
    if (mask[w] != 0) hash = mix_word(hash, row[w * stride] & mask[w]);
  return hash * 0xff51afd7ed558ccdULL;
}

}  // namespace gpujoin

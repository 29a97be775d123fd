// The innermost loops of joins of bits: words against each other, by the bits in which they differ,
// with the vector instructions of the processor that is found at run time. No threads, no
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/scan/scan.h"
#include "cpu/scan/tile_scan.h"

namespace gpujoin::cpu {

/// Words that may be read past the last row of BitRows.
inline constexpr std::uint32_t kBitPadding = 8;

/// Rows of bits, the first words of all, then their second words, and so on.
struct BitRows {
  const std::uint64_t* words;
  std::uint64_t stride;  ///< from a word of a row to its next word
};

struct BitScan {
  /// Which pairs of rows of two groups differ in at most `most` bits, all of them sure. A group is
  /// [words][kGroupPoints]. Returns whether there is any; if there is none, *pairs is not set.
  bool (*groups)(const std::uint64_t* a, const std::uint64_t* b, std::uint32_t words,
                 std::uint32_t most, GroupPairs* pairs);
  /// Writes the rows begin .. end - 1 that differ from `query`, of so many words, in at most `most`
  /// bits, in order. Returns their number.
  std::size_t (*collect)(const std::uint64_t* query, const BitRows& rows, std::uint32_t words,
                         std::uint32_t most, Window window, std::uint32_t* found);
};

BitScan choose_bit_scan();

/// The instruction set that it runs on.
const char* bit_instruction_set();

}  // namespace gpujoin::cpu

// One side of a join of bits: its rows in groups of 32, and, for a pass over segments
// (core/hamming.h), in buckets of those that agree in some.
#pragma once

#include <cstdint>

#include "cpu/index/grid_index.h"
#include "cpu/scan/bit_scan.h"
#include "engine/request/buffer.h"
#include "engine/request/request.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// The smallest and the largest first key of some rows; of intervals the ends that lie farthest
/// out.
struct KeyRange {
  double low, high;
};

/// How the rows of an index are sorted.
enum class BitOrder {
  kRows,  ///< not at all
  kOnes,  ///< by their number of ones
  kKey,   ///< by the first column of their keys
};

/// Positions are rows in a BitOrder.
struct BitIndex {
  std::uint32_t words = 0;
  GridIndex names;               ///< rows and ids alone
  Buffer<std::uint32_t> ones;    ///< by position, of BitOrder::kOnes
  Buffer<KeyRange> key_ranges;   ///< by group, of BitOrder::kKey
  Buffer<std::uint64_t> values;  ///< [groups][words][kGroupPoints], the last group filled up with 0

  std::uint32_t rows() const { return names.points; }
  const std::uint64_t* group(std::size_t number) const {
    return values.data() + number * words * kGroupPoints;
  }
  /// The first word of a row, whose words lie kGroupPoints apart.
  const std::uint64_t* row(std::uint32_t number) const {
    return group(number / kGroupPoints) + number % kGroupPoints;
  }
};

/// Throws MemoryLimitExceeded, std::bad_alloc, Stopped. `keys` are those of BitOrder::kKey.
BitIndex build_bit_index(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                         BitOrder order, const PairKeys& keys);

/// Returns true if no rows of the two groups have first keys near each other.
bool are_keys_apart(const PairKeys& keys, const BitIndex& left, std::uint32_t left_group,
                    const BitIndex& right, std::uint32_t right_group);

/// Bytes of memory that an index takes a row.
std::uint64_t bit_index_row_bytes(const Dataset& data, BitOrder order);

/// Some of the rows that share a hash: one slice of several that take turns.
struct BucketChoice {
  const std::uint64_t* mask;  ///< [words] the bits that are hashed
  std::uint32_t slice, slices;
  std::uint32_t bucket_bits;
};

/// The chosen rows of an index, sorted by bucket. Memory is kept for the next fill.
class BitBuckets {
 public:
  explicit BitBuckets(MemoryBudget& budget) : budget_(&budget) {}

  /// Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
  void fill(const WorkerPool& pool, const BitIndex& index, const BucketChoice& choice);

  Window bucket(std::uint32_t number) const { return {starts_[number], starts_[number + 1]}; }
  std::uint32_t row(std::uint32_t place) const { return rows_[place]; }
  BitRows bits() const { return {words_.data(), stride_}; }

 private:
  MemoryBudget* budget_;
  Buffer<std::uint32_t> starts_;  ///< [buckets + 1]
  Buffer<std::uint32_t> rows_;    ///< by place
  Buffer<std::uint64_t> words_;   ///< [words][stride_]
  std::uint64_t stride_ = 0;
};

/// Bytes that filling buckets takes a row, at most.
inline std::uint64_t bucket_row_bytes(std::uint32_t words) { return 8 * words + 4 + 4; }

}  // namespace gpujoin::cpu

#include "cpu/index/bit_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/hamming.h"
#include "core/ordered_bits.h"
#include "cpu/index/large_buffer.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint32_t kBetweenChecks = 1 << 16;

/// Calls take(row, bucket) for the chosen rows, in order.
template <class Take>
void for_chosen(const WorkerPool& pool, const BitIndex& index, const BucketChoice& choice,
                const Take& take) {
  const std::uint32_t shift = kBitsPerWord - choice.bucket_bits;
  for (std::uint32_t row = 0; row < index.rows(); ++row) {
    if (row % kBetweenChecks == 0) pool.throw_if_stopped();
    const std::uint64_t hash = hash_of_bits(index.row(row), kGroupPoints, choice.mask, index.words);
    // High bits choose the bucket, others the slice.
    if (choice.slices > 1 && (hash & 0xffff) * choice.slices >> 16 != choice.slice) continue;
    take(row, choice.bucket_bits == 0 ? 0 : static_cast<std::uint32_t>(hash >> shift));
  }
}

template <class T>
void make_room(MemoryBudget& budget, Buffer<T>& buffer, std::uint64_t size) {
  if (buffer.size() >= size) return;
  buffer = {};
  buffer = large_buffer<T>(budget, size);
}

std::uint32_t count_ones(const std::uint64_t* row, std::uint32_t words) {
  std::uint32_t ones = 0;
  for (std::uint32_t w = 0; w < words; ++w) ones += count_bits(row[w]);
  return ones;
}

/// Puts the rows in the order of their ones, equal ones as they were.
void sort_by_ones(WorkerPool& pool, MemoryBudget& budget, const Dataset& data, BitIndex* index) {
  const std::uint32_t rows = index->rows();
  Buffer<std::uint32_t> of_row = large_buffer<std::uint32_t>(budget, rows);
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row)
      of_row[row] = count_ones(point<std::uint64_t>(data, row), data.dims);
  });
  std::vector<std::uint32_t> starts(data.dims * kBitsPerWord + 2, 0);
  for (std::uint32_t row = 0; row < rows; ++row) ++starts[of_row[row] + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  index->ones = large_buffer<std::uint32_t>(budget, rows);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t place = starts[of_row[row]]++;
    index->names.rows[place] = row;
    index->ones[place] = of_row[row];
  }
}

/// Puts the rows in the order of their first keys; NaN, which is near nothing, comes last.
void sort_by_key(WorkerPool& pool, MemoryBudget& budget, const Dataset& data, BitIndex* index) {
  Buffer<SortItem> items = large_buffer<SortItem>(budget, index->rows());
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row) {
      const double key = key_of(data, row, 0);
      items[row] = {row, ordered_bits(std::isnan(key) ? INFINITY : key)};
    }
  });
  parallel_sort(pool, budget, items);
  for (std::uint32_t place = 0; place < index->rows(); ++place)
    index->names.rows[place] = static_cast<std::uint32_t>(items[place].lo);
}

/// Widens a range by the first key of a row, or by both ends of an interval. NaN widens no range.
void include_key(const Dataset& data, const PairKeys& keys, std::uint32_t row, KeyRange* range) {
  const double low = key_of(data, row, 0);
  const double high = keys.is_interval(0) ? key_of(data, row, 1) : low;
  if (low < range->low) range->low = low;
  if (high > range->high) range->high = high;
}

}  // namespace

bool are_keys_apart(const PairKeys& keys, const BitIndex& left, std::uint32_t left_group,
                    const BitIndex& right, std::uint32_t right_group) {
  if (left.key_ranges.size() == 0) return false;
  const KeyRange &one = left.key_ranges[left_group], &other = right.key_ranges[right_group];
  if (keys.is_interval(0)) return !(one.low <= other.high && other.low <= one.high);
  // A difference that is rounded rises with the difference.
  return !(one.low - other.high <= keys.reach[0] && other.low - one.high <= keys.reach[0]);
}

BitIndex build_bit_index(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                         BitOrder order, const PairKeys& keys) {
  BitIndex index;
  const auto rows = static_cast<std::uint32_t>(data.rows);
  const std::size_t groups = (std::size_t{rows} + kGroupPoints - 1) / kGroupPoints;
  index.words = data.dims;
  index.names.dims = data.dims;
  index.names.scalar = ScalarType::kBits;
  index.names.points = rows;
  index.names.rows = large_buffer<std::uint32_t>(budget, rows);
  index.names.ids = large_buffer<std::int64_t>(budget, rows);
  index.values = large_buffer<std::uint64_t>(budget, groups * data.dims * kGroupPoints);
  std::iota(index.names.rows.data(), index.names.rows.data() + rows, 0);
  if (order == BitOrder::kOnes) sort_by_ones(pool, budget, data, &index);
  if (order == BitOrder::kKey) {
    sort_by_key(pool, budget, data, &index);
    index.key_ranges = large_buffer<KeyRange>(budget, groups);
  }
  pool.parallel_for(groups, [&](std::size_t number, unsigned) {
    std::uint64_t* const group = index.values.data() + number * data.dims * kGroupPoints;
    KeyRange range{INFINITY, -INFINITY};
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const std::size_t place = number * kGroupPoints + i;
      const std::uint32_t row = place < rows ? index.names.rows[place] : 0;
      const std::uint64_t* const words = place < rows ? point<std::uint64_t>(data, row) : nullptr;
      for (std::uint32_t w = 0; w < data.dims; ++w)
        group[w * kGroupPoints + i] = words == nullptr ? 0 : words[w];
      if (place >= rows) continue;
      index.names.ids[place] = id_of(data, row);
      if (order == BitOrder::kKey) include_key(data, keys, row, &range);
    }
    if (order == BitOrder::kKey) index.key_ranges[number] = range;
  });
  return index;
}

std::uint64_t bit_index_row_bytes(const Dataset& data, BitOrder order) {
  // A parallel sort takes two items and two bytes a row.
  const std::uint64_t of_order = order == BitOrder::kOnes  ? 2 * sizeof(std::uint32_t)
                                 : order == BitOrder::kKey ? 2 * sizeof(SortItem) + 3
                                                           : 0;
  return point_bytes(data) + sizeof(std::uint32_t) + sizeof(std::int64_t) + of_order;
}

void BitBuckets::fill(const WorkerPool& pool, const BitIndex& index, const BucketChoice& choice) {
  const std::size_t buckets = std::size_t{1} << choice.bucket_bits;
  make_room(*budget_, starts_, buckets + 1);
  std::fill(starts_.begin(), starts_.end(), 0);
  for_chosen(pool, index, choice, [&](std::uint32_t, std::uint32_t bucket) { ++starts_[bucket]; });
  std::uint32_t rows = 0;
  for (std::size_t bucket = 0; bucket <= buckets; ++bucket) {
    rows += bucket < buckets ? starts_[bucket] : 0;
    starts_[bucket] = rows;  // the end of it, from which its rows go down
  }
  make_room(*budget_, rows_, rows);
  if (stride_ < rows + std::uint64_t{kBitPadding}) {
    stride_ = 0;
    make_room(*budget_, words_, (rows + std::uint64_t{kBitPadding}) * index.words);
    stride_ = words_.size() / index.words;
  }
  for_chosen(pool, index, choice, [&](std::uint32_t row, std::uint32_t bucket) {
    const std::uint32_t place = --starts_[bucket];
    rows_[place] = row;
    const std::uint64_t* const words = index.row(row);
    for (std::uint32_t w = 0; w < index.words; ++w)
      words_[w * stride_ + place] = words[w * kGroupPoints];
  });
}

}  // namespace gpujoin::cpu

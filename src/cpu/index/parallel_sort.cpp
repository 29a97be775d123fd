#include "cpu/index/parallel_sort.h"

#include <algorithm>
#include <cstddef>

#include "cpu/index/large_buffer.h"
#include "hwy/contrib/sort/vqsort.h"

namespace gpujoin::cpu {
namespace {

constexpr std::size_t kBucketItems = 65536;  // some milliseconds: a stop is noticed that soon
constexpr std::size_t kMaxBuckets = 4096;
constexpr std::size_t kOversampling = 64;
constexpr std::size_t kBlockItems = 65536;

/// 1 or 0, by arithmetic alone: a branch would be mispredicted half the time.
std::size_t comes_first(const SortItem& a, const SortItem& b) {
  return static_cast<std::size_t>(a.hi < b.hi) |
         (static_cast<std::size_t>(a.hi == b.hi) & static_cast<std::size_t>(a.lo < b.lo));
}

void sort(SortItem* items, std::size_t count) { hwy::Sorter()(items, count, hwy::SortAscending()); }

/// Items that split `items` into buckets of about equal size, from samples.
Buffer<SortItem> choose_splitters(MemoryBudget& budget, const Buffer<SortItem>& items,
                                  std::size_t buckets) {
  Buffer<SortItem> samples(budget, buckets * kOversampling);
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] = items[i * items.size() / samples.size()];
  sort(samples.data(), samples.size());
  Buffer<SortItem> splitters(budget, buckets - 1);
  for (std::size_t i = 0; i < splitters.size(); ++i)
    splitters[i] = samples[(i + 1) * kOversampling];
  return splitters;
}

/// How many splitters do not come after the item.
std::size_t bucket_of_item(const Buffer<SortItem>& splitters, const SortItem& item) {
  std::size_t first = 0;
  for (std::size_t count = splitters.size(); count > 0;) {
    const std::size_t step = (count + 1) / 2;
    first += step & (comes_first(item, splitters[first + step - 1]) - 1);
    count -= step;
  }
  return first;
}

}  // namespace

/// Samples split the items into buckets, which are sorted apart by Highway's vectorised quicksort
/// [vqsort].
void parallel_sort(WorkerPool& pool, MemoryBudget& budget, Buffer<SortItem>& items) {
  const std::size_t n = items.size();
  if (n <= kBucketItems) return sort(items.data(), n);
  const std::size_t buckets = std::min(n / kBucketItems + 1, kMaxBuckets);
  const Buffer<SortItem> splitters = choose_splitters(budget, items, buckets);

  const std::size_t blocks = (n + kBlockItems - 1) / kBlockItems;
  Buffer<std::uint16_t> bucket_of = large_buffer<std::uint16_t>(budget, n);
  Buffer<std::uint64_t> place(budget,
                              blocks * buckets);  // how many, then where, per block and bucket
  std::fill(place.begin(), place.end(), 0);
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t end = std::min(n, (block + 1) * kBlockItems);
    for (std::size_t i = block * kBlockItems; i < end; ++i) {
      const std::size_t bucket = bucket_of_item(splitters, items[i]);
      bucket_of[i] = static_cast<std::uint16_t>(bucket);
      ++place[block * buckets + bucket];
    }
  });
  Buffer<std::uint64_t> start(budget, buckets + 1);
  std::uint64_t at = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    start[bucket] = at;
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::uint64_t count = place[block * buckets + bucket];
      place[block * buckets + bucket] = at;
      at += count;
    }
  }
  start[buckets] = at;

  Buffer<SortItem> sorted = large_buffer<SortItem>(budget, n);
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t end = std::min(n, (block + 1) * kBlockItems);
    for (std::size_t i = block * kBlockItems; i < end; ++i)
      sorted[place[block * buckets + bucket_of[i]]++] = items[i];
  });
  pool.parallel_for(buckets, [&](std::size_t bucket, unsigned) {
    sort(sorted.data() + start[bucket], start[bucket + 1] - start[bucket]);
  });
  items.swap(sorted);
}

}  // namespace gpujoin::cpu

// Sorting on all workers. Samples split the items into buckets of about equal size that are sorted
// apart, so that no single step is long and a stop is noticed soon.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/request/buffer.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// Sorts `items` by `less`, a strict total order of distinct items (many equal ones would share one
/// bucket). Takes as much memory again as the items, and two bytes for each.
template <class Item, class Less>
void parallel_sort(WorkerPool& pool, MemoryBudget& budget, Buffer<Item>& items, Less less) {
  constexpr std::size_t kBucketItems = 8192;
  constexpr std::size_t kMaxBuckets = 4096;
  constexpr std::size_t kOversampling = 16;
  constexpr std::size_t kBlockItems = 65536;
  const std::size_t n = items.size();
  if (n <= kBucketItems) {
    std::sort(items.begin(), items.end(), less);
    return;
  }

  const std::size_t buckets = std::min(n / kBucketItems + 1, kMaxBuckets);
  Buffer<Item> samples(budget, buckets * kOversampling);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = items[i * n / samples.size()];
  std::sort(samples.begin(), samples.end(), less);
  Buffer<Item> splitters(budget, buckets - 1);
  for (std::size_t i = 0; i < splitters.size(); ++i)
    splitters[i] = samples[(i + 1) * kOversampling];

  const std::size_t blocks = (n + kBlockItems - 1) / kBlockItems;
  Buffer<std::uint16_t> bucket_of(budget, n);
  Buffer<std::uint64_t> place(budget,
                              blocks * buckets);  // how many, then where, per block and bucket
  std::fill(place.begin(), place.end(), 0);
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t end = std::min(n, (block + 1) * kBlockItems);
    for (std::size_t i = block * kBlockItems; i < end; ++i) {
      const std::size_t bucket =
          std::upper_bound(splitters.begin(), splitters.end(), items[i], less) - splitters.begin();
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

  Buffer<Item> sorted(budget, n);
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t end = std::min(n, (block + 1) * kBlockItems);
    for (std::size_t i = block * kBlockItems; i < end; ++i)
      sorted[place[block * buckets + bucket_of[i]]++] = items[i];
  });
  pool.parallel_for(buckets, [&](std::size_t bucket, unsigned) {
    std::sort(sorted.begin() + start[bucket], sorted.begin() + start[bucket + 1], less);
  });
  items.swap(sorted);
}

}  // namespace gpujoin::cpu

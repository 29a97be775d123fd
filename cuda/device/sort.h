// Sorts and prefix sums of arrays on a device, by CUB. Asynchronous: memory to work in is taken of
// a budget until the stream is done. They throw CudaError or MemoryLimitExceeded.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {

/// offsets[i] = counts[0] + .. + counts[i - 1], of `items`.
void add_up(MemoryBudget& budget, const std::uint32_t* counts, std::uint64_t* offsets,
            std::uint64_t items, cudaStream_t stream);

/// The same in the place of the numbers; `with_own`: and with numbers[i].
void add_up(MemoryBudget& budget, std::uint32_t* numbers, std::uint32_t items, bool with_own,
            cudaStream_t stream);

/// The bits of keys that count, from `begin` on.
struct KeyBits {
  int begin = 0, end = 64;
};

/// Keys and their values, `count` of each, and where both go in order.
template <class Key, class Value>
struct SortedPairs {
  const Key* keys;
  Key* sorted_keys;
  const Value* values;
  Value* sorted_values;
  std::uint64_t count;
};

/// Sorts stably, ascending. For 64-bit keys, and values of 32 and 64 bits.
template <class Value>
void sort_pairs(MemoryBudget& budget, const SortedPairs<std::uint64_t, Value>& pairs, KeyBits bits,
                cudaStream_t stream);

/// Sorts stably, the largest key first. For keys and values of 32 and of 64 bits.
template <class Number>
void sort_descending(MemoryBudget& budget, const SortedPairs<Number, Number>& pairs,
                     cudaStream_t stream);

/// Sorts stably, ascending, at less memory: what is sorted comes to lie in `keys` and `values`, and
/// anything in the others.
void sort_in_place(DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint64_t>& other_keys,
                   DeviceBuffer<std::uint32_t>& values, DeviceBuffer<std::uint32_t>& other_values,
                   MemoryBudget& budget, cudaStream_t stream);

/// Sorts keys, ascending.
void sort_keys(MemoryBudget& budget, const std::uint64_t* keys, std::uint64_t* sorted,
               std::uint64_t count, KeyBits bits, cudaStream_t stream);

}  // namespace gpujoin::cuda

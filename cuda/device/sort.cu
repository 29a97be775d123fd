#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <utility>

#include "cuda/device/scratch.h"
#include "cuda/device/sort.h"

namespace gpujoin::cuda {
void add_up(MemoryBudget& budget, const std::uint32_t* counts, std::uint64_t* offsets,
            std::uint64_t items, cudaStream_t stream) {
  with_scratch(budget, stream, "adding up counts", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, offsets, ::cuda::std::plus<>{},
                                          std::uint64_t{0}, items, stream);
  });
}

void add_up(MemoryBudget& budget, std::uint32_t* numbers, std::uint32_t items, bool with_own,
            cudaStream_t stream) {
  with_scratch(budget, stream, "adding up numbers", [&](void* scratch, std::size_t& bytes) {
    return with_own
               ? cub::DeviceScan::InclusiveSum(scratch, bytes, numbers, numbers, items, stream)
               : cub::DeviceScan::ExclusiveSum(scratch, bytes, numbers, numbers, items, stream);
  });
}

template <class Value>
void sort_pairs(MemoryBudget& budget, const SortedPairs<std::uint64_t, Value>& pairs, KeyBits bits,
                cudaStream_t stream) {
  with_scratch(budget, stream, "sorting", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, pairs.keys, pairs.sorted_keys,
                                           pairs.values, pairs.sorted_values, pairs.count,
                                           bits.begin, bits.end, stream);
  });
}
template void sort_pairs(MemoryBudget&, const SortedPairs<std::uint64_t, std::uint32_t>&, KeyBits,
                         cudaStream_t);
template void sort_pairs(MemoryBudget&, const SortedPairs<std::uint64_t, std::uint64_t>&, KeyBits,
                         cudaStream_t);

template <class Number>
void sort_descending(MemoryBudget& budget, const SortedPairs<Number, Number>& pairs,
                     cudaStream_t stream) {
  with_scratch(budget, stream, "sorting", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairsDescending(
        scratch, bytes, pairs.keys, pairs.sorted_keys, pairs.values, pairs.sorted_values,
        pairs.count, 0, 8 * static_cast<int>(sizeof(Number)), stream);
  });
}
template void sort_descending(MemoryBudget&, const SortedPairs<std::uint32_t, std::uint32_t>&,
                              cudaStream_t);
template void sort_descending(MemoryBudget&, const SortedPairs<std::uint64_t, std::uint64_t>&,
                              cudaStream_t);

void sort_in_place(DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint64_t>& other_keys,
                   DeviceBuffer<std::uint32_t>& values, DeviceBuffer<std::uint32_t>& other_values,
                   MemoryBudget& budget, cudaStream_t stream) {
  cub::DoubleBuffer<std::uint64_t> key_halves(keys.data(), other_keys.data());
  cub::DoubleBuffer<std::uint32_t> value_halves(values.data(), other_values.data());
  with_scratch(budget, stream, "sorting", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, key_halves, value_halves, keys.size(), 0,
                                           64, stream);
  });
  if (key_halves.Current() != keys.data()) std::swap(keys, other_keys);
  if (value_halves.Current() != values.data()) std::swap(values, other_values);
}

void sort_keys(MemoryBudget& budget, const std::uint64_t* keys, std::uint64_t* sorted,
               std::uint64_t count, KeyBits bits, cudaStream_t stream) {
  with_scratch(budget, stream, "sorting", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, count, bits.begin, bits.end,
                                          stream);
  });
}

}  // namespace gpujoin::cuda

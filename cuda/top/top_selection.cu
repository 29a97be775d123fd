#include <algorithm>
#include <cub/device/device_merge_sort.cuh>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/scratch.h"
#include "cuda/device/sort.h"
#include "cuda/top/top_selection.h"

namespace gpujoin::cuda {
namespace {

enum Word { kAdmitted, kTiesEnd, kWords };

/// The order of the result.
struct ComesBefore {
  const std::int64_t* left_ids;
  const std::int64_t* right_ids;
  bool smaller_first;

  __device__ PairRank rank(const TopEntry& entry) const {
    return rank_of_pair(entry.key, left_ids[entry.left], right_ids[entry.right], smaller_first);
  }
  __device__ bool operator()(const TopEntry& a, const TopEntry& b) const {
    return a.key != b.key ? a.key > b.key : comes_before(rank(a), rank(b));
  }
};

/// *end = how many of `count` descending keys are as good as number k - 1.
__global__ void ties_end_kernel(const std::uint64_t* keys, std::uint64_t count, std::uint64_t k,
                                unsigned long long* end) {
  std::uint64_t low = k, high = count;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (keys[middle] == keys[k - 1])
      low = middle + 1;
    else
      high = middle;
  }
  *end = low;
}

__global__ void join_entries_kernel(const std::uint64_t* keys, const std::uint64_t* pairs,
                                    std::uint64_t count, TopEntry* entries) {
  const std::uint64_t i = global_thread();
  if (i < count)
    entries[i] = {keys[i], static_cast<std::uint32_t>(pairs[i] >> 32),
                  static_cast<std::uint32_t>(pairs[i])};
}

__global__ void split_entries_kernel(const TopEntry* entries, std::uint64_t count,
                                     std::uint64_t* keys, std::uint64_t* pairs) {
  const std::uint64_t i = global_thread();
  if (i >= count) return;
  keys[i] = entries[i].key;
  pairs[i] = std::uint64_t{entries[i].left} << 32 | entries[i].right;
}

/// *least = the rank that comes before *entry, unless *least is as good already.
__global__ void raise_kernel(const TopEntry* entry, ComesBefore order, PairRank* least) {
  const PairRank raised = rank_before(order.rank(*entry));
  if (comes_before(raised, *least)) *least = raised;
}

/// Entries that do not come before `last`, or do not exist, become `last`.
__global__ void fill_kernel(TopEntry* entries, std::uint64_t kept, std::uint64_t k,
                            const TopEntry* last, ComesBefore order) {
  const std::uint64_t i = global_thread();
  if (i < k && (i >= kept || !order(entries[i], *last))) entries[i] = *last;
}

}  // namespace

TopSelection::TopSelection(JoinResources& resources, std::uint64_t k, std::uint64_t capacity,
                           const std::int64_t* left_ids, const std::int64_t* right_ids,
                           bool smaller_first, std::uint64_t least_key, cudaStream_t stream)
    : budget_(resources.device),
      k_(k),
      capacity_(capacity),
      left_ids_(left_ids),
      right_ids_(right_ids),
      smaller_first_(smaller_first),
      stream_(stream),
      keys_(resources.device, capacity, stream),
      pairs_(resources.device, capacity, stream),
      sorted_keys_(resources.device, capacity, stream),
      sorted_pairs_(resources.device, capacity, stream),
      words_(resources.device, kWords, stream),
      last_(resources.device, 1, stream),
      least_(resources.device, 2, stream),
      host_words_(resources.host, kWords * sizeof(unsigned long long)) {
  const PairRank least[] = {last_rank(least_key), last_rank(0)};
  check(cudaMemcpyAsync(least_.data(), least, sizeof least, cudaMemcpyHostToDevice, stream),
        "setting the threshold");
}

AdmittedPairs TopSelection::admitted() const {
  return {keys_.data(), pairs_.data(), words_.data() + kAdmitted, capacity_};
}

void TopSelection::start() {
  unsigned long long* const words = host_words_.as<unsigned long long>();
  words[kAdmitted] = kept_;
  check(cudaMemcpyAsync(words_.data(), words, sizeof *words, cudaMemcpyHostToDevice, stream_),
        "starting to admit pairs");
}

void TopSelection::report() {
  copy_to_host(host_words_.as<unsigned long long>(), words_.data(), 1, stream_);
}

/// entries_ = the entries among the first `count` admitted that may be among the best k, in order.
/// Sorts all by key, which is fast, and the ones that are not behind number k by ids.
void TopSelection::rank_best(std::uint64_t count) {
  sort_descending<std::uint64_t>(
      budget_, {keys_.data(), sorted_keys_.data(), pairs_.data(), sorted_pairs_.data(), count},
      stream_);
  std::uint64_t best = count;
  if (count > k_) {
    unsigned long long* const words = host_words_.as<unsigned long long>();
    ties_end_kernel<<<1, 1, 0, stream_>>>(sorted_keys_.data(), count, k_, words_.data() + kTiesEnd);
    check_launch("looking for ties");
    copy_to_host(words + kTiesEnd, words_.data() + kTiesEnd, 1, stream_);
    check(cudaStreamSynchronize(stream_), "looking for ties");
    best = words[kTiesEnd];
  }
  if (entries_.size() < best) {
    entries_ = {};
    entries_ = DeviceBuffer<TopEntry>(budget_, std::max(best, std::min(k_, capacity_)), stream_);
  }
  join_entries_kernel<<<blocks_for(best), kBlockThreads, 0, stream_>>>(
      sorted_keys_.data(), sorted_pairs_.data(), best, entries_.data());
  check_launch("ordering the best pairs");
  const ComesBefore order{left_ids_, right_ids_, smaller_first_};
  with_scratch(budget_, stream_, "sorting the best pairs", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceMergeSort::SortKeys(scratch, bytes, entries_.data(), best, order, stream_);
  });
  if (count < k_) return;
  raise_kernel<<<1, 1, 0, stream_>>>(entries_.data() + k_ - 1, order, least_.data());
  check_launch("raising the threshold");
}

void TopSelection::raise() {
  rank_best(capacity_);
  check(cudaMemcpyAsync(last_.data(), entries_.data() + k_ - 1, sizeof(TopEntry),
                        cudaMemcpyDeviceToDevice, stream_),
        "raising the threshold");
  has_raised_ = true;
}

void TopSelection::keep_best() {
  const std::uint64_t count = admitted_count();
  if (count > 0) {
    rank_best(count);
    kept_ = std::min(count, k_);
    split_entries_kernel<<<blocks_for(kept_), kBlockThreads, 0, stream_>>>(
        entries_.data(), kept_, keys_.data(), pairs_.data());
    check_launch("keeping the best pairs");
  }
  check(cudaStreamSynchronize(stream_), "ordering the best pairs");
}

void TopSelection::finish() {
  if (!has_raised_) return;
  fill_kernel<<<blocks_for(k_), kBlockThreads, 0, stream_>>>(
      entries_.data(), kept_, k_, last_.data(), {left_ids_, right_ids_, smaller_first_});
  check_launch("ordering the best pairs");
  check(cudaStreamSynchronize(stream_), "ordering the best pairs");
  kept_ = k_;
}

}  // namespace gpujoin::cuda

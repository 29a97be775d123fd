// The pairs that a top-k join has admitted so far, on the device, and the worst rank that still
// matters, which only gets better.
//
// Once k pairs are known, the last one with rank r, only pairs that come before r matter. Any
// number of pairs may have rank r, for ids need not be unique, but they are the same row of the
// result: one of them stands for as many as are missing to k in the end.
#pragma once

#include <cstdint>

#include "cuda/device/device_context.h"
#include "cuda/top/top_kernels.h"

namespace gpujoin::cuda {

/// A pair on its way to its place in the result.
struct TopEntry {
  std::uint64_t key;
  std::uint32_t left;
  std::uint32_t right;
};

/// Memory is bounded by k and the capacity, whatever the number of pairs. Works in the order of one
/// stream. Methods throw CudaError, MemoryLimitExceeded or std::bad_alloc.
class TopSelection {
 public:
  /// Bytes of device memory per entry of capacity, what sorting takes included.
  static constexpr std::uint64_t kEntryBytes = 5 * sizeof(TopEntry);

  /// Ids are on the device, by position. `capacity` is at least 2 * k.
  TopSelection(JoinResources& resources, std::uint64_t k, std::uint64_t capacity,
               const std::int64_t* left_ids, const std::int64_t* right_ids, bool smaller_first,
               std::uint64_t least_key, cudaStream_t stream);

  /// Where kernels write, after what is kept, and what they admit.
  AdmittedPairs admitted() const;
  const PairRank* least() const { return least_.data(); }
  /// A rank that nothing is behind.
  const PairRank* behind_all() const { return least_.data() + 1; }

  /// Forgets what was admitted and not kept. Asynchronous.
  void start();
  /// Copies the number admitted to the host. Asynchronous.
  void report();

  // After the stream is done with report():

  bool overflowed() const { return admitted_count() > capacity_; }
  /// Raises least() to the rank before number k of the pairs that there was room for, and remembers
  /// number k. Nothing else is kept. More than k of the pairs that did not come before number k are
  /// behind least() now. So either all pairs that are admitted next have room, or their number k
  /// comes before this one: raising ends, whatever ranks there are.
  void raise();
  /// Keeps the best k of all; raises least() when there are as many. Waits for the device.
  void keep_best();
  /// After the last keep_best(): fills up to k what is kept, where raise() found k pairs. Waits for
  /// the device.
  void finish();

  std::uint64_t kept() const { return kept_; }
  /// After finish(): what is kept, best first. [kept()] on the device.
  const TopEntry* entries() const { return entries_.data(); }

 private:
  std::uint64_t admitted_count() const { return *host_words_.as<unsigned long long>(); }
  void rank_best(std::uint64_t count);

  MemoryBudget& budget_;
  std::uint64_t k_;
  std::uint64_t capacity_;
  const std::int64_t* left_ids_;
  const std::int64_t* right_ids_;
  bool smaller_first_;
  cudaStream_t stream_;
  std::uint64_t kept_ = 0;
  DeviceBuffer<std::uint64_t> keys_, pairs_, sorted_keys_, sorted_pairs_;  ///< [capacity]
  DeviceBuffer<TopEntry> entries_;
  DeviceBuffer<TopEntry> last_;  ///< number k of raise(), which only gets better
  bool has_raised_ = false;
  DeviceBuffer<unsigned long long> words_;  ///< pairs admitted; end of the ties
  DeviceBuffer<PairRank> least_;
  PinnedBlock host_words_;
};

}  // namespace gpujoin::cuda

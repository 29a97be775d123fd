// Pairs on their way to the caller: each batch is filled on the device and copied to pinned memory
// while the caller reads the ones before it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda/batch_model.h"
#include "cuda/memory.h"
#include "cuda/range_kernels.h"
#include "engine/result.h"

namespace gpujoin::cuda {

/// Places first .. end - 1 of the sequence, whose neighbours are counted: every pair has its
/// number.
struct CountedSlice {
  std::uint32_t first;
  std::uint32_t end;
  const std::uint64_t* offsets;         ///< [end - first + 1], on the host
  const std::uint64_t* device_offsets;  ///< the same
  bool last;                            ///< no other slice follows

  std::uint64_t entries() const { return offsets[end - first]; }
};

/// The pairs of a join, a slice at a time. A batch is a range of pair numbers. Methods but
/// describe() throw CudaError, MemoryLimitExceeded or std::bad_alloc.
class PairBatches {
 public:
  /// `sequence` is the left points in the order of work, on the host.
  PairBatches(const JoinRequest& request, MemoryBudget& device_budget, MemoryBudget& host_budget,
              const KernelChoice& kernel, const JoinView& view, const std::uint32_t* sequence);
  /// Waits for what is on its way.
  ~PairBatches();

  /// Sends the first batches of a slice on their way. All batches of the slice before are
  /// delivered.
  void start(const CountedSlice& slice);
  /// Whether all batches of the slice are delivered.
  bool finished() const { return delivered_ == launched_; }
  /// When the next batch can be delivered; not to be asked for after the last.
  const Event& next_arrival() const { return slots_[delivered_ % slots_.size()].arrived; }
  /// The next batch, which has arrived; valid until recycle().
  ResultBatch deliver();
  /// Sends another batch on its way in the place of the one delivered last.
  void recycle();

  /// Sets what concerns batches.
  void describe(JoinStats* stats) const;

 private:
  struct Slot {
    Stream stream;
    Event arrived;
    DeviceBuffer<std::uint32_t> neighbors;
    DeviceBuffer<double> distances;
    DeviceBuffer<unsigned> queue;
    PinnedBlock host_neighbors;
    PinnedBlock host_distances;
    std::vector<std::uint64_t> offsets;
    std::uint32_t first_place = 0;  ///< of the sequence, in this batch
    bool begins_inside = false;     ///< its first row began in the batch before
  };

  void allocate_slots();
  void launch(Slot& slot);

  const JoinRequest& request_;
  MemoryBudget& device_budget_;
  MemoryBudget& host_budget_;
  const KernelChoice& kernel_;
  const JoinView& view_;
  const std::uint32_t* sequence_;
  bool mirrored_;
  const BatchModel* model_ = nullptr;
  CountedSlice slice_{};
  std::uint64_t batch_entries_ = 0;
  std::uint64_t launched_ = 0;   ///< batches of the slice
  std::uint64_t delivered_ = 0;  ///< likewise
  std::deque<Slot> slots_;
  Slot* lent_ = nullptr;  ///< the one the caller reads
};

}  // namespace gpujoin::cuda

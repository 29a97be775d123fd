// Pairs on their way to the caller: each batch is filled on the device and copied to pinned memory
// while the caller reads the ones before it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda/device/device_context.h"
#include "cuda/device/slice_source.h"
#include "engine/request/result.h"

namespace gpujoin::cuda {

/// The pairs of a join, a slice at a time. A batch is the pairs of some rows, or some pairs of one
/// row that has too many [GPU-SJ, section 4.1]. Methods but describe() throw CudaError,
/// MemoryLimitExceeded or std::bad_alloc.
class PairBatches {
 public:
  PairBatches(const JoinRequest& request, JoinResources& resources, SliceSource& source,
              bool mirrored);
  /// Waits for what is on its way.
  ~PairBatches();

  /// Sends the first batches of the source's slice on their way. All batches of the slice before
  /// are delivered.
  void start();
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
    std::uint32_t first_place = 0;  ///< of the sequence, in this batch
    std::uint64_t rows = 0;
    const std::uint64_t* offsets = nullptr;  ///< the slice's, or else part_of_row
    std::uint64_t part_of_row[2];
    bool begins_inside = false;  ///< its first row began in the batch before
  };

  void allocate_slots();
  bool add_slot(bool distances);
  FillRange cut(Slot& slot);
  void launch(Slot& slot);
  std::uint64_t themselves_in(const Slot& slot, const ResultBatch& batch) const;

  const JoinRequest& request_;
  JoinResources& resources_;
  SliceSource& source_;
  bool mirrored_;
  const BatchModel* model_ = nullptr;
  CountedSlice slice_{};
  std::uint64_t batch_entries_ = 0;
  std::uint64_t next_pair_ = 0;  ///< of the slice, to be sent on its way
  std::uint64_t launched_ = 0;   ///< batches of the slice
  std::uint64_t delivered_ = 0;  ///< likewise
  std::deque<Slot> slots_;
  Slot* lent_ = nullptr;  ///< the one the caller reads
};

}  // namespace gpujoin::cuda

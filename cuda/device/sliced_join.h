// The life of a join on a device: what comes before its pairs, slices of them, batches of a slice.
// It starts no threads: the caller's pulls move it from phase to phase, and while the caller works
// on a batch the next ones are on their way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cuda/device/device_context.h"
#include "cuda/device/pair_batches.h"
#include "cuda/device/slice_source.h"
#include "cuda/device/stop_word.h"
#include "engine/joins/join.h"
#include "engine/request/buffer.h"

namespace gpujoin::cuda {

/// Throws CudaError, MemoryLimitExceeded or std::bad_alloc from every method but stats().
class SlicedJoin : public Join {
 public:
  Status next_batch(ResultBatch* batch) final;
  void stats(JoinStats* stats) const override;

 protected:
  /// `request` is a valid one. Its datasets outlive the join. The device is current.
  SlicedJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources);

  /// Does a part of what comes before the first slice, some milliseconds of work or a launch, and
  /// at last calls start(). Called again when the device has reached step_.
  virtual void prepare() = 0;
  /// Where counts are wanted, after the last slice: sets *batch to the counts of the next rows.
  /// False: there are no more.
  virtual bool next_counts(ResultBatch*) { return false; }

  /// Ends the preparation: a side has no rows.
  void start_without_pairs() { phase_ = Phase::kStream; }
  /// Ends the preparation. Names of points are known.
  void start(std::unique_ptr<SliceSource> source, bool mirrored);
  /// Null where there are no pairs.
  SliceSource* source() const { return source_.get(); }
  /// The ids of a side's rows; its numbers 0, 1, .. where it has none.
  const std::int64_t* ids_of_rows(const Dataset& data, Buffer<std::int64_t>& numbers);
  /// Makes running kernels leave, and waits for them. Every destructor of a derived class calls it:
  /// kernels and copies use what the class has.
  void halt();

  JoinRequest request_;
  const std::shared_ptr<JoinResources> resources_;
  const cudaStream_t stream_;               ///< the resources'
  std::optional<StopWord> stop_;            ///< made by prepare(), for the source's kernels
  Event step_;                              ///< what the current phase waits for
  const std::int64_t* left_ids_ = nullptr;  ///< of all batches, as in ResultBatch
  const std::int64_t* right_ids_ = nullptr;
  JoinStats stats_{};

 private:
  enum class Phase { kPrepare, kCount, kStream, kEnd };

  bool move_on(ResultBatch* batch);
  void start_slice();
  void finish_slice();
  bool next_result(ResultBatch* batch);
  bool next_pairs(ResultBatch* batch);

  Phase phase_ = Phase::kPrepare;
  std::unique_ptr<SliceSource> source_;
  std::optional<PairBatches> batches_;  ///< of a slice, all delivered before the next one is begun
  double spent_ms_ = 0;                 ///< inside next_batch
};

}  // namespace gpujoin::cuda

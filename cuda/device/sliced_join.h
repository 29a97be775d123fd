// The life of a join on a device: what comes before its pairs, slices of them, batches of a slice.
// It starts no threads: the caller's pulls move it from phase to phase, and while the caller works
// on a batch the next ones are on their way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cuda/device/device_join.h"
#include "cuda/device/pair_batches.h"
#include "cuda/device/slice_source.h"
#include "engine/joins/row_batches.h"

namespace gpujoin::cuda {

class SlicedJoin : public DeviceJoin {
 public:
  bool waits() const final { return source_ && source_->waits(); }
  void stats(JoinStats* stats) const override;

 protected:
  using DeviceJoin::DeviceJoin;

  /// Does a part of what comes before the first slice, some milliseconds of work or a launch, and
  /// at last calls start(). Called again when the device has reached step_.
  virtual void prepare() = 0;

  /// Ends the preparation: a side has no rows.
  void start_without_pairs() { phase_ = Phase::kStream; }
  /// Ends the preparation. Names of points are known.
  void start(std::unique_ptr<SliceSource> source, bool mirrored);
  /// Null where there are no pairs.
  SliceSource* source() const { return source_.get(); }
  /// Makes running kernels leave, and waits for them. Every destructor of a derived class calls it:
  /// kernels and copies use what the class has.
  void halt();

 private:
  enum class Phase { kPrepare, kCount, kStream, kEnd };

  Progress move_on(ResultBatch* batch) final;
  void start_slice();
  void finish_slice();
  Progress next_result(ResultBatch* batch);
  Progress next_pairs(ResultBatch* batch);
  RowBatches collect_rows();

  Phase phase_ = Phase::kPrepare;
  std::unique_ptr<SliceSource> source_;
  std::optional<PairBatches> batches_;  ///< of a slice, all delivered before the next one is begun
  std::optional<RowBatches> rows_;      ///< after all slices, where counts are wanted
  Buffer<FoldWord> nothing_;            ///< sums of a batch of rows, where there are no pairs
};

}  // namespace gpujoin::cuda

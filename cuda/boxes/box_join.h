// The join of boxes of the CUDA engine: its phases and its state. Like the range join it starts no
// threads: the caller's pulls move it on.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/boxes/box_walk.h"
#include "cuda/device/memory.h"
#include "cuda/device/pair_batches.h"
#include "cuda/device/stop_word.h"
#include "engine/box_strategy.h"
#include "engine/buffer.h"
#include "engine/join.h"

namespace gpujoin::cuda {

/// Throws CudaError, MemoryLimitExceeded or std::bad_alloc from every method but stats().
class BoxJoin final : public Join {
 public:
  /// `request` is a valid one for Shape::kBoxes; its datasets outlive the join. The device is
  /// current.
  BoxJoin(const JoinRequest& request, const cudaDeviceProp& device);
  /// Makes running kernels leave, and waits for them.
  ~BoxJoin() override;

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Phase { kBegin, kCount, kStream, kEnd };

  const std::int64_t* ids_of(const Dataset& data, Buffer<std::int64_t>& positions);
  void begin();
  void start_slice();
  void finish_slice();
  void move_on(ResultBatch* batch);
  void next_result(ResultBatch* batch);

  const JoinRequest request_;
  MemoryBudget host_budget_;
  MemoryBudget device_budget_;
  BoxStrategy strategy_{};
  Phase phase_ = Phase::kBegin;

  Stream stream_;
  std::optional<StopWord> stop_;
  Event step_;                                             ///< what the current phase waits for
  Buffer<std::int64_t> left_positions_, right_positions_;  ///< 0, 1, .. where there are no ids
  const std::int64_t* left_ids_ = nullptr;
  const std::int64_t* right_ids_ = nullptr;
  std::optional<BoxWalk> source_;
  std::optional<PairBatches> batches_;
  bool ready_ = false;  ///< next_batch has something to hand over

  JoinStats stats_{};
  double spent_ms_ = 0;  ///< inside next_batch
};

}  // namespace gpujoin::cuda

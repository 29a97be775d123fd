// The range join of the CUDA engine: its phases and its state. It starts no threads: the caller's
// pulls move it from phase to phase, and while the caller works on a batch the next ones are on
// their way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/threshold.h"
#include "cuda/device/memory.h"
#include "cuda/device/pair_batches.h"
#include "cuda/device/slice_source.h"
#include "cuda/device/stop_word.h"
#include "cuda/device/upload.h"
#include "cuda/grid/grid_index.h"
#include "engine/buffer.h"
#include "engine/join.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// Throws CudaError, MemoryLimitExceeded or std::bad_alloc from every method but stats().
class RangeJoin final : public Join {
 public:
  /// `request` is a valid one; its datasets outlive the join. The device is current.
  RangeJoin(const JoinRequest& request, const cudaDeviceProp& device);
  /// Makes running kernels leave, and waits for them.
  ~RangeJoin() override;

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Phase { kUpload, kExtents, kIndex, kCount, kStream, kEnd };
  /// Rows on their way to the device.
  struct Upload {
    const Dataset* data;
    DevicePoints* points;
    std::uint64_t copied_bytes;
  };

  void answer_without_pairs();
  void choose_method();
  void prepare_upload();
  void upload_piece();
  void measure();
  void measure_side(DevicePoints& points, DevicePoints& originals);
  void build();
  void order_scores(const Dataset& data, const DeviceIndex& index, DeviceBuffer<double>& scores);
  void order_ids();
  void choose_source();
  void start_slice();
  void finish_slice();
  void collect_counts();
  ResultBatch describe_counts();
  void next_phase();
  void next_result(ResultBatch* batch);
  void next_pairs(ResultBatch* batch);

  JoinRequest request_;
  MemoryBudget host_budget_;
  MemoryBudget device_budget_;
  Uploader uploader_;
  int multiprocessors_;
  Strategy strategy_{};
  Threshold threshold_{};
  double reach_ = 0;  ///< of the indexed columns
  SortLayout layout_{};
  ReferencePoints references_;
  Phase phase_ = Phase::kUpload;

  Stream stream_;
  std::optional<StopWord> stop_;
  std::vector<Upload> uploads_;                    ///< that are not complete, the next one last
  Event step_;                                     ///< what the current phase waits for
  DevicePoints left_points_, right_points_;        ///< what is indexed
  DevicePoints left_originals_, right_originals_;  ///< with directions, the points themselves
  DeviceBuffer<ExtentBits> extents_;
  DeviceBuffer<unsigned> flags_;  ///< see Flag in range_join.cu
  PinnedBlock mailbox_;           ///< what comes back from the device between phases
  DeviceIndex left_, right_;
  DeviceBuffer<std::int64_t> left_ids_, right_ids_;
  PinnedBlock host_left_ids_, host_right_ids_;
  DeviceBuffer<double> left_scores_, right_scores_;  ///< in index order, where pairs have scores
  std::unique_ptr<SliceSource> source_;
  PinnedBlock rows_;  ///< [rows] 0, 1, ..., where counts are wanted
  Buffer<std::uint64_t> row_counts_;
  std::uint64_t delivered_ = 0;  ///< rows of them

  // Pairs of a slice are delivered before the next one is begun.
  std::optional<PairBatches> batches_;
  bool ready_ = false;  ///< next_batch has something to hand over

  JoinStats stats_{};
  double spent_ms_ = 0;  ///< inside next_batch
  Stopwatch since_open_;
};

}  // namespace gpujoin::cuda

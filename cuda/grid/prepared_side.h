// One side of a join of points on the device: its points, their index, ids and scores. It knows
// nothing of another side.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/upload.h"
#include "cuda/grid/grid_index.h"
#include "cuda/grid/range_plan.h"
#include "cuda/grid/uploaded_rows.h"
#include "engine/joins/prepared_side.h"
#include "engine/request/dataset.h"

namespace gpujoin::cuda {

/// Functions are called in the order in which they stand here, until the side is ready; then it
/// stays as it is, and joins on other streams may use it. They work in the order of the resources'
/// stream, are asynchronous unless they say something else, and throw CudaError,
/// MemoryLimitExceeded or std::bad_alloc. `data` is the dataset, wherever it lies.
class PreparedSide final : public gpujoin::PreparedSide {
 public:
  PreparedSide(std::shared_ptr<ArrivingRows> rows, std::shared_ptr<const RangePlan> plan,
               const std::shared_ptr<JoinResources>& resources);
  /// A copy of a side that is ready on another device, which stays until the stream is done with
  /// it. It is ready, too, and rests on no rows.
  PreparedSide(const PreparedSide& other, const std::shared_ptr<JoinResources>& resources);
  /// Waits for its stream. Kernels of joins that use it have ended.
  ~PreparedSide() override;

  /// Copies points for some milliseconds. True: all are copied.
  bool copy_piece(Uploader& uploader) { return arriving_->copy_piece(uploader); }
  /// Indexes the points, or their directions in their place. The index takes the place of the
  /// points, but in tiles: there they stay.
  void index_points();
  /// Puts the scores, where the dataset has scores, in index order.
  void order_scores(const Dataset& data, Uploader& uploader);

  // After the stream is done with the index:

  /// Counts the finite points, on which everything else depends.
  void finish_index();
  /// Whether directions of points are less exact than others (core/cosine.h).
  bool extreme() const { return report()->extreme != 0; }
  /// Whether the ids are in index order, on the host, too, or on the device at least.
  bool is_named(bool on_host) const {
    return ids_.size() > 0 && (!on_host || host_ids_.as<void>() != nullptr);
  }
  /// Puts them there. Also later, where a join is the first that wants them.
  void name(const Dataset& data, Uploader& uploader, bool on_host);
  /// Ends what is put into the side's stream.
  void finish() { ready_.record(stream_); }
  /// What is put into another stream from now on finds the side ready.
  void hold(cudaStream_t stream) const { ready_.hold(stream); }

  const void* plan() const override { return plan_.get(); }
  SideBytes bytes() const override { return resources_.bytes(); }
  const gpujoin::PreparedSide* rests_on() const override { return rows_.get(); }

  /// What is indexed; nothing any more where the index has taken its place.
  const DevicePoints& points() const { return points_; }
  /// The points as they were uploaded, where points() has not gone.
  const DevicePoints& originals() const { return originals_.rows > 0 ? originals_ : points_; }
  const DeviceIndex& index() const { return index_; }
  /// In index order on the device, null unless named.
  const std::int64_t* ids() const { return ids_.data(); }
  /// The same on the host, where they are when the stream is done; null unless named there.
  const std::int64_t* host_ids() const { return host_ids_.as<std::int64_t>(); }
  /// In index order, null where none were ordered.
  const double* scores() const { return scores_.data(); }

 private:
  /// What the device finds out.
  struct Report {
    unsigned finite_points;
    unsigned extreme;
  };
  const Report* report() const { return host_report_.as<Report>(); }
  template <class T>
  DeviceBuffer<T> copy_of(const DeviceBuffer<T>& buffer, const PreparedSide& other);
  DevicePoints copy_of(const DevicePoints& points, const PreparedSide& other);
  bool needs_points() const { return plan_->index.strategy.index == IndexMethod::kTiles; }
  void forget_points();

  std::shared_ptr<const RangePlan> plan_;
  SideResources resources_;
  cudaStream_t stream_;                     ///< the resources'
  std::shared_ptr<ArrivingRows> arriving_;  ///< until there is an index
  std::shared_ptr<UploadedRows> rows_;      ///< as long as points are needed
  DevicePoints points_;
  DevicePoints originals_;  ///< with directions
  DeviceIndex index_;
  DeviceBuffer<Report> report_;
  PinnedBlock host_report_;
  DeviceBuffer<std::int64_t> ids_;
  PinnedBlock host_ids_;
  DeviceBuffer<double> scores_;
  Event ready_;
};

}  // namespace gpujoin::cuda

// One side of a join of points on the device: its points, their index, ids and scores. It knows
// nothing of another side.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/device_context.h"
#include "cuda/device/upload.h"
#include "cuda/grid/grid_index.h"
#include "cuda/grid/range_plan.h"
#include "engine/joins/prepared_side.h"
#include "engine/request/dataset.h"

namespace gpujoin::cuda {

/// Functions are called in the order in which they stand here. They work in the order of the
/// resources' stream, are asynchronous unless they say something else, and throw CudaError,
/// MemoryLimitExceeded or std::bad_alloc.
class PreparedSide final : public gpujoin::PreparedSide {
 public:
  /// Makes room for the points. The dataset is read until the side is named.
  PreparedSide(const Dataset& data, std::shared_ptr<const RangePlan> plan,
               std::shared_ptr<JoinResources> resources);

  /// Copies points for some milliseconds. True: all are copied, and it is not to be called again.
  bool upload_piece(Uploader& uploader);
  /// Indexes the points, or their directions in their place. The index takes the place of the
  /// points, but in tiles: there they stay.
  void index_points();
  /// Puts the scores, where the dataset has scores, in index order.
  void order_scores(Uploader& uploader);

  // After the stream is done with the index:

  /// Counts the finite points, on which everything else depends.
  void finish_index();
  /// Whether directions of points are less exact than others (core/cosine.h).
  bool faint() const { return report()->faint != 0; }
  /// Puts the ids in index order.
  void name(Uploader& uploader);

  /// By which the side is prepared.
  const std::shared_ptr<const RangePlan>& plan() const { return plan_; }
  /// What is indexed; nothing any more where the index has taken its place.
  const DevicePoints& points() const { return points_; }
  /// The points as they were uploaded, where points() has not gone.
  const DevicePoints& originals() const { return originals_.rows > 0 ? originals_ : points_; }
  const DeviceIndex& index() const { return index_; }
  /// In index order on the device, null unless named.
  const std::int64_t* ids() const { return ids_.data(); }
  /// The same on the host, where they are when the stream is done.
  const std::int64_t* host_ids() const { return host_ids_.as<std::int64_t>(); }
  /// In index order, null where none were ordered.
  const double* scores() const { return scores_.data(); }

 private:
  /// What the device finds out.
  struct Report {
    unsigned finite_points;
    unsigned faint;
  };
  const Report* report() const { return host_report_.as<Report>(); }

  Dataset data_;
  std::shared_ptr<const RangePlan> plan_;
  std::shared_ptr<JoinResources> resources_;
  cudaStream_t stream_;  ///< the resources'
  std::uint64_t uploaded_rows_ = 0;
  DevicePoints points_;
  DevicePoints originals_;  ///< with directions
  DeviceIndex index_;
  DeviceBuffer<Report> report_;
  PinnedBlock host_report_;
  DeviceBuffer<std::int64_t> ids_;
  PinnedBlock host_ids_;
  DeviceBuffer<double> scores_;
};

}  // namespace gpujoin::cuda

#include <algorithm>
#include <utility>

#include "cuda/device/tuning.h"
#include "cuda/grid/directions.h"
#include "cuda/grid/prepared_side.h"

namespace gpujoin::cuda {

PreparedSide::PreparedSide(const Dataset& data, std::shared_ptr<const RangePlan> plan,
                           std::shared_ptr<JoinResources> resources)
    : data_(data),
      plan_(std::move(plan)),
      resources_(std::move(resources)),
      stream_(resources_->stream),
      points_(make_points(resources_->device, data, stream_)),
      report_(resources_->device, 1, stream_),
      host_report_(resources_->host, sizeof(Report)) {
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream_), "clearing flags");
}

bool PreparedSide::upload_piece(Uploader& uploader) {
  const std::uint64_t bytes = point_bytes(data_);
  const std::uint64_t rows =
      std::min(data_.rows - uploaded_rows_, std::max<std::uint64_t>(1, kUploadTurnBytes / bytes));
  uploader.copy_rows(points_.coordinates.data() + uploaded_rows_ * bytes, data_, uploaded_rows_,
                     rows, stream_);
  uploaded_rows_ += rows;
  return uploaded_rows_ == data_.rows;
}

void PreparedSide::index_points() {
  const IndexPlan& plan = plan_->index;
  if (plan.directions) {
    originals_ = std::move(points_);
    points_ = directions_of(resources_->device, originals_, &report_.data()->faint, stream_);
  }
  add_reference_distances(resources_->device, points_, plan.references, stream_);
  index_ =
      sort_points(resources_->device, points_, plan.order, &report_.data()->finite_points, stream_);
  if (plan.strategy.index != IndexMethod::kTiles) {
    order_columns(resources_->device, points_, index_, stream_);
    points_ = {};
  }
  copy_to_host(host_report_.as<Report>(), report_.data(), 1, stream_);
}

void PreparedSide::order_scores(Uploader& uploader) {
  if (data_.scores == nullptr) return;
  DeviceBuffer<double> source(resources_->device, data_.rows, stream_);
  uploader.copy(source.data(), data_.scores, source.bytes(), stream_);
  scores_ = DeviceBuffer<double>(resources_->device, data_.rows, stream_);
  gather_scores(index_, source.data(), scores_.data(), stream_);
}

void PreparedSide::finish_index() { index_.points = report()->finite_points; }

void PreparedSide::name(Uploader& uploader) {
  DeviceBuffer<std::int64_t> source;
  if (data_.ids != nullptr) {
    source = DeviceBuffer<std::int64_t>(resources_->device, data_.rows, stream_);
    uploader.copy(source.data(), data_.ids, source.bytes(), stream_);
  }
  ids_ = DeviceBuffer<std::int64_t>(resources_->device, data_.rows, stream_);
  gather_ids(index_, source.data(), ids_.data(), stream_);
  host_ids_ = PinnedBlock(resources_->host, ids_.bytes());
  copy_to_host(host_ids_.as<std::int64_t>(), ids_.data(), data_.rows, stream_);
}

}  // namespace gpujoin::cuda

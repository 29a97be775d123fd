#include <algorithm>
#include <utility>

#include "cuda/device/tuning.h"
#include "cuda/grid/directions.h"
#include "cuda/grid/prepared_side.h"

namespace gpujoin::cuda {

PreparedSide::PreparedSide(const Dataset& data, JoinResources& resources, cudaStream_t stream)
    : data_(data),
      resources_(&resources),
      stream_(stream),
      points_(make_points(resources.device, data, stream)),
      report_(resources.device, 1, stream),
      host_report_(resources.host, sizeof(Report)) {
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream), "clearing flags");
}

bool PreparedSide::upload_piece(Uploader& uploader) {
  const DeviceBuffer<unsigned char>& to = points_.coordinates;
  const std::size_t bytes = std::min(kUploadTurnBytes, to.bytes() - uploaded_bytes_);
  uploader.copy(to.data() + uploaded_bytes_,
                static_cast<const unsigned char*>(data_.coordinates) + uploaded_bytes_, bytes,
                stream_);
  uploaded_bytes_ += bytes;
  return uploaded_bytes_ == to.bytes();
}

void PreparedSide::take_directions() {
  originals_ = std::move(points_);
  points_ = directions_of(resources_->device, originals_, &report_.data()->faint, stream_);
}

void PreparedSide::add_distances(const ReferencePoints& references) {
  add_reference_distances(resources_->device, points_, references, stream_);
}

void PreparedSide::sort(const SortLayout& layout, bool in_columns) {
  index_ =
      sort_points(resources_->device, points_, layout, &report_.data()->finite_points, stream_);
  if (in_columns) {
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

void PreparedSide::finish_sort() { index_.points = report()->finite_points; }

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

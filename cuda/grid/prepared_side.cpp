#include "cuda/grid/prepared_side.h"

#include <utility>

#include "cuda/device/tuning.h"
#include "cuda/grid/directions.h"

namespace gpujoin::cuda {

PreparedSide::PreparedSide(std::shared_ptr<ArrivingRows> rows,
                           std::shared_ptr<const RangePlan> plan,
                           const std::shared_ptr<JoinResources>& resources)
    : plan_(std::move(plan)),
      resources_(resources),
      stream_(resources->stream),
      arriving_(std::move(rows)),
      rows_(arriving_->rows()),
      points_(arriving_->points()),
      report_(resources_.device, 1, stream_),
      host_report_(resources_.host, sizeof(Report)) {
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream_), "clearing flags");
}

PreparedSide::PreparedSide(const PreparedSide& other,
                           const std::shared_ptr<JoinResources>& resources)
    : plan_(other.plan_),
      resources_(resources),
      stream_(resources->stream),
      host_report_(resources_.host, sizeof(Report)) {
  other.resources_.join->context.let_read(resources->context);
  other.hold(stream_);
  *host_report_.as<Report>() = *other.report();
  points_ = copy_of(other.points_, other);
  originals_ = copy_of(other.originals_, other);
  index_.rows = other.index_.rows;
  index_.points = other.index_.points;
  index_.codes = copy_of(other.index_.codes, other);
  index_.order = copy_of(other.index_.order, other);
  index_.columns = copy_of(other.index_.columns, other);
  ids_ = copy_of(other.ids_, other);
  scores_ = copy_of(other.scores_, other);
  finish();
}

template <class T>
DeviceBuffer<T> PreparedSide::copy_of(const DeviceBuffer<T>& buffer, const PreparedSide& other) {
  DeviceBuffer<T> copy(resources_.device, buffer.size(), stream_);
  if (buffer.size() == 0) return copy;
  check(cudaMemcpyPeerAsync(copy.data(), resources_.join->context.number(), buffer.data(),
                            other.resources_.join->context.number(), buffer.bytes(), stream_),
        "copying from device to device");
  return copy;
}

DevicePoints PreparedSide::copy_of(const DevicePoints& points, const PreparedSide& other) {
  DevicePoints copy;
  if (points.coordinates)
    copy.coordinates =
        std::make_shared<const DeviceBuffer<unsigned char>>(copy_of(*points.coordinates, other));
  copy.distances = copy_of(points.distances, other);
  copy.reference_points = points.reference_points;
  copy.rows = points.rows;
  copy.dims = points.dims;
  copy.scalar = points.scalar;
  return copy;
}

PreparedSide::~PreparedSide() { cudaStreamSynchronize(stream_); }

/// In the order of the stream; rows of another stream go when this one is done with them.
void PreparedSide::forget_points() {
  points_ = {};
  rows_.reset();
  arriving_.reset();
}

void PreparedSide::index_points() {
  const IndexPlan& plan = plan_->index;
  if (plan.directions) {
    originals_ = std::move(points_);
    points_ = directions_of(resources_.device, originals_, &report_.data()->extreme, stream_);
  }
  add_reference_distances(resources_.device, points_, plan.references, stream_);
  index_ =
      sort_points(resources_.device, points_, plan.order, &report_.data()->finite_points, stream_);
  if (!needs_points()) {
    order_columns(resources_.device, points_, index_, stream_);
    if (!arriving_->are_kept()) forget_points();
  }
  copy_to_host(host_report_.as<Report>(), report_.data(), 1, stream_);
}

void PreparedSide::order_scores(const Dataset& data, Uploader& uploader) {
  if (data.scores == nullptr) return;
  DeviceBuffer<double> source(resources_.device, data.rows, stream_);
  uploader.copy(source.data(), data.scores, source.bytes(), stream_);
  scores_ = DeviceBuffer<double>(resources_.device, data.rows, stream_);
  gather_scores(index_, source.data(), scores_.data(), stream_);
}

void PreparedSide::finish_index() {
  index_.points = report()->finite_points;
  if (!needs_points()) forget_points();
  arriving_.reset();
}

void PreparedSide::name(const Dataset& data, Uploader& uploader, bool on_host) {
  if (ids_.size() == 0) {
    DeviceBuffer<std::int64_t> source;
    if (data.ids != nullptr) {
      source = DeviceBuffer<std::int64_t>(resources_.device, data.rows, stream_);
      uploader.copy(source.data(), data.ids, source.bytes(), stream_);
    }
    DeviceBuffer<std::int64_t> ids(resources_.device, data.rows, stream_);
    gather_ids(index_, source.data(), ids.data(), stream_);
    ids_ = std::move(ids);
  }
  if (!on_host) return;
  PinnedBlock host_ids(resources_.host, ids_.bytes());
  copy_to_host(host_ids.as<std::int64_t>(), ids_.data(), data.rows, stream_);
  host_ids_ = std::move(host_ids);
}

}  // namespace gpujoin::cuda

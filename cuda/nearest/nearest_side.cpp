#include "cuda/nearest/nearest_side.h"

#include <utility>
#include <vector>

#include "cuda/grid/directions.h"

namespace gpujoin::cuda {
namespace {

constexpr std::uint32_t kLeafPoints = 12;

}  // namespace

NearestSide::NearestSide(const Dataset& data, const void* plan, std::shared_ptr<SideSlot> rows,
                         const std::shared_ptr<JoinResources>& resources)
    : plan_(plan),
      resources_(resources),
      stream_(resources->stream),
      arriving_(data, resources, std::move(rows)),
      originals_(arriving_.points()),
      report_(resources_.device, 1, stream_),
      host_report_(resources_.host, sizeof(Report)) {
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream_), "clearing flags");
  *host_report_.as<Report>() = {};
}

NearestSide::~NearestSide() { cudaStreamSynchronize(stream_); }

void NearestSide::name(const Dataset& data, Uploader& uploader) {
  if (data.ids == nullptr) return;
  ids_ = DeviceBuffer<std::int64_t>(resources_.device, data.rows, stream_);
  uploader.copy(ids_.data(), data.ids, ids_.bytes(), stream_);
}

void NearestSide::find_directions() {
  directions_ = directions_of(resources_.device, originals_, &report_.data()->extreme, stream_);
  ask_report();
}

void NearestSide::choose_rounding(const ScreenFrame& frame) {
  const std::uint32_t dims = originals_.dims;
  column_order_ = DeviceBuffer<std::uint32_t>(resources_.device, dims, stream_);
  center_ = DeviceBuffer<double>(resources_.device, dims, stream_);
  std::vector<double> center(dims);
  for (std::uint32_t d = 0; d < dims; ++d) center[d] = frame.center[frame.order[d]];
  const auto copy = [this](const auto& to, const auto* from) {
    check(cudaMemcpyAsync(to.data(), from, to.bytes(), cudaMemcpyHostToDevice, stream_),
          "copying the centre");
  };
  copy(column_order_, frame.order.data());
  copy(center_, center.data());
  check(cudaStreamSynchronize(stream_), "copying the centre");
  rounding_ = {dims, (dims + 15) / 16 * 16, frame.scale, column_order_.data(), center_.data()};
}

void NearestSide::round(const Rounding& how) {
  rounded_ = round_points(resources_.device, indexed(), how, stream_);
  directions_ = {};
}

void NearestSide::sort(const CurveFrame& frame) {
  frame_ = frame;
  ordered_ = sort_by_curve(resources_.device, indexed(), frame, &report_.data()->finite, stream_);
  ask_report();
}

void NearestSide::order(std::uint32_t stride) {
  order_coordinates(resources_.device, indexed(), points(), stride, ordered_, stream_);
  directions_ = {};
  tree_ = {points(), tree_levels(points(), kLeafPoints), stride, ordered_.coordinates.data(),
           nullptr};
}

void NearestSide::make_tree() {
  boxes_ = find_boxes(resources_.device, tree_, stream_);
  tree_.boxes = boxes_.data();
}

}  // namespace gpujoin::cuda

#include "cuda/clusters/cluster_walk.h"

#include <algorithm>

#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Points of a launch, few enough that an interrupt is answered soon.
constexpr std::uint32_t kSlicePoints = 1 << 23;

}  // namespace

ClusterWalk::ClusterWalk(const JoinRequest& request, const RangePlan& plan, const WalkSide& side,
                         JoinResources& resources, const unsigned* stop)
    : ClusterSource(request, *side.index, side.ids, resources) {
  view_.join = make_join_view(request, plan.index, side, side, stop);
  view_.labels = labels_.labels();
  view_.min_points = request.min_points();
  view_.borders = request.borders();
  view_.radius = plan.index.cell_radius;
  choice_.metric = request.metric();
  choice_.scalar = request.left().scalar;
  choice_.dims = request.left().dims;
  candidates_ = DeviceBuffer<unsigned long long>(resources.device, 1, stream_);
  host_last_ = PinnedBlock(resources.host, sizeof(std::uint32_t));
  host_candidates_ = PinnedBlock(resources.host, candidates_.bytes());
  *host_candidates_.as<unsigned long long>() = 0;
  check(cudaMemsetAsync(candidates_.data(), 0, candidates_.bytes(), stream_), "clearing totals");
  view_.candidates = candidates_.data();
  if (view_.join.left.points == 0) phase_ = Phase::kLinks;
}

/// Numbers the cells; how many they are is known when the device is done.
void ClusterWalk::find_cells() {
  const PointsView& points = view_.join.left;
  cell_of_ = DeviceBuffer<std::uint32_t>(resources_.device, points.points, stream_);
  launch_cell_flags(points.codes, points.points, cell_of_.data(), stream_);
  add_up(resources_.device, cell_of_.data(), points.points, true, stream_);
  copy_to_host(host_last_.as<std::uint32_t>(), cell_of_.data() + points.points - 1, 1, stream_);
}

void ClusterWalk::measure_cells() {
  const PointsView& points = view_.join.left;
  const std::uint32_t cells = *host_last_.as<std::uint32_t>() + 1;
  cell_starts_ = DeviceBuffer<std::uint32_t>(resources_.device, cells + std::size_t{1}, stream_);
  cell_keys_ = DeviceBuffer<std::uint64_t>(resources_.device, cells, stream_);
  whole_ = DeviceBuffer<std::uint8_t>(resources_.device, cells, stream_);
  first_core_ = DeviceBuffer<std::uint32_t>(resources_.device, cells, stream_);
  boxes_ = DeviceBuffer<std::uint64_t>(
      resources_.device, (points.points / kBoxedPoints + std::size_t{1}) * 2 * view_.join.dims,
      stream_);
  launch_cells(points.codes, view_.join.layout.value_bits, points.points, cell_of_.data(), cells,
               cell_starts_.data(), cell_keys_.data(), stream_);
  view_.cells = cells;
  view_.cell_of = cell_of_.data();
  view_.cell_starts = cell_starts_.data();
  view_.cell_keys = cell_keys_.data();
  view_.boxes = boxes_.data();
  view_.whole = whole_.data();
  view_.first_core = first_core_.data();
  make_directory();
  launch_measure(choice_, view_, stream_);
}

/// An element for each two cells or fewer, if they were spread over the grid.
void ClusterWalk::make_directory() {
  const GridGeometry& grid = view_.join.layout.grid;
  std::uint32_t bits = 8;
  while ((view_.cells >> bits) > 2) ++bits;
  const std::uint32_t key_bits = grid.dims * grid.bits;
  view_.directory_shift = key_bits > bits ? key_bits - bits : 0;
  const std::uint32_t elements = (1u << std::min(bits, key_bits)) + 1;
  directory_ = DeviceBuffer<std::uint32_t>(resources_.device, elements, stream_);
  launch_directory(view_.cell_keys, view_.cells, view_.directory_shift, elements, directory_.data(),
                   stream_);
  view_.directory = directory_.data();
}

template <class Launch>
void ClusterWalk::launch_slice(const Launch& launch) {
  const std::uint32_t first = end_;
  end_ = first + std::min(kSlicePoints, view_.join.left.points - first);
  launch(choice_, view_, first, end_, stream_);
}

void ClusterWalk::start_slice() {
  switch (phase_) {
    case Phase::kCells:
      return find_cells();
    case Phase::kMeasure:
      return measure_cells();
    case Phase::kCores:
      return launch_slice(launch_cores);
    case Phase::kLinks:
      return launch_links(view_, stream_);
    case Phase::kUnite:
      return launch_slice(launch_unite);
    case Phase::kBorders:
      return launch_slice(launch_borders);
    default:
      return number_clusters();
  }
}

bool ClusterWalk::finish_slice() {
  const bool sliced =
      phase_ == Phase::kCores || phase_ == Phase::kUnite || phase_ == Phase::kBorders;
  if (sliced && end_ < view_.join.left.points) return true;
  end_ = 0;
  phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
  // Without finite points there are no cells.
  if (phase_ == Phase::kUnite && view_.join.left.points == 0) phase_ = Phase::kNumber;
  return true;
}

void ClusterWalk::number_clusters() {
  for (auto* const buffer : {&cell_of_, &cell_starts_, &directory_, &first_core_}) *buffer = {};
  for (auto* const buffer : {&cell_keys_, &boxes_}) *buffer = {};
  whole_ = {};
  labels_.number();
  copy_to_host(host_candidates_.as<unsigned long long>(), candidates_.data(), 1, stream_);
}

void ClusterWalk::describe(JoinStats* stats) const {
  stats->candidates = *host_candidates_.as<unsigned long long>();
  stats->threads_per_point = 1;
}

}  // namespace gpujoin::cuda

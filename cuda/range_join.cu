#include <algorithm>
#include <numeric>

#include "core/cosine.h"
#include "core/threshold.h"
#include "cuda/device/tuning.h"
#include "cuda/grid/grid_walk.h"
#include "cuda/range_join.h"
#include "cuda/tiles/tensor_check.h"
#include "cuda/tiles/tile_walk.h"
#include "cuda/top/top_walk.h"

namespace gpujoin::cuda {
namespace {

WalkSide walk_side(const PreparedSide& side) { return {&side.index(), side.ids()}; }

TileWalkSide tile_side(const PreparedSide& side) {
  return {&side.points(), &side.originals(), &side.index(), side.ids()};
}

}  // namespace

RangeJoin::RangeJoin(const JoinRequest& request, JoinResources& resources)
    : SlicedJoin(request, resources), uploader_(resources.host, request.threads) {
  if (request.output == Output::kTopPairs) {
    stats_.topk_method = method_of(request.knobs.topk_method);
    stats_.topk_rounds = 1;
  }
  if (stats_.left_rows == 0 || stats_.right_rows == 0) {
    if (request.output == Output::kCountPerRow)
      left_ids_ = ids_of_rows(request.left, left_numbers_);
    start_without_pairs();
    return;
  }
  // Directions only screen, and the walk of a grid has no screen.
  if (request.metric == Metric::kCosine) request_.knobs.index = IndexMethod::kTiles;
  if (request.output == Output::kTopPairs && request_.knobs.index != IndexMethod::kReferencePoints)
    request_.knobs.index = IndexMethod::kGrid;
  choose_method();
  make_sides();
}

/// Chooses tiles only where tensor cores are as exact as the screen assumes. Throws Unable where no
/// other method serves the metric.
void RangeJoin::choose_method() {
  strategy_ = choose_strategy(request_, kWalkCosts);
  const bool unsafe =
      strategy_.index == IndexMethod::kTiles && !tensor_sums_are_close(resources_.context, stream_);
  if (unsafe) {
    WalkCosts without_tiles = kWalkCosts;
    without_tiles.tile_pair = 0;
    strategy_ = choose_strategy(request_, without_tiles);
  }
  if (request_.metric == Metric::kCosine && strategy_.index != IndexMethod::kTiles)
    throw Unable{unsafe ? "the tensor cores of the device are less exact than cosine joins need"
                        : "the device cannot join so many rows by cosine distance"};
  stats_.strategy = strategy_;
}

/// Makes room for the points, so that a lack of memory shows at once.
void RangeJoin::make_sides() {
  stop_.emplace(resources_, stream_);
  queue_ = DeviceBuffer<unsigned>(resources_.device, 1, stream_);
  extents_ = DeviceBuffer<ExtentBits>(resources_.device, 1, stream_);
  host_extents_ = PinnedBlock(resources_.host, extents_.bytes());
  reset_extents(extents_.data(), stream_);
  references_ = place_reference_points(request_, strategy_);
  reach_ = references_.count > 0
               ? reference_reach(request_.eps, references_.dims, references_.frame,
                                 request_.left.scalar == ScalarType::kFloat32)
               : make_threshold(request_.metric, request_.eps).reach;
  sides_.reserve(2);
  sides_.emplace_back(request_.left, resources_, stream_);
  if (!request_.self_join) sides_.emplace_back(request_.right, resources_, stream_);
}

void RangeJoin::prepare() {
  switch (work_) {
    case Work::kUpload:
      return upload_piece();
    case Work::kExtents:
      sort();
      work_ = Work::kIndex;
      return;
    case Work::kIndex:
      stats_.index_ms = since_open_.milliseconds();
      name();
      start(make_source(), is_mirrored(strategy_.access_pattern, request_.pairs));
  }
}

void RangeJoin::upload_piece() {
  if (sides_[uploaded_].upload_piece(uploader_)) ++uploaded_;
  if (uploaded_ < sides_.size()) return;
  measure();
  work_ = Work::kExtents;
}

/// Finds the extents of the indexed columns. A join by cosine distance indexes the points'
/// directions.
void RangeJoin::measure() {
  for (PreparedSide& side : sides_) {
    if (request_.metric == Metric::kCosine) side.take_directions();
    side.add_distances(references_);
    add_extents(side.points(), strategy_, extents_.data(), stream_);
  }
  copy_to_host(host_extents_.as<ExtentBits>(), extents_.data(), 1, stream_);
  step_.record(stream_);
}

void RangeJoin::sort() {
  // Tiles are cut from a curve through cells as fine as they get.
  const bool tiles = strategy_.index == IndexMethod::kTiles;
  layout_ = make_device_layout(*host_extents_.as<ExtentBits>(), strategy_, tiles ? 0 : reach_);
  for (PreparedSide& side : sides_) side.sort(layout_, !tiles);
  if (request_.output == Output::kTopPairs)
    for (PreparedSide& side : sides_) side.order_scores(uploader_);
  step_.record(stream_);
}

void RangeJoin::name() {
  for (PreparedSide& side : sides_) side.finish_sort();
  if (request_.output == Output::kTotal) return;
  for (PreparedSide& side : sides_) side.name(uploader_);
  left_ids_ = sides_.front().host_ids();
  right_ids_ = sides_.back().host_ids();
}

/// The L2 distance, of what tiles are made of, that no pair within eps exceeds.
double RangeJoin::tile_radius() const {
  if (request_.metric != Metric::kCosine) return request_.eps;
  const bool faint = std::any_of(sides_.begin(), sides_.end(),
                                 [](const PreparedSide& side) { return side.faint(); });
  return faint ? kAnyDirection : direction_radius(request_.eps, request_.left.dims);
}

std::unique_ptr<SliceSource> RangeJoin::make_source() {
  const PreparedSide &left = sides_.front(), &right = sides_.back();
  const unsigned* const stop = stop_->get();
  if (strategy_.index == IndexMethod::kTiles)
    return std::make_unique<TileWalk>(
        request_, strategy_, tile_radius(), tile_side(left), tile_side(right), resources_.device,
        resources_.host, resources_.context.properties().multiProcessorCount, stop, stream_);
  if (request_.output == Output::kTopPairs)
    return std::make_unique<TopWalk>(request_, strategy_,
                                     make_join_view(request_, strategy_, layout_, reach_,
                                                    walk_side(left), walk_side(right), stop),
                                     left.scores(), right.scores(), resources_, stream_);
  return std::make_unique<GridWalk>(
      request_, strategy_, layout_, reach_, walk_side(left), walk_side(right), resources_.device,
      resources_.host, resources_.context.resident_blocks(), stop, queue_.data(), stream_);
}

/// Counts of all left points, by position; 0 each where one side is empty.
void RangeJoin::collect_counts() {
  row_counts_ = Buffer<std::uint64_t>(resources_.host, request_.left.rows);
  std::fill(row_counts_.begin(), row_counts_.end(), 0);
  if (source() != nullptr) {
    const Buffer<std::uint32_t> counts = source()->counts();
    std::copy(counts.begin(), counts.end(), row_counts_.begin());
  }
  rows_ = PinnedBlock(resources_.host, row_counts_.size() * sizeof(std::uint32_t));
  std::iota(rows_.as<std::uint32_t>(), rows_.as<std::uint32_t>() + row_counts_.size(), 0u);
}

bool RangeJoin::next_counts(ResultBatch* batch) {
  if (row_counts_.size() == 0) collect_counts();
  if (delivered_ == row_counts_.size()) return false;
  const std::uint64_t most =
      request_.knobs.batch_pairs > 0 ? request_.knobs.batch_pairs : kMostBatchPairs;
  *batch = {};
  batch->row_count = std::min(most, row_counts_.size() - delivered_);
  batch->rows = rows_.as<std::uint32_t>() + delivered_;
  batch->counts = row_counts_.data() + delivered_;
  for (std::uint64_t i = 0; i < batch->row_count; ++i) batch->pair_count += batch->counts[i];
  delivered_ += batch->row_count;
  return true;
}

void RangeJoin::stats(JoinStats* stats) const {
  SlicedJoin::stats(stats);
  stats->threads = uploader_.threads();
}

}  // namespace gpujoin::cuda

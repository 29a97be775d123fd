#include <algorithm>
#include <limits>

#include "cuda/clusters/cluster_tiles.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Pairs of tiles of the first slice above the diagonal. Slices grow: what one has found spares the
/// next ones work.
constexpr std::uint64_t kFirstTilePairs = 1 << 10;

}  // namespace

ClusterTiles::ClusterTiles(const JoinRequest& request, const RangePlan& plan,
                           const TileRadii& radii, const TileWalkSide& side,
                           MemoryBudget& device_budget, HostBudget& host_budget,
                           int multiprocessors, const unsigned* stop, cudaStream_t stream)
    : device_budget_(device_budget),
      host_budget_(host_budget),
      memory_limit_(request.resources.device_memory_limit),
      multiprocessors_(multiprocessors),
      stream_(stream),
      labels_({side.index->rows, side.ids, side.index->order.data(), request.left().ids != nullptr},
              device_budget, stream),
      points_(quantize(device_budget, {side.data, side.index},
                       make_quantization(device_budget, plan.frame, radii, stream),
                       plan.index.strategy, stream)),
      choice_{.diagonal = true,
              .first = 0,
              .end = 0,
              .rectangle = {},
              .points = points_,
              .box_columns = plan.index.strategy.grid_dims,
              .reach = true_reach(radii.eps, request.left().dims),
              .whole = {}} {
  screen_.left = screen_.right = screened_side(points_);
  screen_.padded_dims = (request.left().dims + 15) / 16 * 16;
  screen_.half = Half::kUpper;
  screen_.stop = stop;
  make_room();
  decision_ = make_decision(request, side, side, report_.data());
  choice_.whole = {.accept = accepted_by_boxes(plan, radii, request.left().dims),
                   .self_join = true,
                   .both_ends = true,
                   .total = decision_.totals,
                   .rows = nullptr};
  view_ = {.points = points_.points,
           .tiles = points_.tiles,
           .enough = static_cast<std::uint32_t>(std::min<std::uint64_t>(
               request.min_points(), std::numeric_limits<std::uint32_t>::max())),
           .borders = request.borders(),
           .ids = side.ids,
           .counts = counts_.data(),
           .whole = whole_rows_.data(),
           .cores = cores_.data(),
           .states = states_.data(),
           .labels = labels_.labels()};
  fill_counts(counts_.data(), points_.points, 1, stream);
  fill_counts(whole_rows_.data(), points_.tiles, 0, stream);
  begin(points_.tiles > 0 && request.min_points() > 1 ? Phase::kCount : Phase::kUnite);
}

/// A slice's buffers: as much as the join may need, within an eighth of the device memory limit.
void ClusterTiles::make_room() {
  constexpr std::uint64_t kOneTile = std::uint64_t{kScreenTile} * kScreenTile;
  const std::uint64_t all_tiles =
      std::max<std::uint64_t>(1, std::uint64_t{points_.tiles} * points_.tiles);
  const auto fit = [&](std::uint64_t wanted, std::uint64_t least) {
    if (memory_limit_ == 0) return wanted;
    return std::clamp(memory_limit_ / 8 / sizeof(uint2), std::min(least, wanted), wanted);
  };
  tile_capacity_ = fit(std::min(all_tiles, kMostTilePairs), 1);
  const std::uint64_t candidates =
      all_tiles > kMostCandidates / kOneTile ? kMostCandidates : all_tiles * kOneTile;
  report_ = DeviceBuffer<TileReport>(device_budget_, 1, stream_);
  host_report_ = PinnedBlock(host_budget_, sizeof(TileReport));
  tiles_ = DeviceBuffer<uint2>(device_budget_, tile_capacity_, stream_);
  candidates_ = DeviceBuffer<uint2>(device_budget_, fit(candidates, kOneTile), stream_);
  counts_ = DeviceBuffer<std::uint32_t>(device_budget_, points_.points, stream_);
  whole_rows_ = DeviceBuffer<std::uint32_t>(device_budget_, points_.tiles, stream_);
  cores_ = DeviceBuffer<std::uint32_t>(device_budget_,
                                       std::size_t{points_.tiles} * (kScreenTile / 32), stream_);
  states_ = DeviceBuffer<TileState>(device_budget_, points_.tiles, stream_);
}

/// Begins a walk over all tiles, of which there may be none.
void ClusterTiles::begin(Phase phase) {
  phase_ = phase;
  choice_.whole.rows = phase == Phase::kCount ? whole_rows_.data() : nullptr;
  if (phase == Phase::kUnite) launch_roles(view_, stream_);
  choice_.diagonal = true;
  choice_.end = row_ = column_ = 0;
  most_tiles_ = tile_capacity_;
  if (view_.tiles == 0)
    phase_ = Phase::kNumber;
  else
    check(cudaMemsetAsync(states_.data(), 0, states_.bytes(), stream_), "clearing tiles");
}

/// The next tiles of the diagonal; or whole rows above it, or a part of one row.
void ClusterTiles::choose_tiles() {
  if (choice_.diagonal) {
    choice_.first = choice_.end;
    choice_.end += static_cast<std::uint32_t>(
        std::min<std::uint64_t>(most_tiles_, view_.tiles - choice_.first));
    return;
  }
  TileRectangle& next = choice_.rectangle;
  const bool begun = column_ > 0;
  next.first_row = row_;
  next.first_column = begun ? column_ : row_ + 1;
  const std::uint64_t width = view_.tiles - next.first_column;
  const std::uint64_t rows =
      begun ? 1
            : std::clamp<std::uint64_t>(
                  most_tiles_ / width, 1,
                  std::min<std::uint64_t>(kMostSliceRows, view_.tiles - 1 - row_));
  next.end_row = static_cast<std::uint32_t>(row_ + rows);
  next.end_column = static_cast<std::uint32_t>(next.first_column +
                                               (rows > 1 ? width : std::min(width, most_tiles_)));
}

void ClusterTiles::start_slice() {
  if (phase_ == Phase::kNumber) return number_clusters();
  choose_tiles();
  TileReport* const report = report_.data();
  check(cudaMemsetAsync(report, 0, sizeof(TileReport), stream_), "clearing a report");
  const ClusterSlice slice{screen_,
                           decision_,
                           {tiles_.data(), &report->listed},
                           {candidates_.data(), candidates_.size(), &report->candidates},
                           multiprocessors_,
                           stream_};
  if (phase_ == Phase::kCount)
    launch_count_neighbors(view_, choice_, slice, &report->screened);
  else
    launch_unite_tiles(view_, choice_, slice, &report->screened);
  copy_to_host(host_report_.as<TileReport>(), report, 1, stream_);
}

/// What a slice has found is right whether all candidates fitted or not; where they did not, the
/// next ones grow no more.
bool ClusterTiles::finish_slice() {
  if (phase_ == Phase::kNumber) {
    phase_ = Phase::kEnd;
    return true;
  }
  const TileReport& report = *host_report_.as<TileReport>();
  screened_ += report.screened;
  rechecked_ += report.rechecked;
  if (!choice_.diagonal && report.candidates <= candidates_.size())
    most_tiles_ = std::min(2 * most_tiles_, tile_capacity_);
  if (!go_on()) begin(phase_ == Phase::kCount ? Phase::kUnite : Phase::kNumber);
  return true;
}

/// Whether there are more tiles to compare in this walk.
bool ClusterTiles::go_on() {
  if (choice_.diagonal) {
    if (choice_.end < view_.tiles) return true;
    choice_.diagonal = false;
    most_tiles_ = std::min(kFirstTilePairs, tile_capacity_);
  } else {
    const TileRectangle& done = choice_.rectangle;
    const bool row_is_done = done.end_column == view_.tiles;
    column_ = row_is_done ? 0 : done.end_column;
    if (row_is_done) row_ = done.end_row;
  }
  return row_ + 1 < view_.tiles;
}

void ClusterTiles::number_clusters() {
  points_ = {};
  for (auto* const buffer : {&counts_, &whole_rows_, &cores_}) *buffer = {};
  for (auto* const buffer : {&tiles_, &candidates_}) *buffer = {};
  states_ = {};
  labels_.number();
}

void ClusterTiles::describe(JoinStats* stats) const {
  stats->candidates = screened_;
  stats->rechecked = rechecked_;
}

}  // namespace gpujoin::cuda

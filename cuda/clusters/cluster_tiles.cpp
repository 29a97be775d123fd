#include "cuda/clusters/cluster_tiles.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Pairs of tiles of the first slice above the diagonal. Slices grow: what one has found spares the
/// next ones work.
constexpr std::uint64_t kFirstTilePairs = 1 << 10;

}  // namespace

ClusterTiles::ClusterTiles(const JoinRequest& request, const RangePlan& plan,
                           const TileRadii& radii, const TileWalkSide& side, ClusterSharing sharing,
                           JoinResources& resources, const unsigned* stop)
    : ClusterSource(request, *side.index, side.ids, resources),
      sharing_(std::move(sharing)),
      memory_limit_(request.resources.device_memory_limit),
      multiprocessors_(resources.context.properties().multiProcessorCount),
      points_(quantize(resources.device, {side.data, side.index},
                       make_quantization(resources.device, plan.frame, radii, stream_),
                       plan.index.strategy, stream_)),
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
  fill_counts(counts_.data(), points_.points, 1, stream_);
  fill_counts(whole_rows_.data(), points_.tiles, 0, stream_);
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
  report_ = DeviceBuffer<TileReport>(resources_.device, 1, stream_);
  host_report_ = PinnedBlock(resources_.host, sizeof(TileReport));
  tiles_ = DeviceBuffer<uint2>(resources_.device, tile_capacity_, stream_);
  candidates_ = DeviceBuffer<uint2>(resources_.device, fit(candidates, kOneTile), stream_);
  counts_ = DeviceBuffer<std::uint32_t>(resources_.device, points_.points, stream_);
  whole_rows_ = DeviceBuffer<std::uint32_t>(resources_.device, points_.tiles, stream_);
  cores_ = DeviceBuffer<std::uint32_t>(resources_.device,
                                       std::size_t{points_.tiles} * (kScreenTile / 32), stream_);
  states_ = DeviceBuffer<TileState>(resources_.device, points_.tiles, stream_);
}

/// Begins a walk over all tiles, if there are any.
void ClusterTiles::begin(Phase phase) {
  phase_ = phase;
  choice_.whole.rows = phase == Phase::kCount ? whole_rows_.data() : nullptr;
  if (phase == Phase::kUnite) launch_roles(view_, stream_);
  step_ = Step::kDiagonal;
  merged_ = false;
  choice_.diagonal = true;
  choice_.end = column_ = 0;
  rows_ = {};
  most_tiles_ = tile_capacity_;
  if (view_.tiles == 0)
    phase_ = is_first() ? Phase::kNumber : Phase::kEnd;
  else
    check(cudaMemsetAsync(states_.data(), 0, states_.bytes(), stream_), "clearing tiles");
}

void ClusterTiles::begin_next() {
  if (phase_ == Phase::kUnite) {
    phase_ = Phase::kNumber;
    return;
  }
  sharing_.work = sharing_.work.following();
  begin(Phase::kUnite);
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
  next.first_row = rows_.first;
  next.first_column = begun ? column_ : rows_.first + 1;
  const std::uint64_t width = view_.tiles - next.first_column;
  const std::uint64_t rows =
      begun ? 1
            : std::clamp<std::uint64_t>(most_tiles_ / width, 1,
                                        std::min<std::uint64_t>(kMostSliceRows, rows_.count()));
  next.end_row = static_cast<std::uint32_t>(rows_.first + rows);
  next.end_column = static_cast<std::uint32_t>(next.first_column +
                                               (rows > 1 ? width : std::min(width, most_tiles_)));
}

void ClusterTiles::start_slice() {
  if (phase_ == Phase::kNumber) return number_clusters();
  if (step_ == Step::kGive) return give();
  if (step_ != Step::kMerge) return compare_tiles();
  if (!waits()) merge();
}

void ClusterTiles::compare_tiles() {
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
  } else if (step_ == Step::kGive) {
    leave();
  } else if (step_ == Step::kMerge) {
    if (merged_) begin_next();
  } else {
    const TileReport& report = *host_report_.as<TileReport>();
    screened_ += report.screened;
    rechecked_ += report.rechecked;
    if (!choice_.diagonal && report.candidates <= candidates_.size())
      most_tiles_ = std::min(2 * most_tiles_, tile_capacity_);
    go_on();
  }
  return true;
}

/// Goes on to the next tiles to compare, or ends the walk.
void ClusterTiles::go_on() {
  if (choice_.diagonal) {
    if (choice_.end < view_.tiles) return;
    choice_.diagonal = false;
    step_ = Step::kAbove;
    most_tiles_ = std::min(kFirstTilePairs, tile_capacity_);
    if (phase_ == Phase::kCount && !is_first()) {
      common_ = DeviceBuffer<std::uint32_t>(resources_.device, counts_.size(), stream_);
      check(cudaMemcpyAsync(common_.data(), counts_.data(), counts_.bytes(),
                            cudaMemcpyDeviceToDevice, stream_),
            "copying counts");
    }
  } else {
    const TileRectangle& done = choice_.rectangle;
    const bool row_is_done = done.end_column == view_.tiles;
    column_ = row_is_done ? 0 : done.end_column;
    if (row_is_done) rows_.first = done.end_row;
  }
  if (rows_.count() > 0) return;
  if (sharing_.work.is_taken(all_rows())) return end_walk();
  rows_ = sharing_.work.take(all_rows(), all_rows());
}

/// After the walk's last tiles. Who took none has found nothing that others lack; but the counts of
/// the diagonal are the first device's.
void ClusterTiles::end_walk() {
  if (sharing_.work.is_alone()) return begin_next();
  const bool at_work = sharing_.work.is_at_work();
  const bool gives = phase_ == Phase::kCount ? is_first() || at_work : !is_first() && at_work;
  step_ = Step::kGive;
  if (!gives) leave();
}

/// Once what was found is there for the others.
void ClusterTiles::leave() {
  sharing_.work.leave();
  step_ = Step::kMerge;
  if (phase_ == Phase::kUnite && !is_first()) phase_ = Phase::kEnd;
}

/// Whether others have not found yet what is to be merged.
bool ClusterTiles::waits() const {
  const bool walks = phase_ == Phase::kCount || phase_ == Phase::kUnite;
  return walks && step_ == Step::kMerge && !sharing_.work.is_over(all_rows());
}

void ClusterTiles::give() {
  const bool counts = phase_ == Phase::kCount;
  if (counts) launch_neighbors_to_add(view_, common_.data(), stream_);
  common_ = {};
  std::uint32_t* const room = sharing_.exchange->give(
      counts ? ClusterExchange::Part::kNeighbors : ClusterExchange::Part::kLinks, view_.points);
  copy_to_host(room, counts ? view_.counts : view_.labels.links, view_.points, stream_);
}

/// Neighbours are those that all have counted. Links are this device's, and what others have found.
void ClusterTiles::merge() {
  const bool counts = phase_ == Phase::kCount;
  if (counts) {
    fill_counts(view_.counts, view_.points, 0, stream_);
    fill_counts(view_.whole, view_.tiles, 0, stream_);
  }
  DeviceBuffer<std::uint32_t> found(resources_.device, view_.points, stream_);
  for (const PinnedBlock& given : sharing_.exchange->given(
           counts ? ClusterExchange::Part::kNeighbors : ClusterExchange::Part::kLinks)) {
    check(cudaMemcpyAsync(found.data(), given.as<std::uint32_t>(), found.bytes(),
                          cudaMemcpyHostToDevice, stream_),
          "copying what another device has found");
    if (counts)
      launch_add_neighbors(view_, found.data(), stream_);
    else
      launch_merge_links(view_, decision_, found.data(), stream_);
  }
  merged_ = true;
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

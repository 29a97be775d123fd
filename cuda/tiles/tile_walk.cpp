#include "cuda/tiles/tile_walk.h"

#include <algorithm>
#include <numeric>

#include "core/pair_sink.h"
#include "core/threshold.h"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

Decision make_decision(const JoinRequest& request, const TileWalkSide& left,
                       const TileWalkSide& right, TileReport* report) {
  return {.left_coordinates = left.originals->data(),
          .right_coordinates = right.originals->data(),
          .left_order = left.index->order.data(),
          .right_order = right.index->order.data(),
          .dims = request.left().dims,
          .metric = request.metric(),
          .scalar = request.left().scalar,
          .threshold = make_threshold(request.metric(), request.eps()).raw,
          .totals = &report->pairs,
          .self_join = request.self_join()};
}

TileSide screened_side(const TilePoints& points) {
  return {points.values.data(), points.reject.data(), points.accept.data()};
}

double accepted_by_boxes(const RangePlan& plan, const TileRadii& radii, std::uint32_t dims) {
  if (plan.index.strategy.grid_dims != dims || radii.sure_eps < 0) return -1;
  const double raw = make_threshold(Metric::kL2, radii.sure_eps).raw;
  return make_screen_bounds(Metric::kL2, raw, dims).accept;
}

TileWalk::TileWalk(const JoinRequest& request, const RangePlan& plan, const TileRadii& radii,
                   const TileWalkSide& left, const TileWalkSide& right, const WorkShare& share,
                   MemoryBudget& device_budget, HostBudget& host_budget, int multiprocessors,
                   const unsigned* stop, cudaStream_t stream)
    : request_(request),
      plan_(plan),
      pattern_(pattern_of(request, plan.index.strategy.index)),
      share_(share),
      device_budget_(device_budget),
      host_budget_(host_budget),
      multiprocessors_(multiprocessors),
      stream_(stream),
      radii_(radii) {
  const TileWalkSide sides[] = {left, request.self_join() ? left : right};
  quantize_sides(sides);
  screen_.half = choose_half();
  screen_.stop = stop;
  make_room();
  describe_decision(sides);
  count_whole_tiles();
}

Half TileWalk::choose_half() const {
  if (!request_.self_join()) return Half::kNo;
  const bool all = request_.pairs() == PairSelection::kAll;
  if (pattern_ == AccessPattern::kFull) return all ? Half::kNo : Half::kButItself;
  // A point is within any L2 distance of itself. Its cosine distance is decided by the definition.
  return all && request_.metric() == Metric::kCosine ? Half::kAndDiagonal : Half::kUpper;
}

void TileWalk::quantize_sides(const TileWalkSide* sides) {
  const OrderedPoints ordered[] = {{sides[0].data, sides[0].index},
                                   {sides[1].data, sides[1].index}};
  const Quantization how = make_quantization(device_budget_, plan_.frame, radii_, stream_);
  screen_.padded_dims = how.padded_dims;
  left_ = quantize(device_budget_, ordered[0], how, plan_.index.strategy, stream_);
  if (!request_.self_join())
    right_ = quantize(device_budget_, ordered[1], how, plan_.index.strategy, stream_);
  screen_.left = screened_side(left_);
  screen_.right = screened_side(right());
}

/// A slice's buffers: as much as the join may need, within an eighth of the device memory limit.
void TileWalk::make_room() {
  const bool pairs = wants_pairs(request_.output());
  const bool distances = wants_distances(request_.output());
  const std::uint64_t all_tiles =
      std::max<std::uint64_t>(1, std::uint64_t{left_.tiles} * right().tiles);
  constexpr std::uint64_t kOneTile = std::uint64_t{kScreenTile} * kScreenTile;
  const std::uint64_t all_pairs =
      all_tiles > kMostCandidates / kOneTile ? kMostCandidates : all_tiles * kOneTile;
  const std::uint64_t limit = request_.resources.device_memory_limit / 8;
  const auto fit = [&](std::uint64_t wanted, std::uint64_t least, std::size_t bytes) {
    if (request_.resources.device_memory_limit == 0) return wanted;
    return std::clamp(limit / bytes, std::min(least, wanted), wanted);
  };
  tile_capacity_ = fit(std::min(all_tiles, kMostTilePairs), 1, sizeof(uint2));
  most_tiles_ = tile_capacity_;
  const std::uint64_t candidates = fit(all_pairs, kOneTile,
                                       sizeof(uint2) + (pairs ? 2 : 0) * sizeof(std::uint32_t) +
                                           (distances ? 2 : 0) * sizeof(double));
  const std::uint64_t points = std::min<std::uint64_t>(
      left_.points,
      std::uint64_t{kScreenTile} * std::min<std::uint64_t>(kMostSliceRows, most_tiles_));

  report_ = DeviceBuffer<TileReport>(device_budget_, 1, stream_);
  host_report_ = PinnedBlock(host_budget_, sizeof(TileReport));
  tiles_ = DeviceBuffer<uint2>(device_budget_, tile_capacity_, stream_);
  candidates_ = DeviceBuffer<uint2>(device_budget_, candidates, stream_);
  if (request_.output() == Output::kCountPerRow) {
    counts_ = DeviceBuffer<std::uint32_t>(device_budget_, left_.points, stream_);
    // Where devices share the rows, one counts the points themselves.
    fill_counts(counts_.data(), left_.points, counts_themselves() && share_.is_first() ? 1 : 0,
                stream_);
  }
  if (!pairs) return;
  ranks_ = DeviceBuffer<std::uint32_t>(device_budget_, candidates, stream_);
  counts_ = DeviceBuffer<std::uint32_t>(device_budget_, points + 1, stream_);
  offsets_ = DeviceBuffer<std::uint64_t>(device_budget_, points + 1, stream_);
  neighbors_ = DeviceBuffer<std::uint32_t>(device_budget_, candidates + points, stream_);
  if (distances) {
    candidate_distances_ = DeviceBuffer<double>(device_budget_, candidates, stream_);
    distances_ = DeviceBuffer<double>(device_budget_, candidates + points, stream_);
  }
  host_offsets_ = PinnedBlock(host_budget_, offsets_.bytes());
  host_offsets_.as<std::uint64_t>()[0] = 0;
  host_sequence_ = PinnedBlock(host_budget_, left_.points * sizeof(std::uint32_t));
  std::iota(host_sequence_.as<std::uint32_t>(), host_sequence_.as<std::uint32_t>() + left_.points,
            0u);
}

void TileWalk::describe_decision(const TileWalkSide* sides) {
  decision_ = make_decision(request_, sides[0], sides[1], report_.data());
  using Ends = TileCounts::Ends;
  count_.ends = !is_half(screen_.half)                          ? Ends::kLeft
                : request_.pairs() == PairSelection::kUnordered ? Ends::kSmallerEnd
                                                                : Ends::kBoth;
  count_.ids = sides[0].ids;
  count_.points = left_.points;
  count_.counts = request_.output() == Output::kCountPerRow ? counts_.data() : nullptr;
  rank_.counts = counts_.data();
  rank_.ranks = ranks_.data();
  rank_.distances = candidate_distances_.data();
}

/// Where each pair counts once, it counts at either point, and no tile is counted whole.
void TileWalk::count_whole_tiles() {
  const bool rows = request_.output() == Output::kCountPerRow;
  whole_.accept = -1;
  if (wants_pairs(request_.output()) || (rows && count_.ends == TileCounts::Ends::kSmallerEnd))
    return;
  whole_.accept = accepted_by_boxes(plan_, radii_, request_.left().dims);
  if (whole_.accept < 0) return;
  whole_.self_join = request_.self_join();
  whole_.both_ends = count_.ends == TileCounts::Ends::kBoth;
  whole_.total = decision_.totals;
  if (!rows) return;
  whole_rows_ = DeviceBuffer<std::uint32_t>(device_budget_, left_.tiles, stream_);
  fill_counts(whole_rows_.data(), left_.tiles, 0, stream_);
  whole_.rows = whole_rows_.data();
}

bool TileWalk::finished() const {
  return (rows_.count() == 0 && share_.is_taken(left_.tiles)) || right().tiles == 0;
}

/// The next tiles: as many whole rows as a slice may compare, or a part of one row.
void TileWalk::choose_rectangle() {
  if (rows_.count() == 0) rows_ = share_.take(left_.tiles, left_.tiles);
  const std::uint32_t columns = right().tiles;
  TileRectangle& next = rectangle_;
  next.first_row = rows_.first;
  next.first_column = next_column_;
  if (next_column_ == 0 && is_half(screen_.half)) next.first_column = rows_.first;
  const bool begun = next_column_ > 0;
  const std::uint64_t width = columns - next.first_column;
  const std::uint64_t rows =
      begun ? 1 : std::clamp<std::uint64_t>(most_tiles_ / width, 1, kMostSliceRows);
  next.end_row = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_.end, rows_.first + rows));
  next.end_column = static_cast<std::uint32_t>(next.first_column +
                                               (rows > 1 ? width : std::min(width, most_tiles_)));
}

std::uint32_t TileWalk::slice_points() const {
  return std::min(left_.points, rectangle_.end_row * kScreenTile) - first_point();
}

/// Whether every self-pair counts without being compared.
bool TileWalk::counts_themselves() const {
  return screen_.half == Half::kUpper && request_.pairs() == PairSelection::kAll;
}

/// Self-pairs of the slice: they lie on the diagonal only.
Themselves TileWalk::themselves() const {
  if (!is_half(screen_.half) || rectangle_.first_column != rectangle_.first_row)
    return Themselves::kNone;
  if (screen_.half == Half::kAndDiagonal) return Themselves::kSome;
  return counts_themselves() ? Themselves::kAll : Themselves::kNone;
}

void TileWalk::start_slice() {
  if (finished()) return;
  choose_rectangle();
  TileReport* const report = report_.data();
  check(cudaMemsetAsync(report, 0, sizeof(TileReport), stream_), "clearing a report");
  const TileList list{tiles_.data(), &report->listed};
  const CandidateList candidates{candidates_.data(), candidates_.size(), &report->candidates};
  launch_list(left_, right(), is_half(screen_.half), plan_.index.strategy.grid_dims,
              true_reach(radii_.eps, request_.left().dims), whole_, rectangle_, list,
              &report->screened, stream_);
  if (wants_pairs(request_.output()))
    find_pairs(list, candidates);
  else
    launch_count(screen_, list, decision_, count_, candidates, multiprocessors_, stream_);
  copy_to_host(host_report_.as<TileReport>(), report, 1, stream_);
}

void TileWalk::find_pairs(const TileList& list, const CandidateList& candidates) {
  launch_screen(screen_, list, candidates, multiprocessors_, stream_);
  rank_.base = first_point();
  fill_counts(counts_.data(), slice_points(), themselves() == Themselves::kAll ? 1 : 0, stream_);
  launch_decide(decision_, rank_, candidates, multiprocessors_, stream_);
  place_pairs(candidates);
}

/// Gives every pair its place, and writes the slice's neighbours.
void TileWalk::place_pairs(const CandidateList& candidates) {
  const std::uint64_t items = std::uint64_t{slice_points()} + 1;
  check(cudaMemsetAsync(counts_.data() + items - 1, 0, sizeof(std::uint32_t), stream_),
        "clearing counts");
  add_up(device_budget_, counts_.data(), offsets_.data(), items, stream_);
  launch_scatter(rank_, candidates, offsets_.data(), themselves() == Themselves::kAll,
                 slice_points(), neighbors_.data(), distances_.data(), multiprocessors_, stream_);
  copy_to_host(host_offsets_.as<std::uint64_t>(), offsets_.data(), items, stream_);
}

/// Slices grow or shrink towards half the room for candidates. Counts of a slice are right whether
/// they fitted or not.
bool TileWalk::finish_slice() {
  if (finished()) return true;
  const TileReport& report = *host_report_.as<TileReport>();
  const std::uint64_t tiles = std::max<std::uint64_t>(1, rectangle_.size());
  const double fitting = static_cast<double>(tiles) * static_cast<double>(candidates_.size()) / 2 /
                         std::max(1.0, static_cast<double>(report.candidates));
  if (wants_pairs(request_.output()) && report.candidates > candidates_.size()) {
    // One pair of tiles always fits.
    most_tiles_ = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(fitting), 1, tiles / 2);
    return false;
  }
  most_tiles_ =
      static_cast<std::uint64_t>(std::clamp(fitting, 1.0, static_cast<double>(tile_capacity_)));
  found_ += report.pairs;
  themselves_ += report.themselves;
  screened_ += report.screened;
  rechecked_ += report.rechecked;
  if (themselves() == Themselves::kAll) diagonal_points_ += slice_points();
  compared_tiles_ += is_half(screen_.half) ? rectangle_.upper_half() : rectangle_.size();
  const bool row_is_done = rectangle_.end_column == right().tiles;
  next_column_ = row_is_done ? 0 : rectangle_.end_column;
  if (row_is_done) rows_.first = rectangle_.end_row;
  return true;
}

CountedSlice TileWalk::slice() const {
  return {first_point(),
          first_point() + slice_points(),
          host_offsets_.as<std::uint64_t>(),
          offsets_.data(),
          neighbors_.data(),
          distances_.data(),
          themselves(),
          finished()};
}

std::uint64_t TileWalk::pairs() const {
  return pairs_of_entries(is_mirrored(pattern_, request_.pairs()), found_, themselves_) +
         diagonal_points_;
}

void TileWalk::fill(const Stretch&, const FillRange&, cudaStream_t) {}

Buffer<std::uint32_t> TileWalk::counts() {
  launch_add_rows(whole_, left_.points, counts_.data(), stream_);
  Buffer<std::uint32_t> by_position(host_budget_, left_.points);
  copy_to_host(by_position.data(), counts_.data(), by_position.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying counts");
  return by_position;
}

void TileWalk::describe(JoinStats* stats) const {
  stats->candidates = screened_;
  stats->rechecked = rechecked_;
  const TileRectangle all{0, left_.tiles, 0, right().tiles};
  stats->work = is_half(screen_.half) ? all.upper_half() : all.size();
  stats->work_done = compared_tiles_;
}

}  // namespace gpujoin::cuda

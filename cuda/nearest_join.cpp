#include "cuda/nearest_join.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/threshold.h"
#include "cuda/nearest/row_search.h"
#include "cuda/tiles/tensor_check.h"
#include "engine/strategy/screen_frame.h"

namespace gpujoin::cuda {
namespace {

/// Columns from which on tiles are faster than a tree, where they serve the metric: of any number
/// of right points, or of up to so many. Measured on an H200, uniform, k = 8: of 8 columns and
/// 1 million rows the tree takes 0.29 s and tiles 0.47, of 10 and 500,000 0.38 and 0.14, of 12 and
/// 300,000 0.53 and 0.06.
constexpr std::uint32_t kTileDims = 12, kFewestTileDims = 9;
constexpr std::uint64_t kFewRightPoints = 1000000;

bool has_many_columns(const JoinRequest& request) {
  const std::uint32_t dims = request.left().dims;
  return dims >= kTileDims || (dims >= kFewestTileDims && request.right().rows <= kFewRightPoints);
}

/// Screens are of squared distances.
bool wants_tiles(const JoinRequest& request) {
  const Metric metric = request.metric();
  if (metric != Metric::kL2 && metric != Metric::kCosine) return false;
  const IndexMethod asked = request.knobs.index;
  return asked == IndexMethod::kTiles || (asked == IndexMethod::kAuto && has_many_columns(request));
}

/// Neighbours of a slice at most, where a point has no more, and slices on their way. A slice of
/// few points leaves much of the device idle.
struct SliceSizes {
  std::uint64_t entries;
  std::uint64_t slots;
};
constexpr SliceSizes kFewNeighbors{std::uint64_t{1} << 22, 3},
    kManyNeighbors{std::uint64_t{1} << 24, 2};

SliceSizes slice_sizes(std::uint32_t k) { return k <= 32 ? kFewNeighbors : kManyNeighbors; }

/// Left points of a slice that is no smaller than a tile.
constexpr std::uint32_t kFewestSlicePoints = kScreenTile;

std::uint32_t most_neighbors(const JoinRequest& request) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, std::min(request.neighbors(), request.right().rows)));
}

/// Returns how many entries fit in half of what the budget has left.
std::uint64_t entries_within(const SliceSizes& sizes, const MemoryBudget& budget) {
  constexpr std::uint64_t kEntryBytes = 2 * (sizeof(std::uint32_t) + sizeof(double));
  return budget.left() / 2 / (sizes.slots * kEntryBytes);
}

/// Returns how many bytes lists of candidates may take on the device.
std::uint64_t round_bytes(JoinResources& resources) {
  return std::min(resources.device.left(), resources.context.available_bytes(0)) / 4;
}

}  // namespace

JoinKey key_of_nearest(const JoinRequest& request) {
  constexpr int kTiles = 0;
  const std::uint32_t columns =
      tree_columns(request.metric(), request.right().dims, most_neighbors(request));
  return key_of_neighbors(request, wants_tiles(request) ? kTiles : static_cast<int>(columns));
}

double nearest_ms(const JoinRequest& request) {
  const auto left = static_cast<double>(request.left().rows);
  if (!has_many_columns(request)) return left * most_neighbors(request) * kNeighborNs / 1e6;
  return left * static_cast<double>(request.right().rows) * request.left().dims * kTileNumberNs /
         1e6;
}

/// Rows as they came, in single precision as directions, in double precision and in order with two
/// keys while sorting, or half as many bits for a screen.
std::uint64_t nearest_device_bytes(const JoinRequest& request, std::uint64_t rows) {
  const std::uint64_t dims = request.left().dims;
  const std::uint64_t directions = request.metric() == Metric::kCosine ? dims * sizeof(float) : 0;
  const std::uint64_t ordered = has_many_columns(request)
                                    ? (dims + 15) / 16 * 16 * sizeof(float) / 2
                                    : 2 * dims * sizeof(double);
  constexpr std::uint64_t kKeys = 6 * 8;
  return rows * (point_bytes(request.left()) + directions + ordered + kKeys);
}

NearestJoin::Slot::Slot(JoinResources& resources, std::uint32_t most, std::uint32_t k)
    : rows(resources.device, most, resources.stream),
      counts(resources.device, most, resources.stream),
      neighbors(resources.device, std::size_t{most} * k, resources.stream),
      distances(resources.device, std::size_t{most} * k, resources.stream),
      host_rows(resources.host, rows.bytes()),
      host_counts(resources.host, counts.bytes()),
      host_neighbors(resources.host, neighbors.bytes()),
      host_distances(resources.host, distances.bytes()),
      host_report(resources.host, sizeof(SearchReport)),
      offsets(resources.host, std::size_t{most} + 1) {}

NearestJoin::NearestJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
                         const NearestShares& shares)
    : DeviceJoin(request, std::move(resources)),
      uploader_(resources_->host, request.resources.threads),
      shares_(shares),
      k_(most_neighbors(request)) {
  stats_.strategy.sort_column = kNoColumn;
  if (!request.sides.has_pairs()) {
    phase_ = Phase::kEnd;
    return;
  }
  if (wants_tiles(request) && !tensor_sums_are_close(resources_->context, stream_))
    throw Unable{"the tensor cores of the device are less exact than nearest-neighbor joins need"};
  stop_.emplace(*resources_, stream_);
  open_sides();
}

NearestJoin::~NearestJoin() {
  if (stop_) stop_->raise();
  cudaStreamSynchronize(stream_);
  for (Slot& slot : slots_) cudaStreamSynchronize(slot.stream);
  search_.reset();
}

/// A side that this join prepares.
std::shared_ptr<NearestSide> NearestJoin::make_side(const Dataset& data,
                                                    const std::shared_ptr<SideSlot>& rows) {
  auto side = std::make_shared<NearestSide>(data, shares_.kept.get(), rows, resources_);
  unprepared_.push_back(side.get());
  ++(side->rows_were_there() ? stats_.reused_sides : stats_.indexed_sides);
  return side;
}

void NearestJoin::open_sides() {
  const KeptJoin* const kept = shares_.kept.get();
  if (kept != nullptr) right_ = std::static_pointer_cast<NearestSide>(kept->right->find(kept));
  if (right_) {
    right_->hold(stream_);
    ++stats_.reused_sides;
  }
  if (!request_.self_join()) left_ = make_side(request_.left(), shares_.left_rows);
  if (!right_) right_ = make_side(request_.right(), shares_.right_rows);
  if (request_.self_join()) left_ = right_;
}

bool NearestJoin::prepares_right() const {
  return std::find(unprepared_.begin(), unprepared_.end(), right_.get()) != unprepared_.end();
}

/// The request whose sample frames are chosen by: what is kept serves other left points, too.
JoinRequest NearestJoin::framed() const {
  JoinRequest request = request_;
  if (shares_.kept) request.sides = Sides::one(request_.right(), PairSelection::kAll);
  return request;
}

/// Sets *batch; or goes from one phase to the next if the device is done with it.
Progress NearestJoin::move_on(ResultBatch* batch) {
  if (phase_ == Phase::kSearch) return search(batch);
  if (phase_ == Phase::kEnd) return Progress::kEnd;
  if (phase_ == Phase::kUpload) {
    if (upload()) request_.metric() == Metric::kCosine ? find_directions() : prepare_search();
    return Progress::kSome;
  }
  if (!step_.done()) return Progress::kNone;
  phase_ == Phase::kDirections ? prepare_search() : search_tree();
  return Progress::kSome;
}

/// Copies rows for some milliseconds. True: all are there.
bool NearestJoin::upload() {
  if (uploaded_ == unprepared_.size()) return true;
  NearestSide* const side = unprepared_[uploaded_];
  if (!side->copy_piece(uploader_)) return false;
  if (side == right_.get()) side->name(request_.right(), uploader_);
  return ++uploaded_ == unprepared_.size();
}

void NearestJoin::find_directions() {
  for (NearestSide* const side : unprepared_) side->find_directions();
  step_.record(stream_);
  phase_ = Phase::kDirections;
}

NeighborQuestion NearestJoin::question() {
  return {.metric = request_.metric(),
          .dims = request_.left().dims,
          .k = k_,
          .most_raw = make_threshold(request_.metric(), request_.eps()).raw,
          .without_itself = request_.self_join() && request_.pairs() == PairSelection::kDistinct,
          .right_ids = right_->ids(),
          .stop = stop_->get()};
}

/// Of extreme vectors directions prove nothing: then all are looked at, in a tree that nothing is
/// kept of.
void NearestJoin::prepare_search() {
  const bool extreme = left_->extreme() || right_->extreme();
  if (!wants_tiles(request_) || extreme) {
    if (extreme) shares_.kept = nullptr;
    if (right_->rounded().points == 0) return sort_sides();
    right_ = make_side(request_.right(), shares_.right_rows);  // it was found as tiles
    phase_ = Phase::kUpload;
    return;
  }
  if (prepares_right()) right_->choose_rounding(choose_screen_frame(framed(), false));
  for (NearestSide* const side : unprepared_) side->round(right_->rounding());
  keep_right();
  const std::uint64_t bytes = round_bytes(*resources_);
  const int multiprocessors = resources_->context.properties().multiProcessorCount;
  if (left_->rounded().points == 1 && row_search_bytes(*right_) <= bytes)
    search_ =
        make_row_search(question(), *left_, *right_, resources_->device, multiprocessors, stream_);
  else
    search_ = make_screened_search(question(), *left_, *right_, resources_->device,
                                   resources_->host, bytes, multiprocessors, stream_);
  start_search();
}

void NearestJoin::sort_sides() {
  const CurveFrame frame = prepares_right() ? choose_curve_frame(framed()) : right_->frame();
  for (NearestSide* const side : unprepared_) side->sort(frame);
  step_.record(stream_);
  phase_ = Phase::kSort;
}

/// Leaves the right side, which is all in the stream, to the joins that follow.
void NearestJoin::keep_right() {
  if (!shares_.kept || !prepares_right()) return;
  right_->finish();
  shares_.kept->right->put(right_);
}

void NearestJoin::search_tree() {
  if (left_->points() == 0 || right_->points() == 0) {
    phase_ = Phase::kEnd;
    stats_.strategy.index = IndexMethod::kKdTree;
    return;
  }
  for (NearestSide* const side : unprepared_)
    side->order(tree_columns(request_.metric(), request_.left().dims, k_));
  if (prepares_right()) right_->make_tree();
  keep_right();
  search_ = make_box_search(question(), *left_, *right_, left_->extreme() || right_->extreme(),
                            resources_->device, stream_);
  start_search();
}

void NearestJoin::start_search() {
  phase_ = Phase::kSearch;
  const SliceSizes sizes = slice_sizes(k_);
  const std::uint64_t entries = std::min({sizes.entries, entries_within(sizes, resources_->host),
                                          entries_within(sizes, resources_->device)});
  const std::uint64_t most = std::max<std::uint64_t>(
      kFewestSlicePoints, entries / k_ / kFewestSlicePoints * kFewestSlicePoints);
  slice_points_ = static_cast<std::uint32_t>(
      std::min<std::uint64_t>({most, search_->most_slice_points(),
                               (std::uint64_t{search_->points()} + kFewestSlicePoints - 1) /
                                   kFewestSlicePoints * kFewestSlicePoints}));
  const std::uint64_t slices =
      (search_->points() + std::uint64_t{slice_points_} - 1) / slice_points_;
  for (std::uint64_t i = 0; i < std::min(sizes.slots, slices); ++i)
    slots_.emplace_back(*resources_, slice_points_, k_);
  stats_.streams = static_cast<std::uint32_t>(slots_.size());
  stats_.batch_pairs = std::uint64_t{slice_points_} * k_;
  stats_.index_ms = since_open_.milliseconds();
  left_ids_ = ids_of_rows(request_.left(), left_numbers_);
  right_ids_ = request_.self_join() ? left_ids_ : ids_of_rows(request_.right(), right_numbers_);
}

/// Phase kSearch: sets *batch, or does what can be done.
Progress NearestJoin::search(ResultBatch* batch) {
  const bool waits_for_slice = delivered_ < launched_;
  if (waits_for_slice && oldest().arrived.done())
    return deliver(batch) ? Progress::kBatch : Progress::kSome;
  if (searching_) {
    if (!step_.done()) return Progress::kNone;
    if (search_->proceed())
      finish_slice();
    else
      step_.record(stream_);
    return Progress::kSome;
  }
  if (!shares_.work.is_taken(search_->points()) && launched_ - delivered_ < slots_.size()) {
    start_slice();
    return Progress::kSome;
  }
  if (waits_for_slice) return Progress::kNone;
  phase_ = Phase::kEnd;
  return Progress::kEnd;
}

void NearestJoin::start_slice() {
  Slot& slot = slots_[launched_ % slots_.size()];
  const Places places = shares_.work.take(search_->points(), slice_points_, kFewestSlicePoints);
  slot.points = places.count();
  slot.is_packed = false;
  const NeighborSlice slice{places.first,       slot.points,           slot.rows.data(),
                            slot.counts.data(), slot.neighbors.data(), slot.distances.data()};
  searching_ = true;
  if (search_->start(slice))
    finish_slice();
  else
    step_.record(stream_);
}

/// Sends the slice in progress on its way.
void NearestJoin::finish_slice() {
  Slot& slot = slots_[launched_++ % slots_.size()];
  searching_ = false;
  searched_points_ += slot.points;
  slot.searched.record(stream_);
  slot.searched.hold(slot.stream);
  copy_to_host(slot.host_report.as<SearchReport>(), search_->report(), 1, slot.stream);
  copy_to_host(slot.host_rows.as<std::uint32_t>(), slot.rows.data(), slot.points, slot.stream);
  copy_to_host(slot.host_counts.as<std::uint32_t>(), slot.counts.data(), slot.points, slot.stream);
  const std::size_t entries = std::size_t{slot.points} * k_;
  copy_to_host(slot.host_neighbors.as<std::uint32_t>(), slot.neighbors.data(), entries,
               slot.stream);
  copy_to_host(slot.host_distances.as<double>(), slot.distances.data(), entries, slot.stream);
  slot.arrived.record(slot.stream);
}

/// Rows one after another, without those that have no neighbours and without gaps between them.
void NearestJoin::pack(Slot& slot) {
  counted_ = *slot.host_report.as<SearchReport>();
  const bool has_gaps = counted_.short_rows > 0;
  auto* const rows = slot.host_rows.as<std::uint32_t>();
  auto* const neighbors = slot.host_neighbors.as<std::uint32_t>();
  auto* const distances = slot.host_distances.as<double>();
  const auto* const counts = slot.host_counts.as<std::uint32_t>();
  std::uint64_t entries = 0;
  slot.row_count = 0;
  for (std::uint32_t i = 0; i < slot.points; ++i) {
    const std::uint32_t count = has_gaps ? counts[i] : k_;
    if (count == 0) continue;
    if (has_gaps) {
      const std::uint64_t from = std::uint64_t{i} * k_;
      std::copy_n(neighbors + from, count, neighbors + entries);
      std::copy_n(distances + from, count, distances + entries);
      rows[slot.row_count] = rows[i];
    }
    slot.offsets[slot.row_count++] = entries;
    entries += count;
  }
  slot.offsets[slot.row_count] = entries;
  slot.delivered = 0;
  slot.is_packed = true;
}

/// The next rows of the oldest slice, which has arrived. False: it has no more, and its slot serves
/// the next one.
bool NearestJoin::deliver(ResultBatch* batch) {
  Slot& slot = oldest();
  if (!slot.is_packed) pack(slot);
  if (slot.delivered == slot.row_count) {
    ++delivered_;
    return false;
  }
  const std::uint64_t* const offsets = slot.offsets.data() + slot.delivered;
  const std::uint64_t most =
      request_.knobs.batch_pairs > 0 ? request_.knobs.batch_pairs : ~std::uint64_t{0};
  std::uint32_t rows = slot.row_count - slot.delivered;
  if (offsets[rows] - offsets[0] > most)
    rows = std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(
               std::upper_bound(offsets, offsets + rows + 1, offsets[0] + most) - offsets - 1));
  *batch = {};
  batch->row_count = rows;
  batch->pair_count = offsets[rows] - offsets[0];
  batch->rows = slot.host_rows.as<std::uint32_t>() + slot.delivered;
  batch->offsets = offsets;
  batch->neighbors = slot.host_neighbors.as<std::uint32_t>() + offsets[0];
  batch->distances = slot.host_distances.as<double>() + offsets[0];
  slot.delivered += rows;
  return true;
}

void NearestJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  stats->candidates = counted_.candidates;
  stats->rechecked = counted_.rechecked;
  if (search_) {
    search_->describe(stats);
    stats->work = search_->points();
    stats->work_done = searched_points_;
  }
  stats->threads = uploader_.threads();
  DeviceJoin::stats(stats);
}

}  // namespace gpujoin::cuda

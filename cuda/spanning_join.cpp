#include "cuda/spanning_join.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"
#include "engine/strategy/spanning_work.h"

namespace gpujoin::cuda {
namespace {

constexpr std::uint32_t kLeafPoints = 12;
/// Columns up to which a tree of boxes leaves out enough.
constexpr std::uint32_t kMostTreeColumns = 16;
/// Neighbours of a core distance, which lie in memory beyond a few.
constexpr std::uint64_t kMostCoreNeighbors = 1000;
constexpr std::uint64_t kCoreBytes = std::uint64_t{256} << 20;
/// Points of a launch for core distances.
constexpr std::uint64_t kSlicePoints = std::uint64_t{1} << 19;

/// How many other points a core distance asks for.
std::uint64_t core_neighbors(const JoinRequest& request) { return request.min_points() - 1; }

bool has_numbers(const JoinRequest& request) {
  const std::uint64_t k = core_neighbors(request);
  return k > kOwnCoreNumbers && k < request.left().rows;
}

}  // namespace

const char* objection_to_spanning(const JoinRequest& request) {
  if (request.metric() == Metric::kCosine)
    return "the device finds no spanning trees by cosine distance";
  if (request.left().rows > 0 && request.left().dims > kMostTreeColumns)
    return "the device finds no spanning trees of points with more than 16 dimensions";
  const std::uint64_t k = core_neighbors(request);
  if (k > kMostCoreNeighbors && k < request.left().rows)
    return "the device finds no core distances of so many neighbors";
  return nullptr;
}

/// Rows as they came, in order with boxes and facts of nodes, keys while sorting, ids, and what
/// SpanningView has of a point; edges twice while they are sorted.
std::uint64_t spanning_device_bytes(const JoinRequest& request) {
  const std::uint64_t columns = padded_tree_columns(request.metric(), request.left().dims);
  constexpr std::uint64_t kKeys = 6 * 8 + 8, kNodes = 6, kPoint = 7 * 4 + 8 * 8 + 1, kSorted = 24;
  return request.left().rows *
             (point_bytes(request.left()) + 12 * columns + kKeys + kNodes + kPoint + kSorted) +
         (has_numbers(request) ? kCoreBytes : 0) + (std::uint64_t{1} << 20);
}

SpanningJoin::SpanningJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
                           std::shared_ptr<SideSlot> rows)
    : DeviceJoin(request, std::move(resources)),
      uploader_(resources_->host, request.resources.threads) {
  stats_.strategy.index = IndexMethod::kKdTree;
  stats_.strategy.sort_column = kNoColumn;
  if (!request.sides.has_pairs()) {
    phase_ = Phase::kEnd;
    return;
  }
  stop_.emplace(*resources_, stream_);
  finite_ = DeviceBuffer<unsigned>(resources_->device, 1, stream_);
  host_finite_ = PinnedBlock(resources_->host, finite_.bytes());
  report_ = DeviceBuffer<SpanningReport>(resources_->device, 1, stream_);
  host_report_ = PinnedBlock(resources_->host, report_.bytes());
  *host_report_.as<SpanningReport>() = {};
  check(cudaMemsetAsync(finite_.data(), 0, finite_.bytes(), stream_), "clearing flags");
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream_), "clearing flags");
  rows_.emplace(request_.left(), resources_, std::move(rows));
  data_ = rows_->points();
  ++(rows_->were_there() ? stats_.reused_sides : stats_.indexed_sides);
}

SpanningJoin::~SpanningJoin() {
  if (stop_) stop_->raise();
  cudaStreamSynchronize(stream_);
}

/// Goes on when the device is done with what is in the stream.
void SpanningJoin::record(Phase phase) {
  step_.record(stream_);
  phase_ = phase;
}

/// Sets *batch; or goes from one phase to the next if the device is done with it.
Progress SpanningJoin::move_on(ResultBatch* batch) {
  if (phase_ == Phase::kEnd) return Progress::kEnd;
  if (phase_ == Phase::kUpload) {
    if (rows_->copy_piece(uploader_)) sort_points();
    return Progress::kSome;
  }
  if (phase_ == Phase::kClusters) return deliver_clusters(batch);
  if (!step_.done()) return Progress::kNone;
  if (phase_ == Phase::kEdges) return deliver_edges(batch);
  if (phase_ == Phase::kSort)
    build_tree();
  else if (phase_ == Phase::kCores)
    find_cores();
  else if (finish_round())
    start_round();
  else
    sort_edges();
  return Progress::kSome;
}

void SpanningJoin::sort_points() {
  ordered_ = sort_by_curve(resources_->device, data_, choose_curve_frame(request_), finite_.data(),
                           stream_);
  copy_to_host(host_finite_.as<unsigned>(), finite_.data(), 1, stream_);
  record(Phase::kSort);
}

void SpanningJoin::build_tree() {
  const unsigned finite = *host_finite_.as<unsigned>();
  rank_rows();
  if (finite == 0 || core_neighbors(request_) >= finite) return sort_edges();  // no edges
  BoxTree& tree = view_.table.points.tree;
  const std::uint32_t stride = padded_tree_columns(request_.metric(), request_.left().dims);
  order_coordinates(resources_->device, data_, finite, stride, ordered_, stream_);
  tree = {finite, tree_levels(finite, kLeafPoints), stride, ordered_.coordinates.data(), nullptr};
  boxes_ = find_boxes(resources_->device, tree, stream_);
  tree.boxes = boxes_.data();
  std::snprintf(stats_.strategy.reason, sizeof stats_.strategy.reason, "%u leaves", tree.leaves());
  make_table();
  stats_.index_ms = since_open_.milliseconds();
  find_cores();
}

/// Ranks by (id, row), of all rows.
void SpanningJoin::rank_rows() {
  MemoryBudget& budget = resources_->device;
  const auto rows = static_cast<std::uint32_t>(request_.left().rows);
  rows_by_rank_ = DeviceBuffer<std::uint32_t>(budget, rows, stream_);
  if (request_.left().ids == nullptr) {
    launch_rank_keys(nullptr, rows, nullptr, rows_by_rank_.data(), stream_);
  } else {
    DeviceBuffer<std::int64_t> ids(budget, rows, stream_);
    uploader_.copy(ids.data(), request_.left().ids, ids.bytes(), stream_);
    DeviceBuffer<std::uint64_t> keys(budget, rows, stream_), sorted_keys(budget, rows, stream_);
    DeviceBuffer<std::uint32_t> numbers(budget, rows, stream_);
    launch_rank_keys(ids.data(), rows, keys.data(), numbers.data(), stream_);
    sort_pairs<std::uint32_t>(
        budget, {keys.data(), sorted_keys.data(), numbers.data(), rows_by_rank_.data(), rows}, {},
        stream_);
  }
  positions_ = DeviceBuffer<std::uint32_t>(budget, rows, stream_);
  ranks_ = DeviceBuffer<std::uint32_t>(budget, rows, stream_);
  DeviceBuffer<std::uint32_t> position_of_row(budget, rows, stream_);
  launch_positions_of_rows(ordered_.order.data(), rows, position_of_row.data(), stream_);
  launch_ranks(rows_by_rank_.data(), position_of_row.data(), rows, positions_.data(), ranks_.data(),
               stream_);
}

/// Room for what is known of points, components and nodes.
void SpanningJoin::make_table() {
  MemoryBudget& budget = resources_->device;
  const std::uint32_t finite = points();
  const auto make = [&](auto& buffer, std::size_t size) {
    buffer = std::remove_reference_t<decltype(buffer)>(budget, size, stream_);
    return buffer.data();
  };
  EdgeTable& table = view_.table;
  table.points.metric = request_.metric();
  table.points.ranks = ranks_.data();
  table.points.facts = view_.facts = make(facts_, std::size_t{2} * table.points.tree.leaves());
  table.points.cores = view_.cores = make(cores_, finite);
  table.points.components = view_.components = make(components_, finite);
  table.positions = positions_.data();
  table.distances = make(found_distances_, finite);
  table.ends = make(found_ends_, finite);
  table.proven = make(proven_, finite);
  table.least = make(least_, finite);
  table.first_distances = make(first_distances_, finite);
  table.first_ends = make(first_ends_, finite);
  view_.open = make(open_, finite);
  view_.edge_distances = make(edge_distances_, finite);
  view_.edge_ends = make(edge_ends_, finite);
  view_.labels = {finite, make(links_, finite), nullptr};
  view_.report = report_.data();
  view_.stop = stop_->get();
}

/// A point's core distance.
std::uint64_t SpanningJoin::core_work() const {
  return core_neighbors(request_) == 0 ? 0 : spanning_search_work(request_.left().dims);
}

/// The next round's. In the first one each point searches from scratch.
std::uint64_t SpanningJoin::round_work() const {
  const std::uint64_t search = edges_ == 0 ? spanning_search_work(request_.left().dims) : 0;
  return (1 + search) * points();
}

/// A slice of points, or all that are known; after the last one the first round.
void SpanningJoin::find_cores() {
  work_done_ = core_work() * cores_end_;
  work_left_ = core_work() * (points() - cores_end_) + round_work() +
               (spanning_rounds(points()) - 1) * points();
  const auto k = static_cast<std::uint32_t>(core_neighbors(request_));
  if (k == 0) {
    check(cudaMemsetAsync(cores_.data(), 0, cores_.bytes(), stream_), "clearing distances");
    cores_end_ = points();
  }
  if (cores_end_ == points()) {
    numbers_ = {};
    launch_components(view_, stream_);
    return start_round();
  }
  std::uint64_t most = kSlicePoints;
  if (k > kOwnCoreNumbers) {
    const std::uint64_t limit = request_.resources.device_memory_limit;
    const std::uint64_t bytes = limit == 0 ? kCoreBytes : std::min(kCoreBytes, limit / 8);
    most = std::clamp<std::uint64_t>(bytes / (std::uint64_t{k} * sizeof(double)), 1, kSlicePoints);
    most = std::min<std::uint64_t>(most, points());
    if (numbers_.size() == 0)
      numbers_ = DeviceBuffer<double>(resources_->device, most * k, stream_);
  }
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(most, points() - cores_end_));
  launch_cores(view_, {cores_end_, count, k, numbers_.data()}, stream_);
  cores_end_ += count;
  record(Phase::kCores);
}

void SpanningJoin::start_round() {
  launch_round(view_, stream_);
  copy_to_host(host_report_.as<SpanningReport>(), report_.data(), 1, stream_);
  record(Phase::kRounds);
}

/// Whether another round may find edges.
bool SpanningJoin::finish_round() {
  data_ = {};  // the device is done with the rows, whichever stream they are of
  rows_.reset();
  work_done_ += round_work();
  const std::uint32_t edges = host_report_.as<SpanningReport>()->edges;
  const bool goes_on = edges_ < edges && edges + 1 < points();
  edges_ = edges;
  work_left_ = goes_on ? spanning_rounds(points() - edges) * points() : 0;
  return goes_on;
}

/// In the order in which they come; the rest of what is known goes.
void SpanningJoin::sort_edges() {
  MemoryBudget& budget = resources_->device;
  for (auto* const buffer : {&positions_, &ranks_, &components_, &links_, &open_}) *buffer = {};
  for (auto* const buffer : {&cores_, &found_distances_, &least_, &first_distances_}) *buffer = {};
  for (auto* const buffer : {&found_ends_, &first_ends_}) *buffer = {};
  proven_ = {};
  facts_ = {};
  boxes_ = {};
  ordered_ = {};
  if (edges_ > 0) {
    // By ends first, then, stably, by distances, whose bits are in their order.
    DeviceBuffer<std::uint64_t> ends(budget, edges_, stream_), distances(budget, edges_, stream_);
    auto* const bits = reinterpret_cast<std::uint64_t*>(edge_distances_.data());
    sort_pairs<std::uint64_t>(
        budget, {edge_ends_.data(), ends.data(), bits, distances.data(), edges_}, {}, stream_);
    sort_pairs<std::uint64_t>(
        budget, {distances.data(), bits, ends.data(), edge_ends_.data(), edges_}, {}, stream_);
    if (wants_edges())
      launch_rows_of_edges(edge_ends_.data(), edges_, rows_by_rank_.data(), stream_);
  }
  const std::uint64_t entries = batch_entries();
  piece_.ends = PinnedBlock(resources_->host, entries * sizeof(std::uint64_t));
  piece_.distances = PinnedBlock(resources_->host, entries * sizeof(double));
  offsets_ = Buffer<std::uint64_t>(resources_->host, entries + 1);
  std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
  batch_rows_ = Buffer<std::uint32_t>(resources_->host, entries);
  batch_neighbors_ = Buffer<std::uint32_t>(resources_->host, entries);
  left_ids_ = right_ids_ = ids_of_rows(request_.left(), numbers_of_rows_);
  if (!wants_edges())
    clusters_.emplace(resources_->host, request_.left().rows, request_.min_cluster_size());
  fetch_piece();
}

std::uint64_t SpanningJoin::batch_entries() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 18;
  const std::uint64_t asked = request_.knobs.batch_pairs;
  const std::uint64_t most = asked > 0 ? std::min(asked, kMost) : kMost;
  return std::clamp<std::uint64_t>(request_.left().rows, 1, most);
}

void SpanningJoin::fetch_piece() {
  piece_.first = piece_.end;
  piece_.clustered = 0;
  piece_.end +=
      static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_entries(), edges_ - piece_.first));
  const std::uint32_t count = piece_.end - piece_.first;
  if (count > 0) {
    copy_to_host(piece_.ends.as<std::uint64_t>(), edge_ends_.data() + piece_.first, count, stream_);
    copy_to_host(piece_.distances.as<double>(), edge_distances_.data() + piece_.first, count,
                 stream_);
  }
  record(Phase::kEdges);
}

/// The piece is there: a batch, or a part of what clusters follow from.
Progress SpanningJoin::deliver_edges(ResultBatch* batch) {
  const std::uint32_t count = piece_.end - piece_.first;
  const auto* const ends = piece_.ends.as<std::uint64_t>();
  const auto* const distances = piece_.distances.as<double>();
  if (!wants_edges()) {
    cluster_edges();
    return Progress::kSome;
  }
  if (count == 0) {
    phase_ = Phase::kEnd;
    return Progress::kEnd;
  }
  if (batch_distances_.size() == 0)
    batch_distances_ = Buffer<double>(resources_->host, batch_entries());
  std::copy_n(distances, count, batch_distances_.begin());
  for (std::uint32_t i = 0; i < count; ++i) {
    const TreeEdge edge{0, ends[i]};
    batch_rows_[i] = edge.first();
    batch_neighbors_[i] = edge.second();
  }
  *batch = {};
  batch->row_count = batch->pair_count = count;
  batch->rows = batch_rows_.data();
  batch->offsets = offsets_.data();
  batch->neighbors = batch_neighbors_.data();
  batch->distances = batch_distances_.data();
  fetch_piece();
  return Progress::kBatch;
}

/// Hands edges of the piece to the clusters, until these have done some milliseconds of other work;
/// then fetches the next piece, or gathers the clusters after the last edge.
void SpanningJoin::cluster_edges() {
  const std::uint32_t count = piece_.end - piece_.first;
  for (; piece_.clustered < count; ++piece_.clustered) {
    const TreeEdge edge{piece_.distances.as<double>()[piece_.clustered],
                        piece_.ends.as<std::uint64_t>()[piece_.clustered]};
    if (!clusters_->add(edge.first(), edge.second(), edge.distance)) return;
  }
  if (count > 0)
    fetch_piece();
  else if (clusters_->finish())
    gather_clusters();
}

/// Clusters are named by their numbers, and noise by a last one.
void SpanningJoin::gather_clusters() {
  const std::uint64_t rows = request_.left().rows;
  host_rows_by_rank_ = Buffer<std::uint32_t>(resources_->host, rows);
  copy_to_host(host_rows_by_rank_.data(), rows_by_rank_.data(), rows, stream_);
  check(cudaStreamSynchronize(stream_), "copying ranks");
  // There is always room for one more: two rows at least are in a cluster.
  numbers_of_clusters_ = Buffer<std::int64_t>(resources_->host, rows);
  std::iota(numbers_of_clusters_.begin(), numbers_of_clusters_.end(), std::int64_t{0});
  numbers_of_clusters_[clusters_->clusters()] = kNoCluster;
  right_ids_ = numbers_of_clusters_.data();
  batch_distances_ = Buffer<double>(resources_->host, batch_entries());
  phase_ = Phase::kClusters;
}

Progress SpanningJoin::deliver_clusters(ResultBatch* batch) {
  const std::uint64_t rows = request_.left().rows;
  const std::uint64_t count = std::min(batch_entries(), rows - delivered_);
  if (count == 0) {
    phase_ = Phase::kEnd;
    return Progress::kEnd;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rank = static_cast<std::uint32_t>(delivered_ + i);
    const std::uint32_t cluster = clusters_->cluster_of(rank);
    batch_rows_[i] = host_rows_by_rank_[rank];
    batch_neighbors_[i] = cluster == StableClusters::kNone ? clusters_->clusters() : cluster;
    batch_distances_[i] = clusters_->probability_of(rank);
  }
  delivered_ += count;
  *batch = {};
  batch->row_count = batch->pair_count = count;
  batch->rows = batch_rows_.data();
  batch->offsets = offsets_.data();
  batch->neighbors = batch_neighbors_.data();
  batch->distances = batch_distances_.data();
  return Progress::kBatch;
}

void SpanningJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  if (host_report_.as<SpanningReport>() != nullptr)
    stats->candidates = host_report_.as<SpanningReport>()->candidates;
  stats->work = work_done_ + work_left_;
  stats->work_done = work_done_;
  stats->threads = uploader_.threads();
  DeviceJoin::stats(stats);
}

}  // namespace gpujoin::cuda

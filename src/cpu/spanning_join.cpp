#include "cpu/spanning_join.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <numeric>

#include "cpu/index/large_buffer.h"
#include "cpu/walk/batch_writer.h"
#include "engine/stopwatch.h"
#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/spanning_work.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kRowsBetweenPolls = 1 << 16;

/// Runs walk(walker, begin, end) on stretches of so many items, on all workers, each item as so
/// much work.
template <class Walkers, class Walk>
void walk_stretches(const WalkTools& tools, Walkers& walkers, std::uint64_t items,
                    std::uint64_t work, const Walk& walk) {
  const std::uint64_t stretch = tools.stretch_of(items);
  const auto end = [&](std::uint64_t item) { return std::min(items, (item + 1) * stretch); };
  walk_tasks(
      tools, walkers, (items + stretch - 1) / stretch,
      [&](std::uint64_t item) { return work * (end(item) - item * stretch); },
      [&](auto& walker, std::uint64_t item) {
        walk(walker, static_cast<std::uint32_t>(item * stretch),
             static_cast<std::uint32_t>(end(item)));
      });
}

}  // namespace

std::uint64_t spanning_row_bytes(const JoinRequest& request) {
  constexpr std::uint64_t kNamed = 4 + 8, kLeafPoints = 16, kPoint = 2 * 8 + 4 * 4 + 16 + 9,
                          kSorting = 3 * 16;
  const std::uint64_t dims = request.left().dims;
  const std::uint64_t directions = request.metric() == Metric::kCosine ? sizeof(float) * dims : 0;
  const std::uint64_t boxes = 2 * 2 * 2 * sizeof(double) * dims / kLeafPoints;
  return kNamed + point_bytes(request.left()) + directions + boxes + kPoint + kSorting;
}

SpanningJoin::SpanningJoin(const JoinRequest& request) : ThreadedJoin(request) { start(); }

SpanningJoin::~SpanningJoin() { stop(); }

void SpanningJoin::run() {
  add_buffers();
  if (!request_.sides.has_pairs()) return;
  const Stopwatch watch;
  index_points();
  note([&](JoinStats& stats) {
    stats.strategy.index = IndexMethod::kKdTree;
    stats.strategy.sort_column = kNoColumn;
    stats.strategy.screened = request_.left().dims > kMaxDirectDimensions;
    std::snprintf(stats.strategy.reason, sizeof stats.strategy.reason, "%u leaves", tree_.leaves());
    stats.index_ms = watch.milliseconds();
    stats.indexed_sides = 1;
  });
  table_.emplace(tools(), tree_);
  const TreePoints points = tree_points();
  find_cores(points);
  find_edges(points);
  lists_ = {};
  table_->sort_edges();
  request_.output() == Output::kSpanningTree ? write_edges() : write_clusters();
}

void SpanningJoin::index_points() {
  if (request_.metric() == Metric::kCosine) {
    directions_ = find_directions(pool_, budget_, request_.left());
    indexed_ = directions_.view(request_.left());
  }
  tree_ = build_kd_tree(pool_, budget_, indexed_);
}

TreePoints SpanningJoin::tree_points() const {
  TreePoints points{};
  points.tree = &tree_;
  points.points = &request_.left();
  points.metric = request_.metric();
  points.indexed_metric = points.by_directions() ? Metric::kL2 : points.metric;
  points.any_direction = directions_.extreme;
  points.screened = tree_.dims > kMaxDirectDimensions;
  points.kernel =
      choose_scan_kernel(points.indexed_metric, tree_.scalar, tree_.dims, points.screened);
  return points;
}

/// Lists that are a little longer than core distances ask for tell the first edges of most points:
/// those within a core distance are all equally long. Long ones would cost more memory than points.
void SpanningJoin::make_lists() {
  constexpr std::uint64_t kFewest = 8, kSpare = 3, kMost = 16, kRowBytes = 128;
  const std::uint64_t length = std::max(kFewest, request_.min_points() - 1 + kSpare);
  const std::uint64_t entries = length * tree_.points;
  const std::uint64_t bytes = entries * (sizeof(std::uint32_t) + sizeof(double));
  const std::uint64_t limit = request_.resources.memory_limit;
  const std::uint64_t others = budget_.used() + kRowBytes * tree_.points;
  if (length > kMost || (limit > 0 && others + bytes > limit)) return;
  lists_.length = static_cast<std::uint32_t>(length);
  lists_.positions = large_buffer<std::uint32_t>(budget_, entries);
  lists_.distances = large_buffer<double>(budget_, entries);
}

/// And lists.
void SpanningJoin::find_cores(const TreePoints& points) {
  make_lists();
  const std::uint64_t neighbors = request_.min_points() - 1;
  const std::uint64_t work = spanning_search_work(tree_.dims);
  tally_.work.expect_later((spanning_rounds(tree_.points) + (lists_.length > 0 ? 0 : work)) *
                           tree_.points);
  std::deque<WalkProgress> progress;
  std::deque<CoreWalker> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker)
    walkers.emplace_back(points, neighbors, *table_, lists_, tools(),
                         progress.emplace_back(tally_));
  walk_stretches(tools(), walkers, tree_.points, work,
                 [](CoreWalker& walker, auto begin, auto end) { walker.walk(begin, end); });
}

void SpanningJoin::find_edges(const TreePoints& points) {
  PointEdges edges(budget_, tree_.points);
  std::fill(edges.least.begin(), edges.least.end(), 0.0);
  std::deque<WalkProgress> progress;
  std::deque<EdgeWalker> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker)
    walkers.emplace_back(points, lists_, *table_, edges, tools(), progress.emplace_back(tally_));
  const std::uint64_t round = tree_.points;
  do {
    const bool searches = table_->edges() == 0 && lists_.length == 0;
    const std::uint64_t work = searches ? (1 + spanning_search_work(tree_.dims)) * round : round;
    const std::uint64_t later = (spanning_rounds(tree_.points - table_->edges()) - 1) * round;
    table_->begin_round();
    tally_.work.expect_later(work + later);
    walk_stretches(tools(), walkers, tree_.points, 0,
                   [](EdgeWalker& walker, auto begin, auto end) { walker.walk_lists(begin, end); });
    tally_.work.expect_later(later);
    walk_stretches(
        tools(), walkers, tree_.leaves(), work / tree_.leaves(),
        [](EdgeWalker& walker, auto begin, auto end) { walker.walk_leaves(begin, end); });
  } while (table_->end_round());
  tally_.work.expect_later(0);
  tally_.work.begin_walk(0);
}

void SpanningJoin::write_edges() {
  WalkProgress progress(tally_);
  BatchWriter writer(queue_, progress, batch_entries());
  for (std::uint64_t number = 0; number < table_->edges(); ++number) {
    const TreeEdge edge = table_->edge(number);
    BatchBuffer& batch = writer.make_room(1);
    batch.neighbors[batch.entry_count] = edge.second();
    batch.distances[batch.entry_count] = edge.distance;
    writer.add_row(batch, edge.first(), 1, 1);
  }
  writer.flush();
}

void SpanningJoin::write_clusters() {
  const std::uint64_t rows = request_.left().rows;
  StableClusters clusters(budget_, rows, request_.min_cluster_size());
  for (std::uint64_t number = 0; number < table_->edges(); ++number) {
    if (number % kRowsBetweenPolls == 0) pool_.throw_if_stopped();
    const TreeEdge edge = table_->edge(number);
    while (!clusters.add(edge.first(), edge.second(), edge.distance)) pool_.throw_if_stopped();
  }
  while (!clusters.finish()) pool_.throw_if_stopped();
  numbers_ = Buffer<std::int64_t>(budget_, std::uint64_t{clusters.clusters()} + 1);
  std::iota(numbers_.begin(), numbers_.end(), std::int64_t{0});
  numbers_[clusters.clusters()] = kNoCluster;
  WalkProgress progress(tally_);
  BatchWriter writer(queue_, progress, batch_entries());
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto rank = static_cast<std::uint32_t>(row);
    const std::uint32_t cluster = clusters.cluster_of(rank);
    BatchBuffer& batch = writer.make_room(1);
    batch.neighbors[batch.entry_count] =
        cluster == StableClusters::kNone ? clusters.clusters() : cluster;
    batch.distances[batch.entry_count] = clusters.probability_of(rank);
    writer.add_row(batch, rank, 1, 1);
  }
  writer.flush();
}

/// Rows are named by rank; clusters by themselves.
ResultBatch SpanningJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  const Buffer<std::int64_t>& ids = table_->ids();
  if (request_.output() == Output::kSpanningTree)
    batch.set_ids(ids.data(), ids.size(), ids.data(), ids.size());
  else
    batch.set_ids(ids.data(), ids.size(), numbers_.data(), numbers_.size());
  return batch;
}

}  // namespace gpujoin::cpu

#include "cpu/box_join.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <type_traits>

#include "engine/stopwatch.h"

namespace gpujoin::cpu {

BoxJoin::BoxJoin(const JoinRequest& request) : ThreadedJoin(request) { start(); }

BoxJoin::BoxJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget)
    : ThreadedJoin(request, std::move(budget)) {
  start();
}

BoxJoin::~BoxJoin() { stop(); }

void BoxJoin::run() {
  add_buffers();
  const bool empty = !request_.sides.has_pairs();
  if (!empty) build_indexes();
  const std::uint64_t total = empty ? 0 : join();
  if (request_.output() == Output::kTotal) put_total(total);
}

void BoxJoin::build_indexes() {
  const Stopwatch watch;
  strategy_ = choose_box_strategy(request_);
  LayeredGrid grid{};
  if (strategy_.method == BoxMethod::kLayeredGrid) {
    const std::uint64_t affordable = request_.resources.memory_limit / 8 / sizeof(std::uint64_t);
    const Dataset& indexed = strategy_.indexed(request_);
    grid = make_layered_grid(
        indexed.rows, indexed.dims / 2, strategy_.spreads,
        make_box_test(request_.metric(), request_.eps()).reach,
        affordable == 0 ? kMostTableWords : std::min(kMostTableWords, affordable), kPartBoxes);
  }
  const bool both = strategy_.method == BoxMethod::kSortSweep && !request_.self_join();
  if (both || strategy_.left_indexed)
    left_ = build_box_index(pool_, budget_, strategy_, grid, request_.left());
  if (both || !strategy_.left_indexed)
    right_ = build_box_index(pool_, budget_, strategy_, grid, request_.right());
  left_ids_ = left_.ids.data();
  right_ids_ = request_.self_join() ? left_ids_ : right_.ids.data();
  if (left_ids_ == nullptr) left_ids_ = ids_of_rows(request_.left());
  if (right_ids_ == nullptr) right_ids_ = ids_of_rows(request_.right());
  note([&](JoinStats& stats) {
    stats.box_method = strategy_.method;
    stats.strategy.sort_column = kNoColumn;
    stats.strategy.estimated_pairs = strategy_.pairs;
    std::copy_n(strategy_.reason, sizeof strategy_.reason, stats.strategy.reason);
    stats.index_ms = watch.milliseconds();
  });
}

/// The ids of the side that has no index.
const std::int64_t* BoxJoin::ids_of_rows(const Dataset& data) {
  if (data.ids != nullptr) return data.ids;
  row_ids_ = Buffer<std::int64_t>(budget_, data.rows);
  std::iota(row_ids_.begin(), row_ids_.end(), std::int64_t{0});
  return row_ids_.data();
}

/// Returns the number of pairs where that is the output.
std::uint64_t BoxJoin::join() {
  std::atomic<std::uint64_t> total{0};
  const bool sweep = strategy_.method == BoxMethod::kSortSweep;
  BoxWalk walk{};
  walk.method = strategy_.method;
  walk.test = make_box_test(request_.metric(), request_.eps());
  walk.kernel = choose_box_scan(walk.test, request_.left().scalar, request_.left().dims / 2);
  walk.sweep_dimension = strategy_.dimension;
  walk.pairs = request_.pairs();
  walk.self_join = request_.self_join();
  walk.batch_entries = batch_entries();
  const auto run_walk = [&](bool left_looks) {
    const Dataset& rows = left_looks ? request_.left() : request_.right();
    walk.rows = &rows;
    walk.sorted = request_.self_join() || (sweep && left_looks) ? &left_
                  : sweep                                       ? &right_
                                                                : nullptr;
    walk.index = request_.self_join() || !left_looks ? &left_ : &right_;
    walk.first_side = left_looks;
    const auto walk_into = [&](const auto& make_sink) {
      if (rows.scalar == ScalarType::kFloat32)
        this->walk<float>(walk, make_sink);
      else
        this->walk<double>(walk, make_sink);
    };
    if (request_.output() == Output::kTotal)
      walk_into([&](WalkProgress&) { return TotalSink(total, walk.mirrored()); });
    else
      walk_into([&](WalkProgress& progress) {
        return BoxPairSink(BatchWriter(queue_, progress, batch_entries()), walk.mirrored(),
                           !left_looks);
      });
  };
  const bool both = sweep && !request_.self_join();
  tally_.work.expect_walks(both ? 2 : 1);
  run_walk(both || request_.self_join() || !strategy_.left_indexed);
  if (both) run_walk(false);
  return total;
}

/// Walks on all workers, each with a sink of its own: make_sink(progress).
template <class T, class MakeSink>
void BoxJoin::walk(const BoxWalk& walk, const MakeSink& make_sink) {
  std::deque<BoxWalker<T, std::invoke_result_t<const MakeSink&, WalkProgress&>>> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker)
    walkers.emplace_back(walk, tools(), make_sink);

  // In a nested loop, as many boxes at a time as stay in the cache.
  constexpr std::uint64_t kPieceBoxes = 1 << 14;
  const std::uint64_t boxes = walk.index->boxes, positions = walk.positions();
  const std::uint64_t piece = walk.method == BoxMethod::kNone ? kPieceBoxes : boxes;
  const std::uint64_t pieces = boxes == 0 ? 0 : (boxes + piece - 1) / piece;
  const std::uint64_t stretch = tools().stretch_of(positions);
  const std::uint64_t stretches = (positions + stretch - 1) / stretch;
  const auto with_range = [&](std::uint64_t task, const auto& visit) {
    const std::uint64_t first = task / pieces * stretch, begin = task % pieces * piece;
    return visit(static_cast<std::uint32_t>(first),
                 static_cast<std::uint32_t>(std::min(positions, first + stretch)),
                 Window{static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(std::min(boxes, begin + piece))});
  };
  // In a nested loop of a self-join a box meets the later ones.
  const bool later = walk.self_join && walk.method == BoxMethod::kNone;
  walk_tasks(
      tools(), walkers, stretches * pieces,
      [&](std::uint64_t task) {
        return with_range(task, [&](std::uint64_t first, std::uint64_t end, Window within) {
          if (walk.method != BoxMethod::kNone) return end - first;
          const std::uint64_t from =
              later ? std::max<std::uint64_t>(first, within.begin) : within.begin;
          return 1 + (end - first) * (within.end - std::min<std::uint64_t>(from, within.end));
        });
      },
      [&](auto& walker, std::uint64_t task) {
        with_range(task, [&](auto... range) { walker.walk(range...); });
      });
  for (auto& walker : walkers) finish(walker.sink);
}

ResultBatch BoxJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  if (request_.output() != Output::kTotal)
    batch.set_ids(left_ids_, request_.left().rows, right_ids_, request_.right().rows);
  batch.mirrored = request_.self_join() && request_.pairs() != PairSelection::kUnordered;
  return batch;
}

}  // namespace gpujoin::cpu

#include "cpu/walk/cluster_tiles.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "cpu/walk/cluster_table.h"

namespace gpujoin::cpu {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Marks on groups of points, which workers set and never take back.
class GroupMarks {
 public:
  GroupMarks(MemoryBudget& budget, std::uint32_t groups) : marks_(budget, groups) {
    std::fill(marks_.begin(), marks_.end(), 0);
  }

  /// Whether each group of the points is marked; holds(points) tells where to set a mark.
  template <class Holds>
  bool are_set(Window points, const Holds& holds) {
    for (std::uint32_t first = points.begin; first < points.end; first += kGroupPoints) {
      std::atomic_ref mark(marks_[first / kGroupPoints]);
      if (mark.load(kRelaxed) != 0) continue;
      if (!holds(Window{first, std::min(points.end, first + kGroupPoints)})) return false;
      mark.store(1, kRelaxed);
    }
    return true;
  }

 private:
  Buffer<std::uint8_t> marks_;
};

/// The neighbours of each point so far, itself included; those beyond `enough` do not matter.
struct NeighborCounts {
  NeighborCounts(MemoryBudget& budget, const TileIndex& tiles, std::uint64_t min_points)
      : counts(budget, std::uint64_t{tiles.groups()} * kGroupPoints),
        enough(static_cast<std::uint32_t>(
            std::min<std::uint64_t>(min_points, std::numeric_limits<std::uint32_t>::max()))),
        full(budget, tiles.groups()) {
    std::fill(counts.begin(), counts.end(), 1);
  }

  Buffer<std::uint32_t> counts;
  const std::uint32_t enough;
  GroupMarks full;
};

/// Counts pairs at both their points.
class NeighborCountSink {
 public:
  static constexpr PairNeed kNeed = PairNeed::kPosition;

  explicit NeighborCountSink(NeighborCounts& shared) : shared_(shared) {}

  void take(std::uint32_t left, std::uint32_t right, double) {
    add(left, 1);
    add(right, 1);
  }
  void take_block(std::uint32_t first_left, std::uint32_t first_right,
                  const std::uint32_t (&rights)[kGroupPoints]) {
    std::uint32_t right_counts[kGroupPoints] = {};
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      for_bits(rights[i], [&](std::uint32_t j) { ++right_counts[j]; });
      add(first_left + i, static_cast<std::uint32_t>(std::popcount(rights[i])));
    }
    for (std::uint32_t j = 0; j < kGroupPoints; ++j) add(first_right + j, right_counts[j]);
  }
  bool can_skip(Window left, Window right) { return is_full(left) && is_full(right); }

 private:
  /// Counts that are full stay as they are, and do not overflow.
  void add(std::uint32_t point, std::uint32_t pairs) {
    if (pairs == 0) return;
    std::atomic_ref count(shared_.counts[point]);
    if (count.load(kRelaxed) < shared_.enough) count.fetch_add(pairs, kRelaxed);
  }
  bool is_full(Window points) {
    return shared_.full.are_set(points, [this](Window group) {
      return std::all_of(shared_.counts.begin() + group.begin, shared_.counts.begin() + group.end,
                         [this](std::uint32_t& count) {
                           return std::atomic_ref(count).load(kRelaxed) >= shared_.enough;
                         });
    });
  }

  NeighborCounts& shared_;
};

/// What uniting shares.
struct Unions {
  Unions(MemoryBudget& budget, const TilePlan& plan, ClusterTable& clusters)
      : join(*plan.join),
        table(clusters),
        cores(budget, plan.left->groups()),
        followed(budget, std::uint64_t{plan.left->groups()} * kGroupPoints),
        one(budget, plan.left->groups()) {
    std::fill(followed.begin(), followed.end(), Neighbor{0, kNone});
    for (std::uint32_t group = 0; group < plan.left->groups(); ++group) {
      cores[group] = 0;
      for (std::uint32_t i = 0; i < plan.left->group_size(group); ++i)
        cores[group] |= std::uint32_t{table.is_core(group * kGroupPoints + i)} << i;
    }
  }

  const JoinPlan& join;
  ClusterTable& table;
  Buffer<std::uint32_t> cores;  ///< by group: which of its points are core points
  Buffer<Neighbor> followed;    ///< core point of each point that is none, so far; kNone
  GroupMarks one;               ///< all points of the group are core points of one cluster
  static constexpr std::uint32_t kLocks = 256;
  std::atomic_flag locks[kLocks] = {};  ///< of `followed`
};

/// Unites core points, and offers them to their neighbours that are none.
class UnionSink {
 public:
  static constexpr PairNeed kNeed = PairNeed::kPosition;

  explicit UnionSink(Unions& shared) : shared_(shared) {}

  void take(std::uint32_t left, std::uint32_t right, double) {
    const bool left_core = shared_.table.is_core(left), right_core = shared_.table.is_core(right);
    if (left_core && right_core)
      shared_.table.unite(left, right);
    else if (right_core)
      offer(left, left, right, right);
    else if (left_core)
      offer(right, left, right, left);
  }
  void take_block(std::uint32_t first_left, std::uint32_t first_right,
                  const std::uint32_t (&rights)[kGroupPoints]) {
    const std::uint32_t left_cores = shared_.cores[first_left / kGroupPoints];
    const std::uint32_t right_cores = shared_.cores[first_right / kGroupPoints];
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const std::uint32_t left = first_left + i;
      const bool is_core = (left_cores >> i & 1) != 0;
      for_bits(rights[i] & right_cores, [&](std::uint32_t j) {
        if (is_core)
          shared_.table.unite(left, first_right + j);
        else
          offer(left, left, first_right + j, first_right + j);
      });
      if (is_core)
        for_bits(rights[i] & ~right_cores,
                 [&](std::uint32_t j) { offer(first_right + j, left, first_right + j, left); });
    }
  }
  bool can_skip(Window left, Window right) {
    return is_one(left) && is_one(right) &&
           shared_.table.root(left.begin) == shared_.table.root(right.begin);
  }

 private:
  /// Of several groups the first ones' roots are compared.
  bool is_one(Window points) {
    const std::uint32_t root = shared_.table.root(points.begin);
    const bool groups = shared_.one.are_set(points, [&](Window group) {
      const std::uint32_t all = ~std::uint32_t{0} >> (kGroupPoints - (group.end - group.begin));
      if (shared_.cores[group.begin / kGroupPoints] != all) return false;
      const std::uint32_t first = shared_.table.root(group.begin);
      for (std::uint32_t point = group.begin + 1; point < group.end; ++point)
        if (shared_.table.root(point) != first) return false;
      return true;
    });
    if (!groups) return false;
    for (std::uint32_t first = points.begin + kGroupPoints; first < points.end;
         first += kGroupPoints)
      if (shared_.table.root(first) != root) return false;
    return true;
  }

  /// Offers a core point to a neighbour; `left` and `right` are the two as the walk met them.
  void offer(std::uint32_t point, std::uint32_t left, std::uint32_t right, std::uint32_t core) {
    Neighbor candidate{0, core};
    shared_.join.exact_raws(left, &right, 1, &candidate.raw);
    std::atomic_flag& lock = shared_.locks[point % Unions::kLocks];
    while (lock.test_and_set(std::memory_order_acquire)) {
    }
    Neighbor& best = shared_.followed[point];
    if (best.position == kNone || is_better_core(shared_.join, candidate, best)) best = candidate;
    lock.clear(std::memory_order_release);
  }

  Unions& shared_;
};

void mark_cores(const TilePlan& plan, const WalkTools& tools, ClusterTable* table) {
  const std::uint64_t min_points = plan.join->min_points;
  NeighborCounts counts(tools.budget, *plan.left, min_points);
  if (min_points > 1)
    walk_tiles(plan, tools, [&](WalkProgress&) { return NeighborCountSink(counts); });
  for (std::uint32_t point = 0; point < plan.left->points; ++point)
    if (counts.counts[point] >= min_points) table->mark_core(point);
  if (min_points == 1)
    for (std::uint64_t point = plan.left->points; point < plan.join->left->rows.size(); ++point)
      table->mark_core(static_cast<std::uint32_t>(point));  // not finite: each its own
}

}  // namespace

void find_clusters(const TilePlan& plan, const WalkTools& tools) {
  ClusterTable table(tools.budget, plan.join->left->rows.size());
  tools.tally.work.expect_walks(plan.join->min_points > 1 ? 2 : 1);
  mark_cores(plan, tools, &table);
  {
    Unions shared(tools.budget, plan, table);
    walk_tiles(plan, tools, [&](WalkProgress&) { return UnionSink(shared); });
    for (std::uint32_t point = 0; point < plan.left->points; ++point)
      if (shared.followed[point].position != kNone)
        table.follow(point, shared.followed[point].position);
  }
  table.write(*plan.join, tools);
}

}  // namespace gpujoin::cpu

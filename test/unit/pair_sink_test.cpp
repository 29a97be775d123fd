// The seam between walks and outputs: what every engine's sinks share, and sinks that have no more
// than they must, on the walks of the CPU.

#include "core/pair_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/index/prepared_points.h"
#include "cpu/walk/tile_walker.h"
#include "cpu/walk/walker.h"
#include "oracle.h"
#include "points.h"

namespace gpujoin::cpu {
namespace {

using test::FoundPair;
using test::Points;

/// A sink with take() alone.
template <PairNeed Need>
struct ListSink {
  static constexpr PairNeed kNeed = Need;
  std::vector<FoundPair>* found;

  void take(std::uint32_t left, std::uint32_t right, double distance) {
    found->push_back({left, right, distance});
  }
};

/// A sink with take_number() alone.
struct NumberSink {
  static constexpr PairNeed kNeed = PairNeed::kNumber;
  std::uint64_t* pairs;
  bool mirrored;

  void take_number(std::uint32_t, std::uint64_t entries, bool itself) {
    *pairs += pairs_of_entries(mirrored, entries, itself);
  }
};

/// One that takes runs, and rows' ends.
struct RunSink {
  static constexpr PairNeed kNeed = PairNeed::kPosition;
  std::vector<FoundPair>* found;
  std::vector<std::uint32_t>* ended;

  void take_run(const PairRun& run) {
    EXPECT_EQ(run.distances, nullptr);
    for (std::uint64_t i = 0; i < run.count; ++i) found->push_back({run.left, run.right[i], 0});
  }
  void end_row(std::uint32_t left) { ended->push_back(left); }
};

/// What a join has around its walks.
struct Walks {
  Walks(const Points& left, const Points* right, double eps, IndexMethod index, PairSelection pairs,
        AccessPattern pattern)
      : request(right == nullptr ? Sides::one(left.view(), pairs)
                                 : Sides::two(left.view(), right->view()),
                PointsWithin{Metric::kL2, eps}, Output::pairs()) {
    request.resources.threads = 2;
    request.knobs.index = index;
    request.knobs.access_pattern = pattern;

    RangePlans plans;
    left_side = prepare_points(pool, budget, plans.plan(request), request.left());
    right_side = request.self_join()
                     ? left_side
                     : prepare_points(pool, budget, plans.plan(request), request.right());
    const RangePlan& indexed = *left_side->range_plan;
    plan.metric = request.metric();
    plan.pairs = pairs;
    plan.output = request.output();
    plan.threshold = indexed.index.threshold;
    plan.screen = make_screen_bounds(request.metric(), plan.threshold.raw, request.left().dims);
    plan.strategy = indexed.index.strategy;
    plan.reach = indexed.index.reach;
    plan.kernel = choose_scan_kernel(request.metric(), request.left().scalar, request.left().dims,
                                     plan.strategy.screened);
    plan.batch_entries = 1000;
    plan.layout = &indexed.layout;
    plan.is_self_join = request.self_join();
    plan.left = &left_side->index;
    plan.right = &right_side->index;
    plan.left_points = &request.left();
    plan.right_points = &request.right();
    plan.left_indexed = &request.left();
    tiles = {&plan,
             &left_side->tiles,
             &right_side->tiles,
             indexed.checkpoints,
             choose_group_screen(),
             true_reach(eps, request.left().dims)};
  }

  /// Walks by cells or by tiles, whichever was chosen.
  template <class MakeSink>
  void walk(const MakeSink& make_sink) {
    const WalkTools tools{*budget, pool, queue, tally};
    if (plan.strategy.index == IndexMethod::kTiles)
      walk_tiles(this->tiles, tools, make_sink);
    else
      walk_cells(plan, tools, make_sink);
  }

  /// What a plain sink on each of two workers takes, by rows and in order, both orders of a pair
  /// where the walk is mirrored.
  template <PairNeed Need>
  std::vector<FoundPair> list() {
    std::vector<FoundPair> lists[2], all;
    int workers = 0;
    walk([&](WalkProgress&) { return ListSink<Need>{&lists[workers++]}; });
    for (const auto& found : lists) all.insert(all.end(), found.begin(), found.end());
    return by_rows(std::move(all));
  }
  std::vector<FoundPair> by_rows(std::vector<FoundPair> found) const {
    const std::size_t entries = found.size();
    for (std::size_t i = 0; i < entries; ++i) {
      FoundPair& pair = found[i];
      pair.id1 = plan.left->rows[pair.id1];
      pair.id2 = plan.right->rows[pair.id2];
      if (plan.mirrored() && pair.id1 != pair.id2)
        found.push_back({pair.id2, pair.id1, pair.distance});
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  JoinRequest request;
  std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>(0);
  WorkerPool pool{2};
  BatchQueue queue;
  WalkTally tally;
  std::shared_ptr<PreparedPoints> left_side, right_side;
  JoinPlan plan{};
  TilePlan tiles{};
};

std::vector<FoundPair> brute_force(const Points& left, const Points& right, double eps,
                                   bool self_pairs) {
  std::vector<FoundPair> pairs;
  const Dataset a = left.view(), b = right.view();
  for (std::uint32_t i = 0; i < a.rows; ++i) {
    for (std::uint32_t j = 0; j < b.rows; ++j) {
      const double distance = test::definition_of_distance(Metric::kL2, point<double>(a, i),
                                                           point<double>(b, j), a.dims);
      if (distance <= eps && (self_pairs || i != j)) pairs.push_back({i, j, distance});
    }
  }
  return pairs;
}

std::vector<FoundPair> without_distances(std::vector<FoundPair> pairs) {
  for (FoundPair& pair : pairs) pair.distance = 0;
  return pairs;
}

Points random_points(std::uint32_t dims, std::size_t rows, std::uint64_t seed) {
  test::Random random(seed);
  std::vector<double> values(dims * rows);
  for (double& x : values) x = random.unit();
  values[dims * 5] = test::kNan;  // a point that is in no cell
  return Points(dims, values);
}

struct Kind {
  const char* name;
  std::uint32_t dims;
  double eps;
  IndexMethod index;
};
const Kind kKinds[] = {{"cells", 2, 0.05, IndexMethod::kGrid},
                       {"screened cells", 12, 0.8, IndexMethod::kGrid},
                       {"nested loop", 3, 0.1, IndexMethod::kNone},
                       {"tiles", 20, 1.2, IndexMethod::kTiles}};

TEST(PairSinks, take_alone_gets_every_pair_of_a_self_join_once) {
  for (const Kind& kind : kKinds) {
    const Points points = random_points(kind.dims, 500, 1);
    for (const AccessPattern pattern :
         {AccessPattern::kAuto, AccessPattern::kUnicomp, AccessPattern::kFull}) {
      for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kDistinct}) {
        SCOPED_TRACE(testing::Message() << kind.name << static_cast<int>(pattern));
        const auto expected = brute_force(points, points, kind.eps, pairs == PairSelection::kAll);
        ASSERT_GT(expected.size(), 600u);
        Walks walks(points, nullptr, kind.eps, kind.index, pairs, pattern);
        ASSERT_EQ(walks.plan.strategy.index, kind.index);
        EXPECT_EQ(walks.plan.mirrored(), pattern != AccessPattern::kFull);
        EXPECT_EQ(walks.list<PairNeed::kDistance>(), expected);
        EXPECT_EQ(walks.list<PairNeed::kPosition>(), without_distances(expected));
      }
    }
  }
}

TEST(PairSinks, take_alone_gets_every_pair_of_two_datasets_once) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const Points left = random_points(kind.dims, 300, 2), right = random_points(kind.dims, 400, 3);
    const auto expected = brute_force(left, right, kind.eps, true);
    ASSERT_GT(expected.size(), 100u);
    Walks walks(left, &right, kind.eps, kind.index, PairSelection::kAll, AccessPattern::kAuto);
    EXPECT_EQ(walks.list<PairNeed::kDistance>(), expected);
    EXPECT_EQ(walks.list<PairNeed::kPosition>(), without_distances(expected));
  }
}

TEST(PairSinks, numbers_add_up) {
  for (const Kind& kind : kKinds) {
    const Points points = random_points(kind.dims, 500, 4);
    for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kDistinct}) {
      SCOPED_TRACE(kind.name);
      Walks walks(points, nullptr, kind.eps, kind.index, pairs, AccessPattern::kAuto);
      std::uint64_t counts[2] = {};
      int workers = 0;
      walks.walk([&](WalkProgress&) {
        return NumberSink{&counts[workers++], walks.plan.mirrored()};
      });
      EXPECT_EQ(counts[0] + counts[1],
                brute_force(points, points, kind.eps, pairs == PairSelection::kAll).size());
    }
  }
}

TEST(PairSinks, every_row_of_a_grid_ends_once_after_its_pairs) {
  const Points points = random_points(2, 500, 5);
  Walks walks(points, nullptr, 0.05, IndexMethod::kGrid, PairSelection::kAll, AccessPattern::kAuto);
  std::vector<FoundPair> lists[2];
  std::vector<std::uint32_t> ended[2];
  int workers = 0;
  walks.walk([&](WalkProgress&) {
    const int worker = workers++;
    return RunSink{&lists[worker], &ended[worker]};
  });
  ended[0].insert(ended[0].end(), ended[1].begin(), ended[1].end());
  std::sort(ended[0].begin(), ended[0].end());
  std::vector<std::uint32_t> positions(500);
  std::iota(positions.begin(), positions.end(), 0u);
  EXPECT_EQ(ended[0], positions);
  lists[0].insert(lists[0].end(), lists[1].begin(), lists[1].end());
  EXPECT_EQ(walks.by_rows(lists[0]), without_distances(brute_force(points, points, 0.05, true)));
}

TEST(PairSinks, mirrored_entries_are_two_pairs_but_for_self_pairs) {
  EXPECT_EQ(pairs_of_entries(false, 7, 3), 7u);
  EXPECT_EQ(pairs_of_entries(true, 7, 0), 14u);
  EXPECT_EQ(pairs_of_entries(true, 7, 3), 11u);
}

TEST(PairSinks, a_pair_counts_at_one_of_its_points) {
  const std::int64_t ids[] = {5, -1, 5, INT64_MAX, INT64_MIN};
  for (std::uint32_t i = 0; i < 5; ++i)
    for (std::uint32_t j = 0; j < 5; ++j)
      EXPECT_EQ(counts_at_left(ids, i, j), i != j && !counts_at_left(ids, j, i));
  EXPECT_TRUE(counts_at_left(ids, 1, 0));
  EXPECT_TRUE(counts_at_left(ids, 0, 2));  // of equal ids the earlier position
  EXPECT_TRUE(counts_at_left(ids, 4, 3));
}

}  // namespace
}  // namespace gpujoin::cpu

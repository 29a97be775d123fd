// Duplicates against the greedy walk by ranks: every metric, scores and ties of them, chains, dense
// places whose pairs have no room, little memory, rows in a file, batches of any size,
// interruptions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "allocation_hooks.h"
#include "engine/joins/duplicates_join.h"
#include "engine_harness.h"
#include "points.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

class Duplicates : public EngineTest {};

JoinRequest make_duplicates_request(const Points& points, Metric metric, double eps,
                                    bool lowest_first) {
  return make_request(points, nullptr, metric, eps).asking(Output::duplicates(lowest_first));
}

void put_in_file(JoinRequest* request, StoredPoints& stored, MemoryFile& file) {
  request->sides = Sides::one(stored.in_file(file), PairSelection::kAll);
  request->resources.scratch = file.functions();
}

/// Rows in the order of their ranks, each against those before it that stay.
std::vector<FoundPair> walk(const Points& points, Metric metric, double eps, bool lowest_first) {
  const Dataset data = points.view();
  std::vector<std::uint64_t> order(data.rows);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    if (data.scores != nullptr && data.scores[a] != data.scores[b])
      return lowest_first ? data.scores[a] < data.scores[b] : data.scores[a] > data.scores[b];
    return id_of(data, a) < id_of(data, b);
  });
  std::vector<double> x(data.dims), y(data.dims);
  std::vector<std::uint64_t> staying;
  std::vector<FoundPair> found;
  for (const std::uint64_t row : order) {
    const double* const point = points.row(row, x);
    const FoundPair* best = nullptr;
    FoundPair nearest{};
    for (const std::uint64_t other : staying) {
      const FoundPair pair{id_of(data, row), id_of(data, other),
                           definition_of_distance(metric, point, points.row(other, y), data.dims)};
      if (!(pair.distance <= eps)) continue;
      if (best == nullptr || pair.distance < nearest.distance ||
          (pair.distance == nearest.distance && pair.id2 < nearest.id2))
        nearest = pair;
      best = &nearest;
    }
    if (best != nullptr)
      found.push_back(nearest);
    else
      staying.push_back(row);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The rows lie in memory, and then in a file.
void expect_exact(const EngineTable& engine, const Points& points, Metric metric, double eps,
                  std::uint64_t memory_limit = 0) {
  MemoryFile file;
  StoredPoints stored(points, 5);
  for (const bool lowest_first : {false, true}) {
    const std::vector<FoundPair> expected = walk(points, metric, eps, lowest_first);
    for (const bool in_file : {false, true}) {
      // Which takes the most of a sanitizer's time where distances are the most of the work.
      if (in_file && (points.rows() == 0 || (kSanitized && points.dims() > 3))) continue;
      JoinRequest request = make_duplicates_request(points, metric, eps, lowest_first);
      request.resources.memory_limit = memory_limit;
      if (in_file) put_in_file(&request, stored, file);
      const RunResult result = run_join(engine, request);
      ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
      EXPECT_EQ(result.pairs, expected) << describe(request) << in_file;
      EXPECT_EQ(result.stats.pairs, result.pairs.size());
    }
  }
}

/// What the engine finds of rows in memory, and of the same rows in a file.
void expect_same_in_file(const EngineTable& engine, const Points& points, Metric metric, double eps,
                         std::uint64_t memory_limit) {
  JoinRequest request = make_duplicates_request(points, metric, eps, true);
  const RunResult whole = run_join(engine, request);
  ASSERT_EQ(whole.status.code, StatusCode::kEnd) << whole.status.message;
  MemoryFile file;
  StoredPoints stored(points, 10);
  put_in_file(&request, stored, file);
  request.resources.memory_limit = memory_limit;
  const RunResult parts = run_join(engine, request);
  ASSERT_EQ(parts.status.code, StatusCode::kEnd) << parts.status.message;
  EXPECT_EQ(parts.pairs, whole.pairs) << describe(request);
  EXPECT_GT(parts.pairs.size(), points.rows() / 20);
  if (memory_limit > 0) {
    EXPECT_GT(parts.stats.parts, 1u);
    EXPECT_LE(parts.stats.memory_peak, memory_limit);
  }
}

/// Few values, so that ranks are decided by ids as well.
std::vector<double> random_scores(Random& random, std::uint64_t rows) {
  std::vector<double> scores(rows);
  for (double& score : scores) score = std::floor(random.between(-5, 6));
  scores[0] = -0.0;
  return scores;
}

TEST_P(Duplicates, are_those_of_the_greedy_walk_in_every_shape_and_metric) {
  Random random(911);
  constexpr std::uint64_t kRows = 250;
  for (const Shape shape : kShapes)
    for (const std::uint32_t dims : {1u, 2u, 3u, 9u, 40u}) {
      const ScalarType scalar = dims % 2 == 0 ? ScalarType::kFloat32 : ScalarType::kFloat64;
      const Points points = Points(dims, make_values(shape, random, kRows, dims), scalar)
                                .with_ids(shuffled_ids(kRows));
      for (const Metric metric : kMetrics) {
        const std::vector<double> distances = distances_of_a_row(points, metric);
        if (distances.size() < 20) continue;
        for (const std::size_t at : {1u, 19u}) {
          const double eps = std::min(distances[at], 1e300);
          expect_exact(engine(), points, metric, eps);
          expect_exact(engine(), Points(points).with_scores(random_scores(random, kRows)), metric,
                       eps);
        }
      }
    }
}

TEST_P(Duplicates, of_chains_and_ties) {
  constexpr int kRows = kSanitized ? 120 : 300;
  for (const std::uint32_t dims : {1u, 2u, 5u}) {
    std::vector<double> values;
    for (int i = 0; i < kRows; ++i)
      for (std::uint32_t d = 0; d < dims; ++d) values.push_back(d == 0 ? 0.5 * (i / 2) : 0.25);
    std::vector<std::int64_t> up(kRows), down(kRows);
    std::iota(up.begin(), up.end(), 0);
    std::iota(down.rbegin(), down.rend(), -7);
    for (const auto& ids : {up, down, shuffled_ids(kRows)})
      for (const double eps : {0.0, 0.5, 1.0, below(1.0)})
        for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
          expect_exact(engine(), Points(dims, values).with_ids(ids), metric, eps);
  }
}

TEST_P(Duplicates, of_no_rows_one_row_and_numbers_that_are_none) {
  expect_exact(engine(), Points(2, {}), Metric::kL2, 1);
  expect_exact(engine(), Points(2, {1, 2}).with_scores({5}), Metric::kL2, 1);
  const double inf = INFINITY, nan = NAN;
  const Points odd(2, {0, 0, nan, 1, nan, 1, inf, 0, inf, 0, 0, 0, -0.0, 0, 1e308, 1, 1e308, 1});
  for (const Metric metric : kMetrics)
    for (const double eps : {0.0, 1.0, DBL_MAX}) expect_exact(engine(), odd, metric, eps);
}

TEST_P(Duplicates, in_dense_places_take_no_quadratic_time) {
  constexpr std::uint64_t kRows = kSanitized ? 6000 : 60000;
  for (const std::uint32_t dims : {2u, 6u}) {
    Points points(dims, std::vector<double>(kRows * dims, 2.5));
    const RunResult result =
        run_join(engine(), make_duplicates_request(points, Metric::kL2, 0.5, false));
    ASSERT_EQ(result.pairs.size(), kRows - 1) << result.status.message;
    for (const FoundPair& pair : result.pairs) {
      ASSERT_EQ(pair.id2, 0);
      ASSERT_EQ(pair.distance, 0);
    }
    if (!is_device(engine())) {  // which compares a slice of its own size before it stops
      EXPECT_LT(result.stats.candidates, 4 * kRows * 4096);
    }
  }
}

TEST_P(Duplicates, in_blocks_where_pairs_have_no_room) {
  Random random(912);
  constexpr std::uint64_t kRows = 6000;
  for (const std::uint32_t dims : {2u, 8u}) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < kRows; ++i)
      for (std::uint32_t d = 0; d < dims; ++d)
        values.push_back(static_cast<double>(i % 5) + random.between(-1, 1) * 0.6);
    const Points rows = Points(dims, values)
                            .with_ids(shuffled_ids(kRows))
                            .with_scores(random_scores(random, kRows));
    // Every block of few ranks lies in one place: many blocks.
    std::vector<double> places;
    for (std::uint64_t i = 0; i < kRows; ++i) places.push_back(values[i * dims]);
    const Points by_place = Points(rows).with_scores(places);
    // A device needs more memory, and has room for more pairs.
    const std::uint64_t mb = is_device(engine()) ? 96 : 6;
    for (const std::uint64_t limit : {std::uint64_t{0}, mb << 20})
      for (const Points* const one : {&rows, &by_place})
        expect_exact(engine(), *one, Metric::kL2, dims == 2 ? 0.5 : 1.0, limit);
  }
}

TEST_P(Duplicates, of_rows_in_a_file_are_those_of_rows_in_memory) {
  constexpr std::uint64_t rows = 30000;
  for (const std::uint32_t dims : {1u, 3u}) {
    Random random(915 + dims);
    const Metric metric = dims == 1 ? Metric::kL2 : Metric::kL1;
    const std::vector<double> values = make_values(Shape::kClustered, random, rows, dims);
    std::vector<double> places;  // ranks that follow from places: many blocks
    for (std::uint64_t i = 0; i < rows; ++i)
      places.push_back(std::isfinite(values[i * dims]) ? values[i * dims] : 0);
    const Points points = Points(dims, values).with_ids(shuffled_ids(rows));
    // So little that neither the pairs nor the rows of a block have room. A device's buffers alone
    // are larger.
    const std::uint64_t limit = is_device(engine()) ? 0 : rows * 44 + (5u << 19);
    for (const double eps : {0.02, 0.5}) {
      expect_same_in_file(engine(), points, metric, eps * dims, limit);
      expect_same_in_file(engine(), Points(points).with_scores(places), metric, eps * dims, limit);
    }
  }
}

TEST_P(Duplicates, of_a_file_that_fails) {
  Random random(919);
  const Points points(2, make_values(Shape::kUniform, random, 600, 2));
  const std::int64_t before = live_allocations();
  for (const std::uint64_t calls : {0, 5, 15, 21}) {
    MemoryFile file;
    StoredPoints stored(points, 6);
    JoinRequest request = make_duplicates_request(points, Metric::kL2, 3, false);
    put_in_file(&request, stored, file);
    file.fail_after(calls);
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kCallerFailed) << calls;
  }
  expect_no_leak(engine(), before);
}

TEST_P(Duplicates, come_in_batches_and_after_interruptions) {
  Random random(913);
  const std::uint64_t kRows = 3000;
  const Points rows = Points(3, make_values(Shape::kUniform, random, kRows, 3))
                          .with_ids(shuffled_ids(kRows))
                          .with_scores(random_scores(random, kRows));
  JoinRequest request = make_duplicates_request(rows, Metric::kL2, 4, true);
  const std::vector<FoundPair> expected = walk(rows, Metric::kL2, 4, true);
  ASSERT_GT(expected.size(), 100u);
  request.knobs.batch_pairs = 7;
  volatile int raised = 1;
  request.resources.interrupt = &raised;
  const RunResult result = run_join(engine(), request, &raised);
  EXPECT_EQ(result.pairs, expected);
  EXPECT_EQ(result.largest_batch, 7u);
  EXPECT_GE(result.interruptions, 1u);
  MemoryFile file;
  StoredPoints stored(rows, 8);
  put_in_file(&request, stored, file);
  raised = 1;
  const RunResult of_file = run_join(engine(), request, &raised);
  EXPECT_EQ(of_file.pairs, expected);
  EXPECT_GE(of_file.interruptions, 1u);
}

/// All pairs of rows at one place, in one batch.
class AllPairs final : public Join {
 public:
  explicit AllPairs(std::uint32_t rows)
      : rows_(rows),
        ids_(rows),
        offsets_(rows + 1),
        distances_(std::size_t{rows} * (rows - 1) / 2) {
    std::iota(rows_.begin(), rows_.end(), 0);
    std::iota(ids_.begin(), ids_.end(), 0);
    neighbors_.reserve(distances_.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t other = row + 1; other < rows; ++other) neighbors_.push_back(other);
      offsets_[row + 1] = neighbors_.size();
    }
  }
  Status next_batch(ResultBatch* batch) override {
    if (std::exchange(given_, true)) return {StatusCode::kEnd};
    *batch = {};
    batch->row_count = rows_.size();
    batch->pair_count = neighbors_.size();
    batch->rows = rows_.data();
    batch->offsets = offsets_.data();
    batch->neighbors = neighbors_.data();
    batch->distances = distances_.data();
    batch->left_ids = batch->right_ids = ids_.data();
    batch->left_id_count = batch->right_id_count = ids_.size();
    return {};
  }
  void stats(JoinStats* stats) const override { *stats = {}; }

 private:
  bool given_ = false;
  std::vector<std::uint32_t> rows_, neighbors_;
  std::vector<std::int64_t> ids_;
  std::vector<std::uint64_t> offsets_;
  std::vector<double> distances_;
};

/// How often the duplicates of so many rows at one place look at the interrupt.
int looks_of_duplicates(std::uint32_t rows) {
  const Points points(1, std::vector<double>(rows, 0.0));
  JoinRequest request = make_duplicates_request(points, Metric::kL2, 1, false);
  const volatile int raised = 1;
  request.resources.interrupt = &raised;
  DuplicatesJoin join(request,
                      [&](const JoinRequest&) { return std::make_unique<AllPairs>(rows); });
  ResultBatch batch{};
  int looks = 0;
  Status status;
  while ((status = join.next_batch(&batch)).code == StatusCode::kInterrupted) ++looks;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(batch.pair_count, rows - 1);
  for (std::uint64_t i = 0; i < batch.row_count; ++i) EXPECT_EQ(batch.neighbors[i], 0u);
  return looks;
}

TEST(DuplicatesOfOnePlace, are_decided_in_pieces) {
  const int of_few = looks_of_duplicates(100);
  EXPECT_GE(looks_of_duplicates(2500), of_few + 2) << "for three million edges";
}

TEST_P(Duplicates, of_many_rows_are_ranked_by_score) {
  Random random(915);
  const std::uint64_t kTwins = kSanitized ? 100000 : 170000;  // more rows than are sorted at once
  std::vector<double> values, scores;
  for (std::uint64_t twin = 0; twin < kTwins; ++twin)
    for (const double x : {0.0, 1.0}) {
      values.push_back(10 * static_cast<double>(twin) + x);
      scores.push_back(std::floor(random.between(0, 1000)));
    }
  const Points points = Points(1, values).with_ids(shuffled_ids(2 * kTwins)).with_scores(scores);
  const RunResult result =
      run_join(engine(), make_duplicates_request(points, Metric::kL2, 1, true));
  std::vector<FoundPair> expected;
  for (std::uint64_t row = 0; row < 2 * kTwins; row += 2) {
    const bool second = scores[row] != scores[row + 1] ? scores[row + 1] < scores[row]
                                                       : points.id(row + 1) < points.id(row);
    const std::int64_t a = points.id(row), b = points.id(row + 1);
    expected.push_back(second ? FoundPair{a, b, 1} : FoundPair{b, a, 1});
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(result.pairs, expected);
}

TEST_P(Duplicates, leave_nothing_behind_when_closed_early) {
  const std::int64_t before = live_allocations();
  {
    Random random(914);
    const Points points(2, make_values(Shape::kUniform, random, 20000, 2));
    const JoinRequest request =
        make_request(points, nullptr, Metric::kL2, 1).asking(Output::duplicates(false));
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&request, &join).ok());
    engine().close(join);
  }
  expect_no_leak(engine(), before);
}

TEST_P(Duplicates, are_of_one_dataset) {
  const Points points(1, {1, 2});
  for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kUnordered}) {
    JoinRequest request =
        make_request(points, pairs == PairSelection::kAll ? &points : nullptr, Metric::kL2, 1)
            .asking(Output::duplicates(false));
    if (pairs != PairSelection::kAll) select(request, pairs);
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
  }
}

GPUJOIN_ON_EVERY_ENGINE(Duplicates);

}  // namespace
}  // namespace gpujoin::test

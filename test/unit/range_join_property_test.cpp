// Range joins on seeded random data of many shapes, with every value of every knob: the same set of
// pairs as brute force. eps is mostly the exact distance of some pair. A failure prints its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<Switch> kSwitches = {Switch::kAuto, Switch::kOn, Switch::kOff};
const std::vector<IndexMethod> kIndexes = {IndexMethod::kAuto, IndexMethod::kGrid,
                                           IndexMethod::kReferencePoints, IndexMethod::kTiles,
                                           IndexMethod::kNone};
const std::vector<AccessPattern> kPatterns = {AccessPattern::kAuto, AccessPattern::kFull,
                                              AccessPattern::kLinearId, AccessPattern::kUnicomp};
const std::vector<CellOrder> kOrders = {CellOrder::kAuto, CellOrder::kLinear, CellOrder::kZOrder,
                                        CellOrder::kHilbert};
const std::vector<WorkOrder> kWorkOrders = {WorkOrder::kAuto, WorkOrder::kNone, WorkOrder::kSorted,
                                            WorkOrder::kQueue};
const std::vector<std::uint32_t> kThreadsPerPoint = {0, 1, 2, 8, 16, 32};
const std::vector<std::uint64_t> kBatchPairs = {0, 1, 7, 1000};
const std::vector<Output::Kind> kOutputs = {Output::kPairs, Output::kPairsWithDistances,
                                            Output::kCountPerRow, Output::kTotal};
const std::vector<PairSelection> kSelections = {PairSelection::kAll, PairSelection::kDistinct,
                                                PairSelection::kUnordered};

Knobs random_knobs(Random& random) {
  Knobs knobs;
  knobs.index = random.pick(kIndexes);
  knobs.indexed_dimensions = static_cast<std::uint32_t>(random.index(6));
  knobs.reorder_dimensions = random.pick(kSwitches);
  knobs.sort_unindexed = random.pick(kSwitches);
  knobs.short_circuit = random.pick(kSwitches);
  knobs.access_pattern = random.pick(kPatterns);
  knobs.cell_order = random.pick(kOrders);
  knobs.work_order = random.pick(kWorkOrders);
  knobs.threads_per_point = random.pick(kThreadsPerPoint);
  knobs.streams = static_cast<std::uint32_t>(random.index(5));
  knobs.batch_pairs = random.pick(kBatchPairs);
  return knobs;
}

std::vector<std::int64_t> random_ids(Random& random, std::uint64_t rows) {
  std::vector<std::int64_t> ids;
  const std::uint64_t kind = random.index(3);
  if (kind == 0) return ids;  // positions
  for (std::uint64_t i = 0; i < rows; ++i)
    ids.push_back(kind == 1 ? static_cast<std::int64_t>(random.bits())
                            : static_cast<std::int64_t>(random.index(9)) - 4);
  return ids;
}

Points random_points(Shape shape, Random& random, std::uint64_t rows, std::uint32_t dims,
                     ScalarType scalar) {
  std::vector<double> values = make_values(shape, random, rows, dims);
  if (rows > 0 && random.index(4) == 0)
    for (int i = 0; i < 5; ++i)
      values[random.index(values.size())] = random.pick<double>({kNan, kInf, -kInf, -0.0});
  return Points(dims, values, scalar).with_ids(random_ids(random, rows));
}

/// An eps that lets a small or a larger share of the pairs match: some pair's distance, or next to
/// it.
double random_eps(Random& random, const Points& left, const Points& right, Metric metric) {
  std::vector<double> distances, a(left.dims()), b(right.dims());
  for (int i = 0; i < 200 && left.rows() > 0 && right.rows() > 0; ++i) {
    const double distance =
        definition_of_distance(metric, left.row(random.index(left.rows()), a),
                               right.row(random.index(right.rows()), b), left.dims());
    if (std::isfinite(distance)) distances.push_back(distance);
  }
  if (distances.empty()) return 1;
  std::sort(distances.begin(), distances.end());
  const double share = random.unit() * random.unit() * random.unit();
  const double eps =
      distances[static_cast<std::size_t>(share * static_cast<double>(distances.size()))];
  const std::uint64_t beside = random.index(6);
  return beside == 0 && eps > 0 ? below(eps) : beside == 1 ? above(eps) : eps;
}

class RangeJoinProperty : public EngineTest {
 protected:
  /// Random requests on one pair of random datasets of `least_rows` points and up.
  void expect_exact(std::uint64_t seed, Shape shape, std::uint32_t dims, Metric metric, bool two,
                    std::uint64_t least_rows) {
    Random random(seed);
    const ScalarType scalar = random.index(2) ? ScalarType::kFloat32 : ScalarType::kFloat64;
    const Points left = random_points(shape, random, least_rows + random.index(140), dims, scalar);
    const Points other = random_points(shape, random, least_rows + random.index(140), dims, scalar);
    const Points* const right = two ? &other : nullptr;
    const double eps = random_eps(random, left, two ? other : left, metric);
    const Oracle oracle(left, right, metric, eps);
    // A sanitizer looks at what is done, not at the pairs: it sees every dataset with fewer knobs.
    for (int run = 0; run < (kSanitized ? 3 : 8); ++run) {
      JoinRequest request = make_request(left, right, metric, eps);
      request.knobs = random_knobs(random);
      // Batches of few pairs are for few points.
      if (least_rows > 0 && request.knobs.batch_pairs == 1) request.knobs.batch_pairs = 1000;
      if (least_rows > 0 && request.knobs.batch_pairs == 7) request.knobs.batch_pairs = 100;
      request.resources.threads = random.pick<std::uint32_t>({1, 2, 3, 8, 16});
      ask(request, random.pick(kOutputs));
      if (!two) select(request, random.pick(kSelections));
      ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle))
          << "seed " << seed << ", shape " << to_string(shape) << ", run " << run;
    }
  }

  void expect_exact_for_every_shape(std::uint64_t seed, bool two) {
    for (const Shape shape : kShapes) {
      for (const std::uint32_t dims : {1u, 2u, 3u, 4u, 6u, 8u, 9u, 12u, 17u, 33u}) {
        for (const Metric metric : kMetrics) {
          expect_exact(++seed, shape, dims, metric, two, 0);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
};
GPUJOIN_ON_EVERY_ENGINE(RangeJoinProperty);

TEST_P(RangeJoinProperty, self_join_is_brute_force_for_every_shape_and_dimension) {
  expect_exact_for_every_shape(70000, false);
}

TEST_P(RangeJoinProperty, join_of_two_is_brute_force_for_every_shape_and_dimension) {
  expect_exact_for_every_shape(80000, true);
}

TEST_P(RangeJoinProperty, several_workers_find_what_brute_force_finds) {
  std::uint64_t seed = 85000;
  const std::vector<Metric>& metrics = kMetrics;
  for (const Shape shape : kShapes) {
    for (const std::uint32_t dims : {2u, 9u}) {
      // Coordinates enough for an engine that starts threads only where there is work for them.
      const auto rows = static_cast<std::uint64_t>(std::sqrt(1.5e6 / dims));
      for (const bool two : {false, true}) {
        ++seed;
        expect_exact(seed, shape, dims, metrics[seed % metrics.size()], two, rows);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(RangeJoinProperty, every_combination_of_knobs_is_brute_force) {
  for (const std::uint32_t dims : {3u, 10u}) {
    const std::uint64_t seed = 90000 + dims;
    Random random(seed);
    const Points points = random_points(Shape::kLattice, random, 50, dims, ScalarType::kFloat64);
    const double eps = std::sqrt(dims * 1.0);
    const Oracle oracle(points, nullptr, Metric::kL2, eps);
    JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
    request.resources.threads = 1;
    Knobs& knobs = request.knobs;
    for (knobs.index = IndexMethod::kGrid; const std::uint32_t indexed : {0u, 1u, 2u, 3u}) {
      knobs.indexed_dimensions = indexed;
      for (const Switch reorder : {Switch::kOn, Switch::kOff}) {
        knobs.reorder_dimensions = reorder;
        for (const Switch sort : {Switch::kOn, Switch::kOff}) {
          knobs.sort_unindexed = sort;
          for (const Switch short_circuit : {Switch::kOn, Switch::kOff}) {
            knobs.short_circuit = short_circuit;
            for (const AccessPattern pattern : {kPatterns[1], kPatterns[2], kPatterns[3]}) {
              knobs.access_pattern = pattern;
              for (const CellOrder order : {kOrders[1], kOrders[2], kOrders[3]}) {
                knobs.cell_order = order;
                knobs.work_order = random.pick(kWorkOrders);
                knobs.threads_per_point = random.pick(kThreadsPerPoint);
                select(request, random.pick(kSelections));
                ask(request, random.pick(kOutputs));
                ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle))
                    << "seed " << seed;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(RangeJoinProperty, knobs_never_change_a_larger_result) {
  // More points than the small cases, so that several workers, cells and batches take part.
  Random random(95000);
  const Points points(2, make_values(Shape::kExponential, random, 3000, 2));
  const Oracle oracle(points, nullptr, Metric::kL2, 0.4);
  const std::vector<FoundPair> expected = oracle.pairs(PairSelection::kAll);
  ASSERT_GT(expected.size(), 10000u);
  for (int run = 0; run < 40; ++run) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.4);
    request.knobs = random_knobs(random);
    if (request.knobs.batch_pairs == 1) request.knobs.batch_pairs = 100;
    request.resources.threads = 1 + static_cast<std::uint32_t>(random.index(3));
    const RunResult result = run_join(engine(), request);
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << describe(request);
    ASSERT_TRUE(result.pairs == expected) << describe(request);
  }
}

}  // namespace
}  // namespace gpujoin::test

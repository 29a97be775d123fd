// Every index method against brute force, from one dimension to many, on data that hurts: the same
// points once more, moved far from the origin, tiny, huge, and next to the radius. A failure tells
// its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<std::uint32_t> kDims = {1,  2,  3,  6,  7,  8,  15,  16,  17,  31,
                                          32, 33, 63, 64, 65, 90, 128, 384, 784, 1536};
const std::vector<IndexMethod> kMethods = {IndexMethod::kGrid, IndexMethod::kReferencePoints,
                                           IndexMethod::kTiles, IndexMethod::kNone};
const std::vector<Output::Kind> kOutputs = {Output::kPairs, Output::kPairsWithDistances,
                                            Output::kCountPerRow, Output::kTotal};
const std::vector<PairSelection> kSelections = {PairSelection::kAll, PairSelection::kDistinct,
                                                PairSelection::kUnordered};

std::uint64_t rows_for(std::uint32_t dims) { return dims < 100 ? 300 : dims < 500 ? 170 : 110; }

class IndexMethods : public EngineTest {
 protected:
  /// Joins by each method, with random outputs and knobs, as one dataset and as two.
  void expect_exact(std::uint32_t dims, const std::vector<double>& values, double eps) {
    const std::uint64_t seed = ++seed_;
    Random random(seed);
    const std::size_t middle = values.size() / dims / 3 * dims;
    const Points all(dims, values);
    const Points left(dims, {values.begin(), values.begin() + middle});
    const Points right(dims, {values.begin() + middle, values.end()});
    const bool two = random.index(3) == 0;
    const Points& first = two ? left : all;
    const Oracle oracle(first, two ? &right : nullptr, Metric::kL2, eps);
    for (const IndexMethod method : kMethods) {
      JoinRequest request = make_request(first, two ? &right : nullptr, Metric::kL2, eps);
      request.knobs.index = method;
      request.knobs.indexed_dimensions = static_cast<std::uint32_t>(random.index(4));
      request.knobs.short_circuit = random.pick<Switch>({Switch::kAuto, Switch::kOff});
      request.knobs.reorder_dimensions = random.pick<Switch>({Switch::kAuto, Switch::kOff});
      request.knobs.batch_pairs = random.pick<std::uint64_t>({0, 50, 1000});
      ask(request, random.pick(kOutputs));
      if (!two) select(request, random.pick(kSelections));
      ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle)) << "seed " << seed;
    }
  }

  /// At the distance of some pair, chosen among the smaller ones.
  void expect_exact(std::uint32_t dims, const std::vector<double>& values) {
    Random random(seed_ + 1000);
    const std::uint64_t rows = values.size() / dims;
    std::vector<double> distances;
    for (int i = 0; i < 100; ++i)
      distances.push_back(definition_of_distance(Metric::kL2,
                                                 values.data() + random.index(rows) * dims,
                                                 values.data() + random.index(rows) * dims, dims));
    std::sort(distances.begin(), distances.end());
    const double eps = distances[random.index(40)];
    expect_exact(dims, values, std::isfinite(eps) ? eps : kMax);
  }

 private:
  std::uint64_t seed_ = 130000;
};
GPUJOIN_ON_EVERY_ENGINE(IndexMethods);

std::vector<double> transformed(std::vector<double> values, double scale, double offset) {
  for (double& x : values) x = x * scale + offset;
  return values;
}

TEST_P(IndexMethods, every_shape_and_number_of_dimensions) {
  Random random(131);
  for (const std::uint32_t dims : kDims) {
    for (const Shape shape : {Shape::kClustered, Shape::kLattice, Shape::kOffset}) {
      expect_exact(dims, make_values(shape, random, rows_for(dims), dims));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(IndexMethods, far_from_the_origin_tiny_and_huge) {
  Random random(132);
  for (const std::uint32_t dims : kDims) {
    const std::vector<double> values =
        make_values(Shape::kClustered, random, rows_for(dims) / 2, dims);
    expect_exact(dims, transformed(values, 1, 1e12));
    expect_exact(dims, transformed(values, 1e-200, 0));
    expect_exact(dims, transformed(values, 1e150, 0));
    expect_exact(dims, transformed(values, 1e306, 0));
    if (HasFatalFailure()) return;
  }
}

TEST_P(IndexMethods, one_huge_constant_column_beside_tiny_ones) {
  Random random(133);
  for (const std::uint32_t dims : {2u, 9u, 40u}) {
    std::vector<double> values = make_values(Shape::kClustered, random, 100, dims);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i % dims == 0 ? 1e300 : values[i] * 1e-100;
    expect_exact(dims, values);
    if (HasFatalFailure()) return;
  }
}

TEST_P(IndexMethods, duplicates_all_within_and_none_within) {
  Random random(134);
  for (const std::uint32_t dims : kDims) {
    std::vector<double> values = make_values(Shape::kUniform, random, rows_for(dims) / 2, dims);
    expect_exact(dims, values, 1e6);
    expect_exact(dims, values, 1e-6);
    values.insert(values.end(), values.begin(), values.end());
    expect_exact(dims, values, 0);
    if (HasFatalFailure()) return;
  }
}

TEST_P(IndexMethods, tiles_whose_boxes_prove_all_pairs) {
  // Clusters of tiles, most of them wholly within eps of each other, some only in part, and
  // duplicates.
  Random random(136);
  const int rows = kSanitized ? 240 : 450;
  for (const std::uint32_t dims : {1u, 2u, 3u, 5u}) {
    for (const double eps : {1.0, 2.9, 3.1, 8.0}) {
      std::vector<double> values;
      for (int row = 0; row < rows; ++row)
        for (std::uint32_t d = 0; d < dims; ++d)
          values.push_back(3.0 * (row % 3) + (row % 7 == 0 ? 0 : 0.01 * random.unit()));
      const Points points(dims, values),
          others(dims, {values.begin(), values.begin() + 200 * dims});
      for (const Points* right : {static_cast<const Points*>(nullptr), &others}) {
        for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
          const double radius = metric == Metric::kL2 ? eps : 1e-3 * eps;
          const Oracle oracle(points, right, metric, radius);
          JoinRequest request = make_request(points, right, metric, radius);
          request.knobs.index = IndexMethod::kTiles;
          for (const AccessPattern pattern : {AccessPattern::kAuto, AccessPattern::kFull}) {
            request.knobs.access_pattern = pattern;
            ASSERT_TRUE(every_output_matches(engine(), request, oracle));
          }
        }
      }
    }
  }
}

TEST_P(IndexMethods, distances_next_to_eps) {
  Random random(135);
  for (const std::uint32_t dims : kDims) {
    const std::uint64_t rows = rows_for(dims) / 2;
    std::vector<double> values(rows * dims);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::vector<double> way = random_direction(random, dims);
      const double radius = row == 0 ? 0 : 7 * (1 + random.between(-1e-12, 1e-12));
      for (std::uint32_t d = 0; d < dims; ++d) values[row * dims + d] = 100 + way[d] * radius;
    }
    expect_exact(dims, values, 7);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gpujoin::test

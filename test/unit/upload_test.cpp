// Sides so large that a device gets them part by part, from several threads. A lattice of one
// dimension in no order: all pairs of neighbours are there if each row came to its place.
#include <gtest/gtest.h>

#include <algorithm>

#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class Upload : public EngineTest {
 protected:
  std::int64_t rows() const { return 3'000'001; }
  /// The number that row `row` has.
  std::int64_t number(std::int64_t row) const { return row * 7919 % rows(); }

  std::vector<std::int64_t> ids() const {
    std::vector<std::int64_t> ids(rows());
    for (std::int64_t row = 0; row < rows(); ++row) ids[row] = number(row);
    return ids;
  }

  void expect_neighbors(JoinRequest request) {
    select(request, PairSelection::kUnordered);
    request.resources.threads = 3;
    const RunResult result = run_join(engine(), request);
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    std::vector<std::int64_t> smaller;
    for (const FoundPair& pair : result.pairs) {
      ASSERT_EQ(std::abs(pair.id1 - pair.id2), 1);
      smaller.push_back(std::min(pair.id1, pair.id2));
    }
    std::sort(smaller.begin(), smaller.end());
    ASSERT_EQ(smaller.size(), rows() - 1);
    for (std::size_t i = 0; i < smaller.size(); ++i)
      ASSERT_EQ(smaller[i], static_cast<std::int64_t>(i));
  }
};
GPUJOIN_ON_DEVICES(Upload);

TEST_P(Upload, points_and_ids) {
  std::vector<double> values(rows());
  for (std::int64_t row = 0; row < rows(); ++row) values[row] = static_cast<double>(number(row));
  const Points points = Points(1, values).with_ids(ids());
  expect_neighbors(make_request(points, nullptr, Metric::kL2, 1));
}

TEST_P(Upload, boxes_of_each_method_but_nested_loops) {
  std::vector<double> values(2 * rows());
  for (std::int64_t row = 0; row < rows(); ++row) {
    values[2 * row] = static_cast<double>(number(row));
    values[2 * row + 1] = values[2 * row] + 1;
  }
  const Points boxes = Points(2, values).with_ids(ids());
  for (const BoxMethod method : {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep}) {
    JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
    request.knobs.box_method = method;
    expect_neighbors(request);
  }
}

TEST_P(Upload, scores) {
  std::vector<double> values(rows()), scores(rows());
  for (std::int64_t row = 0; row < rows(); ++row)
    scores[row] = values[row] = static_cast<double>(number(row));
  const Points points = Points(1, values).with_ids(ids()).with_scores(scores);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  request.resources.threads = 3;
  request.knobs.topk_method = TopkMethod::kThreshold;
  request = request.asking(Output::top_pairs({{ScoreFunction::kSum, false, {1, 1}}, 2}));
  const RunResult result = run_join(engine(), request);
  ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  ASSERT_EQ(result.pairs.size(), 2u);
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(result.pairs[i].id1 + result.pairs[i].id2, 2 * (rows() - 1 - i) - 1);
}

}  // namespace
}  // namespace gpujoin::test

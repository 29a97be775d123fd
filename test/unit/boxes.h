// Boxes for the tests: generators of rows for Points, each the low corner of a box and then the
// high one, a request to start from, and the fixture of tests that join them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {

/// A request for all pairs of boxes, everything left to the engine.
inline JoinRequest make_box_request(const Points& left, const Points* right, Metric metric,
                                    double eps) {
  JoinRequest request(sides_of(left, right), BoxesWithin{metric, eps}, BoxOutput::kPairs);
  request.resources.threads = 2;
  return request;
}

inline constexpr BoxMethod kBoxMethods[] = {BoxMethod::kAuto, BoxMethod::kLayeredGrid,
                                            BoxMethod::kSortSweep, BoxMethod::kNone};
inline constexpr Metric kBoxMetrics[] = {Metric::kL2, Metric::kL1, Metric::kLInf};

/// An engine may refuse to join boxes as kUnavailable.
class BoxEngineTest : public EngineTest {
 protected:
  void SetUp() override {
    const Points box(2, {0, 1});
    const JoinRequest request = make_box_request(box, nullptr, Metric::kL2, 0);
    if (run_join(engine(), request).status.code == StatusCode::kUnavailable)
      GTEST_SKIP() << "the engine does not join boxes";
  }
};

/// The row of a box between two corners.
inline std::vector<double> box_of(std::vector<double> low, const std::vector<double>& high) {
  low.insert(low.end(), high.begin(), high.end());
  return low;
}

inline void append(std::vector<double>& rows, const std::vector<double>& box) {
  rows.insert(rows.end(), box.begin(), box.end());
}

/// Rows with corners at make_values() and sides of up to `side`; every tenth is a point.
inline std::vector<double> make_boxes(Shape shape, Random& random, std::uint64_t rows,
                                      std::uint32_t dims, double side) {
  const std::vector<double> lows = make_values(shape, random, rows, dims);
  std::vector<double> boxes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<double> low(lows.begin() + row * dims, lows.begin() + (row + 1) * dims);
    std::vector<double> high = low;
    if (row % 10 != 0)
      for (double& x : high) x += std::round(4 * random.between(0, side)) / 4;
    append(boxes, box_of(low, high));
  }
  return boxes;
}

}  // namespace gpujoin::test

// The sweep of boxes: every pair that passes is found, and just once.
#include "core/box_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

struct Interval1d {
  float bounds[2];
};

/// Few different values, so that many bounds are equal; some infinite, some -0.
std::vector<Interval1d> make_intervals(Random& random, int count) {
  std::vector<Interval1d> boxes;
  const auto value = [&] {
    const double x = random.unit();
    if (x < 0.03) return -std::numeric_limits<float>::infinity();
    if (x > 0.97) return std::numeric_limits<float>::infinity();
    if (x < 0.1) return -0.0f;
    return static_cast<float>(static_cast<int>(x * 20)) - 10;
  };
  for (int i = 0; i < count; ++i) {
    const float a = value(), b = value();
    boxes.push_back({{std::min(a, b), std::max(a, b)}});
  }
  return boxes;
}

/// The rows in the order of their low bounds, and these bounds.
struct Sorted {
  std::vector<std::uint32_t> rows;
  std::vector<float> lows;

  explicit Sorted(const std::vector<Interval1d>& boxes) {
    for (std::uint32_t row = 0; row < boxes.size(); ++row) rows.push_back(row);
    std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
      return boxes[a].bounds[0] < boxes[b].bounds[0];
    });
    for (const std::uint32_t row : rows) lows.push_back(boxes[row].bounds[0]);
  }
};

/// Calls visit(row, other row) for the candidates of each box.
template <class Visit>
void sweep(const std::vector<Interval1d>& boxes, const Sorted& others, double reach,
           bool first_side, const Visit& visit) {
  for (std::uint32_t row = 0; row < boxes.size(); ++row) {
    const PositionRange range =
        boxes_above(others.lows.data(), static_cast<std::uint32_t>(others.lows.size()),
                    boxes[row].bounds[0], boxes[row].bounds[1], reach, first_side);
    for (std::uint32_t i = range.begin; i < range.end; ++i) visit(row, others.rows[i]);
  }
}

const double kDistances[] = {0, 1e-200, 1, 2.5};

TEST(BoxSweep, two_sides_find_each_pair_once) {
  Random random(901);
  const std::vector<Interval1d> left = make_intervals(random, 70),
                                right = make_intervals(random, 90);
  for (const double eps : kDistances) {
    const BoxTest test = make_box_test(Metric::kL2, eps);
    std::vector<int> found(left.size() * right.size());
    sweep(left, Sorted(right), test.reach, true,
          [&](std::uint32_t i, std::uint32_t j) { ++found[i * right.size() + j]; });
    sweep(right, Sorted(left), test.reach, false,
          [&](std::uint32_t j, std::uint32_t i) { ++found[i * right.size() + j]; });
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j) {
        const int times = found[i * right.size() + j];
        ASSERT_LE(times, 1);
        if (passes(test, left[i].bounds, right[j].bounds, 1)) {
          ASSERT_EQ(times, 1);
        }
      }
  }
}

TEST(BoxSweep, a_self_join_finds_each_pair_once) {
  Random random(902);
  const std::vector<Interval1d> boxes = make_intervals(random, 80);
  for (const bool with_itself : {false, true})
    for (const double eps : kDistances) {
      const BoxTest test = make_box_test(Metric::kL1, eps);
      std::vector<int> found(boxes.size() * boxes.size());
      sweep(boxes, Sorted(boxes), test.reach, true, [&](std::uint32_t i, std::uint32_t j) {
        if (takes_pair(boxes[i].bounds[0], boxes[j].bounds[0], i, j, with_itself))
          ++found[std::min(i, j) * boxes.size() + std::max(i, j)];
      });
      for (std::size_t i = 0; i < boxes.size(); ++i)
        for (std::size_t j = i; j < boxes.size(); ++j) {
          const int times = found[i * boxes.size() + j];
          ASSERT_LE(times, 1);
          if (passes(test, boxes[i].bounds, boxes[j].bounds, 1)) {
            ASSERT_EQ(times, i != j || with_itself ? 1 : 0);
          }
        }
    }
}

}  // namespace
}  // namespace gpujoin::test

// The tree of boxes along a space-filling curve, its search and the lists of neighbours, as the
// device has them, against brute force.

#include "core/box_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "core/nearest_screen.h"
#include "core/neighbor_lists.h"
#include "core/spread_rows.h"
#include "core/threshold.h"
#include "host_tree.h"
#include "points.h"

namespace gpujoin::test {
namespace {

template <Metric M, class List>
struct Taker {
  List& list;
  NeighborOrder<M> order;
  double most = DBL_MAX;
  std::size_t looked_at = 0;

  double bound() const { return most; }
  bool goes_on(std::uint32_t points) {
    looked_at += points;
    return true;
  }
  void take(std::uint32_t position, double raw) {
    if (!(raw <= most)) return;
    list.offer(raw, position, order);
    if (list.is_full()) most = std::min(most, most_raw_beside(M, list.last_raw()));
  }
};

struct Found {
  std::vector<double> raws;
  std::vector<std::uint32_t> positions;
  std::size_t looked_at;
};

template <Metric M, std::uint32_t D, std::uint32_t K>
Found search(const HostTree& host, const double* query, std::uint32_t k, const std::int64_t* ids) {
  const NeighborOrder<M> order{host.order.data(), ids};
  Found found;
  if constexpr (K > 0) {
    ShortNeighborList<K> list(k);
    Taker<M, ShortNeighborList<K>> taker{list, order};
    search_box_tree<M, D>(host.tree, query, taker);
    for (std::uint32_t i = K - k; i < K && list.raw(i) < HUGE_VAL; ++i) {
      found.raws.push_back(list.raw(i));
      found.positions.push_back(list.position(i));
    }
    found.looked_at = taker.looked_at;
  } else {
    found.raws.resize(k);
    found.positions.resize(k);
    NeighborHeap heap(found.raws.data(), found.positions.data(), k);
    Taker<M, NeighborHeap> taker{heap, order};
    search_box_tree<M, D>(host.tree, query, taker);
    const std::uint32_t count = heap.sort(order);
    found.raws.resize(count);
    found.positions.resize(count);
    found.looked_at = taker.looked_at;
  }
  return found;
}

template <Metric M, std::uint32_t D, std::uint32_t K>
std::size_t expect_nearest(const std::vector<double>& values, std::uint32_t dims,
                           std::uint32_t stride, const std::vector<std::uint32_t>& ks) {
  const HostTree host(values, dims, stride, 12);
  const std::size_t rows = host.order.size();
  std::vector<std::int64_t> ids(rows);
  for (std::size_t i = 0; i < rows; ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % 1009) - 500;
  const NeighborOrder<M> order{host.order.data(), ids.data()};
  std::size_t looked_at = 0;
  for (std::size_t p = 0; p < rows; p += 1 + rows / 60) {
    const double* const query = host.tree.point(static_cast<std::uint32_t>(p));
    std::vector<std::uint32_t> all(rows);
    std::iota(all.begin(), all.end(), 0u);
    std::vector<double> raws;
    for (const std::uint32_t q : all)
      raws.push_back(raw_distance<M>(query, host.tree.point(q), stride));
    std::erase_if(all, [&](std::uint32_t q) { return !(raws[q] <= DBL_MAX); });
    std::sort(all.begin(), all.end(),
              [&](std::uint32_t a, std::uint32_t b) { return order(raws[a], a, raws[b], b); });
    for (const std::uint32_t k : ks) {
      const Found found = search<M, D, K>(host, query, k, ids.data());
      looked_at += found.looked_at;
      EXPECT_EQ(found.positions.size(), std::min<std::size_t>(k, all.size()));
      for (std::size_t i = 0; i < found.positions.size(); ++i) {
        EXPECT_EQ(found.positions[i], all[i]) << "place " << i << " of " << k;
        EXPECT_EQ(found.raws[i], raws[all[i]]);
      }
    }
  }
  return looked_at;
}

TEST(BoxTrees, find_the_first_neighbors) {
  Random random(821);
  for (const Shape shape : kShapes) {
    const std::vector<double> two = make_values(shape, random, 700, 2);
    expect_nearest<Metric::kL2, 2, 8>(two, 2, 2, {1, 2, 7, 8});
    expect_nearest<Metric::kL2, 2, 32>(two, 2, 2, {1, 9, 31, 32});
    expect_nearest<Metric::kL2, 4, 0>(two, 2, 4, {1, 33, 300, 700, 900});
    expect_nearest<Metric::kL1, 0, 32>(two, 2, 2, {5});
    expect_nearest<Metric::kLInf, 0, 0>(two, 2, 2, {40});
    const std::vector<double> five = make_values(shape, random, 500, 5);
    expect_nearest<Metric::kL2, 6, 8>(five, 5, 6, {4, 8});
    const std::vector<double> many = make_values(shape, random, 200, 20);
    expect_nearest<Metric::kL2, 0, 32>(many, 20, 20, {10});
  }
  for (const std::uint64_t rows : {1u, 2u, 12u, 13u}) {
    const std::vector<double> few = make_values(Shape::kUniform, random, rows, 1);
    expect_nearest<Metric::kL2, 2, 8>(few, 1, 2, {1, 8});
  }
}

TEST(BoxTrees, hold_huge_and_tiny_coordinates) {
  const std::vector<double> values = {1e300, -1e300, 1e39,  0,    -1e39, 1, 5e-324, -5e-324,
                                      1e-50, 3,      1e308, 1e30, 0,     0, 1,      1};
  expect_nearest<Metric::kL1, 0, 32>(values, 2, 2, {1, 3});
  expect_nearest<Metric::kL2, 2, 8>(values, 2, 2, {1, 3});
}

TEST(BoxTrees, leave_most_points_out) {
  Random random(822);
  const std::vector<double> values = make_values(Shape::kClustered, random, 4000, 2);
  const std::size_t looked_at = expect_nearest<Metric::kL2, 2, 8>(values, 2, 2, {8});
  EXPECT_LT(looked_at, 61u * 400);
}

TEST(CurveKeys, follow_one_another_from_cell_to_neighboring_cell) {
  for (const std::uint32_t dims : {2u, 3u}) {
    // All cells of the coarsest 2^3 a side: keys are the first bits of the finer ones.
    const std::vector<double> low(dims, 0), high(dims, 1);
    const CurveFrame frame = make_curve_frame(low.data(), high.data(), dims);
    constexpr std::uint32_t kSide = 8;
    std::uint32_t cells = 1;
    for (std::uint32_t d = 0; d < dims; ++d) cells *= kSide;
    std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t>> sorted;
    for (std::uint32_t number = 0; number < cells; ++number) {
      std::uint32_t cell[kMostCurveColumns];
      for (std::uint32_t d = 0, rest = number; d < dims; ++d, rest /= kSide)
        cell[d] = (rest % kSide) << (frame.bits - 3);
      const CurveKey key = curve_key(frame, cell);
      sorted.push_back({{key.high, key.low}, number});
    }
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t i = 1; i < cells; ++i) {
      std::uint32_t steps = 0, a = sorted[i - 1].second, b = sorted[i].second;
      for (std::uint32_t d = 0; d < dims; ++d, a /= kSide, b /= kSide)
        steps += a % kSide > b % kSide ? a % kSide - b % kSide : b % kSide - a % kSide;
      EXPECT_EQ(steps, 1u) << dims << " columns, cell " << i;
    }
  }
}

TEST(CurveKeys, take_in_every_coordinate) {
  const double low[] = {-1, 0}, high[] = {1, 1e-300}, same[] = {5};
  const CurveFrame frame = make_curve_frame(low, high, 2);
  for (const double x : {-DBL_MAX, -2.0, -1.0, 0.0, 1.0, DBL_MAX})
    EXPECT_LT(curve_cell(frame, 0, x), 1u << frame.bits);
  EXPECT_LT(curve_cell(frame, 0, -1), curve_cell(frame, 0, 0.5));
  EXPECT_EQ(curve_cell(make_curve_frame(same, same, 1), 0, 7), 0u);
  for (std::uint32_t columns = 1; columns <= kMostCurveColumns; ++columns)
    EXPECT_LE(columns * curve_bits(columns), 126u);
}

TEST(SpreadRows, name_each_row_once_and_spread_them) {
  for (const std::uint64_t rows : {1u, 2u, 3u, 100u, 128u, 997u, 10000u}) {
    const SpreadRows spread = spread_rows_of(rows);
    std::set<std::uint32_t> seen;
    for (std::uint32_t p = 0; p < rows; ++p) seen.insert(spread.row(p));
    EXPECT_EQ(seen.size(), rows);
    EXPECT_LT(*seen.rbegin(), rows);
  }
  const SpreadRows spread = spread_rows_of(10000);
  std::set<std::uint32_t> tenths;
  for (std::uint32_t p = 0; p < 50; ++p) tenths.insert(spread.row(p) / 1000);
  EXPECT_EQ(tenths.size(), 10u);
  EXPECT_LT(spread_rows_of(4294967231).row(4294967230u), 4294967231u);
}

/// Single precision as a tensor core may have it: a sum that starts at the threshold and whose
/// steps are cut off, not rounded.
TEST(NearestScreens, started_sums_lose_no_neighbor) {
  Random random(823);
  for (int round = 0; round < 20000; ++round) {
    constexpr std::uint32_t kDims = 16;
    const double size = std::ldexp(1.0, static_cast<int>(random.index(14)));
    double a[kDims], b[kDims], na = 0, nb = 0, squares = 0;
    for (std::uint32_t d = 0; d < kDims; ++d) {
      // Numbers that half precision has.
      a[d] = std::floor(random.between(-1000, 1000)) * size / 1024;
      b[d] = round % 3 == 0 ? a[d] : std::floor(random.between(-1000, 1000)) * size / 1024;
      na += a[d] * a[d];
      nb += b[d] * b[d];
      squares += (a[d] - b[d]) * (a[d] - b[d]);
    }
    const double reach = std::sqrt(squares) * (1 + 0x1p-40);
    const double accumulation = tensor_accumulation(kDims);
    const float left =
        nearest_started_threshold(static_cast<double>(static_cast<float>(na)), reach, accumulation);
    const float right = nearest_right_threshold(nb, accumulation);
    double sum = -static_cast<double>(left), largest = std::fabs(sum);
    for (std::uint32_t d = 0; d < kDims; ++d) {
      sum += a[d] * b[d];
      largest = std::max(largest, std::fabs(a[d] * b[d]));
    }
    sum -= 17 * 0x1p-22 * largest;  // a step of 17 addends
    EXPECT_GE(static_cast<float>(sum), right) << "round " << round;
  }
}

TEST(NearestScreens, reaches_take_in_what_comes_beside) {
  Random random(824);
  for (int round = 0; round < 1000; ++round) {
    const double raw = std::ldexp(random.unit(), static_cast<int>(random.index(40)) - 20);
    EXPECT_GE(nearest_reach(Metric::kL2, raw, 100, 4), 4 * std::sqrt(raw));
    const double cosine = 2 * random.unit();
    EXPECT_GE(nearest_reach(Metric::kCosine, cosine, 100, 2), 2 * std::sqrt(2 * cosine));
  }
  EXPECT_EQ(nearest_reach(Metric::kL2, DBL_MAX, 2, 1), 0x1p60);
}

}  // namespace
}  // namespace gpujoin::test

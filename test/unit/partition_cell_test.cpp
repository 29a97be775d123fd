// Cells to partition points by (src/pg/geometry/partition_cell.h): that a halo has the cells of all
// points within reach, and each key once, on edges, at signs, at any magnitude.

#include "pg/geometry/partition_cell.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "core/distance.h"

namespace gpujoin::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

std::multiset<std::int64_t> keys_of(const PartitionHalo& halo) {
  std::multiset<std::int64_t> keys;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(halo_cells(halo)); ++i)
    keys.insert(halo_key(halo, i));
  return keys;
}

/// How often a join on equal keys meets the pair.
std::size_t meetings(const std::vector<double>& a, const std::vector<double>& b, double width,
                     double eps) {
  const auto dims = static_cast<std::uint32_t>(a.size());
  const PartitionHalo halo = partition_halo(b.data(), dims, width, partition_reach(eps));
  if (!(halo_cells(halo) <= kMaxHaloCells)) {
    ADD_FAILURE() << halo_cells(halo) << " cells";
    return 0;
  }
  return keys_of(halo).count(partition_key(a.data(), dims, width));
}

bool is_within(const std::vector<double>& a, const std::vector<double>& b, double eps) {
  const auto dims = static_cast<std::uint32_t>(a.size());
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
    if (distance_from_raw(metric, raw_distance(metric, a.data(), b.data(), dims)) <= eps)
      return true;
  return false;
}

TEST(PartitionCell, is_the_floor_of_the_quotient) {
  EXPECT_EQ(partition_coordinate(0, 2), 0);
  EXPECT_EQ(partition_coordinate(-0.0, 2), 0);
  EXPECT_EQ(partition_coordinate(1.999, 2), 0);
  EXPECT_EQ(partition_coordinate(2, 2), 1);
  EXPECT_EQ(partition_coordinate(-0.001, 2), -1);
  EXPECT_EQ(partition_coordinate(-2, 2), -1);
}

TEST(PartitionCell, takes_in_what_is_huge_or_not_finite) {
  const std::int64_t end = std::int64_t{1} << 53;
  EXPECT_EQ(partition_coordinate(kMax, kTiny), end);
  EXPECT_EQ(partition_coordinate(-kMax, 1), -end);
  EXPECT_EQ(partition_coordinate(kInfinity, 1), end);
  EXPECT_EQ(partition_coordinate(-kInfinity, 1), -end);
  EXPECT_EQ(partition_coordinate(std::nan(""), 1), -end);
  EXPECT_EQ(partition_coordinate(kMax, kMax), 1);
}

TEST(PartitionCell, has_a_readable_key) {
  const double point[] = {3.5, -1.5, 2.5};
  EXPECT_EQ(partition_key(point, 1, 1.0), 3);
  EXPECT_EQ(partition_key(point, 2, 1.0), (std::int64_t{3} << 32) - 2);
  EXPECT_EQ(partition_key(point, 3, 1.0), (((std::int64_t{3} << 21) - 2) << 21) + 2);
}

TEST(PartitionCell, halo_has_each_key_once) {
  const double far = 0x1p60;  // where keys wrap around
  for (const double x : {0.0, -0.5, 1e6, -far, far, 0x1p31, -0x1p31, 0x1p20}) {
    const std::vector<double> point(3, x);
    for (std::uint32_t dims = 1; dims <= 3; ++dims) {
      const PartitionHalo halo = partition_halo(point.data(), dims, 1, dims == 1 ? 1e4 : 12);
      const auto keys = keys_of(halo);
      EXPECT_EQ(std::set<std::int64_t>(keys.begin(), keys.end()).size(), keys.size());
      EXPECT_EQ(keys.count(partition_key(point.data(), dims, 1.0)), 1u);
    }
  }
}

TEST(PartitionCell, halo_is_small_inside_a_cell) {
  const double inside[] = {0.5, -0.5};
  EXPECT_EQ(halo_cells(partition_halo(inside, 2, 1, partition_reach(0.25))), 1);
  const double at_side[] = {0.1, -0.5};
  EXPECT_EQ(halo_cells(partition_halo(at_side, 2, 1, partition_reach(0.25))), 2);
  const double at_corner[] = {0.1, -0.1};
  EXPECT_EQ(halo_cells(partition_halo(at_corner, 2, 1, partition_reach(0.25))), 4);
  EXPECT_EQ(halo_cells(partition_halo(inside, 2, 1, partition_reach(2))), 25);
}

TEST(PartitionCell, counts_halos_that_are_too_large) {
  const double point[] = {0, 0, 0};
  EXPECT_GT(halo_cells(partition_halo(point, 3, kTiny, kMax)), kMaxHaloCells);
  EXPECT_GT(halo_cells(partition_halo(point, 1, 1e-3, 1e6)), kMaxHaloCells);
}

TEST(PartitionCell, what_is_not_finite_has_its_own_cell_for_a_halo) {
  for (const double x : {kInfinity, -kInfinity, static_cast<double>(NAN)}) {
    const double point[] = {x, 0.0};
    const PartitionHalo halo = partition_halo(point, 2, 1, partition_reach(0.25));
    EXPECT_EQ(keys_of(halo).count(partition_key(point, 2, 1.0)), 1u);
    EXPECT_LE(halo_cells(halo), 2);
  }
}

TEST(PartitionCell, exactly_eps_apart_across_an_edge) {
  EXPECT_EQ(meetings({1.0}, {0.75}, 1, 0.25), 1u);
  EXPECT_EQ(meetings({0.75}, {1.0}, 1, 0.25), 1u);
  EXPECT_EQ(meetings({-0.25}, {0.0}, 1, 0.25), 1u);
  EXPECT_EQ(meetings({0.3, 0.3}, {0.3 - 0.1, 0.3}, 0.1, 0.1), 1u);
  EXPECT_EQ(meetings({-1e-300}, {1e-170}, 1e-160, 0), 1u);  // squares underflow: distance 0
}

/// Numbers that hurt: near edges of cells, by an ulp; of any magnitude.
double number(std::mt19937_64& random, double width) {
  std::uniform_int_distribution<int> kind(0, 5), steps(-4, 4), exponent(-1074, 1023);
  const double edge = width * steps(random);
  switch (kind(random)) {
    case 0:
      return edge;
    case 1:
      return std::nextafter(edge, kInfinity);
    case 2:
      return std::nextafter(edge, -kInfinity);
    case 3:
      return std::ldexp(steps(random), exponent(random));
    default:
      return width * std::uniform_real_distribution<double>(-3, 3)(random);
  }
}

TEST(PartitionCell, no_pair_is_lost_and_none_met_twice) {
  std::mt19937_64 random(1);
  std::uint64_t pairs = 0;
  for (int round = 0; round < 40000; ++round) {
    const int exponent = std::uniform_int_distribution<int>(-500, 1000)(random);
    const double width = round % 3 == 0 ? std::ldexp(1, exponent) : round % 3 == 1 ? 0.1 : 3;
    const double eps = width * std::uniform_real_distribution<double>(0, 3)(random);
    const std::size_t dims = 1 + round % 3;
    std::vector<double> a(dims), b(dims);
    for (std::size_t d = 0; d < dims; ++d) {
      a[d] = number(random, width);
      switch (std::uniform_int_distribution<int>(0, 3)(random)) {
        case 0:
          b[d] = number(random, width);
          break;
        case 1:
          b[d] = a[d] + (d == 0 ? eps : 0);  // exactly eps, as far as rounding lets
          break;
        case 2:
          b[d] = a[d] - eps / 2;
          break;
        default:
          b[d] = std::nextafter(a[d], kInfinity);
      }
    }
    const std::size_t met = meetings(a, b, width, eps);
    EXPECT_LE(met, 1u);
    if (!is_within(a, b, eps)) continue;
    ++pairs;
    ASSERT_EQ(met, 1u) << "width " << width << " eps " << eps << " a " << a[0] << " b " << b[0];
  }
  EXPECT_GT(pairs, 10000u);
}

}  // namespace
}  // namespace gpujoin::test

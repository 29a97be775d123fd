// The test of tensor cores, put to models of some: it passes those that core/tile_screen.h allows
// for, and no others.
#include "engine/strategy/hard_dot_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpujoin::test {
namespace {

/// A number cut off, towards 0, below 2^lowest.
double cut(double x, int lowest) { return std::ldexp(std::trunc(std::ldexp(x, -lowest)), lowest); }

/// Sums of `step` products and what was summed before, of which `bits` below the largest are kept.
/// What comes out is single precision, and loses `lost` columns at the end.
std::vector<float> sums_of_model(const HardDotProducts& hard, int bits, std::uint32_t step = 16,
                                 std::uint32_t lost = 0) {
  std::vector<float> sums;
  for (std::size_t i = 0; i < hard.starts.size(); ++i) {
    const std::size_t first = i / HardDotProducts::kRows * HardDotProducts::kColumns;
    for (std::size_t j = first; j < first + HardDotProducts::kColumns; ++j) {
      double sum = hard.starts[i];
      for (std::uint32_t begin = 0; begin < hard.dims - lost; begin += step) {
        std::vector<double> addends = {sum};
        for (std::uint32_t d = begin; d < std::min(begin + step, hard.dims - lost); ++d)
          addends.push_back(value_of_half(hard.left[i * hard.dims + d]) *
                            value_of_half(hard.right[j * hard.dims + d]));
        double largest = 0;
        for (const double addend : addends) largest = std::max(largest, std::fabs(addend));
        const int lowest = largest == 0 ? -1000 : std::ilogb(largest) - bits;
        sum = 0;
        for (const double addend : addends) sum += cut(addend, lowest);
        sum = cut(sum, sum == 0 ? -1000 : std::ilogb(sum) - std::min(bits, 23));
      }
      sums.push_back(static_cast<float>(sum));
    }
  }
  return sums;
}

TEST(HardDotProducts, pass_where_rounding_is_as_was_measured) {
  for (const std::uint32_t dims : {16u, 128u}) {
    const HardDotProducts hard = make_hard_dot_products(dims);
    for (const std::uint32_t step : {4u, 8u, 16u}) {  // Volta, Ampere, Hopper
      const double largest = largest_error(hard, sums_of_model(hard, 23, step).data());
      EXPECT_LE(largest, 1) << dims << " dims, " << step << " at a time";
      EXPECT_GT(largest, 0);
    }
    EXPECT_LT(largest_error(hard, sums_of_model(hard, 40).data()), 0.01);
  }
}

TEST(HardDotProducts, fail_where_bits_are_missing) {
  const HardDotProducts one_step = make_hard_dot_products(16), chain = make_hard_dot_products(128);
  for (const int bits : {10, 13, 16, 18})  // 10: sums in half precision
    EXPECT_GT(std::max(largest_error(one_step, sums_of_model(one_step, bits).data()),
                       largest_error(chain, sums_of_model(chain, bits).data())),
              1)
        << bits;
}

TEST(HardDotProducts, fail_where_terms_are_missing_or_no_numbers) {
  const HardDotProducts hard = make_hard_dot_products(128);
  EXPECT_GT(largest_error(hard, sums_of_model(hard, 23, 16, 1).data()), 1);
  std::vector<float> sums = sums_of_model(hard, 23);
  sums.back() = NAN;
  EXPECT_FALSE(largest_error(hard, sums.data()) <= 1);
  sums.back() = INFINITY;
  EXPECT_FALSE(largest_error(hard, sums.data()) <= 1);
}

TEST(HardDotProducts, are_normal_numbers_of_half_precision) {
  const HardDotProducts hard = make_hard_dot_products(16);
  EXPECT_EQ(value_of_half(0x3c00), 1);
  EXPECT_EQ(value_of_half(0xc500), -5);
  EXPECT_EQ(value_of_half(0), 0);
  for (const std::uint16_t half : hard.left) {
    EXPECT_NE(half >> 10 & 31, 0);
    EXPECT_NE(half >> 10 & 31, 31);
  }
}

}  // namespace
}  // namespace gpujoin::test

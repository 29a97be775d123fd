#include "engine/strategy/hard_dot_products.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tile_screen.h"

namespace gpujoin {
namespace {

constexpr std::uint32_t kProducts = 16;

// Magnitudes are from 2^kLowest to below 2^(kHighest + 1), so that products are multiples of
// 2^-kUnitBits and up to 128 of them, and a start below 2^kStartBits, add up in 63 bits.
constexpr int kLowest = -10, kHighest = 6;
constexpr int kUnitBits = 2 * (10 - kLowest);
constexpr int kStartBits = 20;

/// The generator of [SplitMix], with 64 bits.
class Numbers {
 public:
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (x ^ (x >> 31)) % n;
  }

 private:
  std::uint64_t state_ = 1;
};

std::uint16_t half_bits(bool negative, int exponent, std::uint64_t mantissa) {
  return static_cast<std::uint16_t>((negative ? 1u << 15 : 0u) |
                                    static_cast<unsigned>(exponent + 15) << 10 | mantissa);
}

/// One vector of a kind of its own, 16 columns at a time.
void append_vector(std::vector<std::uint16_t>& values, std::uint32_t dims, std::uint64_t kind,
                   Numbers& numbers) {
  for (std::uint32_t begin = 0; begin < dims; begin += 16) {
    const std::uint64_t large = numbers.below(16);
    const int small = kLowest + static_cast<int>(numbers.below(kHighest - kLowest));
    for (std::uint64_t d = 0; d < 16; ++d) {
      const bool negative = numbers.below(2) != 0;
      const std::uint64_t mantissa = numbers.below(1024);
      switch (kind) {
        case 0:  // one large, the others all as small
          values.push_back(half_bits(negative, d == large ? kHighest : small, mantissa));
          break;
        case 1:  // two that cancel in sums with equal ones, and a tail
          values.push_back(d < 2 ? half_bits(d == 1, kHighest, 0)
                                 : half_bits(negative, small, mantissa));
          break;
        case 2:  // all sorts
          values.push_back(
              half_bits(negative, kLowest + static_cast<int>(numbers.below(kHighest - kLowest + 1)),
                        mantissa));
          break;
        default:  // a sum that grows by the same, all bits of it
          values.push_back(half_bits(false, begin == 0 && d == 0 ? kHighest : -2, 1023));
      }
    }
  }
}

float start_of(std::uint64_t kind, Numbers& numbers) {
  const double sign = numbers.below(2) != 0 ? -1 : 1;
  const double mantissa = 1 + static_cast<double>(numbers.below(1 << 23)) * 0x1p-23;
  const int exponents[] = {kStartBits - 1, 12, 0, -16};
  return kind % 5 == 4 ? 0 : static_cast<float>(sign * std::ldexp(mantissa, exponents[kind % 5]));
}

/// x as a multiple of 2^-bits, which it is.
std::int64_t in_units(double x, int bits) { return std::llround(std::ldexp(x, bits)); }

/// Vectors in units of 2^-(kUnitBits / 2), and their lengths.
struct ExactVectors {
  std::vector<std::int64_t> values;
  std::vector<double> lengths;

  ExactVectors(const std::vector<std::uint16_t>& halves, std::uint32_t dims) {
    for (const std::uint16_t half : halves)
      values.push_back(in_units(value_of_half(half), kUnitBits / 2));
    for (std::size_t begin = 0; begin < values.size(); begin += dims)
      lengths.push_back(std::sqrt(
          std::ldexp(static_cast<double>(dot(&values[begin], &values[begin], dims)), -kUnitBits)));
  }

  static std::int64_t dot(const std::int64_t* a, const std::int64_t* b, std::uint32_t dims) {
    std::int64_t sum = 0;
    for (std::uint32_t d = 0; d < dims; ++d) sum += a[d] * b[d];
    return sum;
  }
};

}  // namespace

double value_of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 0) return 0;
  const double magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

HardDotProducts make_hard_dot_products(std::uint32_t dims) {
  HardDotProducts hard{dims, kProducts, {}, {}, {}};
  Numbers numbers;
  for (std::uint32_t product = 0; product < kProducts; ++product) {
    for (std::uint32_t row = 0; row < HardDotProducts::kRows; ++row) {
      append_vector(hard.left, dims, (row + product) % 4, numbers);
      hard.starts.push_back(start_of(row + product, numbers));
    }
    for (std::uint32_t column = 0; column < HardDotProducts::kColumns; ++column)
      append_vector(hard.right, dims, column % 4, numbers);
  }
  return hard;
}

double largest_error(const HardDotProducts& hard, const float* sums) {
  const std::uint32_t dims = hard.dims;
  const ExactVectors left(hard.left, dims), right(hard.right, dims);
  double largest = 0;
  for (std::size_t a = 0; a < left.lengths.size(); ++a) {
    const std::size_t first = a / HardDotProducts::kRows * HardDotProducts::kColumns;
    for (std::size_t b = first; b < first + HardDotProducts::kColumns; ++b) {
      const float sum = *sums++;
      if (!(std::fabs(sum) < 0x1p22f)) return std::numeric_limits<double>::infinity();
      const std::int64_t exact =
          in_units(hard.starts[a], kUnitBits) +
          ExactVectors::dot(&left.values[a * dims], &right.values[b * dims], dims);
      const auto error = static_cast<double>(in_units(sum, kUnitBits) - exact);
      const double allowed = tensor_accumulation(dims) *
                             (left.lengths[a] * right.lengths[b] + std::fabs(hard.starts[a]));
      largest = std::max(largest, std::ldexp(std::fabs(error), -kUnitBits) / allowed);
    }
  }
  return largest;
}

}  // namespace gpujoin

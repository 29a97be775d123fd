// Dot products that show how a matrix unit rounds: one large term among ones that are lost beside
// it, terms that cancel, long sums. Their results are compared with exact sums and the error that
// core/tile_screen.h allows for.
#pragma once

#include <cstdint>
#include <vector>

namespace gpujoin {

/// Matrix products of kRows by kColumns vectors, in half precision.
struct HardDotProducts {
  static constexpr std::uint32_t kRows = 16, kColumns = 8;

  std::uint32_t dims;                ///< a multiple of 16
  std::uint32_t products;            ///< of matrices
  std::vector<std::uint16_t> left;   ///< [products][kRows][dims] bits of halves
  std::vector<std::uint16_t> right;  ///< [products][kColumns][dims]
  std::vector<float> starts;         ///< [products][kRows] where the sums of a row begin
};

/// Deterministic. Throws std::bad_alloc.
HardDotProducts make_hard_dot_products(std::uint32_t dims);

/// The number that half precision has for these bits, which stand for a normal number or 0.
double value_of_half(std::uint16_t bits);

/// The largest error among sums [products][kRows][kColumns], as a share of what
/// tensor_accumulation() allows; infinite for a sum that is no number.
double largest_error(const HardDotProducts& hard, const float* sums);

}  // namespace gpujoin

// Numbering of grid cells: linear (row-major), Z-order and Hilbert order [thesis, section 3.3]. A
// number is a bijection of the coordinates, so any order finds the same neighbours; orders differ
// in how close neighbours lie in memory.
#pragma once

#include <cstdint>

#include "core/grid.h"
#include "core/portability.h"

namespace gpujoin {

/// Interleaves the bits of `dims` coordinates of `bits` bits each, most significant first.
GPUJOIN_HD inline std::uint64_t interleave_bits(const std::uint32_t* cell, std::uint32_t dims,
                                                std::uint32_t bits) {
  std::uint64_t key = 0;
  for (std::uint32_t bit = bits; bit-- > 0;)
    for (std::uint32_t d = 0; d < dims; ++d) key = key << 1 | (cell[d] >> bit & 1);
  return key;
}

/// Turns the coordinates of a cell, of `bits` bits each and at least one, into the transposed index
/// of its place on the Hilbert curve: its bits, interleaved [Skilling].
GPUJOIN_HD inline void transpose_hilbert(std::uint32_t* x, std::uint32_t dims, std::uint32_t bits) {
  const std::uint32_t top = 1u << (bits - 1);
  for (std::uint32_t q = top; q > 1; q >>= 1) {  // undo the excess work of each subcube
    const std::uint32_t low_bits = q - 1;
    for (std::uint32_t d = 0; d < dims; ++d) {
      if (x[d] & q) {
        x[0] ^= low_bits;
      } else {
        const std::uint32_t swapped = (x[0] ^ x[d]) & low_bits;
        x[0] ^= swapped;
        x[d] ^= swapped;
      }
    }
  }
  for (std::uint32_t d = 1; d < dims; ++d) x[d] ^= x[d - 1];  // Gray encode
  std::uint32_t flip = 0;
  for (std::uint32_t q = top; q > 1; q >>= 1)
    if (x[dims - 1] & q) flip ^= q - 1;
  for (std::uint32_t d = 0; d < dims; ++d) x[d] ^= flip;
}

/// The position of a cell on the Hilbert curve of 2^bits cells a side.
GPUJOIN_HD inline std::uint64_t hilbert_key(const std::uint32_t* cell, std::uint32_t dims,
                                            std::uint32_t bits) {
  if (dims == 0 || bits == 0) return 0;
  std::uint32_t x[kMaxGridDimensions];
  for (std::uint32_t d = 0; d < dims; ++d) x[d] = cell[d];
  transpose_hilbert(x, dims, bits);
  return interleave_bits(x, dims, bits);
}

/// The key of a cell, below 2^(grid.dims * grid.bits). kAuto is linear.
GPUJOIN_HD inline std::uint64_t cell_key(const GridGeometry& grid, CellOrder order,
                                         const std::uint32_t* cell) {
  if (order == CellOrder::kZOrder) return interleave_bits(cell, grid.dims, grid.bits);
  if (order == CellOrder::kHilbert) return hilbert_key(cell, grid.dims, grid.bits);
  std::uint64_t key = 0;
  for (std::uint32_t d = 0; d < grid.dims; ++d) key = key << grid.bits | cell[d];
  return key;
}

}  // namespace gpujoin

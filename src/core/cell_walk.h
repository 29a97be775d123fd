// Which neighbouring cells a cell visits. One rule per access pattern, for host and device alike.
#pragma once

#include <cstdint>

#include "core/grid.h"
#include "core/portability.h"

namespace gpujoin {

/// kFull: every adjacent cell, so each pair of points is met from both sides. kLinearId: only cells
/// that come later in linear order (LID-UNICOMP [load-imbalance, section III-B]). kUnicomp: by the
/// parity of the cell's coordinates (UNICOMP [GPU-SJ, section 4.2]).
enum class AccessPattern : std::int32_t { kAuto, kFull, kLinearId, kUnicomp };

/// Adjacent cells are numbered 0 .. 3^dims - 1: digit d of the number in base 3 is the offset along
/// grid dimension d, plus 1. The middle number is the cell itself.
GPUJOIN_HD inline std::uint32_t neighbor_count(std::uint32_t dims) {
  std::uint32_t count = 1;
  for (std::uint32_t d = 0; d < dims; ++d) count *= 3;
  return count;
}

/// Finds neighbour `number` of `cell` in `neighbor`. Returns false where it would lie outside the
/// grid, or is told apart from the cell by a dimension in which only equal values are near.
GPUJOIN_HD inline bool neighbor_cell(const GridGeometry& grid, const std::uint32_t* cell,
                                     std::uint32_t number, std::uint32_t* neighbor) {
  for (std::uint32_t d = 0; d < grid.dims; ++d) {
    neighbor[d] = cell[d] + number % 3 - 1;  // wraps below 0 to a value that is not < cells
    if (neighbor[d] >= grid.cells[d] || (grid.alone[d] && neighbor[d] != cell[d])) return false;
    number /= 3;
  }
  return true;
}

/// Whether `cell` visits the adjacent, different cell `neighbor` under `pattern`.
///
/// Each unordered pair of adjacent cells a != b is visited exactly once by kLinearId and kUnicomp.
/// Let d be the first dimension in which they differ; both cells find the same d, and there they
/// differ by exactly 1. kLinearId: a visits b if and only if b[d] > a[d], which is true from
/// exactly one side. kUnicomp: the visitor is the one with odd coordinate d, and of two consecutive
/// integers exactly one is odd. Pairs of points inside one cell are the caller's: it meets each
/// once by comparing later points only. So every unordered pair of points within eps, which lie in
/// one cell or in adjacent ones (see grid.h), is met exactly once.
GPUJOIN_HD inline bool visits(AccessPattern pattern, std::uint32_t dims, const std::uint32_t* cell,
                              const std::uint32_t* neighbor) {
  if (pattern == AccessPattern::kFull) return true;
  for (std::uint32_t d = 0; d < dims; ++d) {
    if (cell[d] == neighbor[d]) continue;
    return pattern == AccessPattern::kUnicomp ? (cell[d] & 1) != 0 : neighbor[d] > cell[d];
  }
  return false;
}

}  // namespace gpujoin

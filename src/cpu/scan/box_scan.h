// The innermost loops of joins of boxes: one box against ranges of others, with the vector
// instructions of the processor that is found at run time. No threads, no allocation, no choice of
// algorithm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/box.h"
#include "cpu/scan/scan.h"
#include "engine/request/dataset.h"

namespace gpujoin::cpu {

/// Boxes are stored in tiles of 16: the low bounds of 16 boxes along the first dimension, along the
/// second ..., then their high bounds likewise.
inline constexpr std::uint32_t kTileBoxes = 16;

/// One box against the tiled ones. Numbers are of the scalar type the kernel was chosen for.
struct BoxScan {
  const void* tiles;
  const void* query;  ///< [2 * dims]
  std::uint32_t dims;
  double threshold;  ///< BoxTest::threshold
};

struct BoxScanKernel {
  /// The number of boxes in the windows that pass (core/box.h).
  std::uint64_t (*count)(const BoxScan& scan, const Window* windows, std::size_t window_count);
  /// Writes the positions of these boxes, in order. Returns their number.
  std::size_t (*collect)(const BoxScan& scan, const Window* windows, std::size_t window_count,
                         std::uint32_t* positions);
};

BoxScanKernel choose_box_scan(const BoxTest& test, ScalarType scalar, std::uint32_t dims);

}  // namespace gpujoin::cpu

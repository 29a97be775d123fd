// The kernels that find clusters in an index of small cells, launched. Labels lie in device memory,
// and no pair is kept.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "cuda/clusters/cluster_labels.h"
#include "cuda/grid/range_kernels.h"

namespace gpujoin::cuda {

/// Cells with so many points have boxes in memory.
inline constexpr std::uint32_t kBoxedPoints = 33;

/// Coordinates that a walk for clusters takes: boxes lie in registers.
inline constexpr std::uint32_t kMostClusterDimensions = 8;

/// Passed to kernels by value. Points are named by position, and cells by their order.
struct ClusterView {
  JoinView join;
  std::uint32_t radius;  ///< of neighbouring cells
  std::uint64_t min_points;
  BorderRule borders;
  Labels labels;

  std::uint32_t cells;
  const std::uint32_t* cell_of;      ///< [points]
  const std::uint32_t* cell_starts;  ///< [cells + 1]
  const std::uint64_t* cell_keys;    ///< [cells] ascending
  /// Where cells are searched: [..] the number of cells whose keys, without so many low bits, are
  /// smaller than the element's number.
  const std::uint32_t* directory;
  std::uint32_t directory_shift;
  /// [points / kBoxedPoints + 1][2 * dims] low, high of each column, as ordered bits: of the cell
  /// with many points that begins among the kBoxedPoints of that number.
  std::uint64_t* boxes;
  std::uint8_t* whole;        ///< [cells] all points of the cell are neighbours
  std::uint32_t* first_core;  ///< [cells] kNoPoint: there is none

  unsigned long long* candidates;
};

/// cell_of[i] = 1 where a cell begins at position i > 0, else 0.
void launch_cell_flags(const std::uint64_t* codes, std::uint32_t points, std::uint32_t* cell_of,
                       cudaStream_t stream);
/// From cell_of: starts and keys of cells, whose codes have so many bits below the key.
void launch_cells(const std::uint64_t* codes, std::uint32_t value_bits, std::uint32_t points,
                  const std::uint32_t* cell_of, std::uint32_t cells, std::uint32_t* cell_starts,
                  std::uint64_t* cell_keys, cudaStream_t stream);

/// So many elements of a directory, of keys without `shift` low bits.
void launch_directory(const std::uint64_t* cell_keys, std::uint32_t cells, std::uint32_t shift,
                      std::uint32_t elements, std::uint32_t* directory, cudaStream_t stream);

// In this order; the last three for the points first .. end - 1 at a time.

/// Boxes, whole cells; no core points.
void launch_measure(const KernelChoice& choice, const ClusterView& view, cudaStream_t stream);
void launch_cores(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                  std::uint32_t end, cudaStream_t stream);
/// After all cores are marked: links core points of whole cells, and each other point with itself.
void launch_links(const ClusterView& view, cudaStream_t stream);
void launch_unite(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                  std::uint32_t end, cudaStream_t stream);
void launch_borders(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                    std::uint32_t end, cudaStream_t stream);

}  // namespace gpujoin::cuda

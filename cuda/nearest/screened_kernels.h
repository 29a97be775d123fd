// The kernels of the screened search, launched: points rounded for the screen, lists of tiles,
// candidates brought together by left point, and neighbours merged into what was found before.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "core/spread_rows.h"
#include "cuda/grid/grid_index.h"
#include "cuda/nearest/neighbor_search.h"
#include "cuda/tiles/tile_kernels.h"

namespace gpujoin::cuda {

/// How points are rounded, the same for both sides.
struct Rounding {
  std::uint32_t dims;
  std::uint32_t padded_dims;   ///< a multiple of 16
  double scale;                ///< a power of two
  const std::uint32_t* order;  ///< [dims] column -> column of the data
  const double* center;        ///< [dims] in that order
};

/// Points of a side, by position. Those beyond the last, and those that are not finite, pass no
/// threshold.
struct RoundedPoints {
  SpreadRows spread;
  std::uint32_t points = 0;
  std::uint32_t tiles = 0;
  DeviceBuffer<__half> values;  ///< [tiles * kScreenTile][padded_dims]
  DeviceBuffer<float> reject;   ///< [tiles * kScreenTile] as right points
  DeviceBuffer<float> norms;    ///< likewise, squared and rounded to nearest; NaN: passes nothing
  DeviceBuffer<float> errors;   ///< likewise, rounded up
  DeviceBuffer<unsigned> most_error;  ///< [1] the bits of the largest
};

/// Asynchronous, as all that follows. Throws CudaError or MemoryLimitExceeded.
RoundedPoints round_points(MemoryBudget& budget, const DevicePoints& data, const Rounding& how,
                           cudaStream_t stream);

/// Lists all pairs of some left and some right tiles, in bands.
void launch_list_all(const TileRectangle& rectangle, const TileList& list, cudaStream_t stream);

/// Appends the pairs of points of all these pairs of tiles that pass to the candidates; accept
/// thresholds are not read. `list` has room for the pairs of tiles.
void launch_neighbor_screen(const ScreenView& view, const TileRectangle& rectangle,
                            const TileList& list, const CandidateList& candidates,
                            int multiprocessors, cudaStream_t stream);

/// Sets begins[i], ends[i] to where candidates of left point first + i stand among the sorted ones.
void launch_segments(const std::uint64_t* candidates, std::uint64_t size, std::uint32_t first,
                     std::uint32_t* begins, std::uint32_t* ends, cudaStream_t stream);

/// Lists of neighbours, each in order.
struct NeighborLists {
  std::uint32_t* counts;     ///< [lists]
  std::uint32_t* positions;  ///< [lists][k]
  double* raws;              ///< [lists][k]
};

/// What is merged into the neighbours of the points of a slice, which are kept by position and raw
/// distance, in order.
struct Merge {
  NeighborQuestion question;
  const void *left_coordinates, *right_coordinates;  ///< row-major, as they were uploaded
  ScalarType scalar;
  SpreadRows left_rows, right_rows;
  NeighborSlice slice;
  const std::uint64_t* candidates;  ///< sorted: the left position below, the right one above; null:
  std::uint32_t candidates_end;     ///< right positions 0 .. candidates_end - 1
  const std::uint32_t *begins, *ends;
  std::uint32_t shares;  ///< into which a left point's candidates are divided, a warp for each
  NeighborLists parts;   ///< [slice.count * shares] where there are several: what each has found
  SearchReport* report;
};

/// Sets the counts of a slice to 0 where there are no candidates yet. Asynchronous.
void launch_merge(const Merge& merge, cudaStream_t stream);

/// Sets thresholds that nothing passes.
void reject_all(const DeviceBuffer<float>& thresholds, cudaStream_t stream);

/// The thresholds of left points, from what was found.
struct LeftThresholds {
  NeighborQuestion question;
  NeighborSlice slice;
  const float *norms, *errors;  ///< of the left side
  const unsigned* right_most_error;
  double scale;
  double accumulation;
  float* reject;  ///< of the left side
};
void launch_thresholds(const LeftThresholds& thresholds, cudaStream_t stream);

/// Puts rows in the place of positions, and distances in that of raw ones.
void launch_finish(const Merge& merge, cudaStream_t stream);

}  // namespace gpujoin::cuda

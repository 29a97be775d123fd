// The kernels of the tile join, launched: which tiles may hold pairs, the screen by tensor cores,
// and the exact decision.
#pragma once

#include <cstdint>

#include "core/distance.h"
#include "cuda/tiles/tile_points.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// Which pairs of a self-join's points, or of its tiles, are compared.
enum class Half : std::int32_t {
  kNo,           ///< all, as of two datasets
  kButItself,    ///< all but self-pairs
  kUpper,        ///< the pairs above the diagonal
  kAndDiagonal,  ///< and the pairs on it
};

GPUJOIN_HD inline bool is_looked_at(Half half, std::uint32_t i, std::uint32_t j) {
  switch (half) {
    case Half::kUpper:
      return i < j;
    case Half::kAndDiagonal:
      return i <= j;
    case Half::kButItself:
      return i != j;
    default:
      return true;
  }
}

inline bool is_half(Half half) { return half == Half::kUpper || half == Half::kAndDiagonal; }

/// Tiles of both sides whose pairs a slice compares: rows on the left, columns on the right. Half a
/// walk leaves out the pairs below the diagonal.
struct TileRectangle {
  std::uint32_t first_row, end_row;
  std::uint32_t first_column, end_column;

  std::uint64_t size() const {
    return std::uint64_t{end_row - first_row} * (end_column - first_column);
  }
  /// Without the tiles below the diagonal, which begins in the first column.
  std::uint64_t upper_half() const {
    const std::uint64_t rows = end_row - first_row;
    return size() - rows * (rows - 1) / 2;
  }
};

/// Pairs of tiles: x on the left, y on the right. The size is on the device.
struct TileList {
  uint2* tiles;
  unsigned* size;
};

/// One side as the screen sees it.
struct TileSide {
  const __half* values;
  const float* reject;
  const float* accept;
};

struct ScreenView {
  TileSide left, right;
  std::uint32_t padded_dims;
  Half half;
  const unsigned* stop;  ///< nonzero on the device: leave
};

/// Pairs of points that passed the screen: x on the left, with kSurely where the pair is decided; y
/// on the right. *found may exceed the capacity: then it did not fit and the rest is lost.
struct CandidateList {
  static constexpr std::uint32_t kSurely = 1u << 31;
  uint2* pairs;
  unsigned long long capacity;
  unsigned long long* found;
};

/// What decides candidates.
struct Decision {
  const void *left_coordinates, *right_coordinates;  ///< row-major
  const std::uint32_t *left_order, *right_order;     ///< position -> row
  std::uint32_t dims;
  Metric metric;
  ScalarType scalar;
  double threshold;            ///< Threshold::raw
  unsigned long long* totals;  ///< pairs found, rechecked, self-pairs found
  bool self_join;
};

/// Where pairs count.
struct TileCounts {
  enum class Ends : std::int32_t {
    kLeft,        ///< at its left point
    kBoth,        ///< at both
    kSmallerEnd,  ///< at the one with the smaller id
  } ends;
  const std::int64_t* ids;  ///< for kSmallerEnd
  std::uint32_t points;     ///< of the left side
  std::uint32_t* counts;    ///< by position
};

/// Counts pairs of tiles by their sizes where their boxes, of all columns, prove all their pairs.
struct WholeTiles {
  double accept;  ///< as in boxes_surely_match(); negative: boxes prove nothing
  bool self_join;
  bool both_ends;             ///< a pair counts at both its points
  unsigned long long* total;  ///< pairs
  std::uint32_t* rows;        ///< [left tiles] pairs of each point of a tile; null: not wanted
};

/// Where pairs have their places: those of a point one after another, in any order.
struct TileRanks {
  static constexpr std::uint32_t kNoRank = ~0u;
  std::uint32_t* counts;  ///< counts[left position - base]: pairs of each point
  std::uint32_t base;
  std::uint32_t* ranks;  ///< [candidates] place among its point's pairs, kNoRank: no pair
  double* distances;     ///< [candidates], or null
};

/// Lists the pairs of tiles in the rectangle whose boxes may hold pairs within `reach`, in an order
/// that uses caches well, and counts the whole ones instead. Adds the pairs of points in them to
/// *candidates.
void launch_list(const TilePoints& left, const TilePoints& right, bool half,
                 std::uint32_t box_columns, double reach, const WholeTiles& whole,
                 const TileRectangle& rectangle, const TileList& list,
                 unsigned long long* candidates, cudaStream_t stream);

/// Adds to the count of each point that of its tile.
void launch_add_rows(const WholeTiles& whole, std::uint32_t points, std::uint32_t* counts,
                     cudaStream_t stream);

/// Appends candidates from the listed tiles. Throws CudaError.
void launch_screen(const ScreenView& view, const TileList& list, const CandidateList& candidates,
                   int multiprocessors, cudaStream_t stream);

/// Counts the pairs of the listed tiles: adds to the totals, and to counts unless counts.counts is
/// null. `open` is room for the pairs that the screen does not decide; those beyond its capacity
/// cost more. Throws CudaError.
void launch_count(const ScreenView& view, const TileList& list, const Decision& decision,
                  const TileCounts& counts, const CandidateList& open, int multiprocessors,
                  cudaStream_t stream);

/// Decides candidates, unless they did not fit: adds to the totals and to counts, and ranks pairs.
void launch_decide(const Decision& decision, const TileRanks& ranks,
                   const CandidateList& candidates, int multiprocessors, cudaStream_t stream);

/// Writes a pair to place offsets[left - base] + rank, and its distance where there are distances.
/// With `themselves`, each of `points` points begins with its self-pair.
void launch_scatter(const TileRanks& ranks, const CandidateList& candidates,
                    const std::uint64_t* offsets, bool themselves, std::uint32_t points,
                    std::uint32_t* neighbors, double* distances, int multiprocessors,
                    cudaStream_t stream);

void fill_counts(std::uint32_t* counts, std::uint64_t size, std::uint32_t value,
                 cudaStream_t stream);

}  // namespace gpujoin::cuda

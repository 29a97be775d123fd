// The kernels that find a smallest spanning tree in a tree of boxes (core/edge_search.h), launched:
// ranks, core distances, and rounds of [Boruvka].
#pragma once

#include <cstdint>

#include "core/edge_search.h"
#include "cuda/clusters/cluster_labels.h"

namespace gpujoin::cuda {

/// Columns that the points of a tree have, which kernels are compiled for; where there are too
/// many, as many as the data.
std::uint32_t padded_tree_columns(Metric metric, std::uint32_t dims);

struct SpanningReport {
  unsigned long long candidates;
  unsigned edges;  ///< found so far
  unsigned open;   ///< points that search in the round at hand
};

/// Passed to kernels by value. Points are named by position; components by the first of their
/// points.
struct SpanningView {
  EdgeTable table;

  // What table.points has, to be written.
  NodeFacts* facts;
  double* cores;
  std::uint32_t* components;

  std::uint32_t* open;     ///< [points] those that search
  double* edge_distances;  ///< [points] edges of the tree
  std::uint64_t* edge_ends;
  Labels labels;  ///< links alone
  SpanningReport* report;
  const unsigned* stop;  ///< nonzero on the device: leave

  GPUJOIN_HD const BoxTree& tree() const { return table.points.tree; }
};

/// By row: its id as an unsigned integer in the same order, and the row. Asynchronous, as all that
/// follows; throws CudaError.
void launch_rank_keys(const std::int64_t* ids, std::uint32_t rows, std::uint64_t* keys,
                      std::uint32_t* numbers, cudaStream_t stream);

/// position_of_row[order[position]] = position.
void launch_positions_of_rows(const std::uint32_t* order, std::uint32_t rows,
                              std::uint32_t* position_of_row, cudaStream_t stream);
/// From the rows by rank: positions by rank, and ranks by position.
void launch_ranks(const std::uint32_t* rows_by_rank, const std::uint32_t* position_of_row,
                  std::uint32_t rows, std::uint32_t* positions, std::uint32_t* ranks,
                  cudaStream_t stream);

/// Neighbours whose distances a thread keeps by itself.
inline constexpr std::uint32_t kOwnCoreNumbers = 32;

/// Points first .. first + count - 1, whose core distances are those of their k-th nearest others,
/// k >= 1. `numbers`, [count][k], is room for more neighbours than kOwnCoreNumbers.
struct CoreSlice {
  std::uint32_t first, count, k;
  double* numbers;
};
void launch_cores(const SpanningView& view, const CoreSlice& slice, cudaStream_t stream);

/// Each point its own component, once it has its core distance; nothing is found.
void launch_components(const SpanningView& view, cudaStream_t stream);

/// A round: each component finds the first edge out of it, and is united with another one. Adds the
/// edges to those of the tree.
void launch_round(const SpanningView& view, cudaStream_t stream);

/// ends[i] becomes the rows of edge i, the first in the upper half.
void launch_rows_of_edges(std::uint64_t* ends, std::uint32_t edges,
                          const std::uint32_t* rows_by_rank, cudaStream_t stream);

}  // namespace gpujoin::cuda

// What an engine returns: batches of compressed rows, and statistics of its work.
#pragma once

#include <cstdint>

#include "engine/request/request.h"
#include "engine/request/strategy.h"

namespace gpujoin {

/// A part of the result, owned by the engine and valid until the next call on its join.
///
/// Pairs: row i of the batch is left point rows[i], and its neighbours are neighbors[entry(i)] ..
/// neighbors[entry(i + 1) - 1] on the right. Points are named by the engine's own positions;
/// left_ids and right_ids turn those into ids. A point's neighbours may be spread over several
/// batches.
///
/// Top pairs: one neighbour a row, the rows in the order of the result; distances are the scores.
///
/// Nearest (Output::kNearest): a left point comes once at most, with all its neighbours, the
/// nearest first.
///
/// Duplicates (Output::kDuplicates): one neighbour a row.
///
/// Spanning trees (Output::kSpanningTree): edges in the order of the result. Stable clusters
/// (Output::kStableClusters): one neighbour a row, its cluster; every row appears once.
///
/// Counts (Output::kCountPerRow): row i has counts[i] pairs; every left row appears once.
/// Sums (Output::kSums): likewise, and sums + i * row_words() are the row's.
/// Clusters (Output::kClusters): row i is unpack_cluster(counts[i]); every row appears once.
/// Total (Output::kTotal): pair_count alone is set.
struct ResultBatch {
  std::uint64_t row_count;
  std::uint64_t pair_count;        ///< pairs this batch stands for, mirrored ones included
  const std::uint32_t* rows;       ///< [row_count]
  const std::uint64_t* offsets;    ///< [row_count + 1] ascending, from any number on
  const std::uint32_t* neighbors;  ///< [entry(row_count)]
  const double* distances;         ///< like neighbors, or null
  const std::uint64_t* counts;     ///< [row_count], or null
  const FoldWord* sums;            ///< [row_count][row_words()], or null
  const std::int64_t* left_ids;    ///< [left points]
  const std::int64_t* right_ids;   ///< [right points]
  /// Each entry of two different points also stands for its reverse: half a walk lists a pair once,
  /// and so does the join of two parts of a dataset. Where left_ids and right_ids are one array, an
  /// entry (p, p) is a point with itself.
  bool mirrored;
  bool transposed;  ///< rows are right points, and neighbors left ones

  // For who copies the ids, which pairs and counts have.
  std::uint64_t left_id_count;   ///< ids that left_ids has
  std::uint64_t right_id_count;  ///< likewise
  std::uint64_t ids_generation;  ///< from 1 on; another one where the arrays, or what they hold,
                                 ///< are others than those of the batch before

  std::uint64_t entry(std::uint64_t row) const { return offsets[row] - offsets[0]; }

  /// Names positions by arrays that stay as they are for the whole join; null: there are none.
  void set_ids(const std::int64_t* left, std::uint64_t left_count, const std::int64_t* right,
               std::uint64_t right_count) {
    left_ids = left;
    right_ids = right;
    left_id_count = left != nullptr ? left_count : 0;
    right_id_count = right != nullptr ? right_count : 0;
    ids_generation = 1;
  }
};

/// ResultBatch::mirrored, which is the same for all batches of a join: half a walk lists each pair
/// once, for both orders unless only one is wanted.
inline bool is_mirrored(AccessPattern pattern, PairSelection pairs) {
  return pattern != AccessPattern::kFull && pairs != PairSelection::kUnordered;
}

/// What one of several devices did for a join.
struct DeviceShare {
  std::int32_t device;       ///< its number
  std::uint64_t candidates;  ///< distances that it began
};

/// What a join has done so far. Complete after kEnd.
struct JoinStats {
  Strategy strategy;
  std::uint64_t left_rows;
  std::uint64_t right_rows;
  std::uint64_t batches;
  std::uint64_t pairs;
  std::uint64_t candidates;   ///< distances begun
  std::uint64_t rechecked;    ///< pairs in a screen's uncertain band, decided by the definition
  std::uint64_t memory_peak;  ///< bytes of host memory the engine held at most
  std::uint64_t device_memory_peak;
  std::uint32_t threads;            ///< of the host
  std::uint32_t threads_per_point;  ///< of a device
  std::uint32_t streams;            ///< batches in flight on a device
  std::uint64_t batch_pairs;        ///< entries that a device's batches have room for
  double pin_ms_per_mb;             ///< measured: pinning host memory, see batch_model.h
  double batch_ms;                  ///< measured: what a batch costs besides its pairs
  double index_ms;                  ///< building the index
  std::uint32_t indexed_sides;      ///< sides of points that were indexed
  std::uint32_t reused_sides;       ///< sides whose index was there, by their key or in parts
  TopkMethod topk_method;           ///< the one that ran; kAuto: no top pairs were wanted
  std::uint32_t topk_rounds;        ///< joins of parts that it took
  std::uint64_t parts;              ///< joins of parts that lack of memory took; 0: none
  BoxMethod box_method;             ///< the one that ran; kAuto: not of boxes
  double join_ms;      ///< work on the join itself: time spent waiting for the caller is left out
  std::uint64_t work;  ///< of the walks at hand, as they are expected to cost; 0: none is planned
  std::uint64_t work_done;           ///< of that
  std::uint32_t devices;             ///< that shared the join; 0: it was not shared
  DeviceShare shares[kMostDevices];  ///< [devices]
  char instruction_set[24];          ///< which SIMD target or device ran
};

}  // namespace gpujoin

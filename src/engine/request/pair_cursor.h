// Turns batches into (id, id) pairs: the one place where mirrored entries and the smaller-id-first
// rule become rows. Engine-neutral and free of allocation.
#pragma once

#include <cstdint>

#include "engine/request/result.h"

namespace gpujoin {

struct IdPair {
  std::int64_t id1;
  std::int64_t id2;
  double distance;  ///< set when the batch has distances
};

/// Walks one batch. Plain data: it may live in memory that is dropped without notice.
struct PairCursor {
  ResultBatch batch;
  std::uint64_t row;      ///< index of the current row in the batch
  std::uint64_t entry;    ///< next entry of neighbors
  std::uint64_t row_end;  ///< batch.entry(row + 1)
  bool orders_pairs;      ///< JoinRequest::orders_pairs()
  bool mirror_due;        ///< the reverse of the last pair comes next

  void start(const ResultBatch& next, bool orders) {
    batch = next;
    row = 0;
    entry = 0;
    row_end = next.row_count > 0 ? next.entry(1) : 0;
    orders_pairs = orders;
    mirror_due = false;
  }

  /// Sets *pair and returns true, or returns false at the end of the batch.
  bool next(IdPair* pair) {
    if (mirror_due) {
      mirror_due = false;
      const std::int64_t id1 = pair->id1;
      pair->id1 = pair->id2;
      pair->id2 = id1;
      return true;
    }
    while (entry == row_end) {
      if (row + 1 >= batch.row_count) return false;
      row_end = batch.entry(++row + 1);
    }
    std::uint32_t p = batch.rows[row];
    std::uint32_t q = batch.neighbors[entry];
    if (batch.transposed) {
      const std::uint32_t left = q;
      q = p;
      p = left;
    }
    pair->id1 = batch.left_ids[p];
    pair->id2 = batch.right_ids[q];
    if (batch.distances != nullptr) pair->distance = batch.distances[entry];
    ++entry;
    mirror_due = batch.mirrored && (p != q || batch.left_ids != batch.right_ids);
    if (orders_pairs && pair->id2 < pair->id1) {
      const std::int64_t id1 = pair->id1;
      pair->id1 = pair->id2;
      pair->id2 = id1;
    }
    return true;
  }
};

}  // namespace gpujoin

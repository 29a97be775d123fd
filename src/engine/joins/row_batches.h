// What comes once for each left row, on its way to the caller: counts or clusters, and sums. Joins
// find it; here it is only handed over, some rows at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "engine/request/buffer.h"
#include "engine/request/result.h"

namespace gpujoin {

class RowBatches {
 public:
  RowBatches() = default;
  /// `counts` and `sums`, [rows][row_words()] or empty, are by the position of the row. Batches
  /// have as many rows as the request's batches have pairs, or `most_rows`. Throws what Buffer
  /// throws.
  RowBatches(MemoryBudget& budget, const JoinRequest& request, std::uint64_t most_rows,
             Buffer<std::uint64_t> counts, Buffer<FoldWord> sums)
      : counts_(std::move(counts)),
        sums_(std::move(sums)),
        rows_(budget, counts_.size()),
        most_rows_(request.knobs.batch_pairs > 0 ? request.knobs.batch_pairs : most_rows),
        width_(request.sums() != nullptr ? row_words(*request.sums()) : 0),
        are_clusters_(request.output() == Output::kClusters) {
    std::iota(rows_.begin(), rows_.end(), 0u);
  }

  /// Sets *batch but for its ids, or returns false at the end.
  bool next(ResultBatch* batch) {
    if (next_ == counts_.size()) return false;
    *batch = {};
    batch->row_count = std::min<std::uint64_t>(most_rows_, counts_.size() - next_);
    batch->rows = rows_.data() + next_;
    batch->counts = counts_.data() + next_;
    if (sums_.size() > 0) batch->sums = sums_.data() + next_ * width_;
    if (!are_clusters_)
      batch->pair_count =
          std::accumulate(batch->counts, batch->counts + batch->row_count, std::uint64_t{0});
    next_ += batch->row_count;
    return true;
  }

 private:
  Buffer<std::uint64_t> counts_;
  Buffer<FoldWord> sums_;
  Buffer<std::uint32_t> rows_;  ///< 0, 1, ...
  std::uint64_t most_rows_ = 0;
  std::uint32_t width_ = 0;
  bool are_clusters_ = false;
  std::uint64_t next_ = 0;
};

}  // namespace gpujoin

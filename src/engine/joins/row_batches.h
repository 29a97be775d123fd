// What comes once for each left row, on its way to the caller: counts or clusters, and sums. Joins
// find it; here it is only handed over, some rows at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/request/buffer.h"
#include "engine/request/result.h"

namespace gpujoin {

class RowBatches {
 public:
  RowBatches() = default;
  /// Finds the words of so many rows from `first` on, [rows][row_words()], which stay until it is
  /// called again.
  using FindSums = std::function<const FoldWord*(std::uint64_t first, std::uint64_t rows)>;

  /// `counts` are by the position of the row; no `sums`: none are wanted. Batches have as many rows
  /// as the request's batches have pairs, `most_rows` at most. Throws what Buffer throws; next()
  /// throws what `sums` throws.
  RowBatches(MemoryBudget& budget, const JoinRequest& request, std::uint64_t most_rows,
             Buffer<std::uint64_t> counts, FindSums sums)
      : counts_(std::move(counts)),
        sums_(std::move(sums)),
        rows_(budget, counts_.size()),
        most_rows_(request.knobs.batch_pairs > 0 ? std::min(request.knobs.batch_pairs, most_rows)
                                                 : most_rows),
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
    if (sums_) batch->sums = sums_(next_, batch->row_count);
    if (!are_clusters_)
      batch->pair_count =
          std::accumulate(batch->counts, batch->counts + batch->row_count, std::uint64_t{0});
    next_ += batch->row_count;
    return true;
  }

 private:
  Buffer<std::uint64_t> counts_;
  FindSums sums_;
  Buffer<std::uint32_t> rows_;  ///< 0, 1, ...
  std::uint64_t most_rows_ = 0;
  bool are_clusters_ = false;
  std::uint64_t next_ = 0;
};

}  // namespace gpujoin

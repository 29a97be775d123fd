// The rows of a dataset by rank: best score first, then by id, then by their places.
#pragma once

#include <cstdint>

#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

/// Sorts in steps of some milliseconds, between which the caller may stop or leave it.
class RankOrder {
 public:
  /// `data`, in memory, outlives it. Throws what Buffer throws.
  RankOrder(MemoryBudget& budget, const Dataset& data, bool lowest_first);

  /// Does a step; false: all are done.
  bool step();
  /// Afterwards: the row at a rank.
  std::uint32_t row_at(std::uint64_t rank) const { return items_[rank].row; }

 private:
  struct Item {
    std::uint64_t key;  ///< descending
    std::int64_t id;
    std::uint32_t row;

    bool operator<(const Item& other) const {
      if (key != other.key) return key > other.key;
      return id != other.id ? id < other.id : row < other.row;
    }
  };

  void sort_run();
  void merge_some();
  void begin_merge();

  Buffer<Item> items_, merged_;
  std::uint64_t width_ = 0;                      ///< of sorted runs; 0: not all runs are sorted
  std::uint64_t first_ = 0;                      ///< of the run, or of the two that are merged
  std::uint64_t left_ = 0, right_ = 0, to_ = 0;  ///< of the merge
};

}  // namespace gpujoin

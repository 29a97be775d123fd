// The rows of a dataset by rank: best score first, then by id, then by their places.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/joins/step_sort.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

/// Sorts in steps of some milliseconds, between which the caller may stop or leave it.
class RankOrder {
 public:
  /// `rows` is how many there are. Throws what Buffer throws.
  RankOrder(MemoryBudget& budget, std::uint64_t rows, bool lowest_first);

  /// Adds the next rows, which are in memory, before the first step: their ids and scores count.
  void add(const Dataset& rows);
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

  const bool lowest_first_;
  Buffer<Item> items_;
  std::uint64_t added_ = 0;
  std::optional<StepSort<Item>> sort_;
};

}  // namespace gpujoin

// The rows of a dataset by rank: best score first, then by id, then by their places.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

/// Sorts in steps of some milliseconds, between which the caller may stop or leave it: in place, by
/// pivots, until what is left of the rows is sorted at once.
class RankOrder {
 public:
  /// Of so many rows. Throws what Buffer throws.
  RankOrder(MemoryBudget& budget, std::uint64_t rows, bool lowest_first);

  /// Adds the next rows, before the first step: their ids and scores alone matter.
  void add(const Dataset& rows_in_memory);
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
  struct Stretch {
    std::uint64_t first, end;
  };

  Item pivot_of(const Stretch& items) const;

  const bool lowest_first_;
  Buffer<Item> items_;
  std::uint64_t added_ = 0;
  bool in_order_ = true;           ///< the rows added so far
  bool begun_ = false;             ///< the first step was
  std::vector<Stretch> unsorted_;  ///< items of one come before those of another
};

}  // namespace gpujoin

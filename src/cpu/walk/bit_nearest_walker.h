// One worker's search for the rows of bits that differ least from a group of left rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nearest.h"
#include "cpu/index/bit_index.h"
#include "cpu/walk/batch_writer.h"

namespace gpujoin::cpu {

/// What all workers of a join know. Both indexes are in the order of ones.
struct BitNearestPlan {
  const BitIndex* left;
  const BitIndex* right;  ///< the same as left in a self-join
  BitScan scan;
  std::uint32_t most;   ///< most_differing_bits()
  bool without_itself;  ///< the row itself is no neighbour
  std::uint64_t k;

  std::uint32_t words() const { return right->words; }
};

/// Right rows come in blocks, in the order of how many ones more or fewer they have, which is the
/// least in how many bits they differ. Each left row has a heap of its first k so far, and a block
/// whose rows differ more from all left ones ends the search.
class BitNearestWalker {
 public:
  /// Memory is taken here. Throws MemoryLimitExceeded or std::bad_alloc.
  BitNearestWalker(const BitNearestPlan& plan, MemoryBudget& budget, const WorkerPool& pool,
                   BatchWriter writer, WalkProgress& progress);

  /// Writes the neighbours of the rows of a left group.
  void walk(std::uint32_t group);
  void finish() { writer_.flush(); }
  WalkProgress& progress() { return progress_; }

 private:
  struct Visit {
    std::uint32_t gap;  ///< no rows differ in fewer bits
    std::uint32_t first, end;
  };

  void order_visits(std::uint32_t fewest, std::uint32_t most);
  void look_at(std::uint32_t place, const Visit& visit);
  void add(std::uint32_t place, std::uint32_t right);
  void write(std::uint32_t place);

  const BitNearestPlan& plan_;
  const WorkerPool& pool_;
  BatchWriter writer_;
  WalkProgress& progress_;
  std::uint64_t most_rows_;        ///< neighbours that there can be: k, or all rows
  Buffer<Neighbor> heaps_;         ///< [kGroupPoints][most_rows_]
  Buffer<std::uint64_t> queries_;  ///< [kGroupPoints][words]
  Buffer<std::uint32_t> found_;
  std::vector<Visit> visits_;
  std::uint32_t first_ = 0;                     ///< the group's first row
  std::uint64_t sizes_[kGroupPoints] = {};      ///< of heaps
  std::uint32_t most_bits_[kGroupPoints] = {};  ///< beyond them nothing is a neighbour
};

}  // namespace gpujoin::cpu

// One worker's search for the rows of bits that are nearest to a group of left rows, by Hamming or
// by Jaccard distance.
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
  Metric metric;
  double radius;        ///< neighbours lie within it
  bool without_itself;  ///< the row itself is no neighbour
  std::uint64_t k;

  std::uint32_t words() const { return right->words; }
};

/// How many ones two rows have bounds their distance. Right rows come in blocks of about as many
/// ones, in the order of these bounds. Each left row has a heap of its first k so far, and a block
/// whose bound exceeds the distances in all heaps ends the search.
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
    double least;  ///< no rows are nearer
    std::uint32_t first, end;
  };

  double least_distance(std::uint32_t fewest, std::uint32_t most, std::uint32_t first,
                        std::uint32_t end) const;
  std::int64_t most_differing_within(std::uint32_t place, const Visit& visit) const;
  void order_visits(std::uint32_t fewest, std::uint32_t most);
  void look_at(std::uint32_t place, const Visit& visit);
  void add(std::uint32_t place, std::uint32_t right);
  double distance(std::uint32_t place, std::uint32_t right) const;
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
  std::uint32_t first_ = 0;                 ///< the group's first row
  std::uint64_t sizes_[kGroupPoints] = {};  ///< of heaps
  double radii_[kGroupPoints] = {};         ///< beyond them nothing is a neighbour
};

}  // namespace gpujoin::cpu

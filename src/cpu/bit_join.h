// The join of bits of the CPU engine: its phases and its state. Distances and segments are
// src/core's, the index is bit_index's, the walks are tile_walker's and bit_walker's.
#pragma once

#include <memory>

#include "cpu/threaded_join.h"
#include "cpu/walk/bit_plan.h"
#include "cpu/walk/tile_walker.h"

namespace gpujoin::cpu {

/// Bytes that a row of either side takes in an index.
std::uint64_t bit_row_bytes(const JoinRequest& request);

class BitJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one of bits. Other joins may share the
  /// memory. Throws std::system_error or std::bad_alloc.
  BitJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget);
  /// Stops the threads wherever they are and waits for them.
  ~BitJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void prepare();
  void plan_walk();
  JoinPlan plan_join() const;
  std::uint64_t memory_for_passes() const;

  BitIndex left_, right_;  // of a self-join the left one alone
  TileIndex left_tiles_, right_tiles_;
  BitPlan plan_{};
  Strategy strategy_{};
  bool mirrored_ = false;  // set before the first batch
};

}  // namespace gpujoin::cpu

// The join of boxes of the CPU engine: its phases and its state. Geometry is src/core's, the index
// box_index's, the walk box_walker's.
#pragma once

#include "cpu/index/box_index.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/box_walker.h"
#include "engine/strategy/box_strategy.h"

namespace gpujoin::cpu {

/// Bytes of memory that an index of boxes takes a row, at most, besides the boxes themselves: their
/// bounds in order, ids and rows, words of the grid, and while boxes are sorted two items.
inline std::uint64_t box_index_row_bytes(const JoinRequest& request) {
  return 2 * point_bytes(request.left()) + 64;
}

class BoxJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one for Shape::kBoxes. Throws std::system_error or
  /// std::bad_alloc.
  explicit BoxJoin(const JoinRequest& request);
  /// The same with memory that other joins share.
  BoxJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget);
  /// Stops the threads wherever they are and waits for them.
  ~BoxJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void build_indexes();
  const std::int64_t* ids_of_rows(const Dataset& data);
  std::uint64_t join();
  template <class T, class MakeSink>
  void walk(const BoxWalk& walk, const MakeSink& make_sink);

  BoxStrategy strategy_{};
  BoxIndex left_{};  // both: BoxMethod::kSortSweep only; otherwise the one that is looked up
  BoxIndex right_{};
  Buffer<std::int64_t> row_ids_;  // of the side without an index, where its ids are positions
  const std::int64_t* left_ids_ = nullptr;
  const std::int64_t* right_ids_ = nullptr;
};

}  // namespace gpujoin::cpu

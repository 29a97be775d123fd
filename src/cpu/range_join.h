// The range join of the CPU engine: its phases, its threads and its state. Cell geometry and
// distances are src/core's, the indexes are grid_index's and tile_index's, the walks are walker's
// and tile_walker's.
#pragma once

#include <exception>
#include <mutex>
#include <thread>

#include "cpu/batch_queue.h"
#include "cpu/directions.h"
#include "cpu/grid_index.h"
#include "cpu/tile_index.h"
#include "cpu/walker.h"
#include "cpu/worker_pool.h"
#include "engine/buffer.h"
#include "engine/join.h"
#include "engine/result.h"
#include "engine/status.h"

namespace gpujoin::cpu {

/// A join that runs in threads of its own from construction to destruction. The datasets of the
/// request must outlive it. Methods are for one thread; next_batch() throws what its threads threw.
class RangeJoin final : public Join {
 public:
  /// Starts the threads. The request is a valid one. Throws std::system_error or std::bad_alloc.
  explicit RangeJoin(const JoinRequest& request);
  /// Stops the threads wherever they are and waits for them.
  ~RangeJoin() override;

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  void run();
  void index_directions();
  void set_thresholds(JoinPlan& plan) const;
  JoinPlan prepare(IndexLayout& layout);
  void build_indexes(JoinPlan& plan, IndexLayout& layout);
  void join(const JoinPlan& plan);
  std::uint64_t walk_cells(const JoinPlan& plan);
  std::uint64_t walk_tiles(const JoinPlan& plan);
  ResultBatch view(const BatchBuffer& buffer) const;

  JoinRequest request_;
  JoinRequest indexed_;  // what the index is of: the points, or for cosine their directions
  MemoryBudget budget_;
  WorkerPool pool_;
  Directions left_directions_;
  Directions right_directions_;
  GridIndex left_;
  GridIndex right_;
  TileIndex left_tiles_;  // IndexMethod::kTiles only
  TileIndex right_tiles_;
  ScreenLooks looks_{};
  BatchQueue queue_;
  BatchBuffer* current_ = nullptr;  // the one the caller reads
  bool mirrored_ = false;           // set before the first batch
  std::exception_ptr error_;        // set before the queue is finished

  mutable std::mutex stats_mutex_;  // guards stats_; the tally goes into it when it is read
  JoinStats stats_{};
  WalkTally tally_;
  std::thread driver_;  // last, for it uses all of the above
};

}  // namespace gpujoin::cpu

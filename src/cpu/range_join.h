// The range join of the CPU engine: its phases and its state. Cell geometry and distances are
// src/core's, the indexes are grid_index's and tile_index's, the walks are walker's and
// tile_walker's.
#pragma once

#include "cpu/directions.h"
#include "cpu/grid_index.h"
#include "cpu/join_plan.h"
#include "cpu/threaded_join.h"
#include "cpu/tile_index.h"

namespace gpujoin::cpu {

class RangeJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one. Throws std::system_error or std::bad_alloc.
  explicit RangeJoin(const JoinRequest& request);
  /// Stops the threads wherever they are and waits for them.
  ~RangeJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void index_directions();
  void set_thresholds(JoinPlan& plan) const;
  JoinPlan prepare(IndexLayout& layout);
  ScreenFrame frame_of(const Strategy& strategy) const;
  void build_indexes(JoinPlan& plan, IndexLayout& layout);
  void join(const JoinPlan& plan);

  JoinRequest indexed_;  // the indexed join: of the points, or for cosine of their directions
  Directions left_directions_;
  Directions right_directions_;
  GridIndex left_;
  GridIndex right_;
  TileIndex left_tiles_;  // IndexMethod::kTiles only
  TileIndex right_tiles_;
  ScreenLooks looks_{};
  bool mirrored_ = false;  // set before the first batch
};

}  // namespace gpujoin::cpu

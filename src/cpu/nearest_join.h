// The nearest-neighbour join of the CPU engine: its phases and its state. In few dimensions a tree
// is searched, kd_tree's by nearest_walker; in many, tiles are screened, nearest_tiles' by
// nearest_tile_walker. Bits are compared in the order of their ones, by bit_nearest_walker.
#pragma once

#include "cpu/index/directions.h"
#include "cpu/index/kd_tree.h"
#include "cpu/index/nearest_tiles.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/bit_nearest_walker.h"
#include "cpu/walk/nearest_tile_walker.h"
#include "cpu/walk/nearest_walker.h"

namespace gpujoin::cpu {

/// Bytes that a point of either side takes in an index, at most, and while that is built.
std::uint64_t nearest_row_bytes(const JoinRequest& request);

class NearestJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one for Output::kNearest. Throws std::system_error
  /// or std::bad_alloc.
  explicit NearestJoin(const JoinRequest& request);
  /// The same with memory that other joins share.
  NearestJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget);
  /// Stops the threads wherever they are and waits for them.
  ~NearestJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void run_bits();
  bool wants_tiles() const;
  void find_directions();
  void index_tiles();
  void index_trees();
  void note_index(IndexMethod method, double index_ms);
  NearestTilePlan plan_tiles() const;
  NearestPlan plan_tree() const;
  template <class Walker, class Plan, class Walk>
  void join(const Plan& plan, std::uint64_t items, const Walk& walk);
  bool screened() const;
  bool wants_lanes() const;
  bool without_itself() const {
    return request_.self_join() && request_.pairs() == PairSelection::kDistinct;
  }

  Directions left_directions_, right_directions_;  // by cosine distance
  Dataset left_indexed_ = request_.left();         // or for cosine the directions
  Dataset right_indexed_ = request_.right();
  bool by_tiles_ = false;
  KdTree right_tree_;
  Buffer<std::int64_t> right_least_ids_;  // of its nodes
  RowOrder left_order_;                   // of a self-join none
  NearestFrame frame_;
  NearestTiles left_tiles_;  // of a self-join none
  NearestTiles right_tiles_;
  BitIndex left_bits_;  // of a self-join none
  BitIndex right_bits_;
};

}  // namespace gpujoin::cpu

// The nearest-neighbour join of the CPU engine: its phases and its state. In few dimensions a tree
// is searched, kd_tree's by nearest_walker; in many, tiles are screened, nearest_tiles' by
// nearest_tile_walker. Bits are compared in the order of their ones, by bit_nearest_walker.
#pragma once

#include "cpu/index/nearest_side.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/bit_nearest_walker.h"
#include "cpu/walk/nearest_tile_walker.h"
#include "cpu/walk/nearest_walker.h"
#include "engine/joins/side_cache.h"

namespace gpujoin::cpu {

/// Bytes that a point of either side takes in an index, at most, and while that is built.
std::uint64_t nearest_row_bytes(const JoinRequest& request);

class NearestJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one for Output::kNearest. Other joins may share the
  /// memory. Where something is kept, which may be null, the right side is found and left there: as
  /// choose_nearest_index() has it. Throws std::system_error or std::bad_alloc.
  NearestJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget,
              std::shared_ptr<KeptJoin> kept);
  /// Stops the threads wherever they are and waits for them.
  ~NearestJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void prepare();
  void prepare_left();
  std::shared_ptr<const NearestSide> take_right(KeptJoin* kept);
  void note_index(double index_ms);
  BitNearestPlan plan_bits() const;
  NearestTilePlan plan_tiles() const;
  NearestPlan plan_tree() const;
  template <class Walker>
  struct Walkers;
  void search_tiles(NearestTilePlan plan);
  template <class Walker, class Plan, class Walk>
  void join(const Plan& plan, std::uint64_t items, const Walk& walk);
  bool screened() const;
  bool without_itself() const {
    return request_.self_join() && request_.pairs() == PairSelection::kDistinct;
  }

  const std::shared_ptr<KeptJoin> kept_;
  NearestIndex index_;
  bool was_there_ = true;  ///< another join has prepared the right side
  std::shared_ptr<const NearestSide> right_;
  // Of a self-join only the view of what is indexed.
  Directions left_directions_;              // by cosine distance
  Dataset left_indexed_ = request_.left();  // or for cosine the directions
  Dataset right_indexed_ = request_.right();
  RowOrder left_order_;
  NearestTiles left_tiles_;
  BitIndex left_bits_;
};

}  // namespace gpujoin::cpu

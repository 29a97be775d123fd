// The right side of a nearest-neighbour join of the CPU engine: points in the order in which they
// are looked for. It knows nothing of left points, so that joins with others find it prepared.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cpu/index/bit_index.h"
#include "cpu/index/byte_tiles.h"
#include "cpu/index/directions.h"
#include "cpu/index/kd_tree.h"
#include "cpu/index/nearest_tiles.h"
#include "engine/joins/prepared_side.h"

namespace gpujoin::cpu {

enum class NearestIndex {
  kTree,      ///< for left points one at a time
  kLaneTree,  ///< for as many at a time as a vector has lanes, by smaller leaves
  kTiles,
  kBits,
};

/// Returns the index that the request is served by, unless a vector is extreme (core/cosine.h):
/// directions of such vectors are searched by a tree.
NearestIndex choose_nearest_index(const JoinRequest& request);

/// It does not need the points any more.
struct NearestSide final : PreparedSide {
  NearestSide(const void* by, std::shared_ptr<MemoryBudget> whole)
      : by(by), budget(std::move(whole)) {}
  const void* plan() const override { return by; }
  SideBytes bytes() const override { return {budget.used(), 0}; }

  const void* const by;
  mutable MemoryBudget budget;  ///< of what follows
  Directions directions;        ///< by cosine distance
  KdTree tree;
  Buffer<std::int64_t> least_ids;  ///< of its nodes
  NearestFrame frame;              ///< of the tiles
  NearestTiles tiles;
  BitIndex bits;

  /// The tiles in bytes, made when they are first asked for. From any thread. Throws what
  /// build_byte_tiles() throws.
  const ByteTiles& byte_tiles(WorkerPool& pool) const;

 private:
  mutable std::mutex making_;
  mutable std::optional<ByteTiles> bytes_;
};

/// Indexes the right points; of directions among which one is extreme no tiles. Tiles have a frame
/// of both sides, where `left`, what the left side has of the index's kind of points, is not null;
/// else of the right side alone. Memory is taken of the budget, which stays as long as the side.
/// Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
std::shared_ptr<NearestSide> prepare_nearest_side(WorkerPool& pool,
                                                  std::shared_ptr<MemoryBudget> whole,
                                                  const void* plan, const JoinRequest& request,
                                                  NearestIndex index, const Dataset* left);

}  // namespace gpujoin::cpu

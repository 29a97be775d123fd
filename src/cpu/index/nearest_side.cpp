#include "cpu/index/nearest_side.h"

#include <algorithm>

#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {
namespace {

/// Where a tree leaves most points to be looked at. Screens are of squared distances.
bool wants_tiles(const JoinRequest& request) {
  constexpr std::uint32_t kTileDims = 12;
  const Metric metric = request.metric();
  if (metric != Metric::kL2 && metric != Metric::kCosine) return false;
  const IndexMethod asked = request.knobs.index;
  return asked == IndexMethod::kTiles ||
         (asked == IndexMethod::kAuto && request.right().dims >= kTileDims);
}

/// Returns true if there are enough left points for the lanes of one search to share neighbours.
/// With many neighbours each, walking their lists costs more than sharing saves.
bool wants_lanes(const JoinRequest& request) {
  constexpr std::uint64_t kRightPerLeft = 8, kMostLaneNeighbors = 128;
  std::uint64_t left = request.left().rows;
  if (request.left_block() > 0) left = std::min(left, request.left_block());
  return request.right().dims <= kMaxDirectDimensions && request.metric() != Metric::kCosine &&
         request.neighbors() <= kMostLaneNeighbors && left >= request.right().rows / kRightPerLeft;
}

}  // namespace

NearestIndex choose_nearest_index(const JoinRequest& request) {
  if (is_of_bits(request.metric())) return NearestIndex::kBits;
  if (wants_tiles(request)) return NearestIndex::kTiles;
  return wants_lanes(request) ? NearestIndex::kLaneTree : NearestIndex::kTree;
}

const ByteTiles& NearestSide::byte_tiles(WorkerPool& pool) const {
  const std::lock_guard lock(making_);
  if (!bytes_) bytes_ = build_byte_tiles(pool, budget, tiles);
  return *bytes_;
}

std::shared_ptr<NearestSide> prepare_nearest_side(WorkerPool& pool,
                                                  std::shared_ptr<MemoryBudget> whole,
                                                  const void* plan, const JoinRequest& request,
                                                  NearestIndex index, const Dataset* left) {
  auto side = std::make_shared<NearestSide>(plan, std::move(whole));
  MemoryBudget& budget = side->budget;
  const Dataset& points = request.right();
  if (index == NearestIndex::kBits) {
    side->bits = build_bit_index(pool, budget, points, BitOrder::kOnes, {});
    return side;
  }
  Dataset indexed = points;
  if (request.metric() == Metric::kCosine) {
    side->directions = find_directions(pool, budget, points);
    indexed = side->directions.view(points);
  }
  if (index != NearestIndex::kTiles) {
    side->tree =
        build_kd_tree(pool, budget, indexed,
                      index == NearestIndex::kLaneTree ? lane_leaf_tiles(points.dims) : kLeafTiles);
    side->least_ids = least_ids(pool, budget, side->tree);
  } else if (!side->directions.extreme) {
    JoinRequest framed = request;
    Sides sides = Sides::one(indexed, PairSelection::kAll);
    if (left == nullptr)
      framed.sides = Sides::one(points, PairSelection::kAll);
    else
      sides = request.sides.with_rows(*left, indexed);
    side->frame = choose_nearest_frame(pool, budget, framed, sides);
    side->tiles = build_nearest_tiles(pool, budget, side->frame, indexed);
  }
  return side;
}

}  // namespace gpujoin::cpu

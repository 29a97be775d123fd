// One worker's search for the nearest neighbours of a tile of left points among tiles of right
// ones: the screen of single precision leaves few pairs, sums in double precision select among
// them, and the definition decides about the first k.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nearest.h"
#include "cpu/index/byte_tiles.h"
#include "cpu/index/nearest_tiles.h"
#include "cpu/walk/batch_writer.h"
#include "cpu/walk/nearest_bound.h"
#include "cpu/walk/nearest_list.h"

namespace gpujoin::cpu {

/// What all workers of a join know.
struct NearestTilePlan {
  const NearestFrame* frame;
  const NearestTiles* left;
  const NearestTiles* right;  ///< the same as left in a self-join
  const Dataset* left_points;
  const Dataset* right_points;
  const Dataset* left_indexed;  ///< the points, or for cosine their directions
  const Dataset* right_indexed;
  Metric metric;
  NearestBounds bounds;
  bool without_itself;  ///< the row itself is no neighbour
  double most_raw;      ///< Threshold::raw of eps
  std::uint64_t k;
  GroupScreen screen;
  ByteScreen byte_screen;
  const BytePoint* left_point = nullptr;  ///< in bytes, if there is one left point; else null
  const ByteTiles* right_bytes = nullptr;
};

/// Right tiles come in the order of how near they may lie. Each left point has a radius, which
/// shrinks as neighbours are found; a tile beyond all radii ends the search.
class NearestTileWalker {
 public:
  /// Memory is taken here. Throws MemoryLimitExceeded or std::bad_alloc.
  NearestTileWalker(const NearestTilePlan& plan, MemoryBudget& budget, const WorkerPool& pool,
                    BatchWriter writer, WalkProgress& progress);

  /// Writes the neighbours of the points of a left tile.
  void walk(std::uint32_t tile);
  /// Finds the neighbours of a left tile's points in every `shares`-th right tile, from number
  /// `share` on. Writes nothing.
  void search(std::uint32_t tile, std::uint32_t share, std::uint32_t shares);
  /// Adds what another walker found in its share.
  void absorb(NearestTileWalker& other);
  /// Writes the neighbours that search() and absorb() have found.
  void write_all();
  void finish() { writer_.flush(); }
  WalkProgress& progress() { return progress_; }

 private:
  struct Visit {
    double gap;       ///< no two points lie nearer
    double distance;  ///< of the centers
    std::uint32_t tile;
  };
  struct Decided {
    Neighbor neighbor;
    double sum;
  };

  void start(std::uint32_t tile);
  void order_visits();
  void look_at(std::uint32_t tile);
  void screen(std::uint32_t row_group, std::uint32_t group);
  void screen_bytes(std::uint32_t group);
  void select(std::uint32_t place, std::uint32_t group, std::uint32_t possible);
  bool add(std::uint32_t place, Neighbor found);
  void set_bound(std::uint32_t place, NearestBound bound);
  void make_room(std::uint32_t place);
  std::uint64_t decide(std::uint32_t place);
  void write(std::uint32_t place);
  double most_reach() const;

  static constexpr std::uint32_t kTilePlaces = NearestTiles::kTileGroups * kGroupPoints;

  const NearestTilePlan& plan_;
  const WorkerPool& pool_;
  BatchWriter writer_;
  WalkProgress& progress_;
  std::uint64_t most_;  ///< neighbours that there can be: k, or all points
  RowScan scan_;
  Buffer<Neighbor> selected_;       ///< by their sums
  std::vector<NearestList> lists_;  ///< [kTilePlaces]
  std::vector<Visit> visits_;
  Buffer<float> thresholds_;  ///< [kTileGroups][checkpoints + 1][kGroupPoints]
  Buffer<Decided> decided_;
  Buffer<Neighbor> neighbors_;
  std::uint32_t tile_ = 0;
  std::uint32_t places_ = 0;  ///< points of the left tile
  double near_[kTilePlaces];  ///< NearestBound of each of them
  double reach_[kTilePlaces];
  double radius_ = 0;  ///< of place 0, without errors
};

}  // namespace gpujoin::cpu

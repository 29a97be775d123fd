// One worker's walk over dense tiles: tiles of the left index against tiles of the right one whose
// boxes come near, screened group by group and, where the screen does not decide, decided by the
// definition.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/batch_writer.h"
#include "cpu/tile_index.h"
#include "cpu/walker.h"

namespace gpujoin::cpu {

/// What every worker of a join by tiles reads and none writes, but for the counts.
struct TilePlan {
  const JoinPlan* join;
  const TileIndex* left;
  const TileIndex* right;  ///< the same as left in a self-join
  ScreenLooks looks;
  GroupScreen screen;
  double reach;           ///< true_reach()
  std::uint64_t* counts;  ///< [left points] for Output::kCountPerRow, added to atomically
};

class TileWalker {
 public:
  TileWalker(const TilePlan& plan, MemoryBudget& budget, WorkerPool& pool, BatchQueue& queue,
             WalkTally& tally);

  /// Joins a tile of the left with the tiles first .. end - 1 of the right. Half a walk of a
  /// self-join leaves out the right tiles that come before the left one, so that all calls together
  /// meet each pair once.
  void walk(std::uint32_t tile, std::uint32_t first, std::uint32_t end);

  BatchWriter writer;

 private:
  static constexpr std::uint32_t kStretch = 32;  ///< groups on the right that rows are gathered of

  void screen_tile(std::uint32_t tile, std::uint32_t column_tile);
  void screen_groups(std::uint32_t row_group, std::uint32_t column_group);
  /// Whether half of the matrix of tiles is enough: in a self-join, unless it has to be walked in
  /// full.
  bool takes_half() const { return plan_.join->self_join() && plan_.join->half(); }
  void leave_upper_half(GroupPairs& pairs) const;
  void leave_out_itself(GroupPairs& pairs) const;
  void settle(std::uint32_t row_group, std::uint32_t column_group, GroupPairs& pairs);
  void add_total(std::uint32_t row_group, std::uint32_t column_group, const GroupPairs& pairs);
  void add_counts(std::uint32_t row_group, std::uint32_t column_group, const GroupPairs& pairs);
  void emit_stretch(std::uint32_t tile);
  void emit_row(std::uint32_t position, std::uint32_t column_group, std::uint32_t possible,
                std::uint32_t sure);
  void append(std::uint32_t position, const std::uint32_t* neighbors, const double* raws,
              std::uint32_t count);
  double exact(std::uint32_t position, std::uint32_t neighbor) const;

  const TilePlan& plan_;
  WorkerPool& pool_;
  Buffer<GroupPairs> found_;  ///< [kTileGroups][kStretch]: groups with pairs of each row group
  std::uint32_t found_groups_[kTileGroups][kStretch] = {};  ///< where on the right
  std::uint32_t found_count_[kTileGroups] = {};
};

}  // namespace gpujoin::cpu

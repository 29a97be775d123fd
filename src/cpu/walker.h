// One worker's walk: for each point of a stretch of the left index, the windows of the right one
// that can hold points within eps (SORTIDU [GPU-Join, section 4.3]), and the results of scanning
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/threshold.h"
#include "cpu/batch_writer.h"
#include "cpu/grid_index.h"
#include "cpu/scan.h"
#include "engine/result.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// What every worker of a join reads and none writes.
struct JoinPlan {
  Metric metric;
  PairSelection pairs;
  Output output;
  Threshold threshold;
  double reach;         ///< that of the indexed columns: windows and cells
  ScreenBounds screen;  ///< when strategy.screened
  Strategy strategy;
  const IndexLayout* layout;
  ScanKernel kernel;
  const GridIndex* left;
  const GridIndex* right;      ///< the same as left in a self-join
  const Dataset* left_points;  ///< whose distances count; an index may hold their directions
  const Dataset* right_points;
  std::uint64_t batch_entries;

  bool self_join() const { return left == right; }
  /// Half a walk meets each unordered pair of points once; see core/cell_walk.h.
  bool half() const { return strategy.access_pattern != AccessPattern::kFull; }
  bool mirrored() const { return is_mirrored(strategy.access_pattern, pairs); }
  /// The raw distance of two points by the definition.
  double exact_raw(std::uint32_t position, std::uint32_t neighbor) const;
};

class Walker {
 public:
  Walker(const JoinPlan& plan, MemoryBudget& budget, WorkerPool& pool, BatchQueue& queue,
         WalkTally& tally);

  /// Joins the left points at positions first .. end - 1, finite ones.
  void walk(std::uint32_t first, std::uint32_t end);

  BatchWriter writer;

 private:
  /// A neighbouring cell on the right, and the part of it that the current point's sort value
  /// reaches.
  struct NeighborCell {
    std::uint32_t begin, end;
    std::uint32_t low, high;
    bool own;  ///< the cell that the point itself lies in
  };
  static constexpr std::uint64_t kMaxWindow =
      1 << 16;  ///< candidates between two checks of the stop flag

  void enter_cell(std::size_t cell);
  void place_window(NeighborCell& neighbor, double x) const;
  void slide_window(NeighborCell& neighbor, double x) const;
  void find_windows(std::uint32_t position, bool entered);
  void add_window(std::uint32_t begin, std::uint32_t end);
  template <class Visit>
  void for_pieces(const Visit& visit);
  std::size_t collect(std::uint32_t position, const Window* windows, std::size_t count,
                      std::uint32_t* positions, double* raws);
  std::size_t recheck(std::uint32_t position, std::size_t count, std::uint32_t* positions,
                      double* raws);
  std::uint64_t count_pairs(std::uint32_t position);
  void emit_pairs(std::uint32_t position);

  const JoinPlan& plan_;
  WorkerPool& pool_;
  std::vector<NeighborCell> neighbors_;
  std::vector<std::size_t> cursors_;  ///< per neighbour number, where its cell was last found
  std::vector<Window> windows_;
  std::vector<double> query_;
  Scan scan_;
  Buffer<std::uint32_t> scratch_positions_;  ///< where counting has to check each pair
  Buffer<double> scratch_raws_;              ///< where a screen's sums are not part of the result
};

}  // namespace gpujoin::cpu

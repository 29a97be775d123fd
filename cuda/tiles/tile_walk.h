// Pairs by comparing tiles of points: pairs of tiles whose boxes come near each other are screened
// by tensor cores, and pairs that the screen leaves open are decided by the definition. A self-join
// compares the upper triangle.
#pragma once

#include <cstdint>

#include "cuda/device/slice_source.h"
#include "cuda/grid/range_plan.h"
#include "cuda/tiles/tile_kernels.h"
#include "engine/joins/work_share.h"

namespace gpujoin::cuda {

/// One side of a join.
struct TileWalkSide {
  const DevicePoints* data;       ///< the indexed data: the points, or their directions
  const DevicePoints* originals;  ///< the points as uploaded, whose distances count
  const DeviceIndex* index;
  const std::int64_t* ids;  ///< in index order, where they are wanted
};

/// What a slice reports, on the device and in pinned memory.
struct TileReport {
  unsigned long long screened;    ///< pairs of points in the tiles compared
  unsigned long long candidates;  ///< that passed the screen; of counts, that it left open
  unsigned long long pairs;       ///< that are within eps
  unsigned long long rechecked;   ///< that the definition had to decide
  unsigned long long themselves;  ///< self-pairs among the pairs
  unsigned listed;                ///< pairs of tiles
};

/// What decides the pairs of two sides, and adds to the report's totals.
Decision make_decision(const JoinRequest& request, const TileWalkSide& left,
                       const TileWalkSide& right, TileReport* report);

/// What the screen sees of a side.
TileSide screened_side(const TilePoints& points);

/// WholeTiles::accept: boxes prove pairs where they have all columns.
double accepted_by_boxes(const RangePlan& plan, const TileRadii& radii, std::uint32_t dims);

class TileWalk final : public SliceSource {
 public:
  /// Rounds the points, for which it waits. `right` is ignored by a self-join. `stop` is a word on
  /// the device that makes kernels leave when it is not 0.
  TileWalk(const JoinRequest& request, const RangePlan& plan, const TileRadii& radii,
           const TileWalkSide& left, const TileWalkSide& right, const WorkShare& share,
           MemoryBudget& device_budget, HostBudget& host_budget, int multiprocessors,
           const unsigned* stop, cudaStream_t stream);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override;
  CountedSlice slice() const override;
  const std::uint32_t* sequence() const override { return host_sequence_.as<std::uint32_t>(); }
  void fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) override;
  Buffer<std::uint32_t> counts() override;
  std::uint64_t pairs() const override;
  void describe(JoinStats* stats) const override;

 private:
  Half choose_half() const;
  const TilePoints& right() const { return request_.self_join() ? left_ : right_; }
  void quantize_sides(const TileWalkSide* sides);
  void make_room();
  void describe_decision(const TileWalkSide* sides);
  void count_whole_tiles();
  void choose_rectangle();
  void find_pairs(const TileList& list, const CandidateList& candidates);
  void place_pairs(const CandidateList& candidates);
  bool counts_themselves() const;
  Themselves themselves() const;
  std::uint32_t first_point() const { return rectangle_.first_row * kScreenTile; }
  std::uint32_t slice_points() const;

  const JoinRequest& request_;
  const RangePlan& plan_;
  const AccessPattern pattern_;
  WorkShare share_;  ///< rows of tiles
  MemoryBudget& device_budget_;
  HostBudget& host_budget_;
  int multiprocessors_;
  cudaStream_t stream_;
  TilePoints left_, right_;
  ScreenView screen_{};
  Decision decision_{};
  TileCounts count_{};  ///< where counts are wanted
  TileRanks rank_{};    ///< where pairs are
  WholeTiles whole_{};
  TileRadii radii_;

  TileRectangle rectangle_{};        ///< of the slice
  Places rows_;                      ///< rows taken last, of which the first are done
  std::uint32_t next_column_ = 0;    ///< above the diagonal if the row was begun
  std::uint64_t most_tiles_ = 0;     ///< of a slice, by room and what was found so far
  std::uint64_t tile_capacity_ = 0;  ///< pairs of tiles there is room for
  std::uint64_t found_ = 0, themselves_ = 0;
  std::uint64_t diagonal_points_ = 0;  ///< of slices that had them with themselves
  std::uint64_t screened_ = 0, rechecked_ = 0;
  std::uint64_t compared_tiles_ = 0;  ///< pairs of tiles, or known to be apart

  DeviceBuffer<TileReport> report_;
  PinnedBlock host_report_;
  DeviceBuffer<uint2> tiles_;
  DeviceBuffer<uint2> candidates_;
  DeviceBuffer<std::uint32_t> ranks_;
  DeviceBuffer<double> candidate_distances_;
  DeviceBuffer<std::uint32_t> counts_;
  DeviceBuffer<std::uint32_t> whole_rows_;
  DeviceBuffer<std::uint64_t> offsets_;
  DeviceBuffer<std::uint32_t> neighbors_;
  DeviceBuffer<double> distances_;
  PinnedBlock host_offsets_;
  PinnedBlock host_sequence_;
};

}  // namespace gpujoin::cuda

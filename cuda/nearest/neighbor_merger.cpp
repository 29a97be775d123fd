#include "cuda/nearest/neighbor_merger.h"

#include <algorithm>
#include <cstdio>

#include "core/tile_screen.h"

namespace gpujoin::cuda {
namespace {

/// If there are few left points, several warps share the candidates of each. A share has at least
/// kShareCandidates; the other limits are for shares of one point, of all points, and for the
/// neighbours that all shares hold.
constexpr std::uint64_t kShareCandidates = 32, kMostSharesOfPoint = 128, kMostShares = 4096,
                        kMostSharedEntries = 1 << 20;

}  // namespace

NeighborMerger::NeighborMerger(const NeighborQuestion& question, const NearestSide& left,
                               const NearestSide& right, MemoryBudget& budget, cudaStream_t stream)
    : question_(question),
      budget_(budget),
      stream_(stream),
      left_(left),
      right_(right),
      report_(budget, 1, stream) {
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream), "clearing counts");
}

Merge NeighborMerger::merge() const {
  return {question_,
          left_.originals().data(),
          right_.originals().data(),
          right_.originals().scalar,
          left_.rounded().spread,
          right_.rounded().spread,
          slice_,
          nullptr,
          0,
          nullptr,
          nullptr,
          1,
          {},
          report_.data()};
}

void NeighborMerger::start(const NeighborSlice& slice, std::uint32_t first_points) {
  slice_ = slice;
  Merge first = merge();
  first.candidates_end = first_points;
  share_and_launch(first, first_points);
}

void NeighborMerger::add(const std::uint64_t* candidates, const std::uint32_t* begins,
                         const std::uint32_t* ends, std::uint64_t expected) {
  Merge more = merge();
  more.candidates = candidates;
  more.begins = begins;
  more.ends = ends;
  share_and_launch(more, expected);
}

void NeighborMerger::share_and_launch(Merge merge, std::uint64_t candidates) {
  const std::uint64_t points = slice_.count, k = question_.k;
  const std::uint64_t most =
      std::min({kMostSharesOfPoint, kMostShares / points, kMostSharedEntries / (points * k)});
  merge.shares = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, std::min(candidates / kShareCandidates, most)));
  if (const std::uint64_t lists = points * merge.shares; merge.shares > 1) {
    if (part_counts_.size() < lists) {
      part_counts_ = DeviceBuffer<std::uint32_t>(budget_, lists, stream_);
      part_positions_ = DeviceBuffer<std::uint32_t>(budget_, lists * k, stream_);
      part_raws_ = DeviceBuffer<double>(budget_, lists * k, stream_);
    }
    merge.parts = {part_counts_.data(), part_positions_.data(), part_raws_.data()};
  }
  launch_merge(merge, stream_);
}

void NeighborMerger::describe(std::uint64_t candidates, JoinStats* stats) const {
  stats->strategy.index = IndexMethod::kTiles;
  stats->strategy.screened = true;
  stats->candidates += candidates;
  std::snprintf(stats->strategy.reason, sizeof stats->strategy.reason, "%u columns",
                question_.dims);
}

void NeighborMerger::find_thresholds(float* reject) const {
  const Rounding& how = right_.rounding();
  launch_thresholds(
      {question_, slice_, left_.rounded().norms.data(), left_.rounded().errors.data(),
       right_.rounded().most_error.data(), how.scale, tensor_accumulation(how.padded_dims), reject},
      stream_);
}

}  // namespace gpujoin::cuda

#include <algorithm>

#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/tiles/tile_counting.cuh"
#include "cuda/tiles/tile_decision.cuh"
#include "cuda/tiles/tile_kernels.h"
#include "cuda/tiles/tile_listing.cuh"

namespace gpujoin::cuda {
namespace {

__global__ void add_rows_kernel(const std::uint32_t* rows, std::uint32_t points,
                                std::uint32_t* counts) {
  const std::uint64_t p = global_thread();
  if (p < points) counts[p] += rows[p / kScreenTile];
}

/// Ranks the pairs of points, and keeps their distances, for a second pass to write them.
template <PairNeed Need>
struct RankSink {
  static constexpr PairNeed kNeed = Need;
  TileRanks to;

  __device__ void take_candidate(unsigned long long candidate, bool found, std::uint32_t i,
                                 std::uint32_t, double distance) const {
    if (Need == PairNeed::kDistance) to.distances[candidate] = distance;
    to.ranks[candidate] = found ? atomicAdd(&to.counts[i - to.base], 1u) : TileRanks::kNoRank;
  }
};

__global__ void __launch_bounds__(kBlockThreads)
    scatter_kernel(TileRanks ranks, CandidateList candidates, const std::uint64_t* offsets,
                   std::uint32_t points_with_themselves, std::uint32_t* neighbors,
                   double* distances) {
  const std::uint64_t first = global_thread();
  const std::uint64_t step = global_threads();
  const unsigned long long size = listed_candidates(candidates, true);
  for (std::uint64_t c = first; c < size; c += step) {
    const std::uint32_t rank = ranks.ranks[c];
    if (rank == TileRanks::kNoRank) continue;
    const uint2 pair = candidates.pairs[c];
    const std::uint32_t i = pair.x & ~CandidateList::kSurely;
    const std::uint64_t place = offsets[i - ranks.base] + rank;
    neighbors[place] = pair.y;
    if (distances != nullptr) distances[place] = ranks.distances[c];
  }
  for (std::uint64_t p = first; p < points_with_themselves; p += step) {
    neighbors[offsets[p]] = ranks.base + static_cast<std::uint32_t>(p);
    if (distances != nullptr) distances[offsets[p]] = 0;
  }
}

__global__ void fill_kernel(std::uint32_t* counts, std::uint64_t size, std::uint32_t value) {
  const std::uint64_t i = global_thread();
  if (i < size) counts[i] = value;
}

}  // namespace

void launch_list(const TilePoints& left, const TilePoints& right, bool half,
                 std::uint32_t box_columns, double reach, const WholeTiles& whole,
                 const TileRectangle& rectangle, const TileList& list,
                 unsigned long long* candidates, cudaStream_t stream) {
  list_tiles(left, right, half, box_columns, reach, whole, AllTiles{}, rectangle, list, candidates,
             stream);
}

void launch_add_rows(const WholeTiles& whole, std::uint32_t points, std::uint32_t* counts,
                     cudaStream_t stream) {
  if (whole.rows == nullptr || points == 0) return;
  add_rows_kernel<<<blocks_for(points), kBlockThreads, 0, stream>>>(whole.rows, points, counts);
  check_launch("adding counts");
}

void launch_screen(const ScreenView& view, const TileList& list, const CandidateList& candidates,
                   int multiprocessors, cudaStream_t stream) {
  screen(view, list, PairLister{candidates}, multiprocessors, stream);
}

void launch_count(const ScreenView& view, const TileList& list, const Decision& decision,
                  const TileCounts& counts, const CandidateList& open, int multiprocessors,
                  cudaStream_t stream) {
  const auto count = [&](const auto& sink) {
    screen(view, list, PairCounter{decision, open, sink}, multiprocessors, stream);
    decide(decision, open, sink, multiprocessors, stream);
  };
  if (counts.counts != nullptr)
    count(CountSink{counts});
  else
    count(TotalSink{});
}

void launch_decide(const Decision& decision, const TileRanks& ranks,
                   const CandidateList& candidates, int multiprocessors, cudaStream_t stream) {
  if (ranks.distances != nullptr)
    decide(decision, candidates, RankSink<PairNeed::kDistance>{ranks}, multiprocessors, stream);
  else
    decide(decision, candidates, RankSink<PairNeed::kPosition>{ranks}, multiprocessors, stream);
}

void launch_scatter(const TileRanks& ranks, const CandidateList& candidates,
                    const std::uint64_t* offsets, bool themselves, std::uint32_t points,
                    std::uint32_t* neighbors, double* distances, int multiprocessors,
                    cudaStream_t stream) {
  scatter_kernel<<<resident_blocks(multiprocessors), kBlockThreads, 0, stream>>>(
      ranks, candidates, offsets, themselves ? points : 0, neighbors, distances);
  check_launch("writing pairs");
}

void fill_counts(std::uint32_t* counts, std::uint64_t size, std::uint32_t value,
                 cudaStream_t stream) {
  if (size == 0) return;
  fill_kernel<<<blocks_for(size), kBlockThreads, 0, stream>>>(counts, size, value);
  check_launch("clearing counts");
}

}  // namespace gpujoin::cuda

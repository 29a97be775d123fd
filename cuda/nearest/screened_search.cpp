#include "cuda/nearest/screened_search.h"

#include <algorithm>
#include <cmath>

#include "core/tile_screen.h"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"
#include "cuda/nearest/neighbor_merger.h"
#include "cuda/nearest/screened_kernels.h"
#include "cuda/tiles/tile_kernels.h"

namespace gpujoin::cuda {
namespace {

constexpr std::uint32_t kMostSliceTiles = 1u << 9;
constexpr std::uint64_t kFirstPairs = 4096;  ///< that are compared without a screen, or a tile each
constexpr std::uint64_t kGrowth = 2;  ///< at least, of the right points seen, from round to round
constexpr std::uint64_t kMostRoundCandidates = std::uint64_t{1} << 24;
constexpr std::uint64_t kRoomForChance = 4;  ///< times as many candidates as are expected
/// Candidates that are expected of a round, where few left points have few.
constexpr std::uint64_t kExpectedCandidates = std::uint64_t{1} << 14;

/// A slice goes through rounds, each against as many right points as there is room for what passes:
/// of right points in random order, about k pass for each doubling of those seen. The first ones
/// give each left point a threshold; each round's candidates narrow it.
class ScreenedSearch final : public NeighborSearch {
 public:
  ScreenedSearch(const NeighborQuestion& question, const NearestSide& left,
                 const NearestSide& right, MemoryBudget& budget, HostBudget& host,
                 std::uint64_t round_bytes, int multiprocessors, cudaStream_t stream)
      : question_(question),
        budget_(budget),
        multiprocessors_(multiprocessors),
        stream_(stream),
        merger_(question, left, right, budget, stream),
        found_(budget, 1, stream),
        host_found_(host, sizeof(unsigned long long)),
        left_reject_(budget, std::size_t{merger_.left().tiles} * kScreenTile, stream) {
    reject_all(left_reject_, stream);
    allocate_round(round_bytes);
  }

  std::uint32_t points() const override { return left().points; }
  std::uint32_t most_slice_points() const override { return most_slice_points_; }

  bool start(const NeighborSlice& slice) override {
    seen_ = std::min(right().tiles,
                     tiles_of(std::max(2 * std::uint64_t{question_.k}, kFirstPairs / slice.count)));
    merger_.start(slice, points_before(seen_));
    candidates_ += std::uint64_t{slice.count} * points_before(seen_);
    width_ = right().tiles;
    return start_round();
  }

  bool proceed() override {
    const unsigned long long found = *host_found_.as<unsigned long long>();
    const std::uint32_t width = end_ - seen_;
    if (found > list_.size()) {
      width_ = std::max(1u, width / 2);  // the candidates of one tile always fit
      return start_round();
    }
    if (found > 0) merge_candidates(found);
    candidates_ += std::uint64_t{slice().count} * (points_before(end_) - points_before(seen_));
    seen_ = end_;
    if (width_ < right().tiles) width_ *= 2;
    return start_round();
  }

  const SearchReport* report() const override { return merger_.report(); }

  void describe(JoinStats* stats) const override { merger_.describe(candidates_, stats); }

 private:
  static std::uint32_t tiles_of(std::uint64_t points) {
    return static_cast<std::uint32_t>((points + kScreenTile - 1) / kScreenTile);
  }

  const RoundedPoints& left() const { return merger_.left(); }
  const RoundedPoints& right() const { return merger_.right(); }
  const NeighborSlice& slice() const { return merger_.slice(); }

  /// Right points of the first tiles.
  std::uint32_t points_before(std::uint32_t tiles) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(right().points, std::uint64_t{tiles} * kScreenTile));
  }

  /// Candidates of a round: those of one right tile at least, and as many as should come.
  void allocate_round(std::uint64_t bytes) {
    constexpr std::uint64_t kCandidateBytes = 2 * sizeof(std::uint64_t);
    constexpr std::uint64_t kPointBytes = kScreenTile * kCandidateBytes + 8;
    const std::uint64_t tiles = std::clamp<std::uint64_t>(bytes / kPointBytes / kScreenTile, 1,
                                                          std::min(kMostSliceTiles, left().tiles));
    most_slice_points_ = static_cast<std::uint32_t>(tiles * kScreenTile);
    const std::uint64_t expected =
        std::max(std::uint64_t{most_slice_points_} * question_.k, kExpectedCandidates);
    const std::uint64_t capacity = std::max<std::uint64_t>(
        std::uint64_t{most_slice_points_} * kScreenTile,
        std::min({expected * kRoomForChance, kMostRoundCandidates, bytes / kCandidateBytes}));
    list_ = DeviceBuffer<std::uint64_t>(budget_, capacity, stream_);
    sorted_ = DeviceBuffer<std::uint64_t>(budget_, capacity, stream_);
    begins_ = DeviceBuffer<std::uint32_t>(budget_, most_slice_points_, stream_);
    ends_ = DeviceBuffer<std::uint32_t>(budget_, most_slice_points_, stream_);
    const std::uint64_t pairs = std::uint64_t{tiles_of(most_slice_points_)} * right().tiles;
    tile_pairs_ = DeviceBuffer<uint2>(budget_, std::min(pairs, kMostTilePairs), stream_);
    tile_count_ = DeviceBuffer<unsigned>(budget_, 1, stream_);
  }

  /// True: there is no other, and the slice is finished.
  bool start_round() {
    if (seen_ >= right().tiles) {
      merger_.finish();
      return true;
    }
    merger_.find_thresholds(left_reject_.data());
    const std::uint32_t first_row = slice().first / kScreenTile;
    const std::uint32_t end_row = tiles_of(std::uint64_t{slice().first} + slice().count);
    const auto most = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, kMostTilePairs / (end_row - first_row)));
    const std::uint64_t growth =
        std::max(kGrowth, kExpectedCandidates / (std::uint64_t{slice().count} * question_.k));
    const std::uint64_t width = std::min<std::uint64_t>({width_, most, seen_ * growth});
    end_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(right().tiles, seen_ + width));
    const TileList tiles{tile_pairs_.data(), tile_count_.data()};
    check(cudaMemsetAsync(found_.data(), 0, found_.bytes(), stream_), "clearing counts");
    const ScreenView view{{left().values.data(), left_reject_.data(), nullptr},
                          {right().values.data(), right().reject.data(), nullptr},
                          merger_.padded_dims(),
                          question_.without_itself ? Half::kButItself : Half::kNo,
                          question_.stop};
    launch_neighbor_screen(view, {first_row, end_row, seen_, end_}, tiles,
                           {reinterpret_cast<uint2*>(list_.data()), list_.size(), found_.data()},
                           multiprocessors_, stream_);
    copy_to_host(host_found_.as<unsigned long long>(), found_.data(), 1, stream_);
    return false;
  }

  void merge_candidates(std::uint64_t found) {
    int bits = 1;
    while (bits < 32 && left().points >> bits != 0) ++bits;
    sort_keys(budget_, list_.data(), sorted_.data(), found, {0, bits}, stream_);
    for (const auto* places : {&begins_, &ends_})
      check(cudaMemsetAsync(places->data(), 0, places->bytes(), stream_), "ordering candidates");
    launch_segments(sorted_.data(), found, slice().first, begins_.data(), ends_.data(), stream_);
    merger_.add(sorted_.data(), begins_.data(), ends_.data(), found / slice().count);
  }

  const NeighborQuestion question_;
  MemoryBudget& budget_;
  const int multiprocessors_;
  const cudaStream_t stream_;
  NeighborMerger merger_;
  DeviceBuffer<unsigned long long> found_;
  PinnedBlock host_found_;
  DeviceBuffer<float> left_reject_;
  DeviceBuffer<std::uint64_t> list_, sorted_;
  DeviceBuffer<std::uint32_t> begins_, ends_;
  DeviceBuffer<uint2> tile_pairs_;
  DeviceBuffer<unsigned> tile_count_;
  std::uint32_t most_slice_points_ = 0;
  std::uint32_t seen_ = 0;   ///< right tiles whose points are merged
  std::uint32_t end_ = 0;    ///< of the round
  std::uint32_t width_ = 0;  ///< right tiles of a round at most
  std::uint64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<NeighborSearch> make_screened_search(const NeighborQuestion& question,
                                                     const NearestSide& left,
                                                     const NearestSide& right, MemoryBudget& budget,
                                                     HostBudget& host, std::uint64_t round_bytes,
                                                     int multiprocessors, cudaStream_t stream) {
  return std::make_unique<ScreenedSearch>(question, left, right, budget, host, round_bytes,
                                          multiprocessors, stream);
}

}  // namespace gpujoin::cuda

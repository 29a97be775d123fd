#include "cuda/bits/bit_walk.h"

#include <algorithm>
#include <numeric>

#include "core/pair_sink.h"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"
#include "engine/strategy/bit_strategy.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cuda {
namespace {

/// Left rows of a slice.
constexpr RectangleRows kRows{.fewest = kBlockThreads, .most = 1 << 20};

Half choose_half(const JoinRequest& request, AccessPattern pattern) {
  if (!request.self_join()) return Half::kNo;
  const bool all = request.pairs() == PairSelection::kAll;
  if (pattern == AccessPattern::kFull) return all ? Half::kNo : Half::kButItself;
  return all ? Half::kAndDiagonal : Half::kUpper;
}

}  // namespace

std::uint64_t bit_row_bytes(const JoinRequest& request) {
  const bool turned = request.left().dims > 1;
  return point_bytes(request.left()) * (turned ? 2 : 1) + 2 * sizeof(std::uint64_t);
}

BitWalk::BitWalk(const JoinRequest& request, const DeviceBuffer<std::uint64_t> (&rows)[2],
                 const std::int64_t* device_ids, JoinResources& resources, const unsigned* stop,
                 cudaStream_t stream)
    : request_(request),
      resources_(resources),
      pattern_(pattern_of(request, IndexMethod::kTiles)),
      multiprocessors_(resources.context.properties().multiProcessorCount),
      stream_(stream) {
  view_.left = rows[0].data();
  view_.right = request.self_join() ? rows[0].data() : rows[1].data();
  view_.left_rows = static_cast<std::uint32_t>(request.left().rows);
  view_.right_rows = static_cast<std::uint32_t>(request.right().rows);
  view_.words = request.left().dims;
  view_.most = most_differing_bits(request);
  view_.half = choose_half(request, pattern_);
  view_.stop = stop;
  count_.ids = device_ids;
  count_.points = view_.left_rows;
  using Ends = TileCounts::Ends;
  count_.ends = !is_half(view_.half)                            ? Ends::kLeft
                : request_.pairs() == PairSelection::kUnordered ? Ends::kSmallerEnd
                                                                : Ends::kBoth;
  if (view_.words > 1) {
    left_columns_ = DeviceBuffer<std::uint64_t>(resources.device, rows[0].size(), stream);
    launch_transpose(view_.left, view_.left_rows, view_.words, left_columns_.data(), stream);
    view_.left = left_columns_.data();
  }
  make_room();
}

/// A slice's list: as much as the join may need, within an eighth of the device memory limit.
void BitWalk::make_room() {
  totals_ = DeviceBuffer<BitTotals>(resources_.device, 1, stream_);
  host_totals_ = PinnedBlock(resources_.host, sizeof(BitTotals));
  most_pairs_ = static_cast<std::uint64_t>(kCandidatesPerSlice) / view_.words;
  if (request_.output() == Output::kCountPerRow) {
    counts_ = DeviceBuffer<std::uint32_t>(resources_.device, view_.left_rows, stream_);
    fill_counts(counts_.data(), view_.left_rows, 0, stream_);
    count_.counts = counts_.data();
  }
  if (!wants_list()) return;
  const bool distances = wants_distances(request_.output());
  const std::uint64_t bytes =
      sizeof(BitEntry) + sizeof(std::uint32_t) + (distances ? sizeof(double) : 0);
  const std::uint64_t limit = request_.resources.device_memory_limit / 8 / bytes;
  const std::uint64_t all = std::uint64_t{view_.left_rows} * view_.right_rows;
  std::uint64_t capacity = std::min(all, kMostCandidates);
  if (request_.resources.device_memory_limit > 0)
    capacity = std::clamp(limit, std::min(all, kRows.fewest), capacity);
  const std::uint64_t rows = std::min<std::uint64_t>(view_.left_rows, kRows.most);
  entries_ = DeviceBuffer<BitEntry>(resources_.device, capacity, stream_);
  counts_ = DeviceBuffer<std::uint32_t>(resources_.device, rows + 1, stream_);
  offsets_ = DeviceBuffer<std::uint64_t>(resources_.device, rows + 1, stream_);
  neighbors_ = DeviceBuffer<std::uint32_t>(resources_.device, capacity, stream_);
  if (distances) distances_ = DeviceBuffer<double>(resources_.device, capacity, stream_);
  host_offsets_ = PinnedBlock(resources_.host, offsets_.bytes());
  host_sequence_ = PinnedBlock(resources_.host, view_.left_rows * sizeof(std::uint32_t));
  std::iota(host_sequence_.as<std::uint32_t>(),
            host_sequence_.as<std::uint32_t>() + view_.left_rows, 0u);
  list_.entries = entries_.data();
  list_.capacity = capacity;
  list_.counts = counts_.data();
}

void BitWalk::start_slice() {
  if (finished()) return;
  rectangle_ = next_rectangle(view_.left_rows, view_.right_rows, next_, most_pairs_, kRows);
  check(cudaMemsetAsync(totals_.data(), 0, sizeof(BitTotals), stream_), "clearing totals");
  if (wants_list())
    list_pairs();
  else
    launch_count_bits(view_, rectangle_, count_, totals_.data(), multiprocessors_, stream_);
  copy_to_host(host_totals_.as<BitTotals>(), totals_.data(), 1, stream_);
}

/// Finds pairs, gives each its place, and writes the slice's neighbours.
void BitWalk::list_pairs() {
  const std::uint64_t items = std::uint64_t{slice_rows()} + 1;
  list_.base = rectangle_.first_row;
  fill_counts(counts_.data(), items, 0, stream_);
  launch_list_bits(view_, rectangle_, list_, totals_.data(), multiprocessors_, stream_);
  add_up(resources_.device, counts_.data(), offsets_.data(), items, stream_);
  launch_place_bits(list_, totals_.data(), offsets_.data(), neighbors_.data(), distances_.data(),
                    multiprocessors_, stream_);
  copy_to_host(host_offsets_.as<std::uint64_t>(), offsets_.data(), items, stream_);
}

/// Slices grow or shrink towards half the room for pairs; as many pairs as there is room for fit in
/// any case.
bool BitWalk::finish_slice() {
  if (finished()) return true;
  const BitTotals& totals = *host_totals_.as<BitTotals>();
  const std::uint64_t size = rectangle_.size();
  if (wants_list()) {
    const double fitting = static_cast<double>(size) * static_cast<double>(list_.capacity) / 2 /
                           std::max(1.0, static_cast<double>(totals.listed));
    most_pairs_ = static_cast<std::uint64_t>(std::clamp(
        fitting, static_cast<double>(list_.capacity), kCandidatesPerSlice / view_.words));
    if (totals.listed > list_.capacity) {
      most_pairs_ = std::min(most_pairs_, std::max(size / 2, list_.capacity));
      return false;
    }
  }
  found_ += totals.pairs;
  themselves_ += totals.themselves;
  compared_ += size;
  next_ = after(rectangle_, view_.right_rows);
  return true;
}

CountedSlice BitWalk::slice() const {
  return {rectangle_.first_row,
          rectangle_.end_row,
          host_offsets_.as<std::uint64_t>(),
          offsets_.data(),
          neighbors_.data(),
          distances_.data(),
          view_.half == Half::kAndDiagonal ? Themselves::kSome : Themselves::kNone,
          finished()};
}

std::uint64_t BitWalk::pairs() const {
  return pairs_of_entries(is_mirrored(pattern_, request_.pairs()), found_, themselves_);
}

Buffer<std::uint32_t> BitWalk::counts() {
  Buffer<std::uint32_t> by_row(resources_.host, view_.left_rows);
  copy_to_host(by_row.data(), counts_.data(), by_row.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying counts");
  return by_row;
}

}  // namespace gpujoin::cuda

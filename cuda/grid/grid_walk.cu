#include <algorithm>
#include <numeric>

#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"
#include "cuda/grid/grid_walk.h"
#include "engine/strategy/fill_threads.h"

namespace gpujoin::cuda {
namespace {

__global__ void positions_kernel(std::uint32_t* positions, std::uint32_t points) {
  const std::uint64_t position = global_thread();
  if (position < points) positions[position] = static_cast<std::uint32_t>(position);
}

PointsView view_of(const WalkSide& side) {
  const DeviceIndex& index = *side.index;
  return {index.columns.data(), index.codes.data(), side.ids, index.rows, index.points};
}

}  // namespace

JoinView make_join_view(const JoinRequest& request, const IndexPlan& plan, const WalkSide& left,
                        const WalkSide& right, const unsigned* stop) {
  JoinView view{};
  view.left = view_of(left);
  view.right = view_of(right);
  view.layout = plan.order;
  view.pattern = pattern_of(request, plan.strategy.index);
  view.pairs = request.pairs();
  view.self_join = request.self_join();
  view.smaller_id_first =
      wants_counts(request.output()) && request.pairs() == PairSelection::kUnordered;
  view.short_circuit = plan.strategy.short_circuit;
  view.dims = request.left().dims;
  view.threshold = plan.threshold.raw;
  view.reach = plan.reach;
  view.stop = stop;
  return view;
}

GridWalk::GridWalk(const JoinRequest& request, const RangePlan& plan, const WalkSide& left,
                   const WalkSide& right, const WorkShare& share, MemoryBudget& device_budget,
                   HostBudget& host_budget, unsigned resident_blocks, const unsigned* stop,
                   unsigned* queue, cudaStream_t stream, std::unique_ptr<DeviceSums> sums)
    : request_(request),
      plan_(plan),
      share_(share),
      device_budget_(device_budget),
      host_budget_(host_budget),
      sums_(std::move(sums)),
      queue_(queue),
      stream_(stream) {
  view_ = make_join_view(request, plan.index, left, right, stop);
  choose_kernels(resident_blocks);
  if (request.knobs.work_order == WorkOrder::kSorted || count_kernel_.queue) order_by_workload();
  make_room(resident_blocks);
}

void GridWalk::choose_kernels(unsigned resident_blocks) {
  const std::uint32_t forced = std::min(request_.knobs.threads_per_point, 32u);
  count_kernel_ = {request_.metric(),
                   request_.left().scalar,
                   request_.left().dims,
                   forced,
                   request_.knobs.work_order == WorkOrder::kQueue,
                   resident_blocks};
  fill_kernel_ = count_kernel_;
  if (forced != 0) return;
  // Counting writes nothing, and is fastest with one thread a point. For filling see fill().
  count_kernel_.threads_per_point = plan_.candidates >= kCandidatesForWarp ? 32 : 1;
  fill_kernel_.threads_per_point = count_kernel_.threads_per_point;
}

/// Puts the points with most candidates first (SORTBYWL [load-imbalance, section III-C]).
void GridWalk::order_by_workload() {
  const std::uint32_t points = view_.left.points;
  if (points == 0) return;
  DeviceBuffer<std::uint32_t> work(device_budget_, points, stream_),
      sorted(device_budget_, points, stream_);
  DeviceBuffer<std::uint32_t> positions(device_budget_, points, stream_);
  sequence_ = DeviceBuffer<std::uint32_t>(device_budget_, points, stream_);
  launch_workload(count_kernel_, view_, {0, points, 0, nullptr}, work.data(), stream_);
  positions_kernel<<<blocks_for(points), kBlockThreads, 0, stream_>>>(positions.data(), points);
  check_launch("ordering work");
  sort_descending<std::uint32_t>(
      device_budget_, {work.data(), sorted.data(), positions.data(), sequence_.data(), points},
      stream_);
  view_.sequence = sequence_.data();
}

/// Cuts the sequence into slices, short enough that an interrupt need not wait for long, and makes
/// room for their counts.
void GridWalk::make_room(unsigned resident_blocks) {
  busy_points_ = resident_blocks * kBlockThreads / count_kernel_.threads_per_point;
  const double busy_points = busy_points_;
  slice_points_ = static_cast<std::uint32_t>(
      std::clamp<double>(std::max(kCandidatesPerSlice / plan_.candidates, busy_points), 1,
                         std::max(1u, view_.left.points)));
  totals_ = DeviceBuffer<unsigned long long>(device_budget_, 2, stream_);
  host_totals_ = PinnedBlock(host_budget_, totals_.bytes());
  std::fill_n(host_totals_.as<unsigned long long>(), 2, 0);
  check(cudaMemsetAsync(totals_.data(), 0, totals_.bytes(), stream_), "clearing totals");
  if (wants_counts(request_.output()))
    counts_ = DeviceBuffer<std::uint32_t>(device_budget_, view_.left.stride, stream_);
  if (!wants_pairs(request_.output())) return;
  counts_ = DeviceBuffer<std::uint32_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
  offsets_ = DeviceBuffer<std::uint64_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
  host_offsets_ = PinnedBlock(host_budget_, offsets_.bytes());
  host_sequence_ = PinnedBlock(host_budget_, view_.left.stride * sizeof(std::uint32_t));
  std::uint32_t* const sequence = host_sequence_.as<std::uint32_t>();
  if (sequence_.size() > 0)
    copy_to_host(sequence, sequence_.data(), sequence_.size(), stream_);
  else
    std::iota(sequence, sequence + view_.left.points, 0u);
}

/// Counts the neighbours of the next slice's points, which is all that totals and counts need.
void GridWalk::start_slice() {
  const Places slice = share_.take(view_.left.points, slice_points_, 1, busy_points_);
  first_ = slice.first;
  end_ = slice.end;
  walked_.push_back(slice);
  const std::uint64_t items = std::uint64_t{end_} - first_ + 1;
  if (wants_pairs(request_.output()))
    check(cudaMemsetAsync(counts_.data() + items - 1, 0, sizeof(std::uint32_t), stream_),
          "clearing counts");
  const std::uint32_t base = wants_pairs(request_.output()) ? first_ : 0;
  if (end_ > first_ && sums_)
    launch_sums(count_kernel_, view_, {first_, end_, base, queue_}, *sums_, counts_.data(),
                totals_.data(), totals_.data() + 1, stream_);
  else if (end_ > first_)
    launch_count(count_kernel_, view_, {first_, end_, base, queue_}, counts_.data(), totals_.data(),
                 totals_.data() + 1, stream_);
  copy_to_host(host_totals_.as<unsigned long long>(), totals_.data(), 2, stream_);
  if (!wants_pairs(request_.output())) return;
  add_up(device_budget_, counts_.data(), offsets_.data(), items, stream_);
  copy_to_host(host_offsets_.as<std::uint64_t>(), offsets_.data(), items, stream_);
}

bool GridWalk::finish_slice() {
  const std::uint64_t candidates = host_totals_.as<unsigned long long>()[1];
  slice_candidates_ = candidates - candidates_;
  candidates_ = candidates;
  walked_points_ += end_ - first_;
  return true;
}

CountedSlice GridWalk::slice() const {
  const bool all = request_.self_join() && request_.pairs() == PairSelection::kAll;
  return {first_,  end_,    host_offsets_.as<std::uint64_t>(),          offsets_.data(),
          nullptr, nullptr, all ? Themselves::kAll : Themselves::kNone, finished()};
}

void GridWalk::fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) {
  KernelChoice kernel = fill_kernel_;
  if (request_.knobs.threads_per_point == 0) {
    const double cells =
        static_cast<double>(end_ - first_) * neighbor_count(plan_.index.strategy.grid_dims);
    const std::uint32_t threads = threads_for_filling(
        kFillThresholds, static_cast<double>(slice_candidates_) / cells,
        pairs_beside_a_pair(host_offsets_.as<std::uint64_t>() + (stretch.first - stretch.base),
                            stretch.end - stretch.first));
    kernel.threads_per_point = std::max(kernel.threads_per_point, threads);
  }
  most_fill_threads_ = std::max(most_fill_threads_, kernel.threads_per_point);
  launch_fill(kernel, view_, stretch, range, stream);
}

Buffer<std::uint32_t> GridWalk::counts() {
  Buffer<std::uint32_t> by_place(host_budget_, view_.left.points);
  Buffer<std::uint32_t> sequence(host_budget_, sequence_.size());
  copy_to_host(by_place.data(), counts_.data(), by_place.size(), stream_);
  copy_to_host(sequence.data(), sequence_.data(), sequence.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying counts");
  clear_others([&](std::uint32_t place) { by_place[place] = 0; });
  if (sequence.size() == 0) return by_place;
  Buffer<std::uint32_t> ordered(host_budget_, by_place.size());
  for (std::uint64_t place = 0; place < view_.left.points; ++place)
    ordered[sequence[place]] = by_place[place];
  return ordered;
}

const FoldWord* GridWalk::sums(std::uint64_t first, std::uint64_t rows) {
  return sums_->words(first, rows, host_budget_);
}

/// Calls clear(place) for the places of walks that share the work.
template <class Clear>
void GridWalk::clear_others(const Clear& clear) const {
  std::uint32_t place = 0;
  for (const Places& slice : walked_) {
    for (; place < slice.first; ++place) clear(place);
    place = slice.end;
  }
  for (; place < view_.left.points; ++place) clear(place);
}

std::uint64_t GridWalk::pairs() const {
  const std::uint64_t entries = host_totals_.as<unsigned long long>()[0];
  std::uint64_t themselves = 0;
  for (const Places& slice : walked_)
    themselves += request_.pairs() == PairSelection::kAll ? slice.count() : 0;
  return pairs_of_entries(is_mirrored(view_.pattern, request_.pairs()), entries, themselves);
}

void GridWalk::describe(JoinStats* stats) const {
  stats->candidates = host_totals_.as<unsigned long long>()[1];
  stats->threads_per_point = std::max(count_kernel_.threads_per_point, most_fill_threads_);
  stats->work = view_.left.points;
  stats->work_done = walked_points_;
}

}  // namespace gpujoin::cuda

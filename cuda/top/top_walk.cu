#include <algorithm>
#include <numeric>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/top/top_walk.h"

namespace gpujoin::cuda {
namespace {

__global__ void result_kernel(const TopEntry* entries, std::uint64_t count, bool lowest_first,
                              std::uint32_t* lefts, std::uint32_t* rights, double* scores) {
  const std::uint64_t i = global_thread();
  if (i >= count) return;
  lefts[i] = entries[i].left;
  rights[i] = entries[i].right;
  scores[i] = score_of_key(lowest_first, entries[i].key);
}

}  // namespace

TopWalk::TopWalk(const JoinRequest& request, const RangePlan& plan, const JoinView& view,
                 const double* left_scores, const double* right_scores, const WorkShare& share,
                 JoinResources& resources, cudaStream_t stream)
    : request_(request),
      plan_(plan),
      view_(view),
      resources_(resources),
      stream_(stream),
      method_(method_of(request.knobs.topk_method)),
      share_(share),
      candidates_(resources.device, 1, stream),
      host_candidates_(resources.host, sizeof(unsigned long long)) {
  top_.scoring = request.top().scoring;
  top_.smaller_first = request.orders_pairs();
  choose_kernel();
  selection_.emplace(resources, request.top().k, choose_capacity(), view.left.ids, view.right.ids,
                     top_.smaller_first,
                     method_ == TopkMethod::kThreshold ? request.top().least_key : 0, stream);
  top_.least = method_ == TopkMethod::kThreshold ? selection_->least() : selection_->behind_all();
  top_.admitted = selection_->admitted();
  if (request.top().scoring.function != ScoreFunction::kDistance)
    look_at_scores(left_scores, right_scores);
  choose_slice();
}

void TopWalk::look_at_scores(const double* left_scores, const double* right_scores) {
  top_.left_scores = left_scores;
  top_.right_scores = right_scores;
  const std::size_t blocks = view_.right.points / kScoreBlock + std::size_t{2};
  right_blocks_ = DeviceBuffer<Interval>(resources_.device, blocks, stream_);
  top_.right_blocks = right_blocks_.data() + 1;
  top_.right_all = right_blocks_.data();
  find_score_blocks(right_scores, view_.right.points, right_blocks_.data() + 1,
                    right_blocks_.data(), stream_);
}

void TopWalk::choose_kernel() {
  const std::uint32_t forced = std::min(request_.knobs.threads_per_point, 32u);
  kernel_ = {request_.metric(),
             request_.left().scalar,
             request_.left().dims,
             forced != 0                              ? forced
             : plan_.candidates >= kCandidatesForWarp ? 32
                                                      : 1,
             false,
             resources_.context.resident_blocks()};
}

/// The number of entries: a threshold needs few; sorting all pairs, and heaps of all points that
/// run at once, get what they are expected to need, within a quarter of the device's memory.
std::uint64_t TopWalk::choose_capacity() const {
  const std::uint64_t k = request_.top().k;
  const std::uint64_t least = std::max<std::uint64_t>(4 * k, kFewestAdmittedPairs);
  std::uint64_t most = request_.resources.device_memory_limit;
  if (most == 0) most = resources_.context.unused_bytes();
  most = std::max(2 * k, most / 4 / TopSelection::kEntryBytes);
  if (method_ == TopkMethod::kThreshold) return std::min(least, most);
  const double points = view_.left.points;
  const double wanted = method_ == TopkMethod::kHeap
                            ? static_cast<double>(k) * std::min(points, kPointsWithHeaps)
                            : 1.25 * plan_.pairs * points;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::min(wanted, 1e12)),
                                   std::min(least, most), most);
}

/// Chooses a first slice whose pairs are expected to have room, and which is short enough that an
/// interrupt need not wait for long.
void TopWalk::choose_slice() {
  const double points = std::max(1u, view_.left.points);
  const auto capacity = static_cast<double>(selection_->admitted().capacity);
  const auto k = static_cast<double>(request_.top().k);
  double most = kCandidatesPerSlice / plan_.candidates;
  double first = capacity * 0.8 / std::max(1e-3, plan_.pairs);
  if (method_ == TopkMethod::kHeap) most = first = std::min(most, (capacity - k) / k);
  if (method_ == TopkMethod::kThreshold && request_.top().least_key != 0) first = most;
  most_slice_points_ = static_cast<std::uint32_t>(std::clamp(most, 1.0, points));
  slice_points_ = static_cast<std::uint32_t>(std::clamp<double>(first, 1, most_slice_points_));
}

void TopWalk::start_slice() {
  if (rest_.count() == 0)
    rest_ = share_.take(view_.left.points, view_.left.points, 1,
                        resources_.context.resident_blocks() * kBlockThreads);
  end_ = rest_.first + std::min(slice_points_, rest_.count());
  selection_->start();
  check(cudaMemsetAsync(candidates_.data(), 0, candidates_.bytes(), stream_), "clearing a counter");
  const Stretch stretch{rest_.first, end_, rest_.first, nullptr};
  if (end_ > rest_.first && method_ == TopkMethod::kHeap) {
    if (heaps_.size() == 0)
      heaps_ = DeviceBuffer<unsigned char>(
          resources_.device, heap_scratch_bytes(request_.top().k, most_slice_points_), stream_);
    launch_heaps(kernel_, view_, top_, stretch, request_.top().k, heaps_.data(), candidates_.data(),
                 stream_);
  } else if (end_ > rest_.first) {
    launch_admit(kernel_, view_, top_, stretch, candidates_.data(), stream_);
  }
  selection_->report();
  copy_to_host(host_candidates_.as<unsigned long long>(), candidates_.data(), 1, stream_);
}

/// A slice that did not fit runs again. A threshold has risen by then, so that this ends even where
/// one point has more pairs than there is room for.
void TopWalk::shrink_slice() {
  if (method_ == TopkMethod::kThreshold || end_ - rest_.first == 1) {
    selection_->raise();
    top_.least = selection_->least();
  }
  slice_points_ = std::max(1u, (end_ - rest_.first) / 4);
}

bool TopWalk::finish_slice() {
  looked_at_ += *host_candidates_.as<unsigned long long>();
  if (selection_->overflowed()) {
    shrink_slice();
    return false;
  }
  selection_->keep_best();
  walked_points_ += end_ - rest_.first;
  rest_.first = end_;
  if (method_ == TopkMethod::kThreshold)
    slice_points_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{slice_points_} * 8, most_slice_points_));
  if (!finished()) return false;
  deliver_best();
  return true;
}

void TopWalk::deliver_best() {
  selection_->finish();
  const std::uint64_t count = selection_->kept();
  offsets_ = Buffer<std::uint64_t>(resources_.host, count + 1);
  std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
  if (count == 0) return;
  lefts_ = DeviceBuffer<std::uint32_t>(resources_.device, count, stream_);
  rights_ = DeviceBuffer<std::uint32_t>(resources_.device, count, stream_);
  scores_ = DeviceBuffer<double>(resources_.device, count, stream_);
  host_lefts_ = PinnedBlock(resources_.host, lefts_.bytes());
  result_kernel<<<blocks_for(count), kBlockThreads, 0, stream_>>>(
      selection_->entries(), count, request_.top().scoring.lowest_first, lefts_.data(),
      rights_.data(), scores_.data());
  check_launch("writing the best pairs");
  copy_to_host(host_lefts_.as<std::uint32_t>(), lefts_.data(), count, stream_);
  check(cudaStreamSynchronize(stream_), "writing the best pairs");
}

CountedSlice TopWalk::slice() const {
  return {0,
          static_cast<std::uint32_t>(selection_->kept()),
          offsets_.data(),
          nullptr,
          rights_.data(),
          scores_.data(),
          Themselves::kNone,
          true};
}

void TopWalk::describe(JoinStats* stats) const {
  stats->candidates = looked_at_;
  stats->work = view_.left.points;
  stats->work_done = walked_points_;
  stats->threads_per_point = method_ == TopkMethod::kHeap ? 1 : kernel_.threads_per_point;
}

}  // namespace gpujoin::cuda

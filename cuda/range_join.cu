#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <numeric>

#include "cuda/range_join.h"
#include "cuda/signals.h"
#include "cuda/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Words of flags_.
enum Flag { kStop, kLeftPoints, kRightPoints, kQueue, kFlags };

/// What is copied back between phases, in pinned memory so that copying does not block.
struct Mailbox {
  ExtentBits extents;
  unsigned flags[kFlags];
  unsigned long long totals[2];
  unsigned stop;
};

/// Ids in index order, on the device and on the host.
void order_ids_of(MemoryBudget& device_budget, MemoryBudget& host_budget, const Dataset& data,
                  const DeviceIndex& index, DeviceBuffer<std::int64_t>& ids, PinnedBlock& host_ids,
                  cudaStream_t stream) {
  DeviceBuffer<std::int64_t> source;
  if (data.ids != nullptr) {
    source = DeviceBuffer<std::int64_t>(device_budget, data.rows, stream);
    check(cudaMemcpyAsync(source.data(), data.ids, source.bytes(), cudaMemcpyHostToDevice, stream),
          "copying ids to the device");
  }
  ids = DeviceBuffer<std::int64_t>(device_budget, data.rows, stream);
  gather_ids(index, source.data(), ids.data(), stream);
  host_ids = PinnedBlock(host_budget, ids.bytes());
  copy_to_host(host_ids.as<std::int64_t>(), ids.data(), data.rows, stream);
}

PointsView view_of(const DeviceIndex& index, const DeviceBuffer<std::int64_t>& ids) {
  return {index.columns.data(), index.codes.data(), ids.data(), index.rows, index.points};
}

/// Threads that share a point while its pairs are written: one, unless each neighbouring cell gives
/// a whole group enough to do. Counting writes nothing, and is fastest with one.
std::uint32_t threads_for_filling(const Strategy& strategy, double candidates_per_point) {
  return candidates_per_point / neighbor_count(strategy.grid_dims) >= kCandidatesForEight ? 8 : 1;
}

}  // namespace

RangeJoin::RangeJoin(const JoinRequest& request, const cudaDeviceProp& device)
    : request_(request),
      host_budget_(request.memory_limit),
      device_budget_(request.device_memory_limit),
      resident_blocks_(static_cast<unsigned>(device.multiProcessorCount) *
                       kBlocksPerMultiprocessor) {
  stats_.left_rows = request.left.rows;
  stats_.right_rows = request.self_join ? request.left.rows : request.right.rows;
  stats_.threads = 1;
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "sm_%d%d", device.major,
                device.minor);
  mailbox_ = PinnedBlock(host_budget_, sizeof(Mailbox));
  if (stats_.left_rows == 0 || stats_.right_rows == 0) {
    answer_without_pairs();
    return;
  }
  threshold_ = make_threshold(request.metric, request.eps);
  strategy_ = choose_strategy(request, kWalkCosts);
  stats_.strategy = strategy_;
  read();
}

/// One side is empty: every left row has 0 pairs.
void RangeJoin::answer_without_pairs() {
  phase_ = Phase::kStream;
  if (request_.output != Output::kCountPerRow || request_.left.rows == 0) return;
  const std::uint64_t rows = request_.left.rows;
  row_counts_.resize(rows);
  host_sequence_ = PinnedBlock(host_budget_, rows * sizeof(std::uint32_t));
  host_left_ids_ = PinnedBlock(host_budget_, rows * sizeof(std::int64_t));
  for (std::uint64_t row = 0; row < rows; ++row) {
    host_sequence_.as<std::uint32_t>()[row] = static_cast<std::uint32_t>(row);
    host_left_ids_.as<std::int64_t>()[row] =
        request_.left.ids != nullptr ? request_.left.ids[row] : static_cast<std::int64_t>(row);
  }
}

RangeJoin::~RangeJoin() {
  if (flags_.size() > 0) {
    mailbox_.as<Mailbox>()->stop = 1;
    cudaMemcpyAsync(flags_.data() + kStop, &mailbox_.as<Mailbox>()->stop, sizeof(unsigned),
                    cudaMemcpyHostToDevice, stop_stream_);
  }
  batches_.reset();
  cudaStreamSynchronize(stop_stream_);
  cudaStreamSynchronize(stream_);
}

bool RangeJoin::wants_pairs() const {
  return request_.output == Output::kPairs || request_.output == Output::kPairsWithDistances;
}

/// Phase kExtents: copies the points to the device and finds the extents of the indexed columns.
void RangeJoin::read() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  flags_ = DeviceBuffer<unsigned>(device_budget_, kFlags, stream_);
  totals_ = DeviceBuffer<unsigned long long>(device_budget_, 2, stream_);
  extents_ = DeviceBuffer<ExtentBits>(device_budget_, 1, stream_);
  check(cudaMemsetAsync(flags_.data(), 0, flags_.bytes(), stream_), "clearing flags");
  check(cudaMemsetAsync(totals_.data(), 0, totals_.bytes(), stream_), "clearing totals");
  reset_extents(extents_.data(), stream_);
  const ReferencePoints references = place_reference_points(request_, strategy_);
  reach_ = threshold_.reach;
  if (references.count > 0)
    reach_ = reference_reach(request_.eps, references.dims, references.frame,
                             request_.left.scalar == ScalarType::kFloat32);
  left_points_ = upload(device_budget_, request_.left, stream_);
  add_reference_distances(device_budget_, left_points_, references, stream_);
  add_extents(left_points_, strategy_, extents_.data(), stream_);
  if (!request_.self_join) {
    right_points_ = upload(device_budget_, request_.right, stream_);
    add_reference_distances(device_budget_, right_points_, references, stream_);
    add_extents(right_points_, strategy_, extents_.data(), stream_);
  }
  copy_to_host(&mailbox->extents, extents_.data(), 1, stream_);
  step_.record(stream_);
}

/// Phase kIndex: sorts the points.
void RangeJoin::build() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  view_.layout = make_device_layout(mailbox->extents, strategy_, reach_);
  left_ =
      build_index(device_budget_, left_points_, view_.layout, flags_.data() + kLeftPoints, stream_);
  left_points_ = {};
  if (!request_.self_join) {
    right_ = build_index(device_budget_, right_points_, view_.layout, flags_.data() + kRightPoints,
                         stream_);
    right_points_ = {};
  }
  copy_to_host(mailbox->flags, flags_.data(), kFlags, stream_);
  step_.record(stream_);
}

/// After kIndex: names the points in index order.
void RangeJoin::order_ids() {
  order_ids_of(device_budget_, host_budget_, request_.left, left_, left_ids_, host_left_ids_,
               stream_);
  if (!request_.self_join)
    order_ids_of(device_budget_, host_budget_, request_.right, right_, right_ids_, host_right_ids_,
                 stream_);
}

/// What all kernels of the walk need.
void RangeJoin::describe_walk() {
  view_.left = view_of(left_, left_ids_);
  view_.right = request_.self_join ? view_.left : view_of(right_, right_ids_);
  view_.pattern = strategy_.access_pattern;
  view_.pairs = request_.pairs;
  view_.self_join = request_.self_join;
  view_.smaller_id_first =
      request_.output == Output::kCountPerRow && request_.pairs == PairSelection::kUnordered;
  view_.short_circuit = strategy_.short_circuit;
  view_.dims = request_.left.dims;
  view_.threshold = threshold_.raw;
  view_.reach = reach_;
  view_.stop = flags_.data() + kStop;
}

/// Candidates of a left point, as expected.
double RangeJoin::candidates_per_point() const {
  return std::max(1.0, strategy_.estimate().candidates / static_cast<double>(left_.rows));
}

void RangeJoin::choose_kernels() {
  const std::uint32_t forced = std::min(request_.knobs.threads_per_point, 32u);
  count_kernel_ = {request_.metric,
                   request_.left.scalar,
                   request_.left.dims,
                   forced,
                   request_.knobs.work_order == WorkOrder::kQueue,
                   resident_blocks_};
  fill_kernel_ = count_kernel_;
  if (forced == 0) {
    count_kernel_.threads_per_point = candidates_per_point() >= kCandidatesForWarp ? 32 : 1;
    fill_kernel_.threads_per_point = std::max(
        count_kernel_.threads_per_point, threads_for_filling(strategy_, candidates_per_point()));
  }
  stats_.threads_per_point =
      wants_pairs() ? fill_kernel_.threads_per_point : count_kernel_.threads_per_point;
}

/// Cuts the sequence into slices, short enough that an interrupt need not wait for long, and makes
/// room for their counts.
void RangeJoin::prepare_counting() {
  const double busy_points =
      static_cast<double>(resident_blocks_) * kBlockThreads / count_kernel_.threads_per_point;
  slice_points_ = static_cast<std::uint32_t>(
      std::clamp<double>(std::max(kCandidatesPerSlice / candidates_per_point(), busy_points), 1,
                         std::max(1u, left_.points)));
  if (request_.output == Output::kCountPerRow)
    counts_ = DeviceBuffer<std::uint32_t>(device_budget_, left_.rows, stream_);
  if (!wants_pairs()) return;
  counts_ = DeviceBuffer<std::uint32_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
  offsets_ = DeviceBuffer<std::uint64_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
  host_offsets_ = PinnedBlock(host_budget_, offsets_.bytes());
  host_sequence_ = PinnedBlock(host_budget_, left_.rows * sizeof(std::uint32_t));
  std::uint32_t* const sequence = host_sequence_.as<std::uint32_t>();
  if (sequence_.size() > 0)
    copy_to_host(sequence, sequence_.data(), sequence_.size(), stream_);
  else
    std::iota(sequence, sequence + left_.points, 0u);
  batches_.emplace(request_, device_budget_, host_budget_, fill_kernel_, view_, sequence);
}

/// Phase kCount: counts the neighbours of the next slice's points, which is all that totals and
/// counts need.
void RangeJoin::count_slice() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  slice_first_ = slice_end_;
  slice_end_ = slice_first_ + std::min(slice_points_, left_.points - slice_first_);
  const std::uint64_t items = std::uint64_t{slice_end_} - slice_first_ + 1;
  if (wants_pairs())
    check(cudaMemsetAsync(counts_.data() + items - 1, 0, sizeof(std::uint32_t), stream_),
          "clearing counts");
  const std::uint32_t base = wants_pairs() ? slice_first_ : 0;
  if (slice_end_ > slice_first_)
    launch_count(count_kernel_, view_, {slice_first_, slice_end_, base, flags_.data() + kQueue},
                 counts_.data(), totals_.data(), totals_.data() + 1, stream_);
  copy_to_host(mailbox->totals, totals_.data(), 2, stream_);
  if (wants_pairs()) {
    std::size_t bytes = 0;
    const auto add_up = [&](void* scratch) {
      check(cub::DeviceScan::ExclusiveScan(scratch, bytes, counts_.data(), offsets_.data(),
                                           ::cuda::std::plus<>{}, std::uint64_t{0}, items, stream_),
            "adding up counts");
    };
    add_up(nullptr);
    DeviceBuffer<unsigned char> scratch(device_budget_, bytes, stream_);
    add_up(scratch.data());
    copy_to_host(host_offsets_.as<std::uint64_t>(), offsets_.data(), items, stream_);
  }
  step_.record(stream_);
  phase_ = Phase::kCount;
}

/// Puts the points with most candidates first (load-imbalance paper, section on SORTBYWL).
void RangeJoin::order_by_workload() {
  const std::uint32_t points = left_.points;
  DeviceBuffer<std::uint32_t> work(device_budget_, points, stream_),
      sorted(device_budget_, points, stream_);
  DeviceBuffer<std::uint32_t> positions(device_budget_, points, stream_);
  sequence_ = DeviceBuffer<std::uint32_t>(device_budget_, points, stream_);
  launch_workload(count_kernel_, view_, {0, points, 0, nullptr}, work.data(), stream_);
  std::vector<std::uint32_t> identity(points);
  std::iota(identity.begin(), identity.end(), 0u);
  check(cudaMemcpyAsync(positions.data(), identity.data(), positions.bytes(),
                        cudaMemcpyHostToDevice, stream_),
        "ordering work");
  std::size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    check(cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, work.data(), sorted.data(),
                                                    positions.data(), sequence_.data(), points, 0,
                                                    32, stream_),
          "ordering work");
  };
  sort(nullptr);
  DeviceBuffer<unsigned char> scratch(device_budget_, bytes, stream_);
  sort(scratch.data());
  view_.sequence = sequence_.data();
}

/// After kCount: the size of the slice's result is known, exactly.
void RangeJoin::finish_slice() {
  const Mailbox* const mailbox = mailbox_.as<Mailbox>();
  stats_.candidates = mailbox->totals[1];
  if (!wants_pairs() && slice_end_ < left_.points) return count_slice();
  phase_ = Phase::kStream;
  if (wants_pairs()) {
    batches_->start({slice_first_, slice_end_, host_offsets_.as<std::uint64_t>(), offsets_.data(),
                     slice_end_ == left_.points});
    return;
  }
  total_ = mailbox->totals[0];
  if (request_.output == Output::kCountPerRow) collect_counts();
}

/// Counts of all left points, by position.
void RangeJoin::collect_counts() {
  row_counts_.resize(left_.rows);
  std::vector<std::uint32_t> counts(left_.points), sequence(sequence_.size());
  copy_to_host(counts.data(), counts_.data(), counts.size(), stream_);
  copy_to_host(sequence.data(), sequence_.data(), sequence.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying counts");
  for (std::uint32_t place = 0; place < left_.points; ++place)
    row_counts_[sequence.empty() ? place : sequence[place]] = counts[place];
  host_sequence_ = PinnedBlock(host_budget_, left_.rows * sizeof(std::uint32_t));
  std::iota(host_sequence_.as<std::uint32_t>(), host_sequence_.as<std::uint32_t>() + left_.rows,
            0u);
}

/// The result of kTotal; or the counts of the next rows, which are empty at the end.
ResultBatch RangeJoin::describe_counts() {
  ResultBatch batch{};
  if (request_.output == Output::kTotal) {
    const std::uint64_t with_themselves = request_.pairs == PairSelection::kAll ? left_.points : 0;
    batch.pair_count =
        is_mirrored(view_.pattern, request_.pairs) ? 2 * total_ - with_themselves : total_;
    return batch;
  }
  const std::uint64_t most =
      request_.knobs.batch_pairs > 0 ? request_.knobs.batch_pairs : kMostBatchPairs;
  batch.row_count = std::min(most, row_counts_.size() - delivered_);
  batch.rows = host_sequence_.as<std::uint32_t>() + delivered_;
  batch.counts = row_counts_.data() + delivered_;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) batch.pair_count += batch.counts[i];
  delivered_ += batch.row_count;
  return batch;
}

/// Waits some milliseconds for the device. False: not done yet, or an interrupt came up.
bool RangeJoin::wait(const Event& event) const {
  const Stopwatch watch;
  for (unsigned looks = 0;; ++looks) {
    if (event.done()) return true;
    if (watch.milliseconds() > 5) return false;
    if (looks < 200) continue;  // a few ten microseconds: most batches come that fast
    SignalsBlocked::let_in(20000);
  }
}

/// Goes from one phase to the next as soon as the device is done with it.
bool RangeJoin::next_phase() {
  if (!wait(step_)) return false;
  switch (phase_) {
    case Phase::kExtents:
      build();
      phase_ = Phase::kIndex;
      break;
    case Phase::kIndex:
      stats_.index_ms = since_open_.milliseconds();
      left_.points = mailbox_.as<Mailbox>()->flags[kLeftPoints];
      right_.points = mailbox_.as<Mailbox>()->flags[kRightPoints];
      if (request_.output != Output::kTotal) order_ids();
      describe_walk();
      choose_kernels();
      if (request_.knobs.work_order == WorkOrder::kSorted || count_kernel_.queue)
        order_by_workload();
      prepare_counting();
      count_slice();
      break;
    default:
      finish_slice();
  }
  return true;
}

/// Phase kStream: true when *batch is set, or when another phase has begun.
bool RangeJoin::next_result(ResultBatch* batch) {
  if (wants_pairs()) return next_pairs(batch);
  const bool counted = request_.output == Output::kCountPerRow;
  if (counted && delivered_ == row_counts_.size()) {
    phase_ = Phase::kEnd;
    return true;
  }
  *batch = describe_counts();
  if (!counted) phase_ = Phase::kEnd;
  ready_ = true;
  return true;
}

bool RangeJoin::next_pairs(ResultBatch* batch) {
  if (!batches_ || batches_->finished()) {
    if (slice_end_ < left_.points)
      count_slice();
    else
      phase_ = Phase::kEnd;
    return true;
  }
  if (!wait(batches_->next_arrival())) return false;
  *batch = batches_->deliver();
  ready_ = true;
  return true;
}

Status RangeJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  if (batches_) batches_->recycle();
  ready_ = false;
  while (!ready_ && phase_ != Phase::kEnd) {
    const bool moved = phase_ == Phase::kStream ? next_result(batch) : next_phase();
    if (!moved && request_.interrupt != nullptr && *request_.interrupt != 0)
      return {StatusCode::kInterrupted};
  }
  spent_ms_ += watch.milliseconds();
  if (!ready_) return {StatusCode::kEnd};
  batch->left_ids = host_left_ids_.as<std::int64_t>();
  batch->right_ids = request_.self_join ? batch->left_ids : host_right_ids_.as<std::int64_t>();
  ++stats_.batches;
  stats_.pairs += batch->pair_count;
  return {};
}

void RangeJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  if (batches_) batches_->describe(stats);
  stats->join_ms = std::max(0.0, spent_ms_ - stats_.index_ms);
  stats->memory_peak = host_budget_.peak();
  stats->device_memory_peak = device_budget_.peak();
}

}  // namespace gpujoin::cuda

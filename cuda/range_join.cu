#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <numeric>
#include <utility>

#include "cuda/batch_model.h"
#include "cuda/range_join.h"
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

constexpr std::uint32_t kMaxStreams = 16;

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

template <class T>
void copy_to_host(T* host, const T* device, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "copying to the host");
}

/// Ids in index order, on the device and on the host.
void order_ids(MemoryBudget& device_budget, MemoryBudget& host_budget, const Dataset& data,
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
std::uint32_t threads_for_filling(const Strategy& strategy, double left_rows) {
  const double candidates =
      strategy.estimated_candidates / left_rows / neighbor_count(strategy.grid_dims);
  return candidates >= kCandidatesForEight ? 8 : 1;
}

}  // namespace

RangeJoin::RangeJoin(const JoinRequest& request, const cudaDeviceProp& device)
    : request_(request),
      host_budget_(request.memory_limit),
      device_budget_(request.device_memory_limit),
      resident_blocks_(static_cast<unsigned>(device.multiProcessorCount) *
                       kBlocksPerMultiprocessor),
      began_(std::chrono::steady_clock::now()) {
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
  strategy_ = choose_strategy(request);
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
  for (Slot& slot : slots_) cudaStreamSynchronize(slot.stream);
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
  left_points_ = upload(device_budget_, request_.left, stream_);
  add_extents(left_points_, strategy_, extents_.data(), stream_);
  if (!request_.self_join) {
    right_points_ = upload(device_budget_, request_.right, stream_);
    add_extents(right_points_, strategy_, extents_.data(), stream_);
  }
  copy_to_host(&mailbox->extents, extents_.data(), 1, stream_);
  step_.record(stream_);
}

/// Phase kIndex: sorts the points.
void RangeJoin::build() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  view_.layout = make_device_layout(mailbox->extents, strategy_, threshold_.reach);
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

/// After kIndex: what all kernels of the walk need.
void RangeJoin::prepare_walk() {
  const Mailbox* const mailbox = mailbox_.as<Mailbox>();
  stats_.index_ms = milliseconds_since(began_);
  left_.points = mailbox->flags[kLeftPoints];
  right_.points = mailbox->flags[kRightPoints];
  if (request_.output != Output::kTotal) {
    order_ids(device_budget_, host_budget_, request_.left, left_, left_ids_, host_left_ids_,
              stream_);
    if (!request_.self_join)
      order_ids(device_budget_, host_budget_, request_.right, right_, right_ids_, host_right_ids_,
                stream_);
  }
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
  view_.reach = threshold_.reach;
  view_.stop = flags_.data() + kStop;
  const WorkOrder order = request_.knobs.work_order;
  const std::uint32_t forced = std::min(request_.knobs.threads_per_point, 32u);
  count_kernel_ = {request_.metric,         request_.left.scalar,       request_.left.dims,
                   forced > 0 ? forced : 1, order == WorkOrder::kQueue, resident_blocks_};
  fill_kernel_ = count_kernel_;
  if (forced == 0)
    fill_kernel_.threads_per_point =
        threads_for_filling(strategy_, static_cast<double>(left_.rows));
  stats_.threads_per_point =
      wants_pairs() ? fill_kernel_.threads_per_point : count_kernel_.threads_per_point;
  if (order == WorkOrder::kSorted || order == WorkOrder::kQueue) order_by_workload();

  slice_points_ = left_.points;
  if (wants_pairs()) {
    const double candidates =
        std::max(1.0, strategy_.estimated_candidates / static_cast<double>(left_.rows));
    slice_points_ = static_cast<std::uint32_t>(
        std::clamp<double>(kCandidatesPerSlice / candidates, 1, std::max(1u, left_.points)));
    offsets_ = DeviceBuffer<std::uint64_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
    host_offsets_ = PinnedBlock(host_budget_, offsets_.bytes());
    host_sequence_ = PinnedBlock(host_budget_, left_.rows * sizeof(std::uint32_t));
    if (sequence_.size() > 0)
      copy_to_host(host_sequence_.as<std::uint32_t>(), sequence_.data(), sequence_.size(), stream_);
    else
      std::iota(host_sequence_.as<std::uint32_t>(),
                host_sequence_.as<std::uint32_t>() + left_.points, 0u);
  }
  if (request_.output != Output::kTotal)
    counts_ = DeviceBuffer<std::uint32_t>(device_budget_, slice_points_ + std::size_t{1}, stream_);
}

/// Phase kCount: counts the neighbours of the next slice's points, which is all that totals and
/// counts need.
void RangeJoin::count_slice() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  slice_first_ = slice_end_;
  slice_end_ = slice_first_ + std::min(slice_points_, left_.points - slice_first_);
  const std::uint64_t items = std::uint64_t{slice_end_} - slice_first_ + 1;
  if (counts_.size() > 0)
    check(cudaMemsetAsync(counts_.data() + items - 1, 0, sizeof(std::uint32_t), stream_),
          "clearing counts");
  if (slice_end_ > slice_first_)
    launch_count(count_kernel_, view_,
                 {slice_first_, slice_end_, slice_first_, flags_.data() + kQueue}, counts_.data(),
                 totals_.data(), totals_.data() + 1, stream_);
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
  phase_ = Phase::kStream;
  if (!wants_pairs()) {
    entries_ = mailbox->totals[0];
    if (request_.output == Output::kCountPerRow) collect_counts();
    return;
  }
  entries_ = host_offsets_.as<std::uint64_t>()[slice_end_ - slice_first_];
  launched_ = delivered_ = 0;
  if (entries_ == 0) return;
  if (slots_.empty()) allocate_slots();
  for (Slot& slot : slots_) launch(slot);
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

void RangeJoin::allocate_slots() {
  const Knobs& knobs = request_.knobs;
  const bool distances = request_.output == Output::kPairsWithDistances;
  const std::uint32_t pair_bytes = sizeof(std::uint32_t) + (distances ? sizeof(double) : 0);
  std::uint32_t streams = std::min(knobs.streams > 0 ? knobs.streams : kStreams, kMaxStreams);
  const BatchModel& model = measured_batch_model();
  batch_entries_ = knobs.batch_pairs > 0
                       ? std::min<std::uint64_t>(knobs.batch_pairs, kMostBatchPairs)
                       : model.best_batch(entries_, streams, pair_bytes);
  if (slice_end_ == left_.points) batch_entries_ = std::min(batch_entries_, entries_);
  if (request_.device_memory_limit > 0)
    batch_entries_ = std::clamp<std::uint64_t>(
        request_.device_memory_limit / 8 / streams / pair_bytes, 1, batch_entries_);
  const std::uint64_t batches = (entries_ + batch_entries_ - 1) / batch_entries_;
  if (slice_end_ == left_.points)
    streams = static_cast<std::uint32_t>(std::min<std::uint64_t>(streams, batches));
  stats_.streams = streams;
  stats_.batch_pairs = batch_entries_;
  stats_.pin_ms_per_mb = model.pin_ms_per_mb;
  stats_.batch_ms = model.batch_ms;
  for (std::uint32_t i = 0; i < streams; ++i) {
    Slot& slot = slots_.emplace_back();
    slot.neighbors = DeviceBuffer<std::uint32_t>(device_budget_, batch_entries_, stream_);
    slot.queue = DeviceBuffer<unsigned>(device_budget_, 1, stream_);
    slot.host_neighbors = PinnedBlock(host_budget_, batch_entries_ * sizeof(std::uint32_t));
    if (distances) {
      slot.distances = DeviceBuffer<double>(device_budget_, batch_entries_, stream_);
      slot.host_distances = PinnedBlock(host_budget_, batch_entries_ * sizeof(double));
    }
  }
  check(cudaStreamSynchronize(stream_), "allocating batches");
}

/// Sends the slice's next batch on its way, if there is one: fill on the device, then copy.
void RangeJoin::launch(Slot& slot) {
  const std::uint64_t first = launched_ * batch_entries_;
  if (first >= entries_) return;
  ++launched_;
  const std::uint64_t end = std::min(entries_, first + batch_entries_);
  const std::uint64_t* const offsets = host_offsets_.as<std::uint64_t>();
  const std::uint64_t* const last = offsets + (slice_end_ - slice_first_);
  const std::size_t from = std::upper_bound(offsets, last, first) - offsets - 1;
  const std::size_t to = std::lower_bound(offsets, last, end) - offsets;
  const Stretch stretch{static_cast<std::uint32_t>(slice_first_ + from),
                        static_cast<std::uint32_t>(slice_first_ + to), slice_first_,
                        slot.queue.data()};
  const FillRange range{offsets_.data(), first, end, slot.neighbors.data(), slot.distances.data()};
  launch_fill(fill_kernel_, view_, stretch, range, slot.stream);
  copy_to_host(slot.host_neighbors.as<std::uint32_t>(), slot.neighbors.data(), end - first,
               slot.stream);
  if (slot.distances.size() > 0)
    copy_to_host(slot.host_distances.as<double>(), slot.distances.data(), end - first, slot.stream);
  slot.arrived.record(slot.stream);
  slot.first_place = stretch.first;
  slot.offsets.resize(to - from + 1);
  for (std::size_t i = 0; i < slot.offsets.size(); ++i)
    slot.offsets[i] = std::clamp(offsets[from + i], first, end) - first;
  slot.begins_inside = offsets[from] < first;
}

ResultBatch RangeJoin::describe(Slot& slot) {
  ResultBatch batch{};
  batch.row_count = slot.offsets.size() - 1;
  batch.rows = host_sequence_.as<std::uint32_t>() + slot.first_place;
  batch.offsets = slot.offsets.data();
  batch.neighbors = slot.host_neighbors.as<std::uint32_t>();
  batch.distances = slot.host_distances.as<double>();
  batch.mirrored =
      view_.pattern != AccessPattern::kFull && request_.pairs != PairSelection::kUnordered;
  batch.pair_count = slot.offsets.back();
  if (batch.mirrored) {
    batch.pair_count *= 2;
    // A point with itself is its first pair and has one order: rows that begin in this batch have
    // one each.
    if (request_.pairs == PairSelection::kAll)
      batch.pair_count -= batch.row_count - (slot.begins_inside ? 1 : 0);
  }
  return batch;
}

/// The result of kTotal; or the counts of the next rows, which are empty at the end.
ResultBatch RangeJoin::describe_counts() {
  ResultBatch batch{};
  if (request_.output == Output::kTotal) {
    const bool half =
        view_.pattern != AccessPattern::kFull && request_.pairs != PairSelection::kUnordered;
    const std::uint64_t with_themselves = request_.pairs == PairSelection::kAll ? left_.points : 0;
    batch.pair_count = half && entries_ > 0 ? 2 * entries_ - with_themselves : entries_;
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
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned looks = 0;; ++looks) {
    if (event.done()) return true;
    if (milliseconds_since(begin) > 5) return false;
    if (looks < 200) continue;  // a few ten microseconds: most batches come that fast
    const timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
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
      prepare_walk();
      count_slice();
      break;
    default:
      finish_slice();
  }
  return true;
}

/// Phase kStream: true when *batch is set, or when another phase has begun.
bool RangeJoin::next_slot(ResultBatch* batch) {
  if (!wants_pairs()) {
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
  if (delivered_ == launched_) {
    if (slice_end_ < left_.points)
      count_slice();
    else
      phase_ = Phase::kEnd;
    return true;
  }
  Slot& slot = slots_[delivered_ % slots_.size()];
  if (!wait(slot.arrived)) return false;
  ++delivered_;
  current_ = &slot;
  *batch = describe(slot);
  ready_ = true;
  return true;
}

Status RangeJoin::next_batch(ResultBatch* batch) {
  const auto begin = std::chrono::steady_clock::now();
  if (current_ != nullptr) launch(*std::exchange(current_, nullptr));
  ready_ = false;
  while (!ready_ && phase_ != Phase::kEnd) {
    const bool moved = phase_ == Phase::kStream ? next_slot(batch) : next_phase();
    if (!moved && request_.interrupt != nullptr && *request_.interrupt != 0)
      return {StatusCode::kInterrupted};
  }
  spent_ms_ += milliseconds_since(begin);
  if (!ready_) return {StatusCode::kEnd};
  batch->left_ids = host_left_ids_.as<std::int64_t>();
  batch->right_ids = request_.self_join ? batch->left_ids : host_right_ids_.as<std::int64_t>();
  ++stats_.batches;
  stats_.pairs += batch->pair_count;
  return {};
}

void RangeJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  stats->join_ms = std::max(0.0, spent_ms_ - stats_.index_ms);
  stats->memory_peak = host_budget_.peak();
  stats->device_memory_peak = device_budget_.peak();
}

}  // namespace gpujoin::cuda

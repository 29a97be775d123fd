#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/cosine.h"
#include "cuda/device/tuning.h"
#include "cuda/device/wait.h"
#include "cuda/grid/directions.h"
#include "cuda/grid/grid_walk.h"
#include "cuda/range_join.h"
#include "cuda/tiles/tensor_check.h"
#include "cuda/tiles/tile_walk.h"
#include "cuda/top/top_walk.h"

namespace gpujoin::cuda {
namespace {

/// Words of flags_.
enum Flag { kLeftPoints, kRightPoints, kQueue, kFaint, kFlags };

/// What is copied back between phases, in pinned memory so that copying does not block.
struct Mailbox {
  ExtentBits extents;
  unsigned flags[kFlags];
};

/// Ids in index order, on the device and on the host.
void order_ids_of(MemoryBudget& device_budget, MemoryBudget& host_budget, const Dataset& data,
                  const DeviceIndex& index, Uploader& uploader, DeviceBuffer<std::int64_t>& ids,
                  PinnedBlock& host_ids, cudaStream_t stream) {
  DeviceBuffer<std::int64_t> source;
  if (data.ids != nullptr) {
    source = DeviceBuffer<std::int64_t>(device_budget, data.rows, stream);
    uploader.copy(source.data(), data.ids, source.bytes(), stream);
  }
  ids = DeviceBuffer<std::int64_t>(device_budget, data.rows, stream);
  gather_ids(index, source.data(), ids.data(), stream);
  host_ids = PinnedBlock(host_budget, ids.bytes());
  copy_to_host(host_ids.as<std::int64_t>(), ids.data(), data.rows, stream);
}

}  // namespace

RangeJoin::RangeJoin(const JoinRequest& request, const cudaDeviceProp& device)
    : request_(request),
      host_budget_(request.memory_limit),
      device_budget_(request.device_memory_limit),
      uploader_(host_budget_, request.threads),
      multiprocessors_(device.multiProcessorCount) {
  stats_.left_rows = request.left.rows;
  stats_.right_rows = request.self_join ? request.left.rows : request.right.rows;
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "sm_%d%d", device.major,
                device.minor);
  if (request.output == Output::kTopPairs) {
    stats_.topk_method = method_of(request.knobs.topk_method);
    stats_.topk_rounds = 1;
  }
  mailbox_ = PinnedBlock(host_budget_, sizeof(Mailbox));
  if (stats_.left_rows == 0 || stats_.right_rows == 0) {
    answer_without_pairs();
    return;
  }
  threshold_ = make_threshold(request.metric, request.eps);
  // Directions only screen, and the walk of a grid has no screen.
  if (request.metric == Metric::kCosine) request_.knobs.index = IndexMethod::kTiles;
  if (request.output == Output::kTopPairs && request_.knobs.index != IndexMethod::kReferencePoints)
    request_.knobs.index = IndexMethod::kGrid;
  choose_method();
  prepare_upload();
}

/// Chooses tiles only where tensor cores are as exact as the screen assumes. Throws Unable where no
/// other method serves the metric.
void RangeJoin::choose_method() {
  strategy_ = choose_strategy(request_, kWalkCosts);
  const bool unsafe = strategy_.index == IndexMethod::kTiles && !tensor_sums_are_close(stream_);
  if (unsafe) {
    WalkCosts without_tiles = kWalkCosts;
    without_tiles.tile_pair = 0;
    strategy_ = choose_strategy(request_, without_tiles);
  }
  if (request_.metric == Metric::kCosine && strategy_.index != IndexMethod::kTiles)
    throw Unable{unsafe ? "the tensor cores of the device are less exact than cosine joins need"
                        : "the device cannot join so many rows by cosine distance"};
  stats_.strategy = strategy_;
}

/// One side is empty: every left row has 0 pairs.
void RangeJoin::answer_without_pairs() {
  phase_ = Phase::kStream;
  if (request_.output != Output::kCountPerRow || request_.left.rows == 0) return;
  const std::uint64_t rows = request_.left.rows;
  collect_counts();
  host_left_ids_ = PinnedBlock(host_budget_, rows * sizeof(std::int64_t));
  for (std::uint64_t row = 0; row < rows; ++row) {
    host_left_ids_.as<std::int64_t>()[row] =
        request_.left.ids != nullptr ? request_.left.ids[row] : static_cast<std::int64_t>(row);
  }
}

RangeJoin::~RangeJoin() {
  if (stop_) stop_->raise();
  batches_.reset();
  cudaStreamSynchronize(stream_);
}

/// Makes room for the points, so that a lack of memory shows at once.
void RangeJoin::prepare_upload() {
  stop_.emplace(device_budget_, host_budget_, stream_);
  flags_ = DeviceBuffer<unsigned>(device_budget_, kFlags, stream_);
  extents_ = DeviceBuffer<ExtentBits>(device_budget_, 1, stream_);
  check(cudaMemsetAsync(flags_.data(), 0, flags_.bytes(), stream_), "clearing flags");
  reset_extents(extents_.data(), stream_);
  references_ = place_reference_points(request_, strategy_);
  reach_ = threshold_.reach;
  if (references_.count > 0)
    reach_ = reference_reach(request_.eps, references_.dims, references_.frame,
                             request_.left.scalar == ScalarType::kFloat32);
  left_points_ = make_points(device_budget_, request_.left, stream_);
  if (!request_.self_join) {
    right_points_ = make_points(device_budget_, request_.right, stream_);
    uploads_.push_back({&request_.right, &right_points_, 0});
  }
  uploads_.push_back({&request_.left, &left_points_, 0});
}

/// Phase kUpload: copies points for some milliseconds.
void RangeJoin::upload_piece() {
  Upload& upload = uploads_.back();
  const DeviceBuffer<unsigned char>& to = upload.points->coordinates;
  const std::size_t bytes = std::min(kUploadTurnBytes, to.bytes() - upload.copied_bytes);
  uploader_.copy(to.data() + upload.copied_bytes,
                 static_cast<const unsigned char*>(upload.data->coordinates) + upload.copied_bytes,
                 bytes, stream_);
  upload.copied_bytes += bytes;
  if (upload.copied_bytes == to.bytes()) uploads_.pop_back();
  if (uploads_.empty()) measure();
}

/// Phase kExtents: finds the extents of the indexed columns.
void RangeJoin::measure() {
  measure_side(left_points_, left_originals_);
  if (!request_.self_join) measure_side(right_points_, right_originals_);
  copy_to_host(&mailbox_.as<Mailbox>()->extents, extents_.data(), 1, stream_);
  step_.record(stream_);
  phase_ = Phase::kExtents;
}

/// A join by cosine distance indexes the points' directions.
void RangeJoin::measure_side(DevicePoints& points, DevicePoints& originals) {
  if (request_.metric == Metric::kCosine) {
    originals = std::move(points);
    points = directions_of(device_budget_, originals, flags_.data() + kFaint, stream_);
  }
  add_reference_distances(device_budget_, points, references_, stream_);
  add_extents(points, strategy_, extents_.data(), stream_);
}

/// Phase kIndex: sorts the points.
void RangeJoin::build() {
  Mailbox* const mailbox = mailbox_.as<Mailbox>();
  // Tiles are cut from a curve through cells as fine as they get.
  const bool tiles = strategy_.index == IndexMethod::kTiles;
  layout_ = make_device_layout(mailbox->extents, strategy_, tiles ? 0 : reach_);
  const auto order = [&](DevicePoints& points, unsigned* finite_points) {
    DeviceIndex index = sort_points(device_budget_, points, layout_, finite_points, stream_);
    if (tiles) return index;
    order_columns(device_budget_, points, index, stream_);
    points = {};
    return index;
  };
  left_ = order(left_points_, flags_.data() + kLeftPoints);
  if (!request_.self_join) right_ = order(right_points_, flags_.data() + kRightPoints);
  order_scores(request_.left, left_, left_scores_);
  if (!request_.self_join) order_scores(request_.right, right_, right_scores_);
  copy_to_host(mailbox->flags, flags_.data(), kFlags, stream_);
  step_.record(stream_);
}

/// Uploads the scores of one side and puts them in index order.
void RangeJoin::order_scores(const Dataset& data, const DeviceIndex& index,
                             DeviceBuffer<double>& scores) {
  if (request_.output != Output::kTopPairs || data.scores == nullptr) return;
  DeviceBuffer<double> source(device_budget_, data.rows, stream_);
  uploader_.copy(source.data(), data.scores, source.bytes(), stream_);
  scores = DeviceBuffer<double>(device_budget_, data.rows, stream_);
  gather_scores(source.data(), index.order.data(), index.rows, scores.data(), stream_);
}

/// After kIndex: names the points in index order.
void RangeJoin::order_ids() {
  order_ids_of(device_budget_, host_budget_, request_.left, left_, uploader_, left_ids_,
               host_left_ids_, stream_);
  if (!request_.self_join)
    order_ids_of(device_budget_, host_budget_, request_.right, right_, uploader_, right_ids_,
                 host_right_ids_, stream_);
}

void RangeJoin::choose_source() {
  const DeviceIndex& right = request_.self_join ? left_ : right_;
  const std::int64_t* const right_ids = request_.self_join ? left_ids_.data() : right_ids_.data();
  const unsigned* const stop = stop_->get();
  if (strategy_.index == IndexMethod::kTiles) {
    const bool cosine = request_.metric == Metric::kCosine;
    const double radius = !cosine ? request_.eps
                          : mailbox_.as<Mailbox>()->flags[kFaint] != 0
                              ? kAnyDirection
                              : direction_radius(request_.eps, request_.left.dims);
    source_ = std::make_unique<TileWalk>(
        request_, strategy_, radius,
        TileWalkSide{&left_points_, cosine ? &left_originals_ : &left_points_, &left_,
                     left_ids_.data()},
        TileWalkSide{&right_points_, cosine ? &right_originals_ : &right_points_, &right_,
                     right_ids},
        device_budget_, host_budget_, multiprocessors_, stop, stream_);
  } else {
    const WalkSide left_side{&left_, left_ids_.data()}, right_side{&right, right_ids};
    const unsigned resident_blocks =
        static_cast<unsigned>(multiprocessors_) * kBlocksPerMultiprocessor;
    if (request_.output == Output::kTopPairs)
      source_ = std::make_unique<TopWalk>(
          request_, strategy_,
          make_join_view(request_, strategy_, layout_, reach_, left_side, right_side, stop),
          left_scores_.data(), request_.self_join ? left_scores_.data() : right_scores_.data(),
          device_budget_, host_budget_, resident_blocks, stream_);
    else
      source_ = std::make_unique<GridWalk>(request_, strategy_, layout_, reach_, left_side,
                                           right_side, device_budget_, host_budget_,
                                           resident_blocks, stop, flags_.data() + kQueue, stream_);
  }
  if (wants_pairs(request_.output))
    batches_.emplace(request_, device_budget_, host_budget_, *source_,
                     is_mirrored(strategy_.access_pattern, request_.pairs));
}

/// Phase kCount.
void RangeJoin::start_slice() {
  source_->start_slice();
  step_.record(stream_);
  phase_ = Phase::kCount;
}

/// After kCount: the size of the slice's result is known, exactly.
void RangeJoin::finish_slice() {
  const bool fitted = source_->finish_slice();
  if (!fitted || (!wants_pairs(request_.output) && !source_->finished())) return start_slice();
  phase_ = Phase::kStream;
  if (wants_pairs(request_.output)) batches_->start();
  if (request_.output == Output::kCountPerRow) collect_counts();
}

/// Counts of all left points, by position.
void RangeJoin::collect_counts() {
  row_counts_ = Buffer<std::uint64_t>(host_budget_, request_.left.rows);
  std::fill(row_counts_.begin(), row_counts_.end(), 0);
  if (source_) {
    const Buffer<std::uint32_t> counts = source_->counts();
    std::copy(counts.begin(), counts.end(), row_counts_.begin());
  }
  rows_ = PinnedBlock(host_budget_, row_counts_.size() * sizeof(std::uint32_t));
  std::iota(rows_.as<std::uint32_t>(), rows_.as<std::uint32_t>() + row_counts_.size(), 0u);
}

/// The result of kTotal; or the counts of the next rows, which are empty at the end.
ResultBatch RangeJoin::describe_counts() {
  ResultBatch batch{};
  if (request_.output == Output::kTotal) {
    batch.pair_count = source_ ? source_->pairs() : 0;
    return batch;
  }
  const std::uint64_t most =
      request_.knobs.batch_pairs > 0 ? request_.knobs.batch_pairs : kMostBatchPairs;
  batch.row_count = std::min(most, row_counts_.size() - delivered_);
  batch.rows = rows_.as<std::uint32_t>() + delivered_;
  batch.counts = row_counts_.data() + delivered_;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) batch.pair_count += batch.counts[i];
  delivered_ += batch.row_count;
  return batch;
}

/// Goes from one phase to the next if the device is done with it.
void RangeJoin::next_phase() {
  if (phase_ == Phase::kUpload) {
    upload_piece();
    return;
  }
  if (!wait(step_)) return;
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
      choose_source();
      start_slice();
      break;
    default:
      finish_slice();
  }
}

/// Phase kStream: sets *batch, or begins another phase; or else the device is not done yet.
void RangeJoin::next_result(ResultBatch* batch) {
  if (wants_pairs(request_.output)) return next_pairs(batch);
  const bool counted = request_.output == Output::kCountPerRow;
  if (counted && delivered_ == row_counts_.size()) {
    phase_ = Phase::kEnd;
    return;
  }
  *batch = describe_counts();
  if (!counted) phase_ = Phase::kEnd;
  ready_ = true;
}

void RangeJoin::next_pairs(ResultBatch* batch) {
  if (!batches_ || batches_->finished()) {
    if (source_ && !source_->finished())
      start_slice();
    else
      phase_ = Phase::kEnd;
    return;
  }
  if (!wait(batches_->next_arrival())) return;
  *batch = batches_->deliver();
  ready_ = true;
}

Status RangeJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  if (batches_) batches_->recycle();
  ready_ = false;
  while (!ready_ && phase_ != Phase::kEnd) {
    phase_ == Phase::kStream ? next_result(batch) : next_phase();
    if (!ready_ && interrupted(request_.interrupt)) return {StatusCode::kInterrupted};
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
  if (source_) source_->describe(stats);
  if (batches_) batches_->describe(stats);
  stats->threads = uploader_.threads();
  stats->join_ms = std::max(0.0, spent_ms_ - stats_.index_ms);
  stats->memory_peak = host_budget_.peak();
  stats->device_memory_peak = device_budget_.peak();
}

}  // namespace gpujoin::cuda

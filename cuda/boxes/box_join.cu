#include <algorithm>
#include <cstdio>
#include <numeric>

#include "cuda/boxes/box_join.h"
#include "cuda/device/tuning.h"
#include "cuda/device/wait.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

BoxJoin::BoxJoin(const JoinRequest& request, const cudaDeviceProp& device)
    : request_(request),
      host_budget_(request.memory_limit),
      device_budget_(request.device_memory_limit) {
  stats_.left_rows = request.left.rows;
  stats_.right_rows = request.self_join ? request.left.rows : request.right.rows;
  stats_.threads = 1;  // until rows are copied
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "sm_%d%d", device.major,
                device.minor);
}

BoxJoin::~BoxJoin() {
  if (stop_) stop_->raise();
  batches_.reset();
  cudaStreamSynchronize(stream_);
}

/// The ids of a side's rows.
const std::int64_t* BoxJoin::ids_of(const Dataset& data, Buffer<std::int64_t>& positions) {
  if (data.ids != nullptr) return data.ids;
  positions = Buffer<std::int64_t>(host_budget_, data.rows);
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  return positions.data();
}

void BoxJoin::begin() {
  if (stats_.left_rows == 0 || stats_.right_rows == 0) {
    phase_ = Phase::kStream;
    return;
  }
  strategy_ = choose_box_strategy(request_, kBoxCosts);
  stats_.box_method = strategy_.method;
  stats_.strategy.sort_column = kNoColumn;
  stats_.strategy.estimated_pairs = strategy_.pairs;
  std::copy_n(strategy_.reason, sizeof strategy_.reason, stats_.strategy.reason);
  stop_.emplace(device_budget_, host_budget_, stream_);
  source_.emplace(request_, strategy_, device_budget_, host_budget_, stop_->get(), stream_);
  if (wants_pairs(request_.output)) {
    left_ids_ = ids_of(request_.left, left_positions_);
    right_ids_ = request_.self_join ? left_ids_ : ids_of(request_.right, right_positions_);
    batches_.emplace(request_, device_budget_, host_budget_, *source_,
                     request_.self_join && request_.pairs != PairSelection::kUnordered);
  }
  start_slice();
}

/// Phase kCount.
void BoxJoin::start_slice() {
  source_->start_slice();
  step_.record(stream_);
  phase_ = Phase::kCount;
}

/// After kCount: the size of the slice's result is known, exactly.
void BoxJoin::finish_slice() {
  source_->finish_slice();
  if (wants_pairs(request_.output))
    batches_->start();
  else if (!source_->finished())
    return start_slice();
  phase_ = Phase::kStream;
}

/// Sets *batch, or goes from one phase to the next; or else the device is not done yet.
void BoxJoin::move_on(ResultBatch* batch) {
  if (phase_ == Phase::kBegin)
    begin();
  else if (phase_ == Phase::kStream)
    next_result(batch);
  else if (wait(step_))
    finish_slice();
}

/// Phase kStream.
void BoxJoin::next_result(ResultBatch* batch) {
  if (!wants_pairs(request_.output)) {
    *batch = {};
    batch->pair_count = source_ ? source_->pairs() : 0;
    ready_ = true;
    phase_ = Phase::kEnd;
  } else if (batches_ && !batches_->finished()) {
    if (!wait(batches_->next_arrival())) return;
    *batch = batches_->deliver();
    batch->transposed = source_->transposed();
    batch->left_ids = left_ids_;
    batch->right_ids = right_ids_;
    ready_ = true;
  } else if (source_ && !source_->finished()) {
    start_slice();
  } else {
    phase_ = Phase::kEnd;
  }
}

Status BoxJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  if (batches_) batches_->recycle();
  ready_ = false;
  while (!ready_ && phase_ != Phase::kEnd) {
    move_on(batch);
    if (!ready_ && interrupted(request_.interrupt)) return {StatusCode::kInterrupted};
  }
  spent_ms_ += watch.milliseconds();
  if (!ready_) return {StatusCode::kEnd};
  ++stats_.batches;
  stats_.pairs += batch->pair_count;
  return {};
}

void BoxJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  if (source_) source_->describe(stats);
  if (batches_) batches_->describe(stats);
  stats->join_ms = std::max(0.0, spent_ms_ - stats->index_ms);
  stats->memory_peak = host_budget_.peak();
  stats->device_memory_peak = device_budget_.peak();
}

}  // namespace gpujoin::cuda

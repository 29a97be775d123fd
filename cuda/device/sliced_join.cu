#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "cuda/device/sliced_join.h"
#include "cuda/device/wait.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

SlicedJoin::SlicedJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources)
    : request_(request), resources_(std::move(resources)), stream_(resources_->stream) {
  stats_.left_rows = request.left().rows;
  stats_.right_rows = request.right().rows;
  const cudaDeviceProp& device = resources_->context.properties();
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "sm_%d%d", device.major,
                device.minor);
}

void SlicedJoin::halt() {
  if (stop_) stop_->raise();
  batches_.reset();
  cudaStreamSynchronize(stream_);
  source_.reset();
}

const std::int64_t* SlicedJoin::ids_of_rows(const Dataset& data, Buffer<std::int64_t>& numbers) {
  if (data.ids != nullptr) return data.ids;
  numbers = Buffer<std::int64_t>(resources_->host, data.rows);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers.data();
}

void SlicedJoin::start(std::unique_ptr<SliceSource> source, bool mirrored) {
  source_ = std::move(source);
  if (wants_pairs(request_.output())) batches_.emplace(request_, *resources_, *source_, mirrored);
  start_slice();
}

/// Phase kCount.
void SlicedJoin::start_slice() {
  source_->start_slice();
  step_.record(stream_);
  phase_ = Phase::kCount;
}

/// After kCount: the size of the slice's result is known, exactly.
void SlicedJoin::finish_slice() {
  const bool fitted = source_->finish_slice();
  if (!fitted || (!wants_pairs(request_.output()) && !source_->finished())) return start_slice();
  phase_ = Phase::kStream;
  if (batches_) batches_->start();
}

/// Sets *batch and returns true; or goes from one phase to the next if the device is done with it.
bool SlicedJoin::move_on(ResultBatch* batch) {
  if (phase_ == Phase::kStream) return next_result(batch);
  if (wait(step_)) phase_ == Phase::kPrepare ? prepare() : finish_slice();
  return false;
}

/// Phase kStream: sets *batch and returns true, or begins another phase; or else the device is not
/// done yet.
bool SlicedJoin::next_result(ResultBatch* batch) {
  if (wants_pairs(request_.output())) return next_pairs(batch);
  if (wants_counts(request_.output()) && next_counts(batch)) return true;
  phase_ = Phase::kEnd;
  if (request_.output() != Output::kTotal) return false;
  *batch = {};
  batch->pair_count = source_ ? source_->pairs() : 0;
  return true;
}

bool SlicedJoin::next_pairs(ResultBatch* batch) {
  if (!batches_ || batches_->finished()) {
    if (source_ && !source_->finished())
      start_slice();
    else
      phase_ = Phase::kEnd;
    return false;
  }
  if (!wait(batches_->next_arrival())) return false;
  *batch = batches_->deliver();
  return true;
}

Status SlicedJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  if (batches_) batches_->recycle();
  bool ready = false;
  while (!ready && phase_ != Phase::kEnd) {
    ready = move_on(batch);
    if (!ready && interrupted(request_.resources.interrupt)) return {StatusCode::kInterrupted};
  }
  spent_ms_ += watch.milliseconds();
  if (!ready) return {StatusCode::kEnd};
  if (request_.output() != Output::kTotal)
    batch->set_ids(left_ids_, request_.left().rows, right_ids_, request_.right().rows);
  ++stats_.batches;
  stats_.pairs += batch->pair_count;
  return {};
}

void SlicedJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  if (source_) source_->describe(stats);
  if (batches_) batches_->describe(stats);
  stats->join_ms = std::max(0.0, spent_ms_ - stats->index_ms);
  stats->memory_peak = resources_->host.peak();
  stats->device_memory_peak = resources_->device.peak();
}

}  // namespace gpujoin::cuda

#include "cuda/device/sliced_join.h"

#include <algorithm>
#include <utility>

#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

void SlicedJoin::halt() {
  if (stop_) stop_->raise();
  batches_.reset();
  cudaStreamSynchronize(stream_);
  source_.reset();
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

/// Sets *batch; or goes from one phase to the next if the device is done with it.
Progress SlicedJoin::move_on(ResultBatch* batch) {
  if (batches_) batches_->recycle();
  if (phase_ == Phase::kEnd) return Progress::kEnd;
  if (phase_ == Phase::kStream) return next_result(batch);
  if (!step_.done()) return Progress::kNone;
  phase_ == Phase::kPrepare ? prepare() : finish_slice();
  return Progress::kSome;
}

/// Phase kStream: sets *batch, or begins another phase; or else the device is not done yet.
Progress SlicedJoin::next_result(ResultBatch* batch) {
  if (wants_pairs(request_.output())) return next_pairs(batch);
  if (wants_counts(request_.output())) {
    if (!rows_) rows_.emplace(collect_rows());
    if (rows_->next(batch)) return Progress::kBatch;
  }
  phase_ = Phase::kEnd;
  if (request_.output() != Output::kTotal) return Progress::kSome;
  *batch = {};
  batch->pair_count = source_ ? source_->pairs() : 0;
  return Progress::kBatch;
}

/// What comes for each left row, by position; 0 pairs each where one side is empty.
RowBatches SlicedJoin::collect_rows() {
  HostBudget& host = resources_->host;
  Buffer<std::uint64_t> counts;
  if (request_.output() == Output::kClusters) {
    if (source_) counts = source_->clusters();
  } else {
    counts = Buffer<std::uint64_t>(host, request_.left().rows);
    Buffer<std::uint32_t> found;
    if (source_) found = source_->counts();
    std::fill(std::copy(found.begin(), found.end(), counts.begin()), counts.end(), 0);
  }
  if (request_.output() != Output::kSums)
    return {host, request_, kMostBatchPairs, std::move(counts), nullptr};
  if (!source_) {
    const std::uint32_t width = row_words(*request_.sums());
    nothing_ = Buffer<FoldWord>(host, kSummedBatchRows * width);
    for (FoldWord* row = nothing_.begin(); row < nothing_.end(); row += width)
      clear_row(*request_.sums(), row);
  }
  return {host, request_, kSummedBatchRows, std::move(counts),
          [this](std::uint64_t first, std::uint64_t rows) {
            return source_ ? source_->sums(first, rows) : nothing_.data();
          }};
}

Progress SlicedJoin::next_pairs(ResultBatch* batch) {
  if (!batches_ || batches_->finished()) {
    if (source_ && !source_->finished())
      start_slice();
    else
      phase_ = Phase::kEnd;
    return Progress::kSome;
  }
  if (!batches_->next_arrival().done()) return Progress::kNone;
  *batch = batches_->deliver();
  return Progress::kBatch;
}

void SlicedJoin::stats(JoinStats* stats) const {
  *stats = stats_;
  if (source_) source_->describe(stats);
  if (batches_) batches_->describe(stats);
  DeviceJoin::stats(stats);
}

}  // namespace gpujoin::cuda

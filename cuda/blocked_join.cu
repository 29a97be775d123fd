#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cuda/blocked_join.h"
#include "cuda/device/tuning.h"
#include "cuda/device/wait.h"

namespace gpujoin::cuda {
namespace {

/// The most that a join of `rows` points in all holds on the device besides its batches: the points
/// as they came and in order, both with their distances to reference points, codes and order three
/// times while sorting, ids twice, scores twice, counts and offsets; and the reference points
/// themselves.
std::uint64_t device_bytes(const JoinRequest& request, std::uint64_t rows) {
  const std::uint64_t references = most_reference_points(request);
  const std::uint64_t columns = request.left.dims + references;
  const std::uint64_t directions =
      request.metric == Metric::kCosine ? request.left.dims * sizeof(float) : 0;
  const std::uint64_t scores = request.output == Output::kTopPairs ? 2 * sizeof(double) : 0;
  return rows * (2 * columns * scalar_bytes(request.left.scalar) + directions + scores +
                 3 * (8 + 4) + 2 * 8 + 4 + 8) +
         references * request.left.dims * sizeof(double) + (std::uint64_t{1} << 20);
}

/// The column of the data that separates points best. A strategy by reference points chooses none.
std::uint32_t cut_column(JoinRequest request, Strategy strategy) {
  if (strategy.reference_points > 0) {
    request.knobs.index = IndexMethod::kGrid;
    strategy = choose_strategy(request, kWalkCosts);
  }
  return strategy.sort_column != kNoColumn ? static_cast<std::uint32_t>(strategy.sort_column)
                                           : strategy.grid_columns[0];
}

double cut_value(const Dataset& data, std::uint64_t row, std::uint32_t column) {
  const double x = coordinate(data, row, column);
  return std::isfinite(x) ? x : INFINITY;
}

void check_interrupt(const volatile int* interrupt) {
  if (interrupted(interrupt)) throw Interrupted{};
}

}  // namespace

BlockedSide::BlockedSide(MemoryBudget& budget, const Dataset& data, std::uint32_t column,
                         std::uint64_t block_rows, const volatile int* interrupt)
    : budget_(budget), data_(data), interrupt_(interrupt), rows_(budget, data.rows) {
  std::iota(rows_.begin(), rows_.end(), 0u);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return cut_value(data, a, column) < cut_value(data, b, column);
  };
  const std::uint64_t blocks = (data.rows + block_rows - 1) / block_rows;
  std::uint64_t begin = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    check_interrupt(interrupt);
    const std::uint64_t end = data.rows * (block + 1) / blocks;
    if (end < data.rows)
      std::nth_element(rows_.begin() + begin, rows_.begin() + end, rows_.end(), before);
    double low = INFINITY, high = -INFINITY;
    for (std::uint64_t i = begin; i < end; ++i) {
      low = std::min(low, cut_value(data, rows_[i], column));
      high = std::max(high, cut_value(data, rows_[i], column));
    }
    low_.push_back(low);
    high_.push_back(high);
    ends_.push_back(end);
    begin = end;
  }
}

RowCopy BlockedSide::load(std::size_t block, bool by_row) const {
  const std::uint64_t begin = block == 0 ? 0 : ends_[block - 1];
  Dataset named = data_;
  if (by_row) named.ids = nullptr;
  return copy_rows(budget_, named, rows_.data() + begin, ends_[block] - begin,
                   [&] { check_interrupt(interrupt_); });
}

BlockedJoin::BlockedJoin(const JoinRequest& request, DeviceContext& context)
    : request_(request), resources_(context, request) {
  const std::uint64_t rows = request.left.rows + (request.self_join ? 0 : request.right.rows);
  const std::uint64_t available = context.available_bytes(request.device_memory_limit);
  const bool empty = request.left.rows == 0 || (!request.self_join && request.right.rows == 0);
  block_bytes_ = available / 2;
  in_blocks_ = !empty && device_bytes(request, rows) > block_bytes_;
  if (!in_blocks_) join_ = std::make_unique<RangeJoin>(request, resources_);
}

/// Cuts along the column that separates points best, so that a block is joined with few others.
void BlockedJoin::cut() {
  if (request_.output == Output::kTopPairs)
    top_.emplace(resources_.host, request_, TopkMethod::kThreshold);
  const Strategy strategy = choose_strategy(request_, kWalkCosts);
  const std::uint32_t column = cut_column(request_, strategy);
  const std::uint64_t one_row = device_bytes(request_, 1) - device_bytes(request_, 0);
  const std::uint64_t fixed = device_bytes(request_, 0);
  if (block_bytes_ < fixed + 64 * one_row)
    throw MemoryLimitExceeded{2 * (fixed + 64 * one_row), 2 * block_bytes_};
  const std::uint64_t block_rows = (block_bytes_ - fixed) / one_row / 2;  // two blocks meet
  left_side_ = std::make_unique<BlockedSide>(resources_.host, request_.left, column, block_rows,
                                             request_.interrupt);
  if (!request_.self_join)
    right_side_ = std::make_unique<BlockedSide>(resources_.host, request_.right, column, block_rows,
                                                request_.interrupt);
  list_steps(make_threshold(request_.metric, request_.eps).reach);
  done_.strategy = strategy;
  done_.left_rows = request_.left.rows;
  done_.right_rows = request_.self_join ? request_.left.rows : request_.right.rows;
  if (request_.output == Output::kCountPerRow) {
    counts_ = Buffer<std::uint64_t>(resources_.host, request_.left.rows);
    std::fill(counts_.begin(), counts_.end(), 0);
  }
  cut_ = true;
}

/// The pairs of blocks that may hold pairs of points: the cut values of two points within eps
/// differ by at most `reach`, and so do some values of their blocks. Every pair of points lies in
/// just one pair of blocks. A self-join from which both orders are wanted pair by pair joins two
/// different blocks twice, each once as the left one.
void BlockedJoin::list_steps(double reach) {
  const BlockedSide& left = *left_side_;
  const BlockedSide& right = request_.self_join ? left : *right_side_;
  const bool both_orders =
      request_.output != Output::kTotal && request_.pairs != PairSelection::kUnordered;
  for (std::size_t i = 0; i < left.blocks(); ++i) {
    if (request_.self_join) steps_.push_back({i, i, true});
    for (std::size_t j = request_.self_join && !both_orders ? i + 1 : 0; j < right.blocks(); ++j) {
      if (request_.self_join && i == j) continue;
      if (left.low(i) - right.high(j) > reach || right.low(j) - left.high(i) > reach) continue;
      steps_.push_back({i, j, false});
    }
  }
}

/// Whether the steps' answers are added up and delivered as one, at the end.
bool BlockedJoin::gathers() const {
  return request_.output != Output::kPairs && request_.output != Output::kPairsWithDistances;
}

void BlockedJoin::start_step() {
  const Step& step = steps_[step_];
  const bool by_row = request_.output == Output::kCountPerRow;
  left_ = {};
  right_ = {};
  left_ = left_side_->load(step.left, by_row);
  right_ =
      step.self ? RowCopy{} : (right_side_ ? right_side_ : left_side_)->load(step.right, by_row);
  step_request_ = request_;
  step_request_.left = left_.view;
  step_request_.right = right_.view;
  step_request_.self_join = step.self;
  if (top_) step_request_.top.least_key = top_->least_key();
  if (!step.self && !top_) step_request_.pairs = PairSelection::kAll;
  // Counts of unordered pairs depend on ids, which a step that names points by row does not know.
  if (by_row && request_.pairs == PairSelection::kUnordered) step_request_.output = Output::kPairs;
  join_ = std::make_unique<RangeJoin>(step_request_, resources_);
}

void BlockedJoin::end_step() {
  done_ = stats_with_step();
  join_.reset();
  ++step_;
}

/// Adds a step's counts to the counts of the whole; ids are rows here.
void BlockedJoin::add_counts(const ResultBatch& batch) {
  const Step& step = steps_[step_];
  if (request_.output == Output::kTotal) {
    const bool twice =
        request_.self_join && !step.self && request_.pairs != PairSelection::kUnordered;
    total_ += twice ? 2 * batch.pair_count : batch.pair_count;
    return;
  }
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const std::int64_t a = batch.left_ids[batch.rows[i]];
    if (batch.counts != nullptr) {
      counts_[a] += batch.counts[i];
      total_ += batch.counts[i];
      continue;
    }
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      const std::int64_t b = batch.right_ids[batch.neighbors[at]];
      const std::int64_t* const ids = request_.left.ids;
      const std::int64_t id_a = ids != nullptr ? ids[a] : a, id_b = ids != nullptr ? ids[b] : b;
      const bool a_first = id_a != id_b ? id_a < id_b : a < b;
      ++counts_[a_first ? a : b];
      ++total_;
    }
  }
}

ResultBatch BlockedJoin::gathered() const {
  ResultBatch batch{};
  batch.pair_count = total_;
  if (request_.output == Output::kTotal) return batch;
  batch.row_count = counts_.size();
  batch.rows = rows_.data();
  batch.counts = counts_.data();
  batch.left_ids = batch.right_ids = ids_.data();
  return batch;
}

Status BlockedJoin::next_top_pairs(ResultBatch* batch) {
  if (!top_batches_) {
    top_->finish();
    top_batches_.emplace(resources_.host, request_, *top_);
  }
  return {top_batches_->next(batch) ? StatusCode::kOk : StatusCode::kEnd};
}

Status BlockedJoin::next_of_steps(ResultBatch* batch) {
  if (!cut_) cut();
  while (step_ < steps_.size()) {
    if (!join_) start_step();
    const Status status = join_->next_batch(batch);
    if (status.code == StatusCode::kEnd) {
      end_step();
      continue;
    }
    if (!status.ok() || !gathers()) return status;
    top_ ? top_->add(request_, *batch) : add_counts(*batch);
    if (interrupted(request_.interrupt)) return {StatusCode::kInterrupted};
  }
  if (top_) return next_top_pairs(batch);
  if (!gathers() || delivered_) return {StatusCode::kEnd};
  delivered_ = true;
  rows_ = Buffer<std::uint32_t>(resources_.host, counts_.size());
  std::iota(rows_.begin(), rows_.end(), 0u);
  ids_ = Buffer<std::int64_t>(resources_.host, counts_.size());
  for (std::size_t row = 0; row < ids_.size(); ++row)
    ids_[row] =
        request_.left.ids != nullptr ? request_.left.ids[row] : static_cast<std::int64_t>(row);
  *batch = gathered();
  return {};
}

Status BlockedJoin::next_batch(ResultBatch* batch) {
  if (!in_blocks_) return join_->next_batch(batch);
  const Status status = next_of_steps(batch);
  if (status.ok()) {
    ++done_.batches;
    done_.pairs += batch->pair_count;
  }
  return status;
}

/// The figures of the finished steps and of the current one.
JoinStats BlockedJoin::stats_with_step() const {
  JoinStats sum = done_, step;
  join_->stats(&step);
  add_stats(sum, step);
  return sum;
}

void BlockedJoin::stats(JoinStats* stats) const {
  if (in_blocks_)
    *stats = join_ ? stats_with_step() : done_;
  else
    join_->stats(stats);
}

}  // namespace gpujoin::cuda

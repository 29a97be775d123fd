#include "engine/joins/partitioned_nearest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/joins/distance_to_itself.h"

namespace gpujoin {
namespace {

/// Below so many rows a piece is not halved again.
constexpr std::uint64_t kFewestRows = 64;

/// Neighbours that a batch has, if more than one row has them.
constexpr std::uint64_t kBatchEntries = std::uint64_t{1} << 18;

/// What the lists of left rows, and dividing, may take of the memory.
constexpr double kListShare = 0.25, kDividingShare = 0.5;
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 30;

std::uint64_t list_bytes(std::uint64_t k) {
  return k * (sizeof(double) + sizeof(std::int64_t)) + sizeof(std::uint64_t) +
         sizeof(std::uint8_t) + 2 * sizeof(std::uint32_t);
}

}  // namespace

Cut choose_nearest_cut(const JoinRequest& request) {
  constexpr std::uint64_t kSampled = 1024;
  const Dataset& data = in_memory(request.right());
  const std::uint64_t count = std::min(data.rows, kSampled);
  std::uint32_t best = 0;
  double widest = -1;
  std::vector<double> values;
  for (std::uint32_t column = 0; column < data.dims; ++column) {
    values.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      const double x = coordinate(data, data.rows * i / count, column);
      if (std::isfinite(x)) values.push_back(x);
    }
    if (values.size() < 2) continue;
    // The inner three quarters: single rows far away separate nothing.
    const auto eighth = static_cast<std::ptrdiff_t>(values.size() / 8);
    std::sort(values.begin(), values.end());
    const double width = *(values.end() - 1 - eighth) - *(values.begin() + eighth);
    if (width > widest) {
      widest = width;
      best = column;
    }
  }
  return {{best, best}, HUGE_VAL};
}

PartitionedNearest::PartitionedNearest(const JoinRequest& request,
                                       std::shared_ptr<MemoryBudget> budget,
                                       std::unique_ptr<PartJoins> parts)
    : request_(request),
      k_(request.neighbors()),
      without_itself_(request.self_join() && request.pairs() == PairSelection::kDistinct),
      budget_(std::move(budget)),
      parts_(std::move(parts)) {
  done_.left_rows = request.left().rows;
  done_.right_rows = request.right().rows;
}

void PartitionedNearest::begin() {
  const std::uint64_t limit =
      request_.resources.memory_limit == 0 ? kUnlimited : request_.resources.memory_limit;
  const auto lists = static_cast<std::uint64_t>(kListShare * static_cast<double>(limit));
  std::uint64_t rows = kMaxRows;
  if (request_.sides.has_pairs()) {
    cut_ = parts_->cut();
    rows = parts_->part_rows();
  }
  const std::uint64_t left_rows =
      std::min(rows, std::max<std::uint64_t>(1, lists / list_bytes(k_)));
  const auto memory = static_cast<std::uint64_t>(kDividingShare * static_cast<double>(limit)) / 2;
  dividers_.emplace(dividing_threads(request_));
  left_side_.emplace(*budget_, request_.left(), cut_.column, left_rows, memory,
                     request_.resources.scratch, *dividers_);
  right_side_.emplace(*budget_, request_.right(), cut_.column, rows, memory,
                      request_.resources.scratch, *dividers_);
  merged_distances_.reserve(k_);
  merged_ids_.reserve(k_);
}

/// Divides some more rows; true when all are divided.
bool PartitionedNearest::divide() {
  if (divided_) return true;
  if (!left_side_) begin();
  if (left_side_->divide() || right_side_->divide()) return false;
  return divided_ = true;
}

// ---- A left part

void PartitionedNearest::begin_left() {
  left_ = left_side_->load(left_number_);
  const std::uint64_t rows = left_.view.rows;
  lists_ = {};
  lists_.distances = Buffer<double>(*budget_, rows * k_);
  lists_.ids = Buffer<std::int64_t>(*budget_, rows * k_);
  lists_.counts = Buffer<std::uint64_t>(*budget_, rows + 1);
  lists_.states = Buffer<std::uint8_t>(*budget_, rows);
  lists_.listed = Buffer<std::uint32_t>(*budget_, rows);
  lists_.positions =
      Buffer<std::uint32_t>(*budget_, std::min(rows * k_, std::max(k_, kBatchEntries)));
  std::iota(lists_.positions.begin(), lists_.positions.end(), 0u);
  std::fill(lists_.counts.begin(), lists_.counts.end(), 0);
  for (std::uint64_t row = 0; row < rows; ++row)
    lists_.states[row] = is_finite_row(left_.view, row) ? kSearches : kMatchesNothing;
  pieces_.clear();
  for (std::size_t part = 0; part < right_side_->parts(); ++part)
    pieces_.push_back({part,
                       {0, rows},
                       {0, right_side_->rows(part)},
                       least_distance(request_.metric(), left_side_->extent(left_number_),
                                      right_side_->extent(part))});
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.least > b.least; });
  searching_ = true;
}

/// The distance beyond which nothing is a neighbour of any of these left rows any more.
double PartitionedNearest::farthest(const Range& rows) const {
  double farthest = 0;
  for (std::uint64_t row = rows.first; row < rows.first + rows.rows; ++row) {
    if (lists_.states[row] == kMatchesNothing) continue;
    if (lists_.counts[row] < k_) return request_.eps();
    farthest = std::max(farthest, lists_.distances[row * k_ + k_ - 1]);
  }
  return std::min(farthest, request_.eps());
}

// ---- Pieces

void PartitionedNearest::open_piece() {
  const Piece& piece = pieces_.back();
  piece_delivered_ = false;
  if (right_number_ != piece.part) {
    right_ = {};
    right_number_ = ~std::size_t{0};
    right_ = right_side_->load(piece.part);
    right_number_ = piece.part;
  }
  const std::uint64_t most = k_ + (without_itself_ ? 1 : 0);
  JoinRequest part = request_.asking({request_.metric(), farthest(piece.left)},
                                     Output::nearest(std::min(most, piece.right.rows)));
  part.sides = Sides::two(unnamed(piece_of(left_.view, piece.left.first, piece.left.rows)),
                          piece_of(right_.view, piece.right.first, piece.right.rows));
  part.resources.scratch = nullptr;
  join_ = parts_->open(part, nullptr, nullptr);
}

void PartitionedNearest::close_piece() {
  done_ = stats_with(done_, join_.get());
  ++done_.parts;
  join_.reset();
  pieces_.pop_back();
  parts_->enforce_limits(true);
}

/// Puts two pieces in the place of the next one: halves of the side that has more rows.
void PartitionedNearest::split_piece() {
  Piece first = pieces_.back(), second = first;
  pieces_.pop_back();
  const bool halves_left = first.left.rows > first.right.rows;
  Range &lower = halves_left ? first.left : first.right,
        &upper = halves_left ? second.left : second.right;
  lower.rows /= 2;
  upper = {upper.first + lower.rows, upper.rows - lower.rows};
  pieces_.push_back(second);
  pieces_.push_back(first);
}

bool PartitionedNearest::is_itself(std::uint64_t row, std::int64_t id, double distance) const {
  if (!without_itself_ || lists_.states[row] == kMetItself || left_.ids[row] != id) return false;
  return distance == distance_to_itself(request_.metric(), left_.view, row);
}

/// Puts the neighbours of a batch's row among those that the left row has.
void PartitionedNearest::merge(std::uint64_t row, const ResultBatch& batch, std::uint64_t begin,
                               std::uint64_t end) {
  double* const distances = lists_.distances.data() + row * k_;
  std::int64_t* const ids = lists_.ids.data() + row * k_;
  std::uint64_t& count = lists_.counts[row];
  merged_distances_.clear();
  merged_ids_.clear();
  std::uint64_t kept = 0;
  while (merged_ids_.size() < k_ && (kept < count || begin < end)) {
    const double distance = begin < end ? batch.distances[begin] : 0;
    const std::int64_t id = begin < end ? batch.right_ids[batch.neighbors[begin]] : 0;
    if (begin < end && is_itself(row, id, distance)) {
      lists_.states[row] = kMetItself;
      ++begin;
      continue;
    }
    const bool takes_kept = kept < count && (begin == end || distances[kept] < distance ||
                                             (distances[kept] == distance && ids[kept] <= id));
    merged_distances_.push_back(takes_kept ? distances[kept] : distance);
    merged_ids_.push_back(takes_kept ? ids[kept] : id);
    ++(takes_kept ? kept : begin);
  }
  count = merged_ids_.size();
  std::copy(merged_distances_.begin(), merged_distances_.end(), distances);
  std::copy(merged_ids_.begin(), merged_ids_.end(), ids);
}

void PartitionedNearest::take(const ResultBatch& batch) {
  const std::uint64_t first = pieces_.back().left.first;
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    merge(first + static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]), batch, batch.entry(i),
          batch.entry(i + 1));
}

/// Lets the left part meet the next piece; kEnd when it has met all that may matter.
Status PartitionedNearest::search() {
  if (!join_) {
    if (!pieces_.empty() && pieces_.back().least > farthest({0, left_.view.rows})) pieces_.clear();
    if (pieces_.empty()) return {StatusCode::kEnd};
  }
  try {
    if (!join_) open_piece();
    ResultBatch batch{};
    const Status status = join_->next_batch(&batch);
    piece_delivered_ = piece_delivered_ || status.ok();
    if (status.ok()) take(batch);
    if (status.code == StatusCode::kEnd) close_piece();
    if (status.code == StatusCode::kEnd) return {};
    return status;
  } catch (const MemoryLimitExceeded&) {
    const Piece& piece = pieces_.back();
    const bool few = std::max(piece.left.rows, piece.right.rows) < kFewestRows;
    if (piece_delivered_ || (few && !(delivered_ && request_.resources.soft_limits))) throw;
    join_.reset();
    if (few)
      parts_->enforce_limits(false);
    else
      split_piece();
  }
  return {};
}

// ---- Results

/// Moves the lists together, of rows that have neighbours; counts become where they begin.
void PartitionedNearest::end_left() {
  std::uint64_t place = 0;
  listed_rows_ = 0;
  for (std::uint64_t row = 0; row < left_.view.rows; ++row) {
    const std::uint64_t count = lists_.counts[row], from = row * k_;
    std::copy_n(lists_.distances.data() + from, count, lists_.distances.data() + place);
    std::copy_n(lists_.ids.data() + from, count, lists_.ids.data() + place);
    if (count == 0) continue;
    lists_.listed[listed_rows_] = static_cast<std::uint32_t>(row);
    lists_.counts[listed_rows_++] = place;
    place += count;
  }
  lists_.counts[listed_rows_] = place;
  done_rows_ = 0;
  searching_ = false;
  delivering_ = true;
}

/// The next rows of the left part that is done; false when there are no more.
bool PartitionedNearest::deliver(ResultBatch* batch) {
  const std::uint64_t rows = listed_rows_, first = done_rows_;
  if (first == rows) {
    delivering_ = false;
    ++left_number_;
    return false;
  }
  const std::uint64_t* const places = lists_.counts.data();
  std::uint64_t end = first + 1;
  while (end < rows && places[end + 1] - places[first] <= kBatchEntries) ++end;
  done_rows_ = end;
  const std::uint64_t entries = places[end] - places[first];
  *batch = {};
  batch->row_count = end - first;
  batch->pair_count = entries;
  batch->rows = lists_.listed.data() + first;
  batch->offsets = places + first;
  batch->neighbors = lists_.positions.data();
  batch->distances = lists_.distances.data() + places[first];
  batch->set_ids(left_.ids.data(), left_.view.rows, lists_.ids.data() + places[first], entries);
  batch->ids_generation = ++ids_generation_;
  return true;
}

Status PartitionedNearest::next_of_parts(ResultBatch* batch) {
  while (!divide())
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  while (delivering_ || left_number_ < left_side_->parts()) {
    if (delivering_) {
      if (deliver(batch)) return {};
      continue;
    }
    if (!searching_) begin_left();
    const Status status = search();
    if (status.code == StatusCode::kEnd)
      end_left();
    else if (!status.ok())
      return status;
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  }
  return {StatusCode::kEnd};
}

Status PartitionedNearest::next_batch(ResultBatch* batch) {
  try {
    const Status status = next_of_parts(batch);
    if (status.ok()) {
      delivered_ = true;
      ++done_.batches;
      done_.pairs += batch->pair_count;
    }
    return status;
  } catch (const RowFileFailed& failed) {
    return failed.status;
  }
}

void PartitionedNearest::stats(JoinStats* stats) const { *stats = stats_with(done_, join_.get()); }

}  // namespace gpujoin

#include "engine/joins/duplicates_join.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gpujoin {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::uint32_t kGone = kNone - 1;  // a row that stays is near, which one is not known yet
constexpr std::uint32_t kChunkBits = 16;    // of edges
constexpr std::uint64_t kEdgesOfRow = 8;    // that a block may have on average, and
constexpr std::uint64_t kFewEdges = 1 << 22;  // so many in any case
constexpr std::uint64_t kMostEdges = std::uint64_t{1} << 28;
constexpr std::uint64_t kShrink = 8, kGrow = 4;
constexpr std::uint64_t kBatchRows = 1 << 16;

}  // namespace

/// The first block, which is all rows, is opened before their ranks are known: an engine that
/// cannot serve the request says so here.
DuplicatesJoin::DuplicatesJoin(const JoinRequest& request, OpenJoin plain_join)
    : request_(request),
      plain_join_(std::move(plain_join)),
      budget_(request.resources.memory_limit),
      ranks_(std::in_place, budget_, request.left(), request.lowest_first()),
      order_(budget_, request.left().rows),
      end_(request.left().rows),
      block_(end_),
      rank_(budget_, end_),
      stays_(budget_, end_),
      distance_(budget_, end_),
      edge_of_row_(budget_, end_) {
  done_.left_rows = done_.right_rows = end_;
  std::fill(stays_.begin(), stays_.end(), kNone);
  std::fill(edge_of_row_.begin(), edge_of_row_.end(), kNone);
  open_block();
}

Status DuplicatesJoin::next_batch(ResultBatch* batch) {
  while (stage_ != Stage::kResult) {
    if (ranks_) {
      if (!ranks_->step()) finish_order();
    } else if (Status status = collect_part(); !status.ok()) {
      return status;
    }
    if (is_raised(request_.resources.interrupt)) return {StatusCode::kInterrupted};
  }
  return next_result(batch) ? Status{} : Status{StatusCode::kEnd};
}

void DuplicatesJoin::finish_order() {
  for (std::uint64_t rank = 0; rank < rank_.size(); ++rank) {
    order_[rank] = ranks_->row_at(rank);
    rank_[order_[rank]] = static_cast<std::uint32_t>(rank);
  }
  ranks_.reset();
}

/// A quarter of the memory, and at least the pairs of a few rows.
std::uint64_t DuplicatesJoin::most_edges() const {
  const std::uint64_t wanted =
      std::min(kMostEdges, std::max(kFewEdges, kEdgesOfRow * request_.left().rows));
  const std::uint64_t limit = request_.resources.memory_limit;
  if (limit == 0) return wanted;
  const std::uint64_t left = limit > budget_.used() ? limit - budget_.used() : 0;
  const std::uint64_t chunks = std::max<std::uint64_t>(1, left / 4 / sizeof(Edge) >> kChunkBits);
  return std::min(wanted, chunks << kChunkBits);
}

DuplicatesJoin::Edge& DuplicatesJoin::edge(std::uint32_t number) {
  return edges_[number >> kChunkBits][number & ((1u << kChunkBits) - 1)];
}

void DuplicatesJoin::open_part(const Sides& sides, const Output& output, std::uint64_t held_back) {
  JoinRequest part = request_.asking(output);
  part.sides = sides;
  part.knobs.batch_pairs = 0;
  held_ = budget_.used();
  std::uint64_t& limit = part.resources.memory_limit;
  if (limit > 0) limit = limit > held_ + held_back ? limit - held_ - held_back : 1;
  part_ = plain_join_(part);
}

/// Rows as a dataset, named by their places in the whole one.
Dataset DuplicatesJoin::copy(const std::uint32_t* rows, std::uint64_t count, RowCopy* room) {
  Dataset data = unnamed(request_.left());
  data.scores = nullptr;
  *room = copy_rows(budget_, data, rows, count, [] {});
  return room->view;
}

void DuplicatesJoin::open_block() {
  if (first_ == end_) return open_nearest();
  block_ = std::min(block_, end_ - first_);
  Dataset data = unnamed(request_.left());
  data.scores = nullptr;
  if (block_ < data.rows) data = copy(order_.data() + first_, block_, &left_);
  edge_count_ = 0;
  edge_limit_ = most_edges();
  stage_ = Stage::kBlock;
  open_part(Sides::one(data, PairSelection::kUnordered), Output::pairs_with_distances(),
            edge_limit_ * sizeof(Edge));
}

/// Joins the rows after the block with those of the block that stay.
void DuplicatesJoin::open_rest() {
  const std::uint64_t end = first_ + block_;
  if (end == end_) {
    first_ = end;
    return open_nearest();
  }
  Buffer<std::uint32_t> staying(budget_, block_);
  const auto last = std::copy_if(order_.begin() + first_, order_.begin() + end, staying.begin(),
                                 [this](std::uint32_t row) { return stays_[row] == row; });
  const Dataset right =
      copy(staying.data(), static_cast<std::uint64_t>(last - staying.begin()), &right_);
  const Dataset left = copy(order_.data() + end, end_ - end, &left_);
  stage_ = Stage::kRest;
  open_part(Sides::two(left, right), Output::matched_rows(), 0);
}

/// Joins the rows that have gone with those that stay.
void DuplicatesJoin::open_nearest() {
  edges_.clear();
  if (!has_gone_) {
    stage_ = Stage::kResult;
    return;
  }
  const std::uint64_t rows = stays_.size();
  Buffer<std::uint32_t> chosen(budget_, rows);
  const auto choose = [&](const auto& wanted, RowCopy* room) {
    std::uint64_t count = 0;
    for (std::uint64_t row = 0; row < rows; ++row)
      if (wanted(row)) chosen[count++] = static_cast<std::uint32_t>(row);
    return copy(chosen.data(), count, room);
  };
  const Dataset left = choose([&](std::uint64_t row) { return stays_[row] == kGone; }, &left_);
  const Dataset right = choose([&](std::uint64_t row) { return stays_[row] == row; }, &right_);
  stage_ = Stage::kNearest;
  open_part(Sides::two(left, right), Output::pairs_with_distances(), 0);
}

/// Takes the part's next batch, and ends it after the last one.
Status DuplicatesJoin::collect_part() {
  ResultBatch batch{};
  Status status = part_->next_batch(&batch);
  if (status.ok() && stage_ == Stage::kRest)
    collect_counts(batch);
  else if (status.ok() && !collect(batch))
    shrink_block();
  if (status.code != StatusCode::kEnd) return status;
  end_part();
  if (stage_ == Stage::kBlock)
    decide_block();
  else if (stage_ == Stage::kRest)
    end_rest();
  else
    stage_ = Stage::kResult;
  return {};
}

/// Half a walk lists a pair once, which stands for both orders, of which one is wanted. False:
/// there is no room for more pairs.
bool DuplicatesJoin::collect(const ResultBatch& batch) {
  const bool block = stage_ == Stage::kBlock;
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      std::uint32_t left = batch.rows[i], right = batch.neighbors[at];
      if (batch.transposed) std::swap(left, right);
      const auto row = static_cast<std::uint32_t>(batch.left_ids[left]);
      const auto other = static_cast<std::uint32_t>(batch.right_ids[right]);
      const double distance = batch.distances[at];
      if (!block) {
        if (rank_[other] < rank_[row]) offer(row, other, distance);
      } else if (!(rank_[row] < rank_[other] ? keep_edge(row, other, distance)
                                             : keep_edge(other, row, distance))) {
        return false;
      }
    }
  return true;
}

bool DuplicatesJoin::keep_edge(std::uint32_t better, std::uint32_t worse, double distance) {
  if (edge_count_ == edge_limit_) return false;
  if (edge_count_ >> kChunkBits == edges_.size())
    edges_.emplace_back(budget_, std::size_t{1} << kChunkBits);
  const auto number = static_cast<std::uint32_t>(edge_count_++);
  edge(number) = {distance, better, edge_of_row_[worse]};
  edge_of_row_[worse] = number;
  return true;
}

void DuplicatesJoin::collect_counts(const ResultBatch& batch) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    if (batch.counts[i] == 0) continue;
    stays_[static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]])] = kGone;
    has_gone_ = true;
  }
}

/// Makes `better`, which stays, the one that stays for a row, if it is the nearest so far.
void DuplicatesJoin::offer(std::uint32_t row, std::uint32_t better, double distance) {
  const std::uint32_t known = stays_[row];
  if (known < kGone) {
    if (distance > distance_[row]) return;
    const std::int64_t id = id_of(request_.left(), better), other = id_of(request_.left(), known);
    const bool first = id != other ? id < other : rank_[better] < rank_[known];
    if (distance == distance_[row] && !first) return;
  }
  stays_[row] = better;
  distance_[row] = distance;
}

/// Begins the block again with fewer rows; as few as all of whose pairs have room, if need be.
void DuplicatesJoin::shrink_block() {
  end_part();
  for (std::uint64_t at = first_; at < first_ + block_; ++at) edge_of_row_[order_[at]] = kNone;
  const auto surely = static_cast<std::uint64_t>(std::sqrt(2 * static_cast<double>(edge_limit_)));
  block_ = std::max(block_ / kShrink, std::min(surely, block_ - 1));
  open_block();
}

void DuplicatesJoin::end_part() {
  done_ = stats_with(done_, part_.get(), held_);
  part_.reset();
  left_ = {};
  right_ = {};
}

void DuplicatesJoin::decide_block() {
  for (std::uint64_t at = first_; at < first_ + block_; ++at) {
    const std::uint32_t row = order_[at];
    for (std::uint32_t number = edge_of_row_[row]; number != kNone; number = edge(number).next) {
      const Edge& pair = edge(number);
      if (stays_[pair.better] == pair.better) offer(row, pair.better, pair.distance);
    }
    if (stays_[row] == kNone) stays_[row] = row;
  }
  open_rest();
}

/// Goes on with the rows that are still undecided, and with more of them at a time.
void DuplicatesJoin::end_rest() {
  const auto undecided = std::remove_if(order_.begin() + first_ + block_, order_.begin() + end_,
                                        [this](std::uint32_t row) { return stays_[row] == kGone; });
  end_ = static_cast<std::uint64_t>(undecided - order_.begin());
  first_ += block_;
  block_ *= kGrow;
  open_block();
}

bool DuplicatesJoin::next_result(ResultBatch* batch) {
  const std::uint64_t rows = stays_.size();
  if (rows_.size() == 0 && rows > 0) {
    edge_of_row_ = {};
    const std::uint64_t asked = request_.knobs.batch_pairs;
    const std::uint64_t most = std::min(rows, asked > 0 ? asked : kBatchRows);
    rows_ = Buffer<std::uint32_t>(budget_, most);
    kept_ = Buffer<std::uint32_t>(budget_, most);
    distances_ = Buffer<double>(budget_, most);
    offsets_ = Buffer<std::uint64_t>(budget_, most + 1);
    std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
    if (request_.left().ids == nullptr) {
      numbers_ = Buffer<std::int64_t>(budget_, rows);
      std::iota(numbers_.begin(), numbers_.end(), std::int64_t{0});
    }
  }
  std::uint64_t count = 0;
  for (; next_row_ < rows && count < rows_.size(); ++next_row_) {
    if (stays_[next_row_] == next_row_) continue;
    rows_[count] = static_cast<std::uint32_t>(next_row_);
    kept_[count] = stays_[next_row_];
    distances_[count++] = distance_[next_row_];
  }
  if (count == 0) return false;
  *batch = {};
  batch->row_count = batch->pair_count = count;
  batch->rows = rows_.data();
  batch->neighbors = kept_.data();
  batch->offsets = offsets_.data();
  batch->distances = distances_.data();
  const std::int64_t* const ids =
      request_.left().ids != nullptr ? request_.left().ids : numbers_.data();
  batch->set_ids(ids, rows, ids, rows);
  pairs_ += count;
  ++batches_;
  return true;
}

void DuplicatesJoin::stats(JoinStats* stats) const {
  *stats = stats_with(done_, part_.get(), held_);
  stats->pairs = pairs_;
  stats->batches = batches_;
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
}

}  // namespace gpujoin

#include "engine/joins/duplicates_join.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gpujoin {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::uint32_t kGone = kNone - 1;  // a row that stays is near, which one is not known yet
constexpr std::uint32_t kChunkBits = 13;    // of edges
constexpr std::uint64_t kEdgesOfRow = 8;    // that a block may have on average, and
constexpr std::uint64_t kFewEdges = 1 << 22;  // so many in any case
constexpr std::uint64_t kMostEdges = std::uint64_t{1} << 28;
constexpr std::uint64_t kShrink = 8, kGrow = 4;
constexpr std::uint64_t kBatchRows = 1 << 16;
// Edges and rows between two checks of the interrupt. Each is a random access to memory: a tenth of
// a second.
constexpr std::uint64_t kEdgesAtATime = 1 << 20;

}  // namespace

/// The first block, which is all rows, is opened before their ranks are known: an engine that
/// cannot serve the request says so here. Where rows lie in a file it is opened again then: what
/// ranking them takes is free by that time.
DuplicatesJoin::DuplicatesJoin(const JoinRequest& request, OpenJoin plain_join)
    : request_(request),
      plain_join_(std::move(plain_join)),
      budget_(request.resources.memory_limit),
      ranks_(std::in_place, budget_, request.left().rows, request.lowest_first()),
      order_(budget_, request.left().rows),
      end_(request.left().rows),
      block_(end_) {
  done_.left_rows = done_.right_rows = end_;
  if (in_file() && request.keys.count > 0)
    throw MemoryLimitExceeded{end_ * row_bytes(request.left()), request.resources.memory_limit};
  if (!in_file()) {
    ranks_->add(request_.left());
    make_room();
  }
  choose_block();
  open_part();
  if (in_file()) {
    part_.reset();
    ids_ = Buffer<std::int64_t>(budget_, end_);
  }
}

void DuplicatesJoin::make_room() {
  const std::uint64_t rows = request_.left().rows;
  rank_ = Buffer<std::uint32_t>(budget_, rows);
  stays_ = Buffer<std::uint32_t>(budget_, rows);
  distance_ = Buffer<double>(budget_, rows);
  edge_of_row_ = Buffer<std::uint32_t>(budget_, rows);
  std::fill(stays_.begin(), stays_.end(), kNone);
  std::fill(edge_of_row_.begin(), edge_of_row_.end(), kNone);
}

Status DuplicatesJoin::next_batch(ResultBatch* batch) {
  try {
    while (stage_ != Stage::kResult) {
      const Status status = advance();
      if (!status.ok()) return status;
      if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
    }
    return next_result(batch) ? Status{} : Status{StatusCode::kEnd};
  } catch (const RowFileFailed& failed) {
    return failed.status;
  }
}

/// Does some of what comes before the result.
Status DuplicatesJoin::advance() {
  if (in_file() && next_chunk_ < chunk_count(request_.left())) {
    read_names();
  } else if (ranks_) {
    if (!ranks_->step()) finish_order();
  } else if (stage_ == Stage::kDecide) {
    decide_rows();
  } else if (!part_) {
    if (!left_.step() && !right_.step()) open_part();
  } else {
    return collect_part();
  }
  return {};
}

/// Reads the ids and scores of the next rows.
void DuplicatesJoin::read_names() {
  const Dataset& data = request_.left();
  const std::uint64_t number = next_chunk_++, rows = rows_of_chunk(data, number);
  std::int64_t* const ids = ids_.data() + (number << data.chunk_bits);
  Buffer<double> scores(budget_, has_scores(data) ? rows : 0);
  load_names(data, number, ids, scores.data());
  ranks_->add({nullptr, ids, rows, data.dims, data.scalar, scores.data()});
}

void DuplicatesJoin::finish_order() {
  for (std::uint64_t rank = 0; rank < end_; ++rank) order_[rank] = ranks_->row_at(rank);
  ranks_.reset();
  if (in_file()) make_room();
  for (std::uint64_t rank = 0; rank < end_; ++rank)
    rank_[order_[rank]] = static_cast<std::uint32_t>(rank);
}

/// A quarter of the memory, and at least the pairs of a few rows.
std::uint64_t DuplicatesJoin::most_edges() const {
  const std::uint64_t wanted = std::min(kMostEdges, std::max(kFewEdges, kEdgesOfRow * rows()));
  const std::uint64_t chunks =
      std::max<std::uint64_t>(1, budget_.left() / 4 / sizeof(Edge) >> kChunkBits);
  return std::min(wanted, chunks << kChunkBits);
}

DuplicatesJoin::Edge& DuplicatesJoin::edge(std::uint32_t number) {
  return edges_[number >> kChunkBits][number & ((1u << kChunkBits) - 1)];
}

/// Opens the join of the stage, whose rows are there.
void DuplicatesJoin::open_part() {
  const bool block = stage_ == Stage::kBlock;
  Dataset whole = unnamed(request_.left());
  whole.scores = nullptr;
  whole.scores_in_file = false;
  JoinRequest part = request_.asking(stage_ == Stage::kRest ? Output::matched_rows()
                                                            : Output::pairs_with_distances());
  part.sides = !block            ? Sides::two(left_.view(), right_.view())
               : block_ < rows() ? Sides::one(left_.view(), PairSelection::kUnordered)
                                 : Sides::one(whole, PairSelection::kUnordered);
  part.knobs.batch_pairs = 0;
  held_ = budget_.used();
  if (block) edge_limit_ = most_edges();
  part.resources.memory_limit = budget_.limit_within(block ? edge_limit_ * sizeof(Edge) : 0);
  part_ = plain_join_(part);
}

ChosenRows DuplicatesJoin::choose(const std::uint32_t* rows, std::uint64_t count) {
  constexpr std::uint64_t kShare = 4;  // of the memory that is left, for one of two sides
  return {budget_, request_.left(),         rows,
          count,   budget_.left() / kShare, request_.resources.scratch};
}

/// The next block: the rows that are undecided come by rank.
void DuplicatesJoin::choose_block() {
  if (first_ == end_) return choose_gone();
  block_ = std::min(block_, end_ - first_);
  if (block_ < rows()) left_ = choose(order_.data() + first_, block_);
  edge_count_ = decided_ = 0;
  stage_ = Stage::kBlock;
}

/// The rows after the block, and those of the block that stay.
void DuplicatesJoin::choose_rest() {
  const std::uint64_t end = first_ + block_;
  if (end == end_) {
    first_ = end;
    return choose_gone();
  }
  Buffer<std::uint32_t> staying(budget_, block_);
  const auto last = std::copy_if(order_.begin() + first_, order_.begin() + end, staying.begin(),
                                 [this](std::uint32_t row) { return stays_[row] == row; });
  right_ = choose(staying.data(), static_cast<std::uint64_t>(last - staying.begin()));
  left_ = choose(order_.data() + end, end_ - end);
  stage_ = Stage::kRest;
}

/// The rows that have gone, and those that stay.
void DuplicatesJoin::choose_gone() {
  edges_.clear();
  if (!has_gone_) {
    stage_ = Stage::kResult;
    return;
  }
  Buffer<std::uint32_t> chosen(budget_, rows());
  const auto those = [&](const auto& wanted) {
    std::uint64_t count = 0;
    for (std::uint64_t row = 0; row < rows(); ++row)
      if (wanted(row)) chosen[count++] = static_cast<std::uint32_t>(row);
    return choose(chosen.data(), count);
  };
  left_ = those([&](std::uint64_t row) { return stays_[row] == kGone; });
  right_ = those([&](std::uint64_t row) { return stays_[row] == row; });
  stage_ = Stage::kNearest;
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
    stage_ = Stage::kDecide;
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
    const std::int64_t id = id_of_row(better), other = id_of_row(known);
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
  choose_block();
}

void DuplicatesJoin::end_part() {
  done_ = stats_so_far();
  part_.reset();
  left_ = {};
  right_ = {};
}

/// Decides some rows of the block, in the order of their ranks.
void DuplicatesJoin::decide_rows() {
  std::uint64_t left = kEdgesAtATime;
  for (; decided_ < block_; ++decided_) {
    const std::uint32_t row = order_[first_ + decided_];
    for (std::uint32_t& next = edge_of_row_[row]; next != kNone; --left) {
      if (left == 0) return;
      const Edge& pair = edge(next);
      if (stays_[pair.better] == pair.better) offer(row, pair.better, pair.distance);
      next = pair.next;
    }
    if (stays_[row] == kNone) stays_[row] = row;
    if (left > 0) --left;
  }
  choose_rest();
}

/// Goes on with the rows that are still undecided, and with more of them at a time.
void DuplicatesJoin::end_rest() {
  const auto undecided = std::remove_if(order_.begin() + first_ + block_, order_.begin() + end_,
                                        [this](std::uint32_t row) { return stays_[row] == kGone; });
  end_ = static_cast<std::uint64_t>(undecided - order_.begin());
  first_ += block_;
  block_ *= kGrow;
  choose_block();
}

bool DuplicatesJoin::next_result(ResultBatch* batch) {
  const std::uint64_t rows = this->rows();
  if (rows_.size() == 0 && rows > 0) {
    edge_of_row_ = {};
    const std::uint64_t asked = request_.knobs.batch_pairs;
    const std::uint64_t most = std::min(rows, asked > 0 ? asked : kBatchRows);
    rows_ = Buffer<std::uint32_t>(budget_, most);
    kept_ = Buffer<std::uint32_t>(budget_, most);
    distances_ = Buffer<double>(budget_, most);
    offsets_ = Buffer<std::uint64_t>(budget_, most + 1);
    std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
    if (request_.left().ids == nullptr && !in_file()) {
      ids_ = Buffer<std::int64_t>(budget_, rows);
      std::iota(ids_.begin(), ids_.end(), std::int64_t{0});
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
      request_.left().ids != nullptr ? request_.left().ids : ids_.data();
  batch->set_ids(ids, rows, ids, rows);
  pairs_ += count;
  ++batches_;
  return true;
}

JoinStats DuplicatesJoin::stats_so_far() const {
  JoinStats sum = stats_with(done_, part_.get(), held_);
  if (!part_) return sum;
  JoinStats part{};
  part_->stats(&part);
  sum.parts += part.parts;
  return sum;
}

void DuplicatesJoin::stats(JoinStats* stats) const {
  *stats = stats_so_far();
  stats->pairs = pairs_;
  stats->batches = batches_;
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
}

}  // namespace gpujoin

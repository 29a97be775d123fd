#include "engine/joins/top_pairs.h"

#include <algorithm>
#include <numeric>

namespace gpujoin {
namespace {

constexpr std::uint64_t kRoom = 4096;  // of large memory: selecting is linear in k
constexpr std::uint64_t kDefaultBatchPairs = 1 << 16;

std::uint64_t most_pairs(const JoinRequest& request) {
  return std::clamp<std::uint64_t>(request.left().rows * request.right().rows, 1, request.top().k);
}

/// Pairs that are collected beyond k before the first k are selected.
std::uint64_t room_beyond(const JoinRequest& request, std::uint64_t k) {
  constexpr std::uint64_t kLeastRoom = 64, kShare = 8;
  const std::uint64_t limit = request.resources.memory_limit;
  const std::uint64_t room =
      limit == 0 ? kRoom : std::clamp(limit / kShare / sizeof(PairRank), kLeastRoom, kRoom);
  return std::max(k, room);
}

std::uint64_t batch_pairs(const JoinRequest& request, std::uint64_t pairs) {
  constexpr std::uint64_t kBytesPerPair = 36;
  const std::uint64_t asked = request.knobs.batch_pairs;
  std::uint64_t most = std::min(pairs, asked > 0 ? asked : kDefaultBatchPairs);
  if (request.resources.memory_limit > 0)
    most = std::min(most, request.resources.memory_limit / 8 / kBytesPerPair);
  return std::max<std::uint64_t>(1, most);
}

}  // namespace

TopPairs::TopPairs(MemoryBudget& budget, const JoinRequest& request, TopkMethod method)
    : k_(most_pairs(request)),
      method_(method),
      pairs_(budget, method == TopkMethod::kHeap ? k_ : k_ + room_beyond(request, k_)),
      last_(last_rank(request.top().least_key)) {}

void TopPairs::restart(std::uint64_t least_key) {
  size_ = 0;
  last_ = last_rank(least_key);
}

void TopPairs::add(const JoinRequest& request, const ResultBatch& batch) {
  const bool smaller_first = request.orders_pairs();
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    add(rank_of_pair(score_key(request.top().scoring.lowest_first, batch.distances[i]),
                     batch.left_ids[batch.rows[i]], batch.right_ids[batch.neighbors[i]],
                     smaller_first));
}

void TopPairs::keep(const PairRank& pair) {
  if (method_ == TopkMethod::kHeap) return keep_in_heap(pair);
  pairs_[size_++] = pair;
  if (size_ == pairs_.size()) select();
}

void TopPairs::keep_in_heap(const PairRank& pair) {
  if (full()) {
    std::pop_heap(pairs_.begin(), pairs_.begin() + size_, comes_before);
    --size_;
  }
  pairs_[size_++] = pair;
  std::push_heap(pairs_.begin(), pairs_.begin() + size_, comes_before);
  if (full()) last_ = pairs_[0];
}

void TopPairs::select() {
  if (size_ <= k_) return;
  if (method_ == TopkMethod::kSort) {
    std::sort(pairs_.begin(), pairs_.begin() + size_, comes_before);
  } else {
    std::nth_element(pairs_.begin(), pairs_.begin() + (k_ - 1), pairs_.begin() + size_,
                     comes_before);
    last_ = pairs_[k_ - 1];
  }
  size_ = k_;
}

void TopPairs::finish() {
  select();
  std::sort(pairs_.begin(), pairs_.begin() + size_, comes_before);
}

TopBatches::TopBatches(MemoryBudget& budget, const JoinRequest& request, const TopPairs& pairs)
    : pairs_(pairs), lowest_first_(request.top().scoring.lowest_first) {
  const std::uint64_t most = batch_pairs(request, pairs.size());
  places_ = Buffer<std::uint32_t>(budget, most);
  offsets_ = Buffer<std::uint64_t>(budget, most + 1);
  ids1_ = Buffer<std::int64_t>(budget, most);
  ids2_ = Buffer<std::int64_t>(budget, most);
  scores_ = Buffer<double>(budget, most);
  std::iota(places_.begin(), places_.end(), 0u);
  std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
}

bool TopBatches::next(ResultBatch* batch) {
  const std::uint64_t count = std::min<std::uint64_t>(places_.size(), pairs_.size() - next_);
  if (count == 0) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const PairRank& pair = pairs_[next_ + i];
    ids1_[i] = pair.id1;
    ids2_[i] = pair.id2;
    scores_[i] = score_of_key(lowest_first_, pair.key);
  }
  next_ += count;
  ++batches_;
  *batch = {};
  batch->row_count = batch->pair_count = count;
  batch->rows = batch->neighbors = places_.data();
  batch->offsets = offsets_.data();
  batch->distances = scores_.data();
  batch->set_ids(ids1_.data(), count, ids2_.data(), count);
  batch->ids_generation = batches_;
  return true;
}

}  // namespace gpujoin

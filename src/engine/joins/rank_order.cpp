#include "engine/joins/rank_order.h"

#include <algorithm>

#include "core/score.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kRun = 1 << 17;
constexpr std::uint64_t kMergedAtOnce = 1 << 20;

}  // namespace

RankOrder::RankOrder(MemoryBudget& budget, const Dataset& data, bool lowest_first)
    : items_(budget, data.rows) {
  for (std::uint64_t row = 0; row < data.rows; ++row)
    items_[row] = {data.scores != nullptr ? score_key(lowest_first, data.scores[row]) : 0,
                   id_of(data, row), static_cast<std::uint32_t>(row)};
  const bool in_order = std::is_sorted(items_.begin(), items_.end());
  if (in_order) width_ = items_.size();
  if (!in_order && items_.size() > kRun) merged_ = Buffer<Item>(budget, items_.size());
}

bool RankOrder::step() {
  if (width_ >= items_.size()) return false;
  width_ == 0 ? sort_run() : merge_some();
  return width_ < items_.size();
}

void RankOrder::sort_run() {
  const std::uint64_t end = std::min(items_.size(), first_ + kRun);
  std::sort(items_.begin() + first_, items_.begin() + end);
  first_ = end;
  if (end < items_.size()) return;
  width_ = kRun;
  first_ = 0;
  begin_merge();
}

void RankOrder::begin_merge() {
  left_ = to_ = first_;
  right_ = std::min(items_.size(), first_ + width_);
}

/// Merges runs next to each other into merged_, some items at a time; then the runs are twice as
/// wide.
void RankOrder::merge_some() {
  const std::uint64_t middle = std::min(items_.size(), first_ + width_);
  const std::uint64_t end = std::min(items_.size(), middle + width_);
  const std::uint64_t stop = std::min(end, to_ + kMergedAtOnce);
  while (to_ < stop) {
    const bool from_right = left_ == middle || (right_ < end && items_[right_] < items_[left_]);
    merged_[to_++] = items_[from_right ? right_++ : left_++];
  }
  if (to_ < end) return;
  first_ = end;
  if (end == items_.size()) {
    items_.swap(merged_);
    width_ *= 2;
    first_ = 0;
  }
  begin_merge();
}

}  // namespace gpujoin

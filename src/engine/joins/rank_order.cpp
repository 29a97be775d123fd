#include "engine/joins/rank_order.h"

#include <algorithm>
#include <array>

#include "core/score.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kSortedAtOnce = 1 << 17;

}  // namespace

RankOrder::RankOrder(MemoryBudget& budget, std::uint64_t rows, bool lowest_first)
    : lowest_first_(lowest_first), items_(budget, rows) {}

void RankOrder::add(const Dataset& rows) {
  for (std::uint64_t row = 0; row < rows.rows; ++row) {
    items_[added_] = {rows.scores != nullptr ? score_key(lowest_first_, rows.scores[row]) : 0,
                      id_of(rows, row), static_cast<std::uint32_t>(added_)};
    in_order_ = in_order_ && (added_ == 0 || items_[added_ - 1] < items_[added_]);
    ++added_;
  }
}

bool RankOrder::step() {
  if (!begun_ && !in_order_) unsorted_.push_back({0, items_.size()});
  begun_ = true;
  if (unsorted_.empty()) return false;
  const Stretch stretch = unsorted_.back();
  unsorted_.pop_back();
  Item* const first = items_.begin() + stretch.first;
  Item* const end = items_.begin() + stretch.end;
  if (stretch.end - stretch.first <= kSortedAtOnce) {
    std::sort(first, end);
  } else {
    const Item pivot = pivot_of(stretch);
    Item* const middle = std::partition(first, end, [&](const Item& item) { return item < pivot; });
    const auto place = static_cast<std::uint64_t>(middle - items_.begin());
    unsorted_.push_back({place, stretch.end});
    unsorted_.push_back({stretch.first, place});
  }
  return !unsorted_.empty();
}

/// An item near the middle: the median of some, evenly spread, so that it has items before it.
RankOrder::Item RankOrder::pivot_of(const Stretch& items) const {
  std::array<Item, 255> some;
  const std::uint64_t count = items.end - items.first;
  for (std::size_t i = 0; i < some.size(); ++i)
    some[i] = items_[items.first + count * i / some.size()];
  std::nth_element(some.begin(), some.begin() + some.size() / 2, some.end());
  return some[some.size() / 2];
}

}  // namespace gpujoin

#include "engine/joins/rank_order.h"

#include "core/score.h"

namespace gpujoin {

RankOrder::RankOrder(MemoryBudget& budget, std::uint64_t rows, bool lowest_first)
    : lowest_first_(lowest_first), items_(budget, rows) {}

void RankOrder::add(const Dataset& rows) {
  for (std::uint64_t row = 0; row < rows.rows; ++row) {
    items_[added_] = {rows.scores != nullptr ? score_key(lowest_first_, rows.scores[row]) : 0,
                      id_of(rows, row), static_cast<std::uint32_t>(added_)};
    ++added_;
  }
}

bool RankOrder::step() {
  if (!sort_) sort_.emplace(items_.data(), items_.size());
  return sort_->step();
}

}  // namespace gpujoin

// A sort in place that the caller may stop or leave between its steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace gpujoin {

/// Divides items by pivots until what is left is sorted at once; each step takes some milliseconds,
/// the first ones as long as a look at all items.
template <class Item>
class StepSort {
 public:
  /// The items stay where they are until they are sorted.
  StepSort(Item* items, std::uint64_t count) : items_(items) {
    if (!std::is_sorted(items, items + count)) unsorted_.push_back({0, count});
  }

  /// Does a step; false: all are done. Throws std::bad_alloc.
  bool step() {
    if (unsorted_.empty()) return false;
    const Stretch stretch = unsorted_.back();
    unsorted_.pop_back();
    Item* const first = items_ + stretch.first;
    Item* const end = items_ + stretch.end;
    Item* middle = first;
    if (stretch.end - stretch.first > kSortedAtOnce) {
      const Item pivot = pivot_of(stretch);
      middle = std::partition(first, end, [&](const Item& item) { return item < pivot; });
    }
    if (middle == first) {
      std::sort(first, end);
    } else {
      const auto place = static_cast<std::uint64_t>(middle - items_);
      unsorted_.push_back({place, stretch.end});
      unsorted_.push_back({stretch.first, place});
    }
    return !unsorted_.empty();
  }

 private:
  static constexpr std::uint64_t kSortedAtOnce = 1 << 17;

  struct Stretch {
    std::uint64_t first, end;
  };

  /// The median of some items, evenly spread.
  Item pivot_of(const Stretch& items) const {
    std::array<Item, 255> some;
    const std::uint64_t count = items.end - items.first;
    for (std::size_t i = 0; i < some.size(); ++i)
      some[i] = items_[items.first + count * i / some.size()];
    std::nth_element(some.begin(), some.begin() + some.size() / 2, some.end());
    return some[some.size() / 2];
  }

  Item* const items_;
  std::vector<Stretch> unsorted_;  ///< items of one come before those of another
};

}  // namespace gpujoin

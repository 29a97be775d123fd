// Sorting on several workers against std::sort, around the sizes where it begins to use buckets and
// blocks.
#include "cpu/index/parallel_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

struct Item {
  std::uint64_t key;
  std::uint32_t row;

  bool operator==(const Item&) const = default;
};

bool comes_first(const Item& a, const Item& b) {
  return a.key != b.key ? a.key < b.key : a.row < b.row;
}

TEST(ParallelSort, is_a_sort_for_any_number_of_items_keys_and_workers) {
  Random random(131);
  MemoryBudget budget(0);
  for (const unsigned workers : {2u, 5u, 16u}) {
    WorkerPool pool(workers);
    for (const std::size_t items : {0, 1, 8192, 8193, 65537, 140001}) {
      for (const std::uint64_t keys : {std::uint64_t{100}, ~std::uint64_t{0}}) {
        Buffer<Item> sorted(budget, items);
        for (std::size_t i = 0; i < items; ++i)
          sorted[i] = {random.index(keys), static_cast<std::uint32_t>(i)};
        std::vector<Item> expected(sorted.begin(), sorted.end());
        std::sort(expected.begin(), expected.end(), comes_first);
        cpu::parallel_sort(pool, budget, sorted, comes_first);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), sorted.begin(), sorted.end()))
            << items << " items, " << keys << " keys, " << workers << " workers";
      }
    }
  }
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace gpujoin::test

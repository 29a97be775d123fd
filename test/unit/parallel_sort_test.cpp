// Sorting on several workers against std::sort, around the sizes where it begins to use buckets and
// blocks.
#include "cpu/index/parallel_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

using cpu::SortItem;

bool comes_first(const SortItem& a, const SortItem& b) {
  return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

bool same(const SortItem& a, const SortItem& b) { return a.hi == b.hi && a.lo == b.lo; }

TEST(ParallelSort, is_a_sort_for_any_number_of_items_keys_and_workers) {
  Random random(131);
  MemoryBudget budget(0);
  for (const unsigned workers : {2u, 5u, 16u}) {
    WorkerPool pool(workers);
    for (const std::size_t items : {0, 1, 2, 1000, 65536, 65537, 140001, 400000}) {
      for (const std::uint64_t keys : {std::uint64_t{1}, std::uint64_t{100}, ~std::uint64_t{0}}) {
        Buffer<SortItem> sorted(budget, items);
        for (std::size_t i = 0; i < items; ++i) sorted[i] = {.lo = i, .hi = random.index(keys)};
        std::vector<SortItem> expected(sorted.begin(), sorted.end());
        std::sort(expected.begin(), expected.end(), comes_first);
        cpu::parallel_sort(pool, budget, sorted);
        ASSERT_TRUE(
            std::equal(expected.begin(), expected.end(), sorted.begin(), sorted.end(), same))
            << items << " items, " << keys << " keys, " << workers << " workers";
      }
    }
  }
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace gpujoin::test

// Conditions like `a.id < b.id` on a table joined with itself: the engine then makes each pair
// once, and counts without making any.
#include "pg/executor/join_node.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

template <class T>
T* allocate(JoinNode* node, std::uint64_t count) {
  return static_cast<T*>(MemoryContextAllocHuge(node->rows, (count + 1) * sizeof(T)));
}

/// Calls visit(position, key) for each point of a side; false where a key is NULL or visit()
/// returns false.
template <class Visit>
bool visit_keys(JoinNode* node, const Side& side, int column, const Visit& visit) {
  int at = 0;
  while (at < side.shown.count && side.shown.targets[at] != column) ++at;
  if (at == side.shown.count) return false;
  for (std::uint64_t i = 0; i < side.points.rows; ++i) {
    CHECK_FOR_INTERRUPTS();
    const bool* nulls;
    const Datum* const values =
        fetch_row(side.shown.rows, static_cast<std::uint64_t>(side.points.ids[i]), &nulls);
    if (nulls[at] || !visit(i, integer_of(node->data.order.type, values[at]))) return false;
  }
  return true;
}

/// Sets the ranks of keys that are not in ascending order. False when two are equal.
bool rank_keys(JoinNode* node, const std::int64_t* keys) {
  const std::uint64_t rows = node->left.points.rows;
  node->by_rank = allocate<std::int64_t>(node, rows);
  for (std::uint64_t i = 0; i < rows; ++i) node->by_rank[i] = static_cast<std::int64_t>(i);
  std::sort(node->by_rank, node->by_rank + rows,
            [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  for (std::uint64_t i = 1; i < rows; ++i)
    if (keys[node->by_rank[i - 1]] == keys[node->by_rank[i]]) return false;
  node->ranks = allocate<std::int64_t>(node, rows);
  for (std::uint64_t i = 0; i < rows; ++i)
    node->ranks[node->by_rank[i]] = static_cast<std::int64_t>(i);
  return true;
}

bool rank(JoinNode* node) {
  const Dataset &left = node->left.points, &right = node->right.points;
  if (is_in_blocks(node->left) || is_in_blocks(node->right) || left.rows == 0 ||
      !are_same_points(left, right))
    return false;
  std::int64_t* const keys = allocate<std::int64_t>(node, left.rows);
  bool ascending = true;
  const OrderPlan& order = node->data.order;
  const auto take = [&](std::uint64_t i, std::int64_t key) {
    ascending = ascending && (i == 0 || keys[i - 1] < key);
    keys[i] = key;
    return true;
  };
  const auto is_same = [&](std::uint64_t i, std::int64_t key) { return keys[i] == key; };
  const bool found = visit_keys(node, node->left, order.left_column, take) &&
                     visit_keys(node, node->right, order.right_column, is_same) &&
                     (ascending || rank_keys(node, keys));
  pfree(keys);
  return found;
}

}  // namespace

bool find_ranks(JoinNode* node) {
  if (!node->ranked) node->has_ranks = rank(node);
  node->ranked = true;
  return node->has_ranks;
}

}  // namespace gpujoin

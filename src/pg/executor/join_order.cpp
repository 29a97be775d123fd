// A table joined with itself, and conditions like `a.id < b.id` on it: the engine then makes each
// pair once, and counts without making any.
#include "pg/executor/join_order.h"

#include "pg/types/number_datum.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Whether all rows are the same, wherever the chunks of both sides end.
bool same_in_memory(const Dataset& a, const Dataset& b) {
  const std::uint64_t step = std::uint64_t{1} << std::min(a.chunk_bits, b.chunk_bits);
  for (std::uint64_t row = 0; row < a.rows; row += step)
    if (std::memcmp(point(a, row), point(b, row), std::min(step, a.rows - row) * point_bytes(a)) !=
        0)
      return false;
  return true;
}

/// Likewise; their scores are compared, too.
bool same_in_file(JoinNode* node, const Dataset& a, const Dataset& b) {
  if (a.chunk_bits != b.chunk_bits || has_scores(a) != has_scores(b)) return false;
  SpillFile* const spill = &node->pairs.run->spill;
  const std::uint64_t row_bytes =
      sizeof(std::int64_t) + point_bytes(a) + (has_scores(a) ? sizeof(double) : 0);
  char* chunks[2];
  for (char*& chunk : chunks)
    chunk = static_cast<char*>(MemoryContextAllocHuge(node->rows, rows_of_chunk(a, 0) * row_bytes));
  bool same = true;
  for (std::uint64_t number = 0; same && number < chunk_count(a); ++number) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t bytes = rows_of_chunk(a, number) * row_bytes;
    read_spill(spill, a.places[number], chunks[0], bytes);
    read_spill(spill, b.places[number], chunks[1], bytes);
    same = std::memcmp(chunks[0], chunks[1], bytes) == 0;
  }
  for (char* const chunk : chunks) pfree(chunk);
  return same;
}

bool compare_points(JoinNode* node) {
  const Dataset &a = node->left.points, &b = node->right.points;
  if (a.rows != b.rows || a.dims != b.dims || a.scalar != b.scalar ||
      (a.file == nullptr) != (b.file == nullptr))
    return false;
  return a.file == nullptr ? same_in_memory(a, b) : same_in_file(node, a, b);
}

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
  node->pairs.sides.by_rank = allocate<std::int64_t>(node, rows);
  for (std::uint64_t i = 0; i < rows; ++i)
    node->pairs.sides.by_rank[i] = static_cast<std::int64_t>(i);
  std::sort(node->pairs.sides.by_rank, node->pairs.sides.by_rank + rows,
            [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  for (std::uint64_t i = 1; i < rows; ++i)
    if (keys[node->pairs.sides.by_rank[i - 1]] == keys[node->pairs.sides.by_rank[i]]) return false;
  node->pairs.sides.ranks = allocate<std::int64_t>(node, rows);
  for (std::uint64_t i = 0; i < rows; ++i)
    node->pairs.sides.ranks[node->pairs.sides.by_rank[i]] = static_cast<std::int64_t>(i);
  return true;
}

bool rank(JoinNode* node) {
  const Dataset& left = node->left.points;
  if (left.rows == 0 || left.file != nullptr || !are_same_points(node)) return false;
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

bool are_same_points(JoinNode* node) {
  if (!node->pairs.sides.compared) node->pairs.sides.same = compare_points(node);
  node->pairs.sides.compared = true;
  return node->pairs.sides.same;
}

bool find_ranks(JoinNode* node) {
  if (!node->pairs.sides.ranked) node->pairs.sides.has_ranks = rank(node);
  node->pairs.sides.ranked = true;
  return node->pairs.sides.has_ranks;
}

}  // namespace gpujoin

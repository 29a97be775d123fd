// Pairs in batches, where rows that they show lie in a file: each row that a batch needs is read
// once, in the order of the file, and then the pairs follow in the order in which they came.
#include "pg/executor/join_node.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// Whether the condition will be evaluated for the pair that came last. Pairs that were kept have
/// been decided.
bool needs_tested(const JoinNode* node) {
  if (node->nearest != nullptr) return measures_pair(node);
  return node->looping || node->sums != nullptr || (!node->draining && is_open(node));
}

/// Asks for the rows that a pair needs and returns how much memory they take.
Size want_rows(const JoinNode* node, std::uint64_t left, std::uint64_t right) {
  Size bytes = want_row(node->left.shown.rows, left);
  if (right == kNoRow) return bytes;
  bytes += want_row(node->right.shown.rows, right);
  if (needs_tested(node))
    bytes += want_row(node->left.tested.rows, left) + want_row(node->right.tested.rows, right);
  return bytes;
}

/// About how much memory the rows of a pair take.
Size mean_bytes(const JoinNode* node) {
  Size bytes = 0;
  for (const Side* const side : {&node->left, &node->right})
    for (const RowStore* const store : {side->shown.rows, side->tested.rows})
      bytes += store->rows > 0 ? store->end / store->rows : 0;
  return bytes;
}

/// Takes as many pairs as memory allows, at least one, but at first no more than have come before:
/// whoever wants few of them waits for few. False where there are no more.
bool fill(JoinNode* node, PairSource source) {
  PairBatch& batch = node->batch;
  for (RowStore* store = node->budget.stores; store != nullptr; store = store->next)
    forget_wanted_rows(store);
  node->left_shown = kNoRow;
  batch.count = batch.next = 0;
  const std::uint64_t most = batch.came + 1;
  const Size room = node->budget.limit - node->budget.taken;
  Size bytes = 0;
  std::uint64_t left = 0, right = 0;
  while (batch.count < most && bytes < room && source(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_settled(node, left)) continue;
    reserve_next(node->rows, &batch.pairs, batch.count, &batch.room);
    batch.pairs[batch.count++] = {node->pair.distance, left, right};
    // The search for nearest rows looks at rows itself, and finds none that is only asked for.
    bytes += sizeof(BatchedPair) +
             (node->nearest != nullptr ? mean_bytes(node) : want_rows(node, left, right));
  }
  if (node->nearest != nullptr)
    for (std::uint64_t i = 0; i < batch.count; ++i) {
      node->pair.distance = batch.pairs[i].distance;
      want_rows(node, batch.pairs[i].left, batch.pairs[i].right);
    }
  node->left_shown = kNoRow;
  batch.came += batch.count;
  for (RowStore* store = node->budget.stores; store != nullptr; store = store->next)
    read_wanted_rows(store);
  return batch.count > 0;
}

}  // namespace

bool next_pair(JoinNode* node, PairSource source, std::uint64_t* left, std::uint64_t* right) {
  if (!node->budget.spilled) return source(node, left, right);
  PairBatch& batch = node->batch;
  if (batch.next == batch.count && !fill(node, source)) return false;
  const BatchedPair& pair = batch.pairs[batch.next++];
  node->pair.distance = pair.distance;
  *left = pair.left;
  *right = pair.right;
  return true;
}

void forget_pairs(JoinNode* node) {
  node->cursor = {};
  node->reverse_due = false;
  node->batch.count = node->batch.next = node->batch.came = 0;
}

}  // namespace gpujoin

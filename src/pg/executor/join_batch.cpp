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
  return node->looping || node->sums != nullptr || (!node->draining && is_open(node));
}

/// Takes as many pairs as memory allows, at least one, but at first no more than have come before:
/// whoever wants few of them waits for few. False where there are no more.
bool fill(JoinNode* node, PairSource source) {
  PairBatch& batch = node->batch;
  const Size room = begin_wanting(node);
  batch.count = batch.next = 0;
  const std::uint64_t most = batch.came + 1;
  Size bytes = 0;
  std::uint64_t left = 0, right = 0;
  while (batch.count < most && bytes < room && source(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_settled(node, left)) continue;
    reserve_next(node->rows, &batch.pairs, batch.count, &batch.room);
    batch.pairs[batch.count++] = {node->pair.distance, left, right};
    const bool tested = needs_tested(node);
    bytes += sizeof(BatchedPair) + want_rows(&node->left, left, tested) +
             want_rows(&node->right, right, tested);
  }
  batch.came += batch.count;
  read_wanted(node);
  return batch.count > 0;
}

}  // namespace

Size begin_wanting(JoinNode* node) {
  for (RowStore* store = node->budget.stores; store != nullptr; store = store->next)
    forget_wanted_rows(store);
  node->left_shown = kNoRow;
  return node->budget.limit - node->budget.taken;
}

Size want_rows(const Side* side, std::uint64_t row, bool tested) {
  return want_row(side->shown.rows, row) + (tested ? want_row(side->tested.rows, row) : 0);
}

void read_wanted(JoinNode* node) {
  node->left_shown = kNoRow;
  for (RowStore* store = node->budget.stores; store != nullptr; store = store->next)
    read_wanted_rows(store);
}

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

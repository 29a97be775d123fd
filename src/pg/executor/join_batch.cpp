// Pairs in batches, for two reasons. Rows that pairs show may lie in a file: each row that a batch
// needs is read once, in the order of the file. And values may be long, such as polygons: pairs
// of one long value follow each other. Functions of PostGIS cache one prepared value per call site.
#include "pg/executor/join_batch.h"

#include "pg/executor/join_inputs.h"
#include "pg/executor/join_rows.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "access/detoast.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
}

namespace gpujoin {
namespace {

/// Whether the condition will be evaluated for the pair that came last. Pairs that were kept have
/// been decided.
bool needs_tested(const JoinNode* node) {
  return node->pairs.looping || node->sums != nullptr || (!node->output.draining && is_open(node));
}

/// Returns the bytes of the shown values of one side that the condition uses.
double shown_bytes(const JoinNode* node, bool left, const Bitmapset* uses) {
  const TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  double bytes = 0;
  for (int i = 0; i < node->data.columns.count; ++i) {
    const bool used = node->data.columns.from_left[i] == left && !slot->tts_isnull[i] &&
                      TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen == -1 &&
                      bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, uses);
    if (used) bytes += static_cast<double>(toast_raw_datum_size(slot->tts_values[i]));
  }
  return bytes;
}

constexpr std::uint64_t kSampledPairs = 16;

/// Adds the bytes of the batch's first pairs to the sample.
void sample_bytes(JoinNode* node) {
  ValueSample& sample = node->pairs.sample;
  const double distance = node->pairs.pair.distance;
  Bitmapset* uses = nullptr;
  pull_varattnos(reinterpret_cast<Node*>(node->expressions.condition), INDEX_VAR, &uses);
  std::uint64_t fetched[2] = {};  // these do not count as fetched for pairs
  LateRows* const late[2] = {node->left.late, node->right.late};
  for (int i = 0; i < 2; ++i) fetched[i] = late[i] != nullptr ? late[i]->fetched : 0;
  for (std::uint64_t i = 0; i < node->pairs.batch.count && sample.pairs < kSampledPairs; ++i) {
    const BatchedPair& pair = node->pairs.batch.pairs[i];
    ++sample.pairs;
    node->pairs.pair.distance = pair.distance;
    if (!node->pairs.looping && !is_open(node)) continue;
    MemoryContextReset(node->asked);
    show_pair(node, pair.left, pair.right);
    show_tested(node, &node->left, pair.left);
    show_tested(node, &node->right, pair.right);
    sample.left_bytes += shown_bytes(node, true, uses);
    sample.right_bytes += shown_bytes(node, false, uses);
  }
  for (int i = 0; i < 2; ++i)
    if (late[i] != nullptr) late[i]->fetched = fetched[i];
  bms_free(uses);
  node->pairs.pair.distance = distance;
}

/// Whether the condition is asked about the pairs of the source.
bool asks(const JoinNode* node) {
  return node->conditions.distance != nullptr && !node->output.draining &&
         (node->pairs.looping || (node->pairs.mode == Mode::kPairs && has_open_pairs(node)));
}

/// Whether pairs are sorted by the side with the longer values. Engines emit pairs in any order.
bool sorts(const JoinNode* node, bool* by_left) {
  constexpr double kLong = 1024;
  const ValueSample& sample = node->pairs.sample;
  *by_left = sample.left_bytes >= sample.right_bytes;
  return std::max(sample.left_bytes, sample.right_bytes) >
         kLong * static_cast<double>(sample.pairs);
}

/// Whether pairs go through a batch.
bool collects(const JoinNode* node) {
  bool by_left;
  return node->inputs.budget.spilled ||
         (asks(node) && (node->pairs.sample.pairs < kSampledPairs || sorts(node, &by_left)));
}

/// Puts pairs of one long value together.
void sort_pairs(JoinNode* node) {
  PairBatch& batch = node->pairs.batch;
  if (node->pairs.sample.pairs < kSampledPairs) sample_bytes(node);
  bool by_left;
  if (!sorts(node, &by_left)) return;
  const auto order = [by_left](const BatchedPair& pair) {
    return by_left ? std::pair(pair.left, pair.right) : std::pair(pair.right, pair.left);
  };
  std::sort(batch.pairs, batch.pairs + batch.count,
            [&](const BatchedPair& a, const BatchedPair& b) { return order(a) < order(b); });
}

/// Whether the batch may take another pair. A query that wants few rows waits for few pairs where
/// values are short, or rows are read from a file.
bool has_room(JoinNode* node) {
  constexpr std::uint64_t kManyPairs = 1 << 16;
  const std::uint64_t count = node->pairs.batch.count;
  if (node->inputs.budget.spilled) return count < node->pairs.batch.came + 1;
  if (count < kSampledPairs) return true;
  if (node->pairs.sample.pairs < kSampledPairs) sample_bytes(node);
  bool by_left;
  const bool emits_pairs = node->sums == nullptr && !node->data.counts;
  return sorts(node, &by_left) && (count < kManyPairs || !emits_pairs);
}

/// Takes as many pairs as memory allows, at least one. False where there are no more.
bool fill(JoinNode* node, PairSource source) {
  constexpr Size kLeastRoom = 1 << 20;
  PairBatch& batch = node->pairs.batch;
  const Size left_over = begin_wanting(node);
  const Size room = node->inputs.budget.spilled ? left_over : std::max(left_over, kLeastRoom);
  if (batch.count > 0) node->pairs.pair.distance = batch.last_distance;
  batch.count = batch.next = 0;
  Size bytes = 0;
  std::uint64_t left = 0, right = 0;
  while (bytes < room && has_room(node) && source(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_settled(node, left)) continue;
    reserve_next(node->rows, &batch.pairs, batch.count, &batch.room);
    batch.pairs[batch.count++] = {node->pairs.pair.distance, left, right};
    const bool tested = needs_tested(node);
    bytes += sizeof(BatchedPair) + want_rows(&node->left, left, tested) +
             want_rows(&node->right, right, tested);
  }
  batch.came += batch.count;
  batch.last_distance = node->pairs.pair.distance;
  read_wanted(node);
  if (asks(node)) sort_pairs(node);
  return batch.count > 0;
}

}  // namespace

Size begin_wanting(JoinNode* node) {
  for (RowStore* store = node->inputs.budget.stores; store != nullptr; store = store->next)
    forget_wanted_rows(store);
  node->output.left_shown = kNoRow;
  return node->inputs.budget.limit - node->inputs.budget.taken;
}

Size want_rows(const Side* side, std::uint64_t row, bool tested) {
  return want_row(side->shown.rows, row) + (tested ? want_row(side->tested.rows, row) : 0);
}

void read_wanted(JoinNode* node) {
  node->output.left_shown = kNoRow;
  for (RowStore* store = node->inputs.budget.stores; store != nullptr; store = store->next)
    read_wanted_rows(store);
}

bool next_pair(JoinNode* node, PairSource source, std::uint64_t* left, std::uint64_t* right) {
  PairBatch& batch = node->pairs.batch;
  if (batch.next == batch.count && !collects(node)) {
    batch.count = batch.next = 0;
    return source(node, left, right);
  }
  if (batch.next == batch.count && !fill(node, source)) return false;
  const BatchedPair& pair = batch.pairs[batch.next++];
  node->pairs.pair.distance = pair.distance;
  *left = pair.left;
  *right = pair.right;
  return true;
}

void forget_pairs(JoinNode* node) {
  node->pairs.cursor = {};
  node->pairs.reverse_due = false;
  node->pairs.batch.count = node->pairs.batch.next = node->pairs.batch.came = 0;
}

}  // namespace gpujoin

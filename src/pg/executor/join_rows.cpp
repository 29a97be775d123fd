// From pairs to rows. A row is in the scan tuple of the node when a function here returns true.
#include "pg/executor/join_node.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

void show_nothing(TupleTableSlot* slot, const Columns& columns) {
  for (int i = 0; i < columns.count; ++i) slot->tts_isnull[columns.targets[i]] = true;
}

/// Puts a number of matches into the scan tuple, where a column needs it.
void show_count(JoinNode* node, std::uint64_t count) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  for (int i = 0; i < node->data.column_count; ++i) {
    if (node->data.attributes[i] != 0) continue;
    slot->tts_values[i] = Int64GetDatum(static_cast<std::int64_t>(count));
    slot->tts_isnull[i] = false;
  }
}

/// Whether left rows that have matches, or left rows that have none, are rows of the join by
/// themselves.
bool drains(const JoinNode* node, bool with_match) {
  if (with_match)
    return node->data.grouped || (node->mode == Mode::kCounts && !emits_unmatched(node));
  return emits_unmatched(node);
}

/// The next left row that comes after all pairs, in the scan tuple, with nothing on the right.
bool next_left_row(JoinNode* node) {
  while (node->drained < row_count(node->left)) {
    const std::uint64_t row = node->drained++;
    if (!drains(node, node->matches[row] > 0)) continue;
    TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
    show(slot, node->left.shown, row);
    show_nothing(slot, node->right.shown);
    show_count(node, node->matches[row]);
    node->left_shown = kNoRow;
    return true;
  }
  return false;
}

/// Finds all matches, before any row is emitted.
void find_all(JoinNode* node) {
  while (next_match(node)) ++node->total;
}

/// Whether the result has all columns that are kept of a side's rows.
bool shows_all(const JoinNode* node, const Side& side) {
  for (int i = 0; i < side.shown.count; ++i)
    if (side.shown.targets[i] >= node->direct_columns) return false;
  return true;
}

/// Emits rows without columns.
bool count_off(JoinNode* node) {
  while (node->empty_rows == 0) {
    if (!next_batch(node)) return false;
    node->empty_rows = node->cursor.batch.pair_count;
  }
  --node->empty_rows;
  return true;
}

}  // namespace

void show(TupleTableSlot* slot, const Columns& columns, std::uint64_t row) {
  if (columns.count == 0) return;
  const bool* nulls;
  const Datum* const values = fetch_row(columns.rows, row, &nulls);
  for (int i = 0; i < columns.count; ++i) {
    slot->tts_values[columns.targets[i]] = values[i];
    slot->tts_isnull[columns.targets[i]] = nulls[i];
  }
}

void start_rows(JoinNode* node) {
  forget_pairs(node);
  node->left_shown = kNoRow;
  node->empty_rows = 0;
  node->draining = false;
  node->drained = node->evaluated = node->handed_over = 0;
  node->kept.count = node->kept.emitted = 0;
  node->own.count = node->own.emitted = 0;
  node->total = node->top_asked = 0;
  node->loop_reason = nullptr;
  if (node->data.join_type != JOIN_INNER || node->data.grouped) {
    const Size bytes = (row_count(node->left) + 1) * sizeof(std::uint64_t);
    if (node->matches == nullptr)
      node->matches = static_cast<std::uint64_t*>(MemoryContextAllocHuge(node->rows, bytes));
    std::memset(node->matches, 0, bytes);
  }
}

bool are_pairs_rows(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER && !node->data.counts && node->mode == Mode::kPairs &&
         node->run->join != nullptr && node->early == nullptr && node->late == nullptr &&
         (node->order == nullptr || (node->order_by_engine && node->run->request.self_join())) &&
         !has_open_pairs(node) && node->where == nullptr && node->direct != nullptr &&
         shows_all(node, node->left) && shows_all(node, node->right);
}

void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  if (node->left_shown != left) show(slot, node->left.shown, left);
  show(slot, node->right.shown, right);
  node->left_shown = left;
}

bool holds(JoinNode* node, ExprState* conditions) {
  if (conditions == nullptr) return true;
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = node->css.ss.ss_ScanTupleSlot;
  ExecStoreVirtualTuple(ExecClearTuple(node->css.ss.ss_ScanTupleSlot));
  return ExecQual(conditions, expressions);
}

bool next_row(JoinNode* node) {
  if (node->mode == Mode::kTop) {
    if (next_top(node)) return true;
    if (node->top_problem == nullptr) return false;
    restart_run(node->run);
    start_rows(node);
    start_pairs(node);
    start_work(node);
  }
  const bool streams = shows_right(node)
                           ? !node->data.counts
                           : node->data.join_type == JOIN_SEMI && node->mode != Mode::kCounts;
  if (!node->draining) {
    if (streams && next_match(node)) return true;
    if (!streams) find_all(node);
    node->draining = true;
    if (node->data.counts && !node->data.grouped) {
      show_count(node, node->total);
      return true;
    }
  }
  return node->matches != nullptr && next_left_row(node);
}

bool next_pair_row(JoinNode* node, TupleTableSlot* slot) {
  if (node->left.shown.count == 0 && node->right.shown.count == 0) return count_off(node);
  std::uint64_t left, right;
  if (!next_found(node, &left, &right)) return false;
  show(slot, node->left.shown, left);
  show(slot, node->right.shown, right);
  return true;
}

}  // namespace gpujoin

// From pairs to rows. A row is in the scan tuple of the node when a function here returns true.
#include "pg/join_node.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

void show(TupleTableSlot* slot, const Columns& columns, std::uint64_t row) {
  if (columns.count == 0) return;
  const bool* nulls;
  const Datum* const values = fetch_row(columns.rows, row, &nulls);
  for (int i = 0; i < columns.count; ++i) {
    slot->tts_values[columns.targets[i]] = values[i];
    slot->tts_isnull[columns.targets[i]] = nulls[i];
  }
}

void show_nothing(TupleTableSlot* slot, const Columns& columns) {
  for (int i = 0; i < columns.count; ++i) slot->tts_isnull[columns.targets[i]] = true;
}

/// Puts a number of matches into the scan tuple, where that is asked for.
void show_count(JoinNode* node, std::uint64_t count) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  for (int i = 0; i < node->data.column_count; ++i) {
    if (node->data.attributes[i] != 0) continue;
    slot->tts_values[i] = Int64GetDatum(static_cast<std::int64_t>(count));
    slot->tts_isnull[i] = false;
  }
}

bool next_batch(JoinNode* node) {
  CHECK_FOR_INTERRUPTS();
  if (!next_engine_batch(node->run)) return false;
  node->cursor.start(node->run->batch, PairSelection::kAll);
  node->handed_over += node->run->batch.pair_count;
  return true;
}

/// The next pair that the engine found, as numbers of rows.
bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  const bool positions = node->run->request.self_join;
  if (node->reverse_due) {
    std::swap(node->pair.id1, node->pair.id2);
    node->reverse_due = false;
  } else {
    while (!node->cursor.next(&node->pair))
      if (!next_batch(node)) return false;
    node->reverse_due = positions && node->mode == Mode::kTop;
  }
  *left = static_cast<std::uint64_t>(positions ? node->left.points.ids[node->pair.id1]
                                               : node->pair.id1);
  *right = static_cast<std::uint64_t>(positions ? node->right.points.ids[node->pair.id2]
                                                : node->pair.id2);
  return true;
}

bool is_settled(const JoinNode* node, std::uint64_t left) {
  return !shows_right(node) && node->matches[left] > 0;
}

/// Puts the columns that only tests need into the scan tuple.
void show_tested(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show(slot, node->left.tested, left);
  show(slot, node->right.tested, right);
}

/// Whether the condition holds for a pair that the scan tuple shows.
bool passes_test(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  show_tested(node, left, right);
  ++node->rechecked;
  return holds(node, node->condition);
}

/// The same as next_match(), asking the condition.
bool next_loop_match(JoinNode* node) {
  const std::uint64_t rows = row_count(node->left);
  for (; node->loop_left < rows; ++node->loop_left, node->loop_right = 0) {
    while (node->loop_right < row_count(node->right) && !is_settled(node, node->loop_left)) {
      CHECK_FOR_INTERRUPTS();
      show_pair(node, node->loop_left, node->loop_right++);
      if (!holds(node, node->all_conditions)) {
        InstrCountFiltered1(&node->css.ss, 1);
        continue;
      }
      if (node->matches != nullptr) ++node->matches[node->loop_left];
      node->last_left = node->loop_left;
      node->last_right = node->loop_right - 1;
      return true;
    }
  }
  return false;
}

/// Takes over what the engine counted.
void take_counts(JoinNode* node) {
  while (next_engine_batch(node->run)) {
    const ResultBatch& batch = node->run->batch;
    node->total += batch.pair_count;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const std::int64_t id = batch.left_ids[batch.rows[i]];
      node->matches[node->run->request.self_join ? node->left.points.ids[id] : id] =
          batch.counts[i];
    }
  }
}

bool next_pair(JoinNode* node) {
  return node->mode == Mode::kLoop ? next_loop_match(node) : next_match(node);
}

/// Whether left rows that have matches, or those that have none, are rows of the join by
/// themselves.
bool drains(const JoinNode* node, bool with_match) {
  if (with_match)
    return node->data.grouped || (node->mode == Mode::kCounts && !tells_unmatched(node));
  return tells_unmatched(node);
}

/// The next left row that is to be told after all pairs, in the scan tuple, with nothing on the
/// right.
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

/// All matches, before anything of them is told.
void find_all(JoinNode* node) {
  if (node->mode == Mode::kCounts || node->mode == Mode::kTotal) return take_counts(node);
  while (next_pair(node)) {
    ++node->total;
    CHECK_FOR_INTERRUPTS();
  }
}

/// Whether each pair that the engine hands over is a row as it is.
bool are_pairs_rows(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER && !node->data.counts && node->mode == Mode::kPairs &&
         node->filter == nullptr && !has_open_pairs(node) && node->css.ss.ps.qual == nullptr &&
         node->direct != nullptr;
}

/// Counts rows off that nobody looks into.
bool count_off(JoinNode* node) {
  while (node->empty_rows == 0) {
    if (!next_batch(node)) return false;
    node->empty_rows = node->cursor.batch.pair_count;
  }
  --node->empty_rows;
  return true;
}

}  // namespace

void start_rows(JoinNode* node) {
  node->pairs_are_rows = are_pairs_rows(node);
  node->cursor = {};
  node->left_shown = kNoRow;
  node->loop_left = node->loop_right = node->empty_rows = 0;
  node->draining = false;
  node->drained = node->rechecked = 0;
  node->kept.count = node->kept.told = 0;
  node->own.count = node->own.told = 0;
  node->reverse_due = false;
  node->handed_over = 0;
  node->total = 0;
  if (node->data.join_type != JOIN_INNER || node->data.grouped) {
    const Size bytes = (row_count(node->left) + 1) * sizeof(std::uint64_t);
    if (node->matches == nullptr)
      node->matches = static_cast<std::uint64_t*>(MemoryContextAllocHuge(node->context, bytes));
    std::memset(node->matches, 0, bytes);
  }
}

void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  if (node->left_shown != left) show(slot, node->left.shown, left);
  show(slot, node->right.shown, right);
  node->left_shown = left;
}

bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (is_open(node) && !passes_test(node, left, right)) return false;
  if (holds(node, node->filter)) return true;
  InstrCountFiltered1(&node->css.ss, 1);
  return false;
}

bool next_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_found(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_settled(node, left)) continue;
    show_pair(node, left, right);
    if (!passes(node, left, right)) continue;
    if (node->matches != nullptr) ++node->matches[left];
    node->last_left = left;
    node->last_right = right;
    return true;
  }
  return false;
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
    start_pairs(node);
    start_rows(node);
  }
  const bool streams = shows_right(node)
                           ? !node->data.counts
                           : node->data.join_type == JOIN_SEMI && node->mode != Mode::kCounts;
  if (!node->draining) {
    if (streams && next_pair(node)) return true;
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

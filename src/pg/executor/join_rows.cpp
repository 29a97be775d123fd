// From pairs to rows. A row is in the scan tuple of the node when a function here returns true.
#include "pg/executor/join_rows.h"

#include "pg/executor/join_batch.h"
#include "pg/executor/join_explain.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_work.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Puts a number of matches into the scan tuple, where a column needs it.
void show_count(JoinNode* node, std::uint64_t count) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  for (int i = 0; i < node->data.columns.count; ++i) {
    if (node->data.columns.attributes[i] != 0) continue;
    slot->tts_values[i] = Int64GetDatum(static_cast<std::int64_t>(count));
    slot->tts_isnull[i] = false;
  }
}

/// Whether left rows that have matches, or left rows that have none, are rows of the join by
/// themselves.
bool drains(const JoinNode* node, bool with_match) {
  if (with_match)
    return node->data.grouped || (node->pairs.mode == Mode::kCounts && !emits_unmatched(node));
  return emits_unmatched(node);
}

/// The next row of a left side that is fetched late, of those with a match, or without one.
bool next_late_left(JoinNode* node, bool with_match, std::uint64_t* row) {
  LateRows* const late = node->left.late;
  const bool scans = node->left.shown.count > 0 && late->marked > few_rows(node->left.points.rows);
  if (with_match && !scans) {
    if (!next_marked(*late, &node->output.late_drained)) return false;
    *row = static_cast<std::uint64_t>(node->output.late_drained);
    return true;
  }
  while (next_late_row(late) != nullptr) {
    CHECK_FOR_INTERRUPTS();
    *row = static_cast<std::uint64_t>(late->held);
    if (is_marked(*late, late->held) == with_match) return true;
  }
  return false;
}

/// The next left row that comes after all pairs, in the scan tuple, with nothing on the right.
bool next_left_row(JoinNode* node) {
  if (node->left.late != nullptr) {
    const bool with_match = drains(node, true);
    std::uint64_t row;
    if (!(with_match || drains(node, false)) || !next_late_left(node, with_match, &row))
      return false;
    show_left_alone(node, row);
    return true;
  }
  while (node->output.drained < row_count(node, node->left)) {
    const std::uint64_t row = node->output.drained++;
    if (!drains(node, node->output.matches[row] > 0)) continue;
    show_left_alone(node, row);
    show_count(node, node->output.matches[row]);
    node->output.last_left = row;
    return true;
  }
  return false;
}

/// Puts columns of a row that is fetched into a slot.
void show_late(TupleTableSlot* slot, const Columns& columns, std::uint64_t row) {
  TupleTableSlot* const found = fetch_late_row(columns.late, static_cast<std::int64_t>(row));
  for (int i = 0; i < columns.count; ++i)
    slot->tts_values[columns.targets[i]] =
        late_value(found, columns.attributes[i], &slot->tts_isnull[columns.targets[i]]);
}

/// The same of a row that is kept.
void show_kept(TupleTableSlot* slot, const Columns& columns, std::uint64_t row) {
  const bool* nulls;
  const Datum* const values = fetch_row(columns.rows, row, &nulls);
  for (int i = 0; i < columns.count; ++i) {
    slot->tts_values[columns.targets[i]] = values[i];
    slot->tts_isnull[columns.targets[i]] = nulls[i];
  }
}

/// Finds all matches, before any row is emitted.
void find_all(JoinNode* node) {
  while (next_match(node)) ++node->output.total;
}

/// Whether the result has all columns that are kept of a side's rows.
bool shows_all(const JoinNode* node, const Side& side) {
  for (int i = 0; i < side.shown.count; ++i)
    if (side.shown.targets[i] >= node->output.direct_columns) return false;
  return true;
}

/// Emits rows without columns.
bool count_off(JoinNode* node) {
  while (node->output.empty_rows == 0) {
    if (!next_batch(node)) return false;
    node->output.empty_rows = node->pairs.cursor.batch.pair_count;
  }
  --node->output.empty_rows;
  return true;
}

}  // namespace

void show(TupleTableSlot* slot, const Columns& columns, std::uint64_t row) {
  if (columns.count == 0) return;
  if (columns.late != nullptr)
    show_late(slot, columns, row);
  else
    show_kept(slot, columns, row);
  for (int i = 0; i < columns.twin_count; ++i) {
    const auto [kept, twin] = columns.twins[i];
    slot->tts_values[twin] = slot->tts_values[kept];
    slot->tts_isnull[twin] = slot->tts_isnull[kept];
  }
}

void show_nothing(TupleTableSlot* slot, const Columns& columns) {
  for (int i = 0; i < columns.count; ++i) slot->tts_isnull[columns.targets[i]] = true;
  for (int i = 0; i < columns.twin_count; ++i) slot->tts_isnull[columns.twins[i].twin] = true;
}

void show_left_alone(JoinNode* node, std::uint64_t row) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show(slot, node->left.shown, row);
  show_nothing(slot, node->right.shown);
  node->output.left_shown = kNoRow;
}

void start_rows(JoinNode* node) {
  forget_pairs(node);
  node->output.left_shown = kNoRow;
  node->output.empty_rows = 0;
  node->output.draining = false;
  node->output.drained = node->report.evaluated = node->pairs.handed_over = 0;
  node->output.late_drained = -1;
  node->output.total = 0;
  node->output.pairs_are_rows = false;
  node->report.loop_reason = nullptr;
}

void clear_matches(JoinNode* node) {
  const Size bytes = (row_count(node, node->left) + 1) * sizeof(std::uint64_t);
  if (node->output.matches == nullptr)
    node->output.matches = static_cast<std::uint64_t*>(MemoryContextAllocHuge(node->rows, bytes));
  std::memset(node->output.matches, 0, bytes);
}

bool are_pairs_rows(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER && !node->data.counts && node->sums == nullptr &&
         node->pairs.mode == Mode::kPairs && node->pairs.run->join != nullptr &&
         early_conditions(node) == nullptr && late_conditions(node) == nullptr &&
         (node->conditions.order == nullptr ||
          (node->pairs.order_by_engine && node->pairs.run->request.self_join())) &&
         !has_open_pairs(node) && node->conditions.where == nullptr &&
         node->output.direct != nullptr && shows_all(node, node->left) &&
         shows_all(node, node->right);
}

void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  if (node->output.left_shown != left) show(slot, node->left.shown, left);
  show(slot, node->right.shown, right);
  node->output.left_shown = left;
}

bool holds(JoinNode* node, ExprState* conditions) {
  if (conditions == nullptr) return true;
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = node->css.ss.ss_ScanTupleSlot;
  ExecStoreVirtualTuple(ExecClearTuple(node->css.ss.ss_ScanTupleSlot));
  return ExecQual(conditions, expressions);
}

void explain_counts(const JoinNode* node, const Words&, ExplainState* es) {
  if (node->data.counts)
    ExplainPropertyText("Counts", node->data.grouped ? "pairs per row" : "pairs", es);
}

bool next_joined_row(JoinNode* node) {
  const bool streams = shows_right(node)
                           ? !node->data.counts
                           : node->data.join_type == JOIN_SEMI && node->pairs.mode != Mode::kCounts;
  if (!node->output.draining) {
    if (streams && next_match(node)) return true;
    if (!streams) find_all(node);
    node->output.draining = true;
    if (node->data.counts && !node->data.grouped) {
      show_count(node, node->output.total);
      return true;
    }
  }
  return notes_matches(node) && next_left_row(node);
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

// The rows of a join whose pairs are added up, where no more is wanted of a row than its point, its
// group and the columns that the engine is told of: all of this is computed as the row comes, and
// the row is not kept. Both inputs are read at once where they are the same scan. Pairs cannot be
// asked for then: where some have to be, the inputs are read again.
#include "pg/executor/sum_reading.h"

#include "pg/executor/input_scan.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_sums.h"
#include "pg/reading/row_filter.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// Whether the aggregate is of right rows, pairs or distances: of left rows the engine knows none.
bool is_told(const Sum& sum) {
  return sum.plan.of != SumOf::kLeft && sum.plan.filter != SumOf::kLeft && !combines(sum) &&
         sum.plan.state != SumState::kRows;
}

/// Whether an input is a scan that gives the same rows when it is read again.
bool is_repeatable(const PlanState* input) {
  const SeqScanState* const scan = table_scan(input);
  return scan != nullptr && can_be_shared(scan->ss.ps.plan->qual) &&
         can_be_shared(scan->ss.ps.plan->targetlist);
}

/// Whether the engine may add up all pairs, of points that the inputs have.
bool serves(const JoinNode* node) {
  const JoinPlanData& data = node->data;
  const SumWork* const work = node->sums;
  return work != nullptr && !work->keeps_rows && data.join_type == JOIN_INNER &&
         std::all_of(work->sums, work->sums + work->count, is_told) && !data.groups.may_raise &&
         !data.eps_may_raise && node->conditions.order == nullptr &&
         node->conditions.early == nullptr && node->conditions.late == nullptr &&
         node->pairs.keys == nullptr && !has_row_radii(node) && data.left.value > 0 &&
         data.right.value > 0 && is_exact(data.test) &&
         data.test.by->compared == ValueForm::kPoint && is_repeatable(node->left.plan) &&
         is_repeatable(node->right.plan);
}

/// Where the columns of a side stand in the rows that are read.
struct Source {
  Side* side;
  AttrNumber value;
  AttrNumber *shown, *tested;  ///< as Columns::attributes
};

/// The columns of a side in its own rows, or in those of its `table`. False: some are no columns of
/// it.
bool find_source(Side* side, bool in_table, Source* source) {
  bool all = true;
  const auto place = [&](AttrNumber attribute) {
    if (!in_table) return attribute;
    const AttrNumber column = table_column(side->plan, attribute);
    all = all && column > 0;
    return column;
  };
  const auto places = [&](const Columns& columns) {
    AttrNumber* const found =
        static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (columns.count + 1)));
    for (int i = 0; i < columns.count; ++i) found[i] = place(columns.rows->attributes[i]);
    return found;
  };
  *source = {side, place(side->value), places(side->shown), places(side->tested)};
  return all;
}

/// The scan of a table that the session itself does; null: the input is something else.
SeqScanState* own_scan(PlanState* input) {
  return IsA(input, SeqScanState) ? reinterpret_cast<SeqScanState*>(input) : nullptr;
}

/// Whether both inputs are scans of the session itself that give the same rows, and compare one
/// column.
bool are_one_scan(const JoinNode* node) {
  return own_scan(node->left.plan) != nullptr && own_scan(node->right.plan) != nullptr &&
         are_alike(node->left.plan, node->right.plan) &&
         table_column(node->left.plan, node->left.value) ==
             table_column(node->right.plan, node->right.value);
}

void show_columns(TupleTableSlot* to, const Columns& columns, const AttrNumber* attributes,
                  TupleTableSlot* from) {
  for (int i = 0; i < columns.count; ++i)
    to->tts_values[columns.targets[i]] =
        slot_getattr(from, attributes[i], &to->tts_isnull[columns.targets[i]]);
  for (int i = 0; i < columns.twin_count; ++i) {
    const auto [kept, twin] = columns.twins[i];
    to->tts_values[twin] = to->tts_values[kept];
    to->tts_isnull[twin] = to->tts_isnull[kept];
  }
}

/// Puts all columns of a row into the scan tuple.
void show_source(JoinNode* node, const Source& source, TupleTableSlot* from) {
  TupleTableSlot* const to = node->css.ss.ss_ScanTupleSlot;
  const Side& side = *source.side;
  show_columns(to, side.shown, source.shown, from);
  show_columns(to, side.tested, source.tested, from);
  if (side.rebuilt >= 0)
    to->tts_values[side.rebuilt] = slot_getattr(from, source.value, &to->tts_isnull[side.rebuilt]);
}

/// Reads the rows of an input to the end, and what is wanted of them for each source, of which the
/// first is the input's own side. False: a row has to be kept.
bool read_rows(JoinNode* node, const Source* sources, int count, ValueShape* shape,
               SumValues* values) {
  Side* const side = sources[0].side;
  const SeqScanState* const scan = own_scan(side->plan);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    TupleTableSlot* const slot = ExecProcNode(side->plan);
    if (TupIsNull(slot)) return true;
    slot_getallattrs(slot);
    if (slot->tts_isnull[side->value - 1]) continue;
    const std::uint64_t row = side->buffer.rows;
    add_row_value(node, side, shape, static_cast<std::int64_t>(row),
                  slot->tts_values[side->value - 1], slot);
    if (side->odd.count > 0 || is_spilled(side->buffer)) return false;
    if (side->buffer.rows == row) continue;  // a NULL among its elements
    for (int i = 0; i < count; ++i)
      show_source(node, sources[i], i == 0 ? slot : scan->ss.ss_ScanTupleSlot);
    if (side == &node->left) note_group(node, row, slot);
    ExprContext* const expressions = over_scan_tuple(node);
    for (int i = 0; i < count; ++i)
      if (!read_sum_values(node, values, sources[i].side == &node->left, row, expressions))
        return false;
  }
}

/// Reads both inputs. False: some row has to be kept.
bool read_both(JoinNode* node, ValueShape* shape, SumValues* values) {
  Side &left = node->left, &right = node->right;
  Source sources[2];
  const double left_rows = left.plan->plan->plan_rows, right_rows = right.plan->plan->plan_rows;
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  find_source(&left, false, &sources[0]);
  const bool one = are_one_scan(node) && find_source(&right, true, &sources[1]);
  if (!one) find_source(&right, false, &sources[1]);
  MemoryContextSwitchTo(caller);
  begin_service_join(node->pairs.run, one ? left_rows : left_rows + right_rows);
  start_side(node, &left);
  if (one) {
    if (!read_rows(node, sources, 2, shape, values)) return false;
    finish_side(node, &left, *shape);
    right.points = left.points;
    node->pairs.sides.compared = node->pairs.sides.same = true;
    return true;
  }
  if (!read_rows(node, sources, 1, shape, values)) return false;
  start_side(node, &right);
  if (!read_rows(node, sources + 1, 1, shape, values)) return false;
  for (Side* const side : {&left, &right}) finish_side(node, side, *shape);
  return true;
}

}  // namespace

bool read_summed_inputs(JoinNode* node) {
  if (!serves(node)) return false;
  begin_run(node);
  clear_sums(node);
  ValueShape shape = {};
  shape.demands = demands_of(node->data.test);
  instr_time start;
  INSTR_TIME_SET_CURRENT(start);
  SumValues* const values = begin_sum_values(node);
  bool read = read_both(node, &shape, values);
  if (read) {
    report_reading(node, start, shape);
    tell_sum_values(node, values);
    read = node->sums->problem == nullptr;
  }
  if (read) return true;
  keep_summed_rows(node);
  return false;
}

void keep_summed_rows(JoinNode* node) {
  node->sums->keeps_rows = true;
  rescan_inputs(node);
}

}  // namespace gpujoin

// Reading the inputs of a join, once: rows into row stores, compared values into datasets, and the
// few values that are no points or boxes like the others into OddRows.
#include "pg/executor/join_inputs.h"

#include "pg/executor/join_blocks.h"
#include "pg/executor/join_extents.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_nearest.h"
#include "pg/executor/join_operands.h"
#include "pg/executor/join_products.h"
#include "pg/executor/join_radii.h"
#include "pg/executor/join_result.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_sums.h"
#include "pg/executor/join_top.h"
#include "pg/settings.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

// ---- Columns

/// Columns of the scan tuple that the expressions use.
Bitmapset* used_columns(std::initializer_list<void*> expressions) {
  Bitmapset* used = nullptr;
  for (void* const expression : expressions)
    pull_varattnos(static_cast<Node*>(expression), INDEX_VAR, &used);
  return used;
}

int member_of(int column) { return column + 1 - FirstLowInvalidHeapAttributeNumber; }

/// Rows are looked up at random for their pairs, as those of a hash table are, and being without
/// them in memory costs as much: so both inputs together have what PostgreSQL gives to one.
Size memory_for_rows() { return static_cast<Size>(hash_mem_multiplier * work_mem * 1024.0); }

/// Room for the columns `used` that come from a side, and takes them out of `*others`: those that
/// are the same column of the input are twins.
Columns prepare_columns(JoinNode* node, const Side* side, const Bitmapset* used,
                        Bitmapset** others) {
  const int most = node->data.columns.count;
  Columns columns = {};
  columns.targets = static_cast<int*>(palloc(sizeof(int) * (most + 1)));
  columns.twins = static_cast<TwinColumns*>(palloc(sizeof(TwinColumns) * (most + 1)));
  AttrNumber* const attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (most + 1)));
  for (const Bitmapset* const wanted : {used, static_cast<const Bitmapset*>(*others)}) {
    for (int i = 0; i < most; ++i) {
      const AttrNumber attribute = node->data.columns.attributes[i];
      if (attribute == 0 || node->data.columns.from_left[i] != (side == &node->left) ||
          !bms_is_member(member_of(i), wanted))
        continue;
      const auto kept = std::find(attributes, attributes + columns.count, attribute) - attributes;
      if (kept < columns.count) {
        columns.twins[columns.twin_count++] = {columns.targets[kept], i};
      } else if (wanted == used) {
        attributes[columns.count] = attribute;
        columns.targets[columns.count++] = i;
      }
    }
  }
  for (int i = 0; i < columns.twin_count; ++i)
    *others = bms_del_member(*others, member_of(columns.twins[i].twin));
  columns.rows = create_row_store(node->rows, &node->inputs.budget, ExecGetResultType(side->plan),
                                  attributes, columns.count);
  return columns;
}

/// The column of the scan tuple that holds the compared value as it comes from the input, among
/// these columns unless null; -1: none.
int value_column(const JoinNode* node, const Side* side, const Bitmapset* among = nullptr) {
  for (int i = 0; side->value > 0 && i < node->data.columns.count; ++i)
    if (node->data.columns.from_left[i] == (side == &node->left) &&
        node->data.columns.attributes[i] == side->value &&
        (among == nullptr || bms_is_member(member_of(i), among)))
      return i;
  return -1;
}

/// A compared value that its point gives back, if that is here, need not be kept for the few pairs
/// that ask.
void prepare_side(JoinNode* node, Side* side, const Bitmapset* shown, Bitmapset* tested) {
  const int column = value_column(node, side, tested);
  const SimilarityTest& test = node->data.test;
  const bool rebuilds = !comes_from(node, RowSource::kKept) && column >= 0 &&
                        test.type->rebuild != nullptr && test.by->compared == ValueForm::kPoint;
  side->rebuilt = rebuilds ? column : -1;
  side->odd = {};
  side->extent_row = kNoRow;
  if (rebuilds) {
    tested = bms_del_member(tested, member_of(column));
    side->odd.values = create_row_store(node->rows, &node->inputs.budget,
                                        ExecGetResultType(side->plan), &side->value, 1);
  }
  side->shown = prepare_columns(node, side, shown, &tested);
  Bitmapset* none = nullptr;
  side->tested = prepare_columns(node, side, tested, &none);
  side->buffer = {};
  side->points = {};
  side->scores.range = {0, INFINITY};
  side->scores.of_rows = nullptr;
  side->scores.room = 0;
  side->radii.of_rows = nullptr;
  side->radii.room = 0;
  side->radii.most = kNoRadius;
  side->late = nullptr;
  side->places = {};
}

void prepare_sides(JoinNode* node) {
  const Plan* const plan = node->css.ss.ps.plan;
  const JoinPlanExpressions& expressions = node->expressions;
  Bitmapset* const shown = used_columns({plan->targetlist, expressions.where, expressions.order,
                                         expressions.early, expressions.late, expressions.groups,
                                         node->nearest != nullptr ? computed_columns(node) : NIL});
  Bitmapset* const tested = bms_difference(
      used_columns({expressions.condition, expressions.left_operand, expressions.right_operand,
                    expressions.guard, expressions.sums, expressions.distance}),
      shown);
  node->left.keep_unmatched = emits_unmatched(node) || node->nearest != nullptr;
  node->right.keep_unmatched = node->nearest != nullptr;
  node->inputs.budget = {memory_for_rows(), 0, nullptr, false};
  node->pairs.batch = {};
  for (Side* const side : {&node->left, &node->right})
    prepare_side(node, side, shown, bms_copy(tested));
}

// ---- Values

ValueProblem add_compared(JoinNode* node, Side* side, ValueShape* shape, std::int64_t row,
                          Datum value) {
  return add_value(*node->data.test.type, node->inputs.form, &side->buffer, shape, row, value)
      .problem;
}

/// An empty buffer for the same points.
PointBuffer fresh_buffer(const PointBuffer& like) {
  PointBuffer buffer = {};
  buffer.context = like.context;
  buffer.source = like.source;
  buffer.limit = like.limit;
  buffer.scalar = like.scalar;
  buffer.scored = like.scored;
  buffer.spill = like.spill;
  buffer.shares = like.shares;
  buffer.plane_boxes = like.plane_boxes;
  return buffer;
}

/// Takes the value's shape as the shape of all, where the side that is read first has fewer points
/// than odd rows: the first row of a table may be the odd one. Then the points become odd.
bool change_shape(JoinNode* node, Side* side, ValueShape* shape, std::int64_t row, Datum value) {
  PointBuffer& buffer = side->buffer;
  const Side& other = side == &node->left ? node->right : node->left;
  if (other.buffer.rows > 0 || is_spilled(buffer) || buffer.rows == 0 ||
      buffer.rows > side->odd.count)
    return false;
  PointBuffer before = buffer;
  ValueShape fresh = {};
  fresh.demands = shape->demands;
  buffer = fresh_buffer(before);
  if (add_compared(node, side, &fresh, row, value) != ValueProblem::kNone) {
    buffer = before;
    return false;
  }
  const Dataset points = finish_points(&before);
  for (std::uint64_t i = 0; i < points.rows; ++i) add_odd_point(node, side, points, i, shape->srid);
  forget_points(&before);
  *shape = fresh;
  return true;
}

/// Whether the row's radius is NULL.
bool lacks_radius(const Side& side, std::uint64_t row) {
  return side.radii.value > 0 && side.radii.of_rows[row] == kNoRadius;
}

/// Keeps the score of the next row, whose value is computed later.
void keep_score(JoinNode* node, Side* side, TupleTableSlot* slot) {
  const std::uint64_t row = row_count(node, *side);
  reserve_next(node->rows, &side->scores.of_rows, row, &side->scores.room);
  side->scores.of_rows[row] = read_score(node, side, slot);
}

// ---- Inputs

/// Reads an input to its end: its rows, and its values where it has them.
void read_plan(JoinNode* node, Side* side, ValueShape* shape) {
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    TupleTableSlot* const slot = ExecProcNode(side->plan);
    if (TupIsNull(slot)) break;
    slot_getallattrs(slot);
    const bool has_radius = keep_radius(node, side, slot);
    const bool is_null = side->value > 0 && slot->tts_isnull[side->value - 1];
    const bool has_value = has_radius && side->value > 0 && !is_null;
    const bool is_odd = has_radius && is_null && node->data.test.of_null;
    if (side->value > 0 && !has_value && !is_odd && !side->keep_unmatched) continue;
    const auto row = static_cast<std::int64_t>(row_count(node, *side));
    if (is_odd) add_odd(node, side, row, 0, {});
    if (has_value) add_row_value(node, side, shape, row, slot->tts_values[side->value - 1], slot);
    if (side->scores.value > 0 && side->operand.state != nullptr) keep_score(node, side, slot);
    store_row(side->shown.rows, slot->tts_values, slot->tts_isnull);
    store_row(side->tested.rows, slot->tts_values, slot->tts_isnull);
    ResetExprContext(scratch);
  }
  trim_row_store(side->shown.rows);
  trim_row_store(side->tested.rows);
}

/// Reads a side in the quickest way.
void read_side(JoinNode* node, Side* side, ValueShape* shape) {
  start_side(node, side);
  if (read_side_blocks(node, side, shape)) return;
  start_side(node, side);
  read_plan(node, side, shape);
}

/// Goes through the rows that were read and makes points, boxes or odd rows of their values: of the
/// values that the node computes, or of values that are to become another kind.
void convert_all(JoinNode* node, Side* side, ValueShape* shape) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  const int column = value_column(node, side);
  for (std::uint64_t row = 0; row < row_count(node, *side); ++row) {
    CHECK_FOR_INTERRUPTS();
    show(slot, side->shown, row);
    show(slot, side->tested, row);
    const auto number = static_cast<std::int64_t>(row);
    if (side->operand.state == nullptr) {
      if (!slot->tts_isnull[column])
        add_row_value(node, side, shape, number, slot->tts_values[column], slot);
      else if (node->data.test.of_null)
        add_odd(node, side, number, 0, {});
      ResetExprContext(scratch);
      continue;
    }
    if (!holds(node, side->operand.guard) || lacks_radius(*side, row)) continue;
    scratch->ecxt_scantuple = ExecStoreVirtualTuple(ExecClearTuple(slot));
    bool is_null = false;
    Datum value = 0;
    if (!compute_operand(node, side, &value, &is_null) || (is_null && node->data.test.of_null))
      add_odd(node, side, number, 0, {});
    else if (!is_null)
      add_row_value(node, side, shape, number, value, slot);
    ResetExprContext(scratch);
  }
}

void convert_rows(JoinNode* node, Side* side, ValueShape* shape) {
  compute_operands(node, side, shape, convert_all);
}

void forget_values(Side* side) {
  forget_points(&side->buffer);
  side->odd.count = 0;
}

/// Makes boxes of the values of a side that was read. Those whose rows are not here are read again.
void convert_to_boxes(JoinNode* node, Side* side, ValueShape* shape) {
  if (side->late != nullptr) {
    close_late(node, side);
    return read_side(node, side, shape);
  }
  start_side(node, side);
  convert_rows(node, side, shape);
}

/// Values that are no points, but have boxes: lines among points.
void read_boxes(JoinNode* node, std::initializer_list<Side*> sides, ValueShape* shape) {
  node->inputs.form = ValueForm::kBox;
  const ValueDemands demands = {false, shape->demands.only_moderate, false};
  *shape = {};
  shape->demands = demands;
  for (Side* const side : sides) forget_values(side);
  for (Side* const side : sides) convert_to_boxes(node, side, shape);
}

/// Whether the side's values can be had once more: rows of an outer join do not have those that are
/// not NULL where the row has no match.
bool has_values_again(const JoinNode* node, const Side& side) {
  return side.operand.state != nullptr || side.late != nullptr || value_column(node, &side) >= 0;
}

/// Returns true if boxes leave fewer pairs to the condition than points do.
bool wants_boxes(const JoinNode* node, double left_rows, double right_rows) {
  constexpr double kFewPairs = 1000, kFewPerRow = 4;
  if (node->nearest != nullptr || !has_values_again(node, node->left) ||
      !has_values_again(node, node->right))
    return false;
  const double odd_pairs = static_cast<double>(node->left.odd.count) * right_rows +
                           static_cast<double>(node->right.odd.count) * left_rows;
  return node->inputs.form != ValueForm::kBox && has_form(*node->data.test.type, ValueForm::kBox) &&
         odd_pairs > kFewPairs + kFewPerRow * (left_rows + right_rows);
}

/// Reads both inputs, and makes values of the rows where the inputs do not have them. An outer side
/// without rows makes no join. Where many of its values are boxes the other side's become boxes at
/// once.
void read_sides(JoinNode* node, ValueShape* shape) {
  Side &left = node->left, &right = node->right;
  if (node->pairs.keys == nullptr && !has_row_radii(node))  // keys are of an index of the session
    begin_service_join(node->pairs.run, left.plan->plan->plan_rows + right.plan->plan->plan_rows);
  read_side(node, &left, shape);
  const auto left_rows = static_cast<double>(row_count(node, left));
  if (left_rows == 0) return;
  if (wants_boxes(node, left_rows, right.plan->plan->plan_rows)) read_boxes(node, {&left}, shape);
  read_side(node, &right, shape);
  const auto right_rows = static_cast<double>(row_count(node, right));
  if (right_rows == 0) return;
  for (Side* const side : {&left, &right})
    if (side->operand.state != nullptr) convert_rows(node, side, shape);
  if (wants_boxes(node, left_rows, right_rows)) read_boxes(node, {&left, &right}, shape);
}

// ---- Looking rows up

/// The compared value of a row, which is 0 and *is_null where it was NULL. May load a chunk of
/// the file.
Datum rebuild_value(const JoinNode* node, Side* side, std::uint64_t number, bool* is_null) {
  *is_null = false;
  if (const OddRow* const odd = find_odd(side->odd, number)) {
    const bool* nulls;
    const Datum value = fetch_row(side->odd.values, odd->value, &nulls)[0];
    *is_null = nulls[0];
    return value;
  }
  std::uint64_t position;
  const Dataset* const points = find_row_point(side, number, &position);
  *is_null = points == nullptr;
  return *is_null ? 0 : node->data.test.type->rebuild(*points, position);
}

/// Closes what a memory context does not end.
void close_sides(JoinNode* node) {
  for (Side* const side : {&node->left, &node->right}) {
    close_late(node, side);
    for (RowStore** const store : {&side->shown.rows, &side->tested.rows, &side->odd.values}) {
      if (*store != nullptr) clear_row_store(*store);
      *store = nullptr;
    }
    side->buffer = {};
  }
  close_spill_file(&node->pairs.run->spill);
}

}  // namespace

void start_side(JoinNode* node, Side* side) {
  PointBuffer& buffer = side->buffer;
  buffer.context = node->rows;
  buffer.source = "a side of a similarity join";
  buffer.limit = dataset_share(node->pairs.run, 2);
  buffer.scalar = scalar_of(*node->data.test.type, node->inputs.form);
  buffer.scored = side->scores.value > 0 && node->inputs.form != ValueForm::kBox;
  buffer.spill = &node->pairs.run->spill;
  buffer.shares = node->pairs.run->service.connection.socket >= 0;
  side->plane_boxes = {node->rows, nullptr, 0, 0};
  buffer.plane_boxes = &side->plane_boxes;
}

void read_input(JoinNode* node, Side* side, ValueShape* shape) {
  start_side(node, side);
  read_plan(node, side, shape);
  if (side->operand.state != nullptr) convert_rows(node, side, shape);
}

void add_row_value(JoinNode* node, Side* side, ValueShape* shape, std::int64_t row, Datum value,
                   TupleTableSlot* slot) {
  if (has_odd_radius(node, *side, static_cast<std::uint64_t>(row)))
    return add_odd(node, side, row, value, {});
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  const MemoryContext caller = MemoryContextSwitchTo(scratch->ecxt_per_tuple_memory);
  const ValueProblem problem = add_compared(node, side, shape, row, value);
  const bool added =
      problem == ValueProblem::kNone ||
      (problem != ValueProblem::kNullElement && change_shape(node, side, shape, row, value));
  const bool of_empty = node->data.test.of_null || node->data.test.by->of_empty;
  if (!added && (problem != ValueProblem::kNullElement || of_empty)) {
    const ValueExtent extent = of_empty ? ValueExtent{} : extent_of_value(node, value);
    if (extent.kind != ValueExtent::kEmpty) add_odd(node, side, row, value, extent);
  }
  if (added) note_radius(side, static_cast<std::uint64_t>(row));
  if (added && side->buffer.scored)
    set_score(&side->buffer, side->operand.state != nullptr ? side->scores.of_rows[row]
                                                            : read_score(node, side, slot));
  MemoryContextSwitchTo(caller);
}

void finish_side(JoinNode* node, Side* side, const ValueShape& shape) {
  if (node->inputs.form == ValueForm::kBox) widen_boxes(&side->buffer, shape.dims);
  side->points = finish_points(&side->buffer);
  share_side(node->pairs.run, side == &node->left ? 0 : 1, side->buffer.shared, {}, nullptr);
  sort_odd(side);
}

void add_odd_point(JoinNode* node, Side* side, const Dataset& points, std::uint64_t position,
                   std::int32_t srid) {
  add_odd(node, side, points.ids[position],
          side->odd.values != nullptr ? node->data.test.type->rebuild(points, position) : 0,
          extent_of_point(node, *side, points, position, srid));
}

void add_odd(JoinNode* node, Side* side, std::int64_t row, Datum value, const ValueExtent& extent) {
  OddRows& odd = side->odd;
  reserve_next(node->rows, &odd.rows, odd.count, &odd.room);
  odd.rows[odd.count] = {row, odd.count, extent};
  ++odd.count;
  if (odd.values == nullptr) return;
  // The store looks for the value where the input's rows have it.
  Datum* const values = static_cast<Datum*>(palloc0(sizeof(Datum) * side->value));
  bool* const nulls = static_cast<bool*>(palloc0(sizeof(bool) * side->value));
  values[side->value - 1] = value;
  nulls[side->value - 1] = value == 0;
  store_row(odd.values, values, nulls);
}

void sort_odd(Side* side) {
  const OddRows& odd = side->odd;
  std::sort(odd.rows, odd.rows + odd.count,
            [](const OddRow& a, const OddRow& b) { return a.row < b.row; });
}

void begin_run(JoinNode* node) {
  forget_rows(node);
  MemoryContextReset(node->context);
  const MemoryContext caller = MemoryContextSwitchTo(node->context);
  node->pairs.run = static_cast<EngineRun*>(palloc0(sizeof(EngineRun)));
  init_engine_run(node->pairs.run, node->context, kCustomScanName);
  node->pairs.run->plain_sql = true;
  node->pairs.run->processes = node->data.nearest.processes;
  node->rows = AllocSetContextCreate(node->context, "gpujoin rows", ALLOCSET_DEFAULT_SIZES);
  stop_engine_with(node->pairs.run, node->rows);
  node->asked = AllocSetContextCreate(node->rows, "gpujoin pair", ALLOCSET_SMALL_SIZES);
  MemoryContextSwitchTo(node->rows);
  node->inputs.finished = false;
  node->report.fetched_rows = 0;
  node->inputs.eps_need = EpsNeed::kUnknown;
  const bool middles =
      node->nearest != nullptr && has_form(*node->data.test.type, ValueForm::kMiddle);
  node->inputs.form = middles ? ValueForm::kMiddle : node->data.test.by->compared;
  node->output.matches = nullptr;
  node->result->forget(node);
  node->pairs.sides.ranks = node->pairs.sides.by_rank = nullptr;
  node->pairs.sides.ranked = node->pairs.sides.compared = node->inputs.tests_srids = false;
  node->pairs.sample = {};
  prepare_sides(node);
  MemoryContextSwitchTo(caller);
}

bool read_inputs(JoinNode* node) {
  begin_run(node);
  ValueShape shape = {};
  shape.demands = demands_of(node->data.test);
  instr_time start;
  INSTR_TIME_SET_CURRENT(start);
  read_sides(node, &shape);
  finish_side(node, &node->left, shape);
  if (node->pairs.sides.compared)  // one reading was both sides'
    node->right.points = node->left.points;
  else
    finish_side(node, &node->right, shape);
  note_srid(node, shape.srid);
  lift_sides(node);
  report_reading(node, start, shape);
  return true;
}

void rescan_inputs(JoinNode* node) {
  ExecReScan(node->left.plan);
  ExecReScan(node->right.plan);
}

void report_reading(JoinNode* node, instr_time start, const ValueShape& shape) {
  instr_time end;
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  JoinReport& report = node->pairs.run->report;
  report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  report.read_workers = node->left.buffer.workers + node->right.buffer.workers;
  report.dims = shape.dims;
  node->inputs.approximate = shape.has_approximate;
  node->report.odd_rows = node->left.odd.count + node->right.odd.count;
  report.dataset_bytes = 0;
  for (const Side* const side : {&node->left, &node->right})
    report.dataset_bytes += held_bytes(side->buffer);
}

void close_late(JoinNode* node, Side* side) {
  if (side->late == nullptr) return;
  node->report.fetched_rows += side->late->fetched;
  close_late_rows(side->late);
  side->late = side->shown.late = side->tested.late = nullptr;
}

std::uint64_t fetched_rows(const JoinNode* node) {
  std::uint64_t rows = node->report.fetched_rows;
  for (const Side* const side : {&node->left, &node->right})
    if (side->late != nullptr) rows += side->late->fetched;
  return rows;
}

void forget_rows(JoinNode* node) {
  if (node->rows == nullptr) return;
  stop_engine(node->pairs.run);
  if (node->pairs.keys != nullptr) forget_keys(node);
  node->pairs.run->report.dataset_bytes = 0;
  close_sides(node);
  MemoryContextDelete(node->rows);
  node->rows = nullptr;
  node->left.points = node->right.points = {};
  node->output.matches = nullptr;
  node->pairs.mode = Mode::kUnread;
}

void show_tested(JoinNode* node, Side* side, std::uint64_t row) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show(slot, side->tested, row);
  if (side->rebuilt < 0) return;
  const MemoryContext caller = MemoryContextSwitchTo(node->asked);
  slot->tts_values[side->rebuilt] =
      rebuild_value(node, side, row, &slot->tts_isnull[side->rebuilt]);
  MemoryContextSwitchTo(caller);
}

const Dataset* find_row_point(Side* side, std::uint64_t row, std::uint64_t* position) {
  if (side->places.rows == 0)
    return find_point(&side->buffer, side->points, static_cast<std::int64_t>(row), position);
  *position = row;  // rows are points, in the same order
  return &side->points;
}

const OddRow* find_odd(const OddRows& odd, std::uint64_t row) {
  const OddRow* const begin = odd.rows;
  const OddRow* const end = begin + odd.count;
  const auto number = static_cast<std::int64_t>(row);
  const OddRow* const found = std::lower_bound(
      begin, end, number, [](const OddRow& a, std::int64_t b) { return a.row < b; });
  return found != end && found->row == number ? found : nullptr;
}

}  // namespace gpujoin

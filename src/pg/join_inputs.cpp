#include "pg/join_node.h"
#include "pg/settings.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Columns of the scan tuple that the expressions use.
Bitmapset* used_columns(std::initializer_list<void*> expressions) {
  Bitmapset* used = nullptr;
  for (void* const expression : expressions)
    pull_varattnos(static_cast<Node*>(expression), INDEX_VAR, &used);
  return used;
}

/// Room for those of the used columns that come from a side.
Columns prepare_columns(const JoinNode* node, const Side* side, const Bitmapset* used) {
  const int most = node->data.column_count;
  const bool left = side == &node->left;
  Columns columns = {0, static_cast<int*>(palloc(sizeof(int) * (most + 1))), nullptr};
  AttrNumber* const attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (most + 1)));
  for (int i = 0; i < most; ++i) {
    if (node->data.attributes[i] == 0 || node->data.from_left[i] != left ||
        !bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, used))
      continue;
    attributes[columns.count] = node->data.attributes[i];
    columns.targets[columns.count++] = i;
  }
  columns.rows = create_row_store(node->context, ExecGetResultType(side->plan), attributes,
                                  columns.count, work_mem * Size{1024} / 4);
  return columns;
}

void prepare_sides(JoinNode* node) {
  const bool loop = node->reading == Reading::kRows;
  const Plan* const plan = node->css.ss.ps.plan;
  JoinPlanExpressions& expressions = node->expressions;
  Bitmapset* const shown = used_columns(
      {plan->targetlist, plan->qual, expressions.filter, loop ? expressions.condition : nullptr});
  Bitmapset* const tested = bms_difference(
      used_columns({is_exact(node->data.test) ? nullptr : expressions.condition}), shown);
  for (Side* const side : {&node->left, &node->right}) {
    side->shown = prepare_columns(node, side, shown);
    side->tested = prepare_columns(node, side, tested);
    side->points = {};
    side->scores = {0, INFINITY};
  }
  node->left.keep_unmatched = tells_unmatched(node);
}

void keep_row(Side* side, TupleTableSlot* slot) {
  store_row(side->shown.rows, slot);
  store_row(side->tested.rows, slot);
}

/// Adds a row's compared value to the points. An exact test knows no approximate boxes.
bool add_compared(JoinNode* node, const Side* side, PointBuffer* points, PointShape* shape,
                  Datum value) {
  const auto row = static_cast<std::int64_t>(row_count(*side));
  const SimilarityTest& test = node->data.test;
  if (node->reading == Reading::kPoints) return add_value(points, shape, test.kind, row, value);
  return add_box(points, shape, test.kind, row, value) && !(shape->approximate && is_exact(test));
}

/// Reads an input to its end, its compared values into `points`, which may take `limit` bytes.
bool read_side(JoinNode* node, Side* side, PointBuffer* points, PointShape* shape,
               std::uint64_t limit) {
  points->context = node->context;
  points->source = side == &node->left ? "the outer side of a similarity join"
                                       : "the inner side of a similarity join";
  points->limit = limit;
  points->scalar = scalar_of(node->data.test.kind);
  points->scored = side->score > 0 && node->reading == Reading::kPoints;
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    TupleTableSlot* const slot = ExecProcNode(side->plan);
    if (TupIsNull(slot)) break;
    if (node->reading == Reading::kRows) {
      keep_row(side, slot);
      continue;
    }
    bool is_null;
    const Datum value = slot_getattr(slot, side->value, &is_null);
    if (is_null) {
      if (side->keep_unmatched) keep_row(side, slot);
      continue;
    }
    const MemoryContext caller = MemoryContextSwitchTo(scratch->ecxt_per_tuple_memory);
    const bool added = add_compared(node, side, points, shape, value);
    if (added && points->scored) points->scores[points->rows - 1] = read_score(node, side, slot);
    MemoryContextSwitchTo(caller);
    ResetExprContext(scratch);
    if (!added) return false;
    keep_row(side, slot);
  }
  side->points = finish_points(points);
  return true;
}

/// Reads both inputs to their ends.
bool read_sides(JoinNode* node, PointShape* shape) {
  const std::uint64_t limit = host_memory_limit_bytes();
  PointBuffer left = {}, right = {};
  if (!read_side(node, &node->left, &left, shape, limit)) return false;
  const std::uint64_t held = dataset_bytes(node->left.points);
  if (!read_side(node, &node->right, &right, shape, limit > held ? limit - held : 1)) return false;
  if (node->reading == Reading::kBoxes) {  // the right side may have more dimensions
    widen_boxes(&left, shape->dims);
    node->left.points = finish_points(&left);
  }
  return true;
}

void close_files(JoinNode* node) {
  for (Columns* const columns :
       {&node->left.shown, &node->left.tested, &node->right.shown, &node->right.tested}) {
    if (columns->rows != nullptr) clear_row_store(columns->rows);
    columns->rows = nullptr;
  }
}

}  // namespace

bool read_inputs(JoinNode* node, Reading reading) {
  close_files(node);
  MemoryContextReset(node->context);
  const MemoryContext caller = MemoryContextSwitchTo(node->context);
  node->run = static_cast<EngineRun*>(palloc0(sizeof(EngineRun)));
  init_engine_run(node->run, node->context, kCustomScanName);
  node->reading = reading;
  node->matches = nullptr;
  node->top_problem = nullptr;
  node->kept = node->own = {};
  prepare_sides(node);
  MemoryContextSwitchTo(caller);  // plans keep things of their own in the query's
  PointShape shape = {};
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  const bool complete = read_sides(node, &shape);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  JoinReport& report = node->run->report;
  report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  report.dims = shape.dims;
  node->approximate = shape.approximate;
  report.dataset_bytes = dataset_bytes(node->left.points) + dataset_bytes(node->right.points);
  return complete;
}

void forget_inputs(JoinNode* node) {
  close_files(node);
  MemoryContextReset(node->context);
  node->run = nullptr;
  node->mode = Mode::kUnread;
}

}  // namespace gpujoin

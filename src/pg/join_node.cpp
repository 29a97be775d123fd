// Execution of the node over two inputs. Both are read to their ends: the compared values become
// datasets, what the target list needs of the rows is kept aside. Then the engine finds the pairs,
// and each becomes a row. Where the engine cannot stand in for the condition (values that are no
// points of one kind, a radius that is no number), the condition is asked for every pair instead.
#include "pg/join_node.h"

#include "engine/pair_cursor.h"
#include "pg/engine_run.h"
#include "pg/explain.h"
#include "pg/row_store.h"
#include "pg/settings.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Columns of the scan tuple that one input fills.
struct Columns {
  int count;
  int* targets;    ///< [count] their places in the scan tuple
  RowStore* rows;  ///< in the same order
};

/// One input.
struct Side {
  PlanState* plan;
  AttrNumber value;     ///< the compared value in its rows
  bool keep_unmatched;  ///< rows that can match nothing are kept as well
  Columns shown;        ///< what every pair is asked for
  Columns tested;       ///< what the condition needs besides, for the few pairs that are open
  Dataset points;       ///< ids are numbers of rows
};

struct NearPair {
  double distance;
  std::uint64_t left, right;

  /// As PostgreSQL orders numbers: NaN last.
  bool operator<(const NearPair& other) const {
    return distance < other.distance || (std::isnan(other.distance) && !std::isnan(distance));
  }
};

enum class Mode {
  kUnread,
  kPairs,   ///< the engine hands over pairs
  kCounts,  ///< the engine counts the matches of each left row
  kTotal,   ///< the engine counts all matches
  kLoop,    ///< the condition is asked for every pair
};

struct JoinNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  JoinPlanData data;
  JoinPlanExpressions expressions;
  ExprState* filter;          ///< null: none
  ExprState* condition;       ///< for pairs that the engine leaves open
  ExprState* all_conditions;  ///< for Mode::kLoop
  ExprState* eps;
  ExprState* distance;     ///< for Mode::kLoop, where only the nearest pairs are wanted
  TupleTableSlot* direct;  ///< the result slot, where it is a beginning of the scan tuple as it is
  int direct_columns;

  MemoryContext context;  ///< holds what follows, from one reading of the inputs to the next
  EngineRun* run;
  Side left, right;
  Mode mode;
  EpsBand band;
  bool null_eps;
  PairCursor cursor;
  IdPair pair;
  std::uint64_t left_shown;             ///< the row whose columns the scan tuple holds
  std::uint64_t loop_left, loop_right;  ///< next pair of Mode::kLoop
  std::uint64_t empty_rows;             ///< rows due of a batch that nobody looks into
  std::uint64_t rechecked;              ///< pairs for which the condition was asked
  std::uint64_t* matches;  ///< [left rows] of all joins but inner ones; of those that are counted
  std::uint64_t total;     ///< matches, where they are counted
  std::uint64_t last_left, last_right;  ///< rows of the last match
  NearPair* near;                       ///< [data.nearest] a heap, then the pairs in order
  std::uint64_t near_count, near_told;
  bool draining;          ///< pairs are done, left rows follow
  std::uint64_t drained;  ///< left rows looked at
};

constexpr std::uint64_t kNoRow = ~std::uint64_t{0};

JoinNode* from_state(CustomScanState* state) { return reinterpret_cast<JoinNode*>(state); }

bool tells_unmatched(const JoinNode* node) {
  return node->data.join_type == JOIN_LEFT || node->data.join_type == JOIN_ANTI;
}
bool shows_right(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER || node->data.join_type == JOIN_LEFT;
}

// ---- What the node keeps of its inputs

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

void prepare_sides(JoinNode* node, bool loop) {
  const Plan* const plan = node->css.ss.ps.plan;
  JoinPlanExpressions& expressions = node->expressions;
  Bitmapset* const shown = used_columns(
      {plan->targetlist, plan->qual, expressions.filter, loop ? expressions.condition : nullptr});
  Bitmapset* const tested = is_exact(node->data.test)
                                ? nullptr
                                : bms_difference(used_columns({expressions.condition}), shown);
  for (Side* const side : {&node->left, &node->right}) {
    side->shown = prepare_columns(node, side, shown);
    side->tested = prepare_columns(node, side, tested);
    side->points = {};
  }
  node->left.keep_unmatched = tells_unmatched(node);
}

void keep_row(Side* side, TupleTableSlot* slot) {
  store_row(side->shown.rows, slot);
  store_row(side->tested.rows, slot);
}

std::uint64_t row_count(const Side& side) { return side.shown.rows->rows; }

/// Reads an input to its end. False when a value is none that the engine takes.
bool read_side(JoinNode* node, Side* side, bool left, PointShape* shape, std::uint64_t limit,
               bool values_wanted) {
  PointBuffer points = {};
  points.context = node->context;
  points.source =
      left ? "the outer side of a similarity join" : "the inner side of a similarity join";
  points.limit = limit;
  points.scalar = scalar_of(node->data.test.kind);
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    TupleTableSlot* const slot = ExecProcNode(side->plan);
    if (TupIsNull(slot)) break;
    if (!values_wanted) {
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
    const bool added = add_value(&points, shape, node->data.test.kind,
                                 static_cast<std::int64_t>(row_count(*side)), value);
    MemoryContextSwitchTo(caller);
    ResetExprContext(scratch);
    if (!added) return false;
    keep_row(side, slot);
  }
  side->points = finish_points(&points);
  return true;
}

void close_files(JoinNode* node) {
  for (Columns* const columns :
       {&node->left.shown, &node->left.tested, &node->right.shown, &node->right.tested}) {
    if (columns->rows != nullptr) clear_row_store(columns->rows);
    columns->rows = nullptr;
  }
}

/// Both inputs, from their beginnings. `loop`: for asking the condition itself for every pair.
bool read_inputs(JoinNode* node, bool loop) {
  close_files(node);
  MemoryContextReset(node->context);
  const MemoryContext caller = MemoryContextSwitchTo(node->context);
  node->run = static_cast<EngineRun*>(palloc0(sizeof(EngineRun)));
  init_engine_run(node->run, node->context, kCustomScanName);
  prepare_sides(node, loop);
  MemoryContextSwitchTo(caller);  // plans keep things of their own in the query's
  PointShape shape = {};
  const std::uint64_t limit = host_memory_limit_bytes();
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  bool regular = read_side(node, &node->left, true, &shape, limit, !loop);
  const std::uint64_t held = dataset_bytes(node->left.points);
  regular = regular &&
            read_side(node, &node->right, false, &shape, limit > held ? limit - held : 1, !loop);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  JoinReport& report = node->run->report;
  report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  report.dims = shape.dims;
  report.dataset_bytes = dataset_bytes(node->left.points) + dataset_bytes(node->right.points);
  return regular;
}

void read_again(JoinNode* node) {
  ExecReScan(node->left.plan);
  ExecReScan(node->right.plan);
}

// ---- The engine's work

/// Whether both sides are the same points in the same order, so that half of the work will do.
bool are_same_points(const Dataset& a, const Dataset& b) {
  if (a.rows != b.rows || a.dims != b.dims || a.scalar != b.scalar) return false;
  return std::memcmp(a.coordinates, b.coordinates, a.rows * a.dims * scalar_bytes(a.scalar)) == 0;
}

double evaluate_eps(JoinNode* node) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  const Datum value = ExecEvalExprSwitchContext(node->eps, expressions, &node->null_eps);
  const double eps = node->null_eps ? 0 : DatumGetFloat8(value);
  ResetExprContext(expressions);
  return eps;
}

bool has_open_pairs(const JoinNode* node) { return node->band.accept < node->band.select; }

/// How the engine serves, when nothing but it is to be asked.
Mode engine_mode(const JoinNode* node) {
  if (has_open_pairs(node) || node->filter != nullptr) return Mode::kPairs;
  if (node->data.counts) return node->data.grouped ? Mode::kCounts : Mode::kTotal;
  return shows_right(node) ? Mode::kPairs : Mode::kCounts;
}

Output wanted_output(const JoinNode* node) {
  if (node->mode == Mode::kCounts) return Output::kCountPerRow;
  if (node->mode == Mode::kTotal) return Output::kTotal;
  return has_open_pairs(node) || node->data.nearest > 0 ? Output::kPairsWithDistances
                                                        : Output::kPairs;
}

void start_pairs(JoinNode* node) {
  const Dataset &left = node->left.points, &right = node->right.points;
  node->mode = engine_mode(node);
  if (node->null_eps || node->band.none || left.rows == 0 || right.rows == 0) return;
  JoinRequest request = default_request(node->run->report.dataset_bytes);
  request.left = left;
  request.right = right;
  request.self_join = are_same_points(left, right);
  // In a self-join rows are named by position, which the right side counts its own way.
  if (request.self_join) request.left.ids = nullptr;
  request.metric = node->data.test.metric;
  request.eps = node->band.select;
  request.pairs = PairSelection::kAll;
  request.output = wanted_output(node);
  node->run->request = request;
  start_engine(node->run);
}

/// From the first row, with the rows that were read.
void start(JoinNode* node) {
  node->cursor = {};
  node->left_shown = kNoRow;
  node->loop_left = node->loop_right = node->empty_rows = 0;
  node->draining = false;
  node->drained = node->rechecked = 0;
  node->near_count = node->near_told = 0;
  node->total = 0;
  if (node->data.join_type != JOIN_INNER || node->data.grouped) {
    const Size bytes = (row_count(node->left) + 1) * sizeof(std::uint64_t);
    if (node->matches == nullptr)
      node->matches = static_cast<std::uint64_t*>(MemoryContextAllocHuge(node->context, bytes));
    std::memset(node->matches, 0, bytes);
  }
}

/// Reads what is not read yet and starts.
void open(JoinNode* node) {
  const double eps = evaluate_eps(node);
  bool fresh = false;
  if (node->mode == Mode::kUnread) {
    node->matches = nullptr;
    node->near = nullptr;
    node->mode = read_inputs(node, false) ? Mode::kPairs : Mode::kLoop;
    fresh = node->mode == Mode::kLoop;
  }
  if (node->mode != Mode::kLoop) {
    node->band = eps_band(node->data.test, eps, node->run->report.dims);
    fresh = !node->band.engine_serves && !node->null_eps;
  }
  if (fresh) {  // once more, with what the condition needs
    read_again(node);
    node->matches = nullptr;
    node->near = nullptr;
    read_inputs(node, true);
    node->mode = Mode::kLoop;
  }
  start(node);
  if (node->mode != Mode::kLoop) start_pairs(node);
}

// ---- Rows

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

/// Puts a pair of rows into the scan tuple.
void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  if (node->left_shown != left) show(slot, node->left.shown, left);
  show(slot, node->right.shown, right);
  node->left_shown = left;
}

bool next_batch(JoinNode* node) {
  if (!next_engine_batch(node->run)) return false;
  node->cursor.start(node->run->batch, PairSelection::kAll);
  return true;
}

/// The next pair that the engine found, as numbers of rows.
bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  while (!node->cursor.next(&node->pair))
    if (!next_batch(node)) return false;
  const bool positions = node->run->request.self_join;
  *left = static_cast<std::uint64_t>(positions ? node->left.points.ids[node->pair.id1]
                                               : node->pair.id1);
  *right = static_cast<std::uint64_t>(positions ? node->right.points.ids[node->pair.id2]
                                                : node->pair.id2);
  return true;
}

bool holds(JoinNode* node, ExprState* conditions) {
  if (conditions == nullptr) return true;
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = node->css.ss.ss_ScanTupleSlot;
  ExecStoreVirtualTuple(ExecClearTuple(node->css.ss.ss_ScanTupleSlot));
  return ExecQual(conditions, expressions);
}

bool is_settled(const JoinNode* node, std::uint64_t left) {
  return !shows_right(node) && node->matches[left] > 0;
}

/// Whether the condition holds for a pair that the scan tuple shows.
bool passes_test(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show(slot, node->left.tested, left);
  show(slot, node->right.tested, right);
  ++node->rechecked;
  return holds(node, node->condition);
}

/// Whether as many pairs as are wanted are nearer.
bool is_too_far(const JoinNode* node) {
  return node->near_count > 0 &&
         node->near_count == static_cast<std::uint64_t>(node->data.nearest) &&
         !(node->pair.distance < node->near[0].distance);
}

/// The next pair that matches, in the scan tuple; of a semi or anti join, one for each left row.
bool next_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_found(node, &left, &right)) {
    if (is_settled(node, left) || is_too_far(node)) continue;
    show_pair(node, left, right);
    const bool open = has_open_pairs(node) && node->pair.distance > node->band.accept;
    if (open && !passes_test(node, left, right)) continue;
    if (!holds(node, node->filter)) {
      InstrCountFiltered1(&node->css.ss, 1);
      continue;
    }
    if (node->matches != nullptr) ++node->matches[left];
    node->last_left = left;
    node->last_right = right;
    return true;
  }
  return false;
}

/// The same, asking the condition.
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

double distance_of_match(JoinNode* node) {
  if (node->mode != Mode::kLoop) return node->pair.distance;
  bool is_null;  // a match has a distance
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  return DatumGetFloat8(ExecEvalExprSwitchContext(node->distance, expressions, &is_null));
}

/// Keeps the nearest matches, in order.
void find_nearest(JoinNode* node) {
  const auto most = static_cast<std::uint64_t>(node->data.nearest);
  if (node->near == nullptr)
    node->near = static_cast<NearPair*>(MemoryContextAlloc(node->context, most * sizeof(NearPair)));
  NearPair* const near = node->near;
  while (next_pair(node)) {
    CHECK_FOR_INTERRUPTS();
    const NearPair found = {distance_of_match(node), node->last_left, node->last_right};
    if (node->near_count == most) {
      if (!(found < near[0])) continue;
      std::pop_heap(near, near + node->near_count--);
    }
    near[node->near_count++] = found;
    std::push_heap(near, near + node->near_count);
  }
  std::sort_heap(near, near + node->near_count);
}

bool next_nearest(JoinNode* node) {
  if (!node->draining) find_nearest(node);
  node->draining = true;
  if (node->near_told == node->near_count) return false;
  const NearPair& pair = node->near[node->near_told++];
  show_pair(node, pair.left, pair.right);
  return true;
}

/// The next row of the join in the scan tuple.
bool next_row(JoinNode* node) {
  if (node->data.nearest > 0) return next_nearest(node);
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

/// Whether rows can be counted off, since nobody looks at their columns.
bool only_counts(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER && !node->data.counts && node->data.nearest == 0 &&
         node->mode == Mode::kPairs && node->filter == nullptr && !has_open_pairs(node) &&
         node->left.shown.count == 0 && node->right.shown.count == 0 &&
         node->css.ss.ps.qual == nullptr;
}

bool count_off(JoinNode* node) {
  while (node->empty_rows == 0) {
    if (!next_batch(node)) return false;
    node->empty_rows = node->cursor.batch.pair_count;
  }
  --node->empty_rows;
  return true;
}

TupleTableSlot* project(JoinNode* node) {
  ScanState* const state = &node->css.ss;
  TupleTableSlot* const slot = state->ss_ScanTupleSlot;
  if (node->direct != nullptr) {
    ExecClearTuple(node->direct);
    std::memcpy(node->direct->tts_values, slot->tts_values, sizeof(Datum) * node->direct_columns);
    std::memcpy(node->direct->tts_isnull, slot->tts_isnull, sizeof(bool) * node->direct_columns);
    return ExecStoreVirtualTuple(node->direct);
  }
  ExecStoreVirtualTuple(ExecClearTuple(slot));
  if (state->ps.ps_ProjInfo == nullptr) return slot;
  ExprContext* const expressions = state->ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = slot;
  return ExecProject(state->ps.ps_ProjInfo);
}

/// CustomExecMethods::ExecCustomScan.
TupleTableSlot* next(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  if (node->run == nullptr) open(node);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (!(only_counts(node) ? count_off(node) : next_row(node))) return nullptr;
    if (state->ss.ps.qual == nullptr || holds(node, state->ss.ps.qual)) return project(node);
    InstrCountFiltered1(state, 1);
  }
}

// ---- Life

/// Whether the target list is a beginning of the scan tuple as it is.
void find_direct_columns(JoinNode* node) {
  ScanState* const state = &node->css.ss;
  if (state->ps.ps_ProjInfo == nullptr) return;
  int number = 0;
  ListCell* cell;
  foreach (cell, state->ps.plan->targetlist) {
    const Expr* const expression = lfirst_node(TargetEntry, cell)->expr;
    if (!IsA(expression, Var) || reinterpret_cast<const Var*>(expression)->varattno != ++number)
      return;
  }
  node->direct = state->ps.ps_ResultTupleSlot;
  node->direct_columns = number;
}

/// CustomExecMethods::BeginCustomScan. Reads nothing: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int flags) {
  JoinNode* const node = from_state(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  node->data = decode_join_plan(plan->custom_private);
  node->expressions = decode_join_expressions(plan->custom_exprs);
  PlanState* const parent = &state->ss.ps;
  flags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
  node->left.plan = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags);
  node->right.plan = ExecInitNode(static_cast<Plan*>(lsecond(plan->custom_plans)), estate, flags);
  node->left.value = node->data.left_value;
  node->right.value = node->data.right_value;
  state->custom_ps = list_make2(node->left.plan, node->right.plan);
  node->filter = ExecInitQual(node->expressions.filter, parent);
  node->condition = ExecInitQual(list_make1(node->expressions.condition), parent);
  node->all_conditions = ExecInitQual(node->expressions.all_conditions, parent);
  node->eps = ExecInitExpr(node->expressions.eps, parent);
  node->distance = ExecInitExpr(node->expressions.distance, parent);
  node->context =
      AllocSetContextCreate(estate->es_query_cxt, "gpujoin join", ALLOCSET_DEFAULT_SIZES);
  find_direct_columns(node);
}

/// Forgets what was read.
void forget(JoinNode* node) {
  close_files(node);
  MemoryContextReset(node->context);
  node->run = nullptr;
  node->mode = Mode::kUnread;
}

/// CustomExecMethods::ReScanCustomScan. Inputs that stay the same are not read again.
void rescan(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  PlanState* const own = &state->ss.ps;
  bool changed = false;
  for (PlanState* const input : {node->left.plan, node->right.plan}) {
    if (own->chgParam != nullptr) UpdateChangedParamSet(input, own->chgParam);
    changed = changed || input->chgParam != nullptr;
  }
  ExecScanReScan(&state->ss);
  if (node->run == nullptr) return;
  if (!changed) {
    stop_engine(node->run);
    open(node);
    return;
  }
  forget(node);
  read_again(node);
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  forget(node);
  MemoryContextDelete(node->context);
  ExecEndNode(node->left.plan);
  ExecEndNode(node->right.plan);
}

const CustomExecMethods kExecMethods = {
    .CustomName = kCustomScanName,
    .BeginCustomScan = begin,
    .ExecCustomScan = next,
    .EndCustomScan = end,
    .ReScanCustomScan = rescan,
    .MarkPosCustomScan = nullptr,
    .RestrPosCustomScan = nullptr,
    .EstimateDSMCustomScan = nullptr,
    .InitializeDSMCustomScan = nullptr,
    .ReInitializeDSMCustomScan = nullptr,
    .InitializeWorkerCustomScan = nullptr,
    .ShutdownCustomScan = nullptr,
    .ExplainCustomScan = explain_join_node,
};

const char* name_of(JoinType type) {
  switch (type) {
    case JOIN_LEFT:
      return "Left";
    case JOIN_SEMI:
      return "Semi";
    case JOIN_ANTI:
      return "Anti";
    default:
      return "Inner";
  }
}

}  // namespace

Node* create_join_node() {
  JoinNode* const node = reinterpret_cast<JoinNode*>(newNode(sizeof(JoinNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

void explain_join_node(CustomScanState* state, List*, ExplainState* es) {
  const JoinNode* const node = from_state(state);
  ExplainPropertyText("Join Type", name_of(node->data.join_type), es);
  ExplainPropertyText("Join Cond", node->data.condition, es);
  if (node->data.counts)
    ExplainPropertyText("Counts", node->data.grouped ? "pairs per row" : "pairs", es);
  if (node->data.nearest > 0)
    ExplainPropertyInteger("Nearest Pairs", nullptr, node->data.nearest, es);
  if (node->data.filter[0] != '\0') ExplainPropertyText("Join Filter", node->data.filter, es);
  if (!es->analyze || node->run == nullptr) return;
  const Instrumentation* const counts = state->ss.ps.instrument;
  if (counts != nullptr && node->data.filter[0] != '\0' && state->ss.ps.qual == nullptr)
    ExplainPropertyFloat("Rows Removed by Join Filter", nullptr,
                         counts->nfiltered1 / fmax(counts->nloops, 1), 0, es);
  explain_kept_rows(
      node->left.shown.rows->file != nullptr || node->right.shown.rows->file != nullptr, es);
  if (node->mode == Mode::kLoop)
    ExplainPropertyText("Engine Fallback", "the condition is asked for every pair", es);
  if (node->run->report.engine == nullptr) return;
  JoinReport report = report_run(node->run);
  report.stats.rechecked += node->rechecked;
  explain_report(report, es);
}

// ---- Plan data as a list

List* encode_join_plan(const JoinPlanData& data) {
  List* numbers =
      list_make5_int(data.join_type, static_cast<int>(data.test.kind),
                     static_cast<int>(data.test.metric), data.test.within, data.test.strict);
  for (const int number :
       {static_cast<int>(data.left_value), static_cast<int>(data.right_value),
        static_cast<int>(data.counts), static_cast<int>(data.grouped), data.nearest})
    numbers = lappend_int(numbers, number);
  for (int i = 0; i < data.column_count; ++i)
    numbers = lappend_int(lappend_int(numbers, data.from_left[i]), data.attributes[i]);
  return list_make3(numbers, makeString(pstrdup(data.condition)), makeString(pstrdup(data.filter)));
}

JoinPlanData decode_join_plan(const List* encoded) {
  const List* const numbers = static_cast<const List*>(linitial(encoded));
  const auto number = [&](int i) { return list_nth_int(numbers, i); };
  constexpr int kFirstColumn = 10;
  JoinPlanData data = {};
  data.join_type = static_cast<JoinType>(number(0));
  data.test = {static_cast<PointKind>(number(1)), static_cast<Metric>(number(2)), number(3) != 0,
               number(4) != 0};
  data.left_value = static_cast<AttrNumber>(number(5));
  data.right_value = static_cast<AttrNumber>(number(6));
  data.counts = number(7) != 0;
  data.grouped = number(8) != 0;
  data.nearest = number(9);
  data.column_count = (list_length(numbers) - kFirstColumn) / 2;
  data.from_left = static_cast<bool*>(palloc(data.column_count + 1));
  data.attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data.column_count + 1)));
  for (int i = 0; i < data.column_count; ++i) {
    data.from_left[i] = number(kFirstColumn + 2 * i) != 0;
    data.attributes[i] = static_cast<AttrNumber>(number(kFirstColumn + 2 * i + 1));
  }
  data.condition = strVal(lsecond(encoded));
  data.filter = strVal(lthird(encoded));
  return data;
}

}  // namespace gpujoin

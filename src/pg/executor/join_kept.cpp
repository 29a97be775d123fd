// A join of tables that are read as they are: their points may be in the service already. What the
// result needs besides is fetched row by row when pairs are found, or read by a scan when there are
// many. Whatever stands in the way, the join goes the ordinary way.
#include "pg/executor/join_kept.h"

#include "pg/executor/input_scan.h"
#include "pg/executor/join_blocks.h"
#include "pg/executor/join_extents.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_nearest.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_sums.h"
#include "pg/reading/kept_side.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "portability/instr_time.h"
}

namespace gpujoin {
namespace {

/// The scan of a whole table that an input is; null: it is something else.
const SeqScanState* bare_scan(const PlanState* input) {
  const SeqScanState* const scan = table_scan(input);
  return scan != nullptr && scan->ss.ps.qual == nullptr ? scan : nullptr;
}

/// The columns that the service is to keep of a side's table. False: the input is no whole table,
/// or its rows have other values.
bool find_side(const JoinNode* node, const Side& side, SideColumns* columns) {
  return bare_scan(side.plan) != nullptr &&
         find_table_side(side.plan, side.value, *node->data.test.type, node->inputs.form, columns);
}

/// Whether the condition on the keys' order compares a unique column of one table with itself, so
/// that it wants one of each pair of rows and its reverse, or both. Rows with NULL for a key would
/// be in no pair.
bool orders_rows(const JoinNode* node, const SideColumns& left, const SideColumns& right) {
  const OrderPlan& order = node->data.order;
  const AttrNumber* const attributes = node->data.columns.attributes;
  const AttrNumber key = table_column(node->left.plan, attributes[order.left_column]);
  const Relation table = bare_scan(node->left.plan)->ss.ss_currentRelation;
  return same_columns(left, right) && key > 0 &&
         table_column(node->right.plan, attributes[order.right_column]) == key &&
         is_never_null(table, key) && is_unique(table, key);
}

/// The selection of pairs by their ctids that has all that the condition on the keys' order wants,
/// or their reverses.
PairSelection selected_pairs(const JoinNode* node, const SideColumns& left,
                             const SideColumns& right) {
  if (node->conditions.order == nullptr || !orders_rows(node, left, right))
    return PairSelection::kAll;
  return node->data.order.order == KeyOrder::kDifferent ? PairSelection::kDistinct
                                                        : PairSelection::kUnordered;
}

/// Whether all left rows are needed by number: they are counted, or added up.
bool numbers_left(const JoinNode* node) { return node->data.grouped || node->sums != nullptr; }

/// Whether rows are counted in the order of their keys. The engine knows that of ctids alone, and
/// would make pairs.
bool counts_by_keys(const JoinNode* node) {
  const bool counts = numbers_left(node) || !(shows_right(node) || node->data.names_matches);
  return counts && node->inputs.kept_pairs == PairSelection::kUnordered &&
         node->data.order.order == KeyOrder::kLess;
}

/// Whether pairs are only counted, and nothing but the distance and the selection decides.
bool counts_all(const JoinNode* node) {
  return node->data.counts && !node->data.grouped && node->conditions.early == nullptr &&
         node->conditions.late == nullptr &&
         (node->conditions.order == nullptr || node->inputs.kept_pairs != PairSelection::kAll) &&
         is_exact(node->data.test);
}

/// Whether the right rows need not be here before pairs are known.
bool needs_no_right_rows(const JoinNode* node) {
  const SimilarityTest& test = node->data.test;
  return node->pairs.keys == nullptr && !test.of_nan && !test.of_null &&
         !node->data.eps_may_raise && !has_row_radii(node) &&
         node->expressions.right_operand == nullptr && !tests_boxes(test) && !is_product(test);
}

/// Whether the join is one that needs no row before its pairs are known.
bool needs_pairs_alone(const JoinNode* node) {
  const TopPlan& top = node->data.top;
  return needs_no_right_rows(node) && (node->sums == nullptr || !needs_measures(node)) &&
         node->expressions.left_operand == nullptr &&
         (top.k == 0 || top.function == ScoreFunction::kDistance);
}

/// EngineRun::read_whole: the join goes the ordinary way.
bool give_up(EngineRun*) { return false; }

/// Reads the blocks of a side's table that the service does not have. Values that no engine takes
/// cannot be kept.
bool read_side(JoinNode* node, std::uint32_t number, const SideColumns& columns, KeptSide* kept,
               ValueShape* shape) {
  Side& side = number == 0 ? node->left : node->right;
  side.buffer.context = node->rows;
  side.buffer.limit = dataset_share(node->pairs.run, 2);
  side.buffer.spill = &node->pairs.run->spill;
  side.buffer.scalar = scalar_of(columns);
  side.buffer.shares = true;
  if (!read_kept_side(&node->pairs.run->service.connection, number, columns, TableReader::kNode,
                      &side.buffer, shape, kept))
    return false;
  side.points = {nullptr, nullptr, kept->rows, kept->dims, side.buffer.scalar};
  share_side(node->pairs.run, static_cast<int>(number), side.buffer.shared, *kept, give_up);
  return true;
}

/// Reads both sides. False where one of them cannot be kept.
bool read_sides(JoinNode* node, const SideColumns& left, const SideColumns& right) {
  KeptSide* const kept = static_cast<KeptSide*>(palloc0(2 * sizeof(KeptSide)));
  ValueShape shapes[2] = {};
  const bool self_join = same_columns(left, right);
  // Rows with themselves have no pairs to the engine that emits the first ones.
  if (self_join && node->top != nullptr && node->inputs.kept_pairs == PairSelection::kAll)
    return false;
  node->pairs.sides.compared = node->pairs.sides.ranked = true;
  node->pairs.sides.same = self_join;
  node->pairs.sides.has_ranks =
      self_join && (counts_all(node) || node->inputs.kept_pairs == PairSelection::kDistinct);
  forget_sides(node->pairs.run);
  if (!read_side(node, 0, left, &kept[0], &shapes[0])) return false;
  node->pairs.run->report.dims = kept[0].dims;
  node->right.points = node->left.points;
  if (self_join) return true;
  if (!read_side(node, 1, right, &kept[1], &shapes[1])) return false;
  return kept[0].rows == 0 || kept[1].rows == 0 ||
         (kept[0].dims == kept[1].dims && shapes[0].srid == shapes[1].srid);
}

/// Has the columns of an input's rows fetched from its table. False where one is no column of it.
bool fetch_late(const PlanState* input, LateRows* late, Columns* columns) {
  columns->late = late;
  columns->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (columns->count + 1)));
  for (int i = 0; i < columns->count; ++i) {
    columns->attributes[i] = table_column(input, columns->rows->attributes[i]);
    if (columns->attributes[i] == InvalidAttrNumber) return false;
    late->last_column = std::max(late->last_column, columns->attributes[i]);
  }
  return true;
}

}  // namespace

bool open_late(JoinNode* node, Side* side) {
  const Relation table = table_scan(side->plan)->ss.ss_currentRelation;
  side->late = open_late_rows(table, node->css.ss.ps.state->es_snapshot);
  side->places.context = node->rows;
  return fetch_late(side->plan, side->late, &side->shown) &&
         fetch_late(side->plan, side->late, &side->tested);
}

namespace {

/// A late row as the input would have it, as far as the columns are wanted.
void copy_columns(TupleTableSlot* slot, const Columns& columns, Datum* values, bool* nulls) {
  for (int i = 0; i < columns.count; ++i) {
    const int at = columns.rows->attributes[i] - 1;
    values[at] = late_value(slot, columns.attributes[i], &nulls[at]);
  }
}

/// Notes the matches of rows that are marked, whose places are known by now.
void take_marks(JoinNode* node, const Side& side) {
  clear_matches(node);
  for (std::int64_t row = -1; next_marked(*side.late, &row);)
    node->output.matches[find_row_place(side.places, row)] = 1;
}

/// Whether a row is among the points that were read of the table, of which `seen` come before it.
bool is_wanted(const Dataset& points, std::uint64_t seen, std::int64_t number) {
  return points.ids == nullptr || (seen < points.rows && points.ids[seen] == number);
}

}  // namespace

void store_late(JoinNode* node, Side* side) {
  const int count = ExecGetResultType(side->plan)->natts;
  Datum* const values = static_cast<Datum*>(palloc0(sizeof(Datum) * (count + 1)));
  bool* const nulls = static_cast<bool*>(palloc0(sizeof(bool) * (count + 1)));
  while (TupleTableSlot* const slot = next_late_row(side->late)) {
    CHECK_FOR_INTERRUPTS();
    if (!is_wanted(side->points, side->places.rows, side->late->held)) continue;
    copy_columns(slot, side->shown, values, nulls);
    copy_columns(slot, side->tested, values, nulls);
    store_row(side->shown.rows, values, nulls);
    store_row(side->tested.rows, values, nulls);
    add_row_place(&side->places, side->late->held);
  }
  trim_row_store(side->shown.rows);
  trim_row_store(side->tested.rows);
  pfree(values);
  pfree(nulls);
  if (side == &node->left && notes_matches(node)) take_marks(node, *side);
  close_late(node, side);
}

namespace {

bool read_tables(JoinNode* node, const SideColumns& left, const SideColumns& right) {
  const double rows = expected_rows(left) + expected_rows(right);
  if (!begin_service_join(node->pairs.run, same_columns(left, right) ? rows / 2 : rows))
    return false;
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  if (!read_sides(node, left, right)) return false;
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  node->pairs.run->report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  node->pairs.run->report.read_workers = node->left.buffer.workers + node->right.buffer.workers;
  if (counts_all(node)) return true;
  if (!open_late(node, &node->left) || !open_late(node, &node->right)) return false;
  if (numbers_left(node)) store_late(node, &node->left);
  return true;
}

}  // namespace

namespace {

/// Whether so few right rows are expected in the result that they are not all read in the end.
bool fetches_few(const JoinNode* node) {
  if (node->right.shown.count == 0 && node->right.tested.count == 0) return true;
  const Expr* const limit = node->expressions.limit;
  const bool is_known = IsA(limit, Const) && !castNode(const Const, limit)->constisnull;
  const double k =
      is_known ? static_cast<double>(DatumGetInt64(castNode(const Const, limit)->constvalue)) : 1;
  const auto right_rows = static_cast<std::uint64_t>(node->right.plan->plan->plan_rows);
  return node->left.plan->plan->plan_rows * k <= static_cast<double>(few_rows(right_rows));
}

/// Reads the right side. False where it cannot be kept, or has no rows.
bool read_kept_right(JoinNode* node, ValueShape* shape) {
  SideColumns columns;
  if (!find_side(node, node->right, &columns) ||
      !begin_service_join(node->pairs.run, expected_rows(columns)))
    return false;
  KeptSide* const kept = static_cast<KeptSide*>(palloc0(sizeof(KeptSide)));
  forget_sides(node->pairs.run);
  return read_side(node, 1, columns, kept, shape) && kept->rows > 0;
}

/// RowSource::kKept of nearest rows: the service has the right table, and the left input is read.
bool read_kept_neighbors(JoinNode* node) {
  if (!needs_no_right_rows(node) || bare_scan(node->right.plan) == nullptr) return false;
  begin_run(node);
  if (!fetches_few(node)) return false;
  node->inputs.form = node->data.test.by->compared;
  instr_time start;
  INSTR_TIME_SET_CURRENT(start);
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  ValueShape shape = {};
  const bool kept = read_kept_right(node, &shape) && open_late(node, &node->right);
  MemoryContextSwitchTo(caller);
  if (!kept) return false;
  shape.demands = demands_of(node->data.test);
  read_input(node, &node->left, &shape);
  finish_side(node, &node->left, shape);
  note_srid(node, shape.srid);
  report_reading(node, start, shape);
  // Values unlike the kept ones are compared with rows, and the service has none that come last,
  // without a distance.
  const bool serves = node->left.odd.count == 0 && (row_count(node, node->left) == 0 ||
                                                    is_limit_within(node, node->right.points.rows));
  if (!serves) rescan_inputs(node);
  return serves;
}

}  // namespace

bool read_kept_inputs(JoinNode* node) {
  if (!may_read_tables(node->css.ss.ps.state)) return false;
  if (node->nearest != nullptr) return read_kept_neighbors(node);
  SideColumns left, right;
  if (!needs_pairs_alone(node)) return false;
  begin_run(node);
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  bool kept = find_side(node, node->left, &left) && find_side(node, node->right, &right);
  if (kept) {
    node->inputs.kept_pairs = selected_pairs(node, left, right);
    kept = !counts_by_keys(node) && read_tables(node, left, right);
  }
  MemoryContextSwitchTo(caller);
  return kept;
}

bool find_kept_again(JoinNode* node) {
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  ValueShape shape = {};
  forget_points(&node->right.buffer);
  const bool found = read_kept_right(node, &shape);
  MemoryContextSwitchTo(caller);
  return found;
}

void read_late_rows(JoinNode* node) {
  if (node->pairs.mode != Mode::kPairs || node->pairs.batch.count > 0) return;
  std::uint64_t rows = 0, fetched = 0;
  for (const Side* const side : {&node->left, &node->right}) {
    if (side->late == nullptr) continue;
    rows += side->points.rows;
    fetched += side->late->fetched;
  }
  if (fetched > few_rows(rows)) store_late_rows(node);
}

}  // namespace gpujoin

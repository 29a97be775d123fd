// Executes GpuSimilarityScan. The search itself knows the column's points alone: it returns ctids
// with distances in the engine's arithmetic, nearest first (table_search.h). The node fetches these
// rows under the query's snapshot, and PostgreSQL evaluates every qual for them, the distance
// condition included. So the search only selects; SQL decides. If the engine's arithmetic cannot
// order two rows with certainty, the node evaluates the ORDER BY expression and sorts by that.
//
// As the plan above takes more rows, the node asks for more neighbors. It falls back to a scan of
// the whole table, sorted if the plan is ordered, in these cases:
// - the first search of a table that the service does not have: one search does not repay an index;
// - the value is NULL, or no finite point of the column's dimensions;
// - the radius is NULL, NaN or so large that engines cannot use it;
// - the searched values are computed, and computing one of them raised an error;
// - more rows are taken than the service returns for one search;
// - the order descends, and a row may have NaN for its distance, which then comes first;
// - rows without a distance are due, after all others.
#include "pg/executor/search_node.h"

#include "pg/executor/custom_scan.h"
#include "pg/executor/engine_run.h"
#include "pg/executor/explain.h"
#include "pg/executor/input_scan.h"
#include "pg/service/join_reports.h"
#include "pg/session_progress.h"
#include "pg/settings.h"
#include "pg/store/huge_array.h"
#include "pg/trap.h"
#include "pg/types/product_test.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
}

namespace gpujoin {
namespace {

/// Source of the next row.
enum class SearchSource {
  kNotStarted,
  kNeighbors,    ///< TableSearch::found
  kTable,        ///< all rows in physical order
  kSortedTable,  ///< all rows that were not returned yet, sorted by the ORDER BY expression
  kNone,         ///< no row is left
};

/// A row with its ORDER BY value; the value is negated if the order descends.
struct RankedRow {
  double rank;
  std::int64_t number;  ///< the ctid, as itemptr_encode() makes an integer of it
};

/// For EXPLAIN ANALYZE, of all rescans.
struct SearchReport {
  std::uint64_t searches;
  std::uint64_t scans;   ///< of the whole table
  std::uint64_t ranked;  ///< evaluations of the ORDER BY expression
  std::uint64_t candidates;
  char engine[sizeof(service::FoundRows::engine)];
};

/// Neighbors of the value, and how many of them were returned.
struct Neighbors {
  double select;         ///< engine's distance for the radius.
  std::uint64_t asked;   ///< count of the last search.
  std::uint64_t next;    ///< position in TableSearch::found after `group`.
  std::uint64_t passed;  ///< count of rows that passed the quals.
  RankedRow* group;      ///< [group_count] sorted rows, returned next.
  std::uint64_t group_count, group_room, group_next;
};

/// All rows that were not returned yet, sorted.
struct SortedRows {
  Tuplesortstate* sort;   ///< of (rank, number); null before the first sort
  TupleTableSlot* slot;   ///< holds a row of the sort
  std::uint64_t bound;    ///< number of first rows that were sorted; 0: all rows
  std::int64_t* skipped;  ///< [skipped_count] numbers of rows that were returned before the sort
  std::uint64_t skipped_count, skipped_room;
};

/// The running node. Zeroed when it is made.
struct SearchNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  SearchPlan plan;
  ExprState *value, *eps, *order, *computed;
  LateRows* rows;                ///< fetches rows and scans the table
  MemoryContext search_context;  ///< of `search`
  MemoryContext point_context;   ///< of `point`
  TableSearch* search;           ///< null before open_search(), and if the table cannot be searched
  bool is_tried;                 ///< open_table_search() was called
  std::uint64_t started;         ///< searches that the plan above started so far
  PointBuffer point;             ///< the value as the engine's point
  LiftedSides lifted;            ///< where is_product()
  SearchSource source;
  Neighbors near;
  SortedRows sorted;
  SearchReport report;
};

constexpr std::uint64_t kMoreNeighbors = 8;  // factor between one search and the next
constexpr Oid kFloat8Greater = 674;  // the operator, which has no name in PostgreSQL's headers

SearchNode* from_state(CustomScanState* state) { return reinterpret_cast<SearchNode*>(state); }

ExprContext* expressions_of(SearchNode* node) { return node->css.ss.ps.ps_ExprContext; }

/// Evaluates an expression over the row in the expression context.
Datum evaluate(SearchNode* node, ExprState* expression, bool* is_null) {
  return ExecEvalExprSwitchContext(expression, expressions_of(node), is_null);
}

// ---- The value and the radius

/// Converts the value to a point. Returns false if no search can use it.
bool take_value(SearchNode* node) {
  bool is_null;
  const Datum value = evaluate(node, node->value, &is_null);
  if (is_null) return false;
  const SimilarityTest& test = node->plan.test;
  ValueShape shape = node->search->shape;
  shape.demands = demands_of(test);
  MemoryContextReset(node->point_context);
  node->point = {};
  node->point.context = node->point_context;
  node->point.limit = MaxAllocSize;
  node->point.scalar = scalar_of(*test.type, test.by->compared);
  const MemoryContext caller = MemoryContextSwitchTo(node->point_context);
  const ValueFinding found =
      add_value(*test.type, test.by->compared, &node->point, &shape, 0, value);
  MemoryContextSwitchTo(caller);
  if (found.problem != ValueProblem::kNone) return false;
  const Dataset point = finish_points(&node->point);
  if (is_product(test)) node->lifted = lift_value(point, node->search->shape.lifted_norm);
  return has_room_for(point) && is_finite_row(point, 0) && point.dims == node->search->kept.dims;
}

/// Returns the number of dimensions of the value, without those that lifting adds.
std::uint32_t value_dims(const SearchNode* node) {
  return is_product(node->plan.test) ? node->search->shape.dims : node->point.dims;
}

/// Returns the distance of the engine beyond which rows surely come later than one at `distance`.
double surely_beyond(const SearchNode* node, double distance) {
  return surely_beyond(node->plan.test, node->lifted, distance, value_dims(node));
}

/// Which rows a radius leaves.
enum class Reach { kSome, kNone, kUnknown };

/// Evaluates the radius. Sets Neighbors::select.
Reach find_reach(SearchNode* node) {
  node->near.select = DBL_MAX;
  if (!node->plan.is_bounded) return Reach::kSome;
  bool is_null;
  const Datum eps = evaluate(node, node->eps, &is_null);
  if (is_null) return Reach::kUnknown;
  const EpsBand band =
      band_within(node->plan.radius, node->lifted, DatumGetFloat8(eps), value_dims(node));
  if (!band.engine_serves) return Reach::kUnknown;
  node->near.select = band.select;
  return band.none ? Reach::kNone : Reach::kSome;
}

/// Whether a row that has NaN for its distance may come before those that have one.
bool may_begin_with_nan(const SearchNode* node) {
  const SearchPlan& plan = node->plan;
  const ValueShape& shape = node->search->shape;
  return plan.is_ordered && plan.is_descending && !plan.is_bounded &&
         (shape.has_large || (shape.has_zero && plan.test.by->metric == Metric::kCosine));
}

/// Evaluates the value and the radius. PostgreSQL's own plan evaluates them for the first row that
/// passes the quals before. If that may not happen, their errors are dropped here.
Reach prepare_search(SearchNode* node) {
  Reach reach = Reach::kUnknown;
  const auto prepare = [&] { reach = take_value(node) ? find_reach(node) : Reach::kUnknown; };
  if (!node->plan.drops_errors)
    prepare();
  else if (!try_run(is_about_value, prepare))
    return Reach::kUnknown;
  return reach;
}

// ---- Neighbors

/// Adds the computed values of all rows.
bool collect_rows(RowCollector* rows, SearchNode* node) {
  ExprContext* const expressions = expressions_of(node);
  LateRows* const scan =
      open_late_rows(node->css.ss.ss_currentRelation, node->css.ss.ps.state->es_snapshot);
  while (TupleTableSlot* const row = next_late_row(scan)) {
    CHECK_FOR_INTERRUPTS();
    ResetExprContext(expressions);
    expressions->ecxt_scantuple = row;
    Datum values[2] = {Int64GetDatum(scan->held), 0};
    bool nulls[2] = {false, false};
    values[1] = evaluate(node, node->computed, &nulls[1]);
    const MemoryContext caller = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);
    collect_row(rows, values, nulls);
    MemoryContextSwitchTo(caller);
    if (*rows->has_odd) break;
  }
  close_late_rows(scan);
  return !*rows->has_odd;
}

/// CollectRows. An error of a value ends it, and the subtransaction takes back what the function
/// had done. Errors of the server are raised.
bool collect_computed(RowCollector* rows, void* argument) {
  SearchNode* const node = static_cast<SearchNode*>(argument);
  if (!node->plan.may_raise) return collect_rows(rows, node);
  if (IsInParallelMode()) return false;
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  volatile bool collected = false;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(caller);
  PG_TRY();
  {
    collected = collect_rows(rows, node);
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    if (is_about_server(geterrcode())) PG_RE_THROW();
    MemoryContextSwitchTo(caller);
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
  }
  PG_END_TRY();
  MemoryContextSwitchTo(caller);
  CurrentResourceOwner = owner;
  return collected;
}

/// Describes the computed values.
SideColumns computed_columns(SearchNode* node) {
  SideColumns columns = {};
  columns.relation = RelationGetRelid(node->css.ss.ss_currentRelation);
  columns.shape = Shape::kPoints;
  columns.form = node->plan.test.by->compared;
  columns.value_type = node->plan.test.type;
  name_by_ctid(&columns);
  columns.count = 1;
  return columns;
}

/// Opens the table's searches: for the first search if the table is known to be kept, else for the
/// second one.
void open_search(SearchNode* node) {
  ++node->started;
  if (node->is_tried || !may_read_tables(node->css.ss.ps.state) ||
      !(node->plan.searches_first || node->started > 1))
    return;
  node->is_tried = true;
  node->search_context = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt,
                                               "gpujoin search", ALLOCSET_DEFAULT_SIZES);
  node->point_context =
      AllocSetContextCreate(node->search_context, "gpujoin searched value", ALLOCSET_SMALL_SIZES);
  const MemoryContext caller = MemoryContextSwitchTo(node->search_context);
  SideColumns columns;
  const auto* const scan = castNode(CustomScan, node->css.ss.ps.plan);
  if (node->plan.is_computed) {
    columns = computed_columns(node);
    node->search = open_computed_search(columns, collect_computed, node);
  } else if (take_value_columns(node->css.ss.ss_currentRelation,
                                static_cast<List*>(llast(scan->custom_private)),
                                *node->plan.test.type, node->plan.test.by->compared, &columns)) {
    node->search = open_table_search(columns);
  }
  MemoryContextSwitchTo(caller);
}

/// Asks for `count` neighbors. Returns false if the table cannot be searched any more.
bool ask(SearchNode* node, std::uint64_t count) {
  node->near.asked = std::min(count, kMostNeighbors);
  const Status status =
      find_neighbors(node->search, {node->plan.test.by->metric, node->near.select},
                     node->near.asked, finish_points(&node->point));
  if (status.ok()) {
    ++node->report.searches;
    node->report.candidates = node->search->candidates;
    std::memcpy(node->report.engine, node->search->engine, sizeof node->report.engine);
    show_searches(node->report.searches, node->search->kept.rows, node->report.candidates,
                  node->report.engine);
    return true;
  }
  ereport(DEBUG1, (errmsg("%s scans the table: %s", kSearchName, status.message)));
  close_table_search(node->search);
  return false;
}

/// Returns true if the table has no further neighbor within the radius.
bool is_complete(const SearchNode* node) { return node->search->found.count < node->near.asked; }

/// Estimates how many neighbors it takes until the plan above has its rows, from the share that
/// passed the quals so far. Returns 0 if that is unknown.
double foreseen_neighbors(const SearchNode* node) {
  if (!node->plan.is_ordered || node->plan.is_bounded) return 0;
  const auto asked = static_cast<double>(node->near.asked);
  return asked * static_cast<double>(node->plan.limit) / static_cast<double>(node->near.passed + 1);
}

/// Asks for more neighbors. Returns false if a scan of the table is cheaper, or the search failed.
bool ask_for_more(SearchNode* node) {
  const std::uint64_t max = most_neighbors(node->search->kept.rows);
  return node->near.asked < max && foreseen_neighbors(node) <= static_cast<double>(max) &&
         ask(node, node->near.asked * kMoreNeighbors);
}

/// Finds all rows within the radius and puts them in physical order. Returns false if they are too
/// many.
bool find_all(SearchNode* node) {
  while (!is_complete(node))
    if (!ask_for_more(node)) return false;
  service::FoundRow* const rows = node->search->found.rows;
  std::sort(rows, rows + node->search->found.count,
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return true;
}

/// Evaluates the ORDER BY expression for a row. NaN if it is NULL.
double rank_of(SearchNode* node, std::int64_t number) {
  ExprContext* const expressions = expressions_of(node);
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = fetch_late_row(node->rows, number);
  bool is_null;
  const Datum rank = evaluate(node, node->order, &is_null);
  ++node->report.ranked;
  if (is_null) return NAN;
  return node->plan.is_descending ? -DatumGetFloat8(rank) : DatumGetFloat8(rank);
}

/// PostgreSQL's order: numbers, then NaN.
bool comes_before(const RankedRow& a, const RankedRow& b) {
  if (std::isnan(a.rank) || std::isnan(b.rank)) return !std::isnan(a.rank) && std::isnan(b.rank);
  return a.rank < b.rank;
}

/// Finds the end of the neighbors, from Neighbors::next on, that the engine's distances cannot
/// order. Returns false if a neighbor that was not asked for yet may belong to them.
bool find_group(const SearchNode* node, std::uint64_t* end) {
  const service::FoundRow* const rows = node->search->found.rows;
  const std::uint64_t begin = node->near.next, count = node->search->found.count;
  const SimilarityTest& test = node->plan.test;
  *end = begin + 1;
  if (is_exact(test)) return true;
  double beyond = surely_beyond(node, rows[begin].distance);
  for (; *end < count && rows[*end].distance <= beyond; ++*end)
    if (rows[*end].distance > rows[*end - 1].distance)
      beyond = surely_beyond(node, rows[*end].distance);
  return *end < count || is_complete(node);
}

/// Fills the group with the next neighbors in their order. Returns false if the neighbors that were
/// found do not determine the next one.
bool next_group(SearchNode* node) {
  Neighbors& near = node->near;
  std::uint64_t end;
  while (near.next == node->search->found.count || !find_group(node, &end)) {
    if (near.next == node->search->found.count && is_complete(node)) return false;
    if (!ask_for_more(node)) return false;
  }
  near.group_count = near.group_next = 0;
  const bool is_alone = end - near.next == 1;
  for (; near.next < end; ++near.next) {
    const std::int64_t number = node->search->found.rows[near.next].id;
    const double rank = is_alone ? 0 : rank_of(node, number);
    reserve_next(node->search_context, &near.group, near.group_count, &near.group_room);
    near.group[near.group_count++] = {rank, number};
  }
  std::sort(near.group, near.group + near.group_count, comes_before);
  return true;
}

// ---- The whole table

void end_sort(SearchNode* node) {
  if (node->sorted.sort != nullptr) tuplesort_end(node->sorted.sort);
  node->sorted.sort = nullptr;
}

/// Has later sorts leave out the row.
void skip(SearchNode* node, std::int64_t number) {
  SortedRows& sorted = node->sorted;
  reserve_next(node->css.ss.ps.state->es_query_cxt, &sorted.skipped, sorted.skipped_count,
               &sorted.skipped_room);
  sorted.skipped[sorted.skipped_count++] = number;
}

TupleDesc sorted_columns() {
  const TupleDesc columns = CreateTemplateTupleDesc(2);
  TupleDescInitEntry(columns, 1, "rank", FLOAT8OID, -1, 0);
  TupleDescInitEntry(columns, 2, "number", INT8OID, -1, 0);
  return columns;
}

/// Adds the row in the expression context to the sort, if it passes the quals.
void sort_row(SearchNode* node, TupleTableSlot* slot) {
  if (!ExecQual(node->css.ss.ps.qual, expressions_of(node))) {
    InstrCountFiltered1(&node->css.ss, 1);
    return;
  }
  ExecClearTuple(slot);
  slot->tts_values[0] = evaluate(node, node->order, &slot->tts_isnull[0]);
  slot->tts_values[1] = Int64GetDatum(node->rows->held);
  slot->tts_isnull[1] = false;
  ++node->report.ranked;
  tuplesort_puttupleslot(node->sorted.sort, ExecStoreVirtualTuple(slot));
}

/// Sorts all rows that pass the quals and are not skipped; with a `bound`, only the first ones.
void sort_table(SearchNode* node, std::uint64_t bound) {
  EState* const state = node->css.ss.ps.state;
  SortedRows& sorted = node->sorted;
  if (sorted.slot == nullptr)
    sorted.slot = ExecInitExtraTupleSlot(state, sorted_columns(), &TTSOpsMinimalTuple);
  end_sort(node);
  const MemoryContext caller = MemoryContextSwitchTo(state->es_query_cxt);
  sorted.sort = begin_sort(sorted.slot->tts_tupleDescriptor,
                           node->plan.is_descending ? kFloat8Greater : Float8LessOperator,
                           node->plan.nulls_first, bound);
  MemoryContextSwitchTo(caller);
  sorted.bound = bound;
  std::sort(sorted.skipped, sorted.skipped + sorted.skipped_count);
  TupleTableSlot* const slot =
      MakeSingleTupleTableSlot(sorted.slot->tts_tupleDescriptor, &TTSOpsVirtual);
  ExprContext* const expressions = expressions_of(node);
  restart_late_rows(node->rows);
  while (TupleTableSlot* const row = next_late_row(node->rows)) {
    CHECK_FOR_INTERRUPTS();
    if (std::binary_search(sorted.skipped, sorted.skipped + sorted.skipped_count, node->rows->held))
      continue;
    ResetExprContext(expressions);
    expressions->ecxt_scantuple = row;
    sort_row(node, slot);
  }
  ExecDropSingleTupleTableSlot(slot);
  tuplesort_performsort(sorted.sort);
}

/// Falls back to all rows that were not returned yet.
void start_table(SearchNode* node) {
  ++node->report.scans;
  if (!node->plan.is_ordered) {
    restart_late_rows(node->rows);
    node->source = SearchSource::kTable;
    return;
  }
  node->sorted.skipped_count = 0;
  for (std::uint64_t i = 0; i < node->near.next; ++i) skip(node, node->search->found.rows[i].id);
  sort_table(node, node->near.next == 0 ? node->plan.limit : 0);
  node->source = SearchSource::kSortedTable;
}

// ---- Rows

/// Returns the next neighbor. After the last one, sets the next source and returns null.
TupleTableSlot* next_neighbor(SearchNode* node) {
  Neighbors& near = node->near;
  if (!node->plan.is_ordered) {
    if (near.next < node->search->found.count)
      return fetch_late_row(node->rows, node->search->found.rows[near.next++].id);
    node->source = SearchSource::kNone;
    return nullptr;
  }
  if (near.group_next < near.group_count || next_group(node))
    return fetch_late_row(node->rows, near.group[near.group_next++].number);
  // Rows without a distance fail any radius. Without a radius they come last.
  if (node->plan.is_bounded && is_complete(node))
    node->source = SearchSource::kNone;
  else
    start_table(node);
  return nullptr;
}

/// Returns the next row of the sort; null at its end.
TupleTableSlot* next_sorted(SearchNode* node) {
  SortedRows& sorted = node->sorted;
  // The plan above takes more rows than the planner knew: sort the others, too.
  if (sorted.bound > 0 && sorted.skipped_count == sorted.bound) sort_table(node, 0);
  if (!tuplesort_gettupleslot(sorted.sort, true, false, sorted.slot, nullptr)) return nullptr;
  bool is_null;
  const std::int64_t number = DatumGetInt64(slot_getattr(sorted.slot, 2, &is_null));
  if (sorted.bound > 0) skip(node, number);
  return fetch_late_row(node->rows, number);
}

/// Returns how many neighbors the first search asks for. If all of them pass the quals, it takes a
/// few more than the limit, since the order of the last ones may be undecided.
std::uint64_t first_neighbors(const SearchPlan& plan) {
  constexpr double kSpare = 6, kMost = 1000;
  const bool all_pass = plan.limit > 0 && plan.expected <= static_cast<double>(plan.limit);
  const double spare = all_pass ? kSpare : plan.expected + 16;
  return static_cast<std::uint64_t>(fmin(plan.expected, kMost) + fmin(spare, kMost));
}

/// Evaluates the value and the radius, and chooses the source of the rows.
void start_search(SearchNode* node) {
  ResetExprContext(expressions_of(node));
  node->near.next = node->near.group_count = node->near.group_next = node->near.passed = 0;
  open_search(node);
  const TableSearch* const search = node->search;
  const bool is_open = search != nullptr && (search->local > 0 || search->connection.socket >= 0);
  // PostgreSQL's own plan evaluates nothing for a table without rows.
  const bool can = is_open && search->kept.rows > 0 && !may_begin_with_nan(node);
  const Reach reach = can ? prepare_search(node) : Reach::kUnknown;
  if (reach == Reach::kNone) {
    node->source = SearchSource::kNone;
    return;
  }
  node->source = SearchSource::kNeighbors;
  if (reach == Reach::kSome && ask(node, first_neighbors(node->plan)) &&
      (node->plan.is_ordered || find_all(node)))
    return;
  start_table(node);
}

/// ExecScanAccessMtd: returns the next row, or an empty slot after the last one.
TupleTableSlot* next_row(ScanState* state) {
  SearchNode* const node = reinterpret_cast<SearchNode*>(state);
  for (;;) {
    switch (node->source) {
      case SearchSource::kNotStarted:
        start_search(node);
        break;
      case SearchSource::kNeighbors:
        if (TupleTableSlot* const row = next_neighbor(node)) return row;
        break;
      case SearchSource::kTable:
        if (TupleTableSlot* const row = next_late_row(node->rows)) return row;
        node->source = SearchSource::kNone;
        break;
      case SearchSource::kSortedTable:
        if (TupleTableSlot* const row = next_sorted(node)) return row;
        node->source = SearchSource::kNone;
        break;
      case SearchSource::kNone:
        return ExecClearTuple(state->ss_ScanTupleSlot);
    }
  }
}

/// ExecScanRecheckMtd: ExecScan() evaluates all quals itself.
bool recheck(ScanState*, TupleTableSlot*) { return true; }

// ---- The plan

/// Sets the test's pointers. A plan has their number, since another process has other addresses.
void take_test(const CustomScan* scan, int at, SimilarityTest* test) {
  const SimilarityTest found = numbered_test(intVal(list_nth(scan->custom_private, at)));
  test->type = found.type;
  test->by = found.by;
}

SearchPlan decode_plan(const CustomScan* scan) {
  const auto* const bytes = castNode(Const, linitial(scan->custom_private));
  SearchPlan plan;
  std::memcpy(&plan, VARDATA(DatumGetPointer(bytes->constvalue)), sizeof plan);
  take_test(scan, 1, &plan.test);
  take_test(scan, 2, &plan.radius);
  return plan;
}

SearchExpressions decode_expressions(const SearchPlan& plan, List* encoded) {
  SearchExpressions expressions = {};
  expressions.value = static_cast<Expr*>(linitial(encoded));
  if (plan.is_bounded) expressions.eps = static_cast<Expr*>(lsecond(encoded));
  if (plan.is_ordered)
    expressions.order = static_cast<Expr*>(list_nth(encoded, 1 + plan.is_bounded));
  if (plan.is_computed) expressions.computed = static_cast<Expr*>(llast(encoded));
  return expressions;
}

// ---- The node

/// Makes the node's scan slot, projection and quals anew for rows as the table stores them. By
/// default PostgreSQL expects virtual tuples from a custom scan, and passes stored ones to quals
/// only when it rechecks a locked row.
void use_stored_rows(ScanState* state) {
  ExecInitScanTupleSlot(state->ps.state, state, RelationGetDescr(state->ss_currentRelation),
                        table_slot_callbacks(state->ss_currentRelation));
  state->ps.subPlan = NIL;  // ExecInitQual() lists the SubPlans of the quals again
  ExecAssignScanProjectionInfo(state);
  state->ps.qual = ExecInitQual(state->ps.plan->qual, &state->ps);
}

/// CustomExecMethods::BeginCustomScan. Reads no table: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int) {
  SearchNode* const node = from_state(state);
  const CustomScan* const scan = castNode(CustomScan, state->ss.ps.plan);
  node->plan = decode_plan(scan);
  use_stored_rows(&state->ss);
  const SearchExpressions expressions = decode_expressions(node->plan, scan->custom_exprs);
  const auto init = [&](Expr* expression) { return ExecInitExpr(expression, &state->ss.ps); };
  node->value = init(expressions.value);
  node->eps = init(expressions.eps);
  node->order = init(expressions.order);
  node->computed = init(expressions.computed);
  node->rows = open_late_rows(state->ss.ss_currentRelation, estate->es_snapshot);
}

/// CustomExecMethods::ExecCustomScan.
TupleTableSlot* next(CustomScanState* state) {
  ++from_state(state)->near.passed;  // by the time that another row is asked for
  return ExecScan(&state->ss, next_row, recheck);
}

/// CustomExecMethods::ReScanCustomScan. The snapshot stays, and so does the prepared search.
void rescan(CustomScanState* state) {
  SearchNode* const node = from_state(state);
  ExecScanReScan(&state->ss);
  end_sort(node);
  node->source = SearchSource::kNotStarted;
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  SearchNode* const node = from_state(state);
  end_sort(node);
  close_late_rows(node->rows);
  if (node->search != nullptr) close_table_search(node->search);
  if (node->report.searches == 0) return;
  hide_join();
  service::JoinCounts counts = {};
  counts.searches = node->report.searches;
  report_join(counts);
}

void explain_expression(const SearchNode* node, const char* label, Expr* expression,
                        const char* after, List* ancestors, ExplainState* es) {
  if (expression == nullptr) return;
  List* const context = set_deparse_context_plan(es->deparse_cxt, node->css.ss.ps.plan, ancestors);
  const bool prefix = es->verbose || list_length(es->rtable) > 1;
  const char* const text =
      deparse_expression(reinterpret_cast<Node*>(expression), context, prefix, false);
  ExplainPropertyText(label, psprintf("%s%s", text, after), es);
}

/// CustomExecMethods::ExplainCustomScan.
void explain(CustomScanState* state, List* ancestors, ExplainState* es) {
  const SearchNode* const node = from_state(state);
  const SearchPlan& plan = node->plan;
  const CustomScan* const scan = castNode(CustomScan, state->ss.ps.plan);
  const SearchExpressions expressions = decode_expressions(plan, scan->custom_exprs);
  ExplainPropertyText("Search Method",
                      !plan.is_ordered   ? "Rows Within a Radius"
                      : !plan.is_bounded ? "Nearest Rows"
                                         : "Nearest Rows Within a Radius",
                      es);
  explain_expression(node, "Order By", expressions.order, plan.is_descending ? " DESC" : "",
                     ancestors, es);
  explain_expression(node, "Radius", expressions.eps, "", ancestors, es);
  if (is_detailed(es)) explain_expression(node, "Value", expressions.value, "", ancestors, es);
  ExplainPropertyText("Index",
                      plan.is_kept          ? "kept"
                      : plan.searches_first ? "built for the first search"
                                            : "built for the second search",
                      es);
  if (!es->analyze) return;
  const SearchReport& report = node->report;
  if (report.searches > 0) ExplainPropertyText("Engine", report.engine, es);
  explain_count("Searches", report.searches, es);
  if (report.scans > 0 || is_detailed(es)) explain_count("Table Scans", report.scans, es);
  explain_count("Candidates", report.candidates, es);
  explain_count("Rows Fetched", node->rows->fetched, es);
  if (is_detailed(es)) explain_count("Rows Ranked", report.ranked, es);
}

constexpr CustomExecMethods make_methods() {
  CustomExecMethods methods = make_exec_methods(begin, next, end, rescan, explain);
  methods.CustomName = kSearchName;
  return methods;
}
constexpr CustomExecMethods kExecMethods = make_methods();

/// CustomScanMethods::CreateCustomScanState.
Node* create(CustomScan*) {
  auto* const node = reinterpret_cast<SearchNode*>(newNode(sizeof(SearchNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

const CustomScanMethods kScanMethods = {kSearchName, create};

}  // namespace

CustomScan* make_search_scan(const SearchPlan& plan, const List* attributes,
                             const SearchExpressions& expressions) {
  CustomScan* const scan = makeNode(CustomScan);
  const Size size = VARHDRSZ + sizeof plan;
  char* const bytes = static_cast<char*>(palloc(size));
  SET_VARSIZE(bytes, size);
  std::memcpy(VARDATA(bytes), &plan, sizeof plan);
  scan->methods = &kScanMethods;
  scan->custom_private =
      list_make4(makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes), false, false),
                 makeInteger(test_number(plan.test)), makeInteger(test_number(plan.radius)),
                 list_copy(attributes));
  scan->custom_exprs = list_make1(expressions.value);
  if (expressions.eps != nullptr) scan->custom_exprs = lappend(scan->custom_exprs, expressions.eps);
  if (expressions.order != nullptr)
    scan->custom_exprs = lappend(scan->custom_exprs, expressions.order);
  if (expressions.computed != nullptr)
    scan->custom_exprs = lappend(scan->custom_exprs, expressions.computed);
  return scan;
}

Status find_neighbors(TableSearch* search, const PointsWithin& within, std::uint64_t count,
                      const Dataset& point) {
  JoinRequest request(Sides::two({}, {}), within, Output::nearest(count));
  request.resources = engine_resources(nullptr);
  request.knobs = knob_settings();
  return search_table(search, request, wanted_engine(), point);
}

void install_search_node() { RegisterCustomScanMethods(&kScanMethods); }

}  // namespace gpujoin

// The nearest rows of a value are asked of the service (table_search.h), more and more of them as
// long as rows are taken; what it knows are ctids and distances in the engine's arithmetic. Rows
// are fetched under the query's snapshot, and PostgreSQL evaluates all conditions for them, that on
// the distance included: so the search selects, and SQL decides. Where the engine's arithmetic
// leaves the order open, the operator's distances decide. Whatever is out of the ordinary takes a
// scan of all rows, sorted where an order is wanted, as PostgreSQL's own plan would: a first search
// of a table that nobody keeps, values that are no finite points, and what lies beyond the
// neighbours that the service is asked for.
#include "pg/executor/search_node.h"

#include "pg/executor/custom_scan.h"
#include "pg/executor/engine_run.h"
#include "pg/executor/explain.h"
#include "pg/executor/input_scan.h"
#include "pg/reading/late_rows.h"
#include "pg/reading/table_search.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"
#include "pg/store/huge_array.h"
#include "pg/trap.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/tuplesort.h"
}

namespace gpujoin {
namespace {

/// Where the next row comes from.
enum class SearchStep {
  kBegin,   ///< nothing is known yet
  kFound,   ///< what the service has found
  kScan,    ///< all rows, as they lie in the table
  kSorted,  ///< all rows that did not come yet, by their distances
  kDone,
};

/// A row whose distance is the operator's own.
struct MeasuredRow {
  double distance;
  std::int64_t number;  ///< its ctid, as itemptr_encode() makes an integer of it
};

/// For EXPLAIN ANALYZE.
struct SearchReport {
  std::uint64_t searches;  ///< that the service ran
  std::uint64_t scans;     ///< of all rows
  std::uint64_t measured;  ///< rows whose distance was computed to order them
  std::uint64_t candidates;
  char engine[sizeof(service::FoundRows::engine)];
};

/// The running node, which is made zeroed.
struct SearchNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  SearchPlan plan;
  ExprState *value, *eps, *distance;
  LateRows* rows;
  MemoryContext search_context;  ///< of `search`
  MemoryContext point_context;   ///< of `point`
  TableSearch* search;           ///< null: none was begun, or the table cannot be searched
  std::uint64_t begun;           ///< searches that were wanted so far
  bool tried;                    ///< open_table_search() was called
  // Of the search at hand:
  SearchStep step;
  PointBuffer point;    ///< of one row: the value
  double select;        ///< no row beyond this distance of the engine's is wanted
  std::uint64_t asked;  ///< neighbours
  std::uint64_t next;   ///< of the rows found, the first that is not in a group yet
  MeasuredRow* group;   ///< [group_count] rows that come next, in their order
  std::uint64_t group_count, group_room, group_next;
  Tuplesortstate* sorted;
  std::uint64_t bound;  ///< of the sorted rows so many are there; 0: all
  std::int64_t* came;   ///< [came_count] rows that came before them, and of bounded ones these, too
  std::uint64_t came_count, came_room;
  TupleTableSlot* sorted_slot;
  SearchReport report;
};

constexpr std::uint64_t kTimesMore = 8;
constexpr Oid kFloat8Greater = 674;  // the operator, which has no name in PostgreSQL's headers

SearchNode* from_state(CustomScanState* state) { return reinterpret_cast<SearchNode*>(state); }

ExprContext* expressions_of(SearchNode* node) { return node->css.ss.ps.ps_ExprContext; }

/// Evaluates an expression over no row, or over the one in the context.
Datum evaluate(SearchNode* node, ExprState* expression, bool* is_null) {
  return ExecEvalExprSwitchContext(expression, expressions_of(node), is_null);
}

// ---- What is looked for

/// Makes a point of the value. False: it is none, or none as the table has them.
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
  return has_room_for(point) && is_finite_row(point, 0) && point.dims == node->search->kept.dims;
}

/// What a radius leaves to a search.
enum class Reach {
  kSome,
  kNothing,  ///< no row fulfils the condition
  kUnknown,  ///< the condition alone can tell
};

Reach find_reach(SearchNode* node) {
  node->select = DBL_MAX;
  if (!node->plan.bounded) return Reach::kSome;
  bool is_null;
  const Datum eps = evaluate(node, node->eps, &is_null);
  if (is_null) return Reach::kUnknown;
  const EpsBand band = eps_band(node->plan.radius, DatumGetFloat8(eps), node->point.dims);
  if (!band.engine_serves) return Reach::kUnknown;
  node->select = band.select;
  return band.none ? Reach::kNothing : Reach::kSome;
}

/// Computes the value and the radius. An error that PostgreSQL might not come to is left to it.
Reach find_question(SearchNode* node) {
  Reach reach = Reach::kUnknown;
  const auto compute = [&] { reach = take_value(node) ? find_reach(node) : Reach::kUnknown; };
  if (!node->plan.drops_errors)
    compute();
  else if (!try_run(is_about_value, compute))
    return Reach::kUnknown;
  return reach;
}

/// Begins searches where they are to be had: at once where the table was kept, else with the second
/// one.
void open_search(SearchNode* node) {
  ++node->begun;
  if (node->tried || !may_read_tables(node->css.ss.ps.state) ||
      !(node->plan.at_once || node->begun > 1))
    return;
  node->tried = true;
  node->search_context = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt,
                                               "gpujoin search", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext caller = MemoryContextSwitchTo(node->search_context);
  SideColumns columns;
  if (take_value_column(node->css.ss.ss_currentRelation, node->plan.attribute,
                        *node->plan.test.type, node->plan.test.by->compared, &columns)) {
    node->point_context =
        AllocSetContextCreate(node->search_context, "gpujoin searched value", ALLOCSET_SMALL_SIZES);
    node->search = open_table_search(columns);
  }
  MemoryContextSwitchTo(caller);
}

/// Asks for neighbours. False: the table cannot be searched any more.
bool ask(SearchNode* node, std::uint64_t count) {
  node->asked = std::min(count, kMostNeighbors);
  const Dataset point = finish_points(&node->point);
  JoinRequest request(Sides::two({}, {}), PointsWithin{node->plan.test.by->metric, node->select},
                      Output::nearest(node->asked));
  request.resources = {.threads = thread_limit(),
                       .memory_limit = available_memory(nullptr),
                       .device_memory_limit = device_memory_limit_bytes(),
                       .soft_limits = true,
                       .devices = device_numbers()};
  request.knobs = knob_settings();
  const Status status = search_table(node->search, request, wanted_engine(), point);
  if (status.ok()) {
    ++node->report.searches;
    node->report.candidates = node->search->candidates;
    std::memcpy(node->report.engine, node->search->engine, sizeof node->report.engine);
    return true;
  }
  ereport(DEBUG1, (errmsg("%s scans all rows: %s", kSearchName, status.message)));
  close_table_search(node->search);
  return false;
}

/// Whether the service has found all rows that there are.
bool is_complete(const SearchNode* node) { return node->search->count < node->asked; }

/// Whether further neighbours are worth asking for, and not all rows.
bool may_ask_more(const SearchNode* node) {
  return node->asked < std::min<std::uint64_t>(kMostNeighbors, few_rows(node->search->kept.rows));
}

// ---- All rows

void end_sort(SearchNode* node) {
  if (node->sorted != nullptr) tuplesort_end(node->sorted);
  node->sorted = nullptr;
}

void note_row_that_came(SearchNode* node, std::int64_t number) {
  reserve_next(node->css.ss.ps.state->es_query_cxt, &node->came, node->came_count,
               &node->came_room);
  node->came[node->came_count++] = number;
}

/// The columns of rows that are sorted: distance and number.
TupleDesc sorted_columns() {
  const TupleDesc columns = CreateTemplateTupleDesc(2);
  TupleDescInitEntry(columns, 1, "distance", FLOAT8OID, -1, 0);
  TupleDescInitEntry(columns, 2, "number", INT8OID, -1, 0);
  return columns;
}

/// Sorts the rows that fulfil the conditions and did not come yet; with a `bound` the first ones.
void sort_rows(SearchNode* node, std::uint64_t bound) {
  EState* const state = node->css.ss.ps.state;
  if (node->sorted_slot == nullptr)
    node->sorted_slot = ExecInitExtraTupleSlot(state, sorted_columns(), &TTSOpsMinimalTuple);
  end_sort(node);
  const MemoryContext caller = MemoryContextSwitchTo(state->es_query_cxt);
  node->sorted = begin_sort(node->sorted_slot->tts_tupleDescriptor,
                            node->plan.descending ? kFloat8Greater : Float8LessOperator,
                            node->plan.nulls_first, bound);
  MemoryContextSwitchTo(caller);
  node->bound = bound;
  std::sort(node->came, node->came + node->came_count);
  ExprContext* const expressions = expressions_of(node);
  TupleTableSlot* const slot =
      MakeSingleTupleTableSlot(node->sorted_slot->tts_tupleDescriptor, &TTSOpsVirtual);
  restart_late_rows(node->rows);
  while (TupleTableSlot* const row = next_late_row(node->rows)) {
    CHECK_FOR_INTERRUPTS();
    if (std::binary_search(node->came, node->came + node->came_count, node->rows->held)) continue;
    ResetExprContext(expressions);
    expressions->ecxt_scantuple = row;
    if (!ExecQual(node->css.ss.ps.qual, expressions)) {
      InstrCountFiltered1(&node->css.ss, 1);
      continue;
    }
    ExecClearTuple(slot);
    slot->tts_values[0] = evaluate(node, node->distance, &slot->tts_isnull[0]);
    slot->tts_values[1] = Int64GetDatum(node->rows->held);
    slot->tts_isnull[1] = false;
    ++node->report.measured;
    tuplesort_puttupleslot(node->sorted, ExecStoreVirtualTuple(slot));
  }
  ExecDropSingleTupleTableSlot(slot);
  tuplesort_performsort(node->sorted);
}

/// The next row in the order of the operator's distances; null: there are no more.
TupleTableSlot* next_sorted(SearchNode* node) {
  if (node->bound > 0 && node->came_count == node->bound)
    sort_rows(node, 0);  // more are wanted than the plan said
  if (!tuplesort_gettupleslot(node->sorted, true, false, node->sorted_slot, nullptr))
    return nullptr;
  bool is_null;
  const std::int64_t number = DatumGetInt64(slot_getattr(node->sorted_slot, 2, &is_null));
  if (node->bound > 0) note_row_that_came(node, number);
  return fetch_late_row(node->rows, number);
}

/// Turns to all rows that did not come yet.
void turn_to_all(SearchNode* node) {
  ++node->report.scans;
  node->group_count = node->group_next = 0;
  if (node->plan.ordered) {
    node->came_count = 0;
    for (std::uint64_t i = 0; i < node->next; ++i)
      note_row_that_came(node, node->search->rows[i].id);
    sort_rows(node, node->next == 0 ? node->plan.most : 0);
    node->step = SearchStep::kSorted;
  } else {
    restart_late_rows(node->rows);
    node->step = SearchStep::kScan;
  }
}

// ---- Rows that the service found

/// As PostgreSQL sorts distances.
bool is_nearer(const MeasuredRow& a, const MeasuredRow& b) {
  if (std::isnan(a.distance) || std::isnan(b.distance))
    return !std::isnan(a.distance) && std::isnan(b.distance);
  return a.distance < b.distance;
}

/// Reads the rows of a search without an order as they lie in the table: all of them are known.
bool take_all(SearchNode* node) {
  while (!is_complete(node))
    if (!may_ask_more(node) || !ask(node, node->asked * kTimesMore)) return false;
  service::FoundRow* const rows = node->search->rows;
  std::sort(rows, rows + node->search->count,
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return true;
}

/// The distance by which rows are ordered, or its negative: the smallest comes first.
double measure(SearchNode* node, std::int64_t number) {
  ExprContext* const expressions = expressions_of(node);
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = fetch_late_row(node->rows, number);
  bool is_null;
  const Datum distance = evaluate(node, node->distance, &is_null);
  ++node->report.measured;
  if (is_null) return NAN;
  return node->plan.descending ? -DatumGetFloat8(distance) : DatumGetFloat8(distance);
}

/// The rows from node->next on whose order the engine's distances leave open, up to *end. False:
/// more rows have to be known to say which they are.
bool find_group(const SearchNode* node, std::uint64_t* end) {
  const service::FoundRow* const rows = node->search->rows;
  const std::uint64_t begin = node->next, count = node->search->count;
  *end = begin + 1;
  if (is_exact(node->plan.test)) return true;
  double beyond = surely_beyond(node->plan.test, rows[begin].distance, node->point.dims);
  for (; *end < count && rows[*end].distance <= beyond; ++*end)
    if (rows[*end].distance > rows[*end - 1].distance)
      beyond = surely_beyond(node->plan.test, rows[*end].distance, node->point.dims);
  return *end < count || is_complete(node);
}

/// Makes the next group of rows. False: the rows that the service has found do not tell.
bool next_group(SearchNode* node) {
  std::uint64_t end;
  while (node->next == node->search->count || !find_group(node, &end)) {
    if (node->next == node->search->count && is_complete(node)) return false;
    if (!may_ask_more(node) || !ask(node, node->asked * kTimesMore)) return false;
  }
  node->group_count = node->group_next = 0;
  for (std::uint64_t i = node->next; i < end; ++i) {
    reserve_next(node->search_context, &node->group, node->group_count, &node->group_room);
    const std::int64_t number = node->search->rows[i].id;
    node->group[node->group_count++] = {end - node->next > 1 ? measure(node, number) : 0, number};
  }
  std::sort(node->group, node->group + node->group_count, is_nearer);
  node->next = end;
  return true;
}

/// The next row that the service has found; null: there is none, and node->step says what follows.
TupleTableSlot* next_found(SearchNode* node) {
  if (!node->plan.ordered) {
    if (node->next < node->search->count)
      return fetch_late_row(node->rows, node->search->rows[node->next++].id);
    node->step = SearchStep::kDone;
    return nullptr;
  }
  if (node->group_next < node->group_count || next_group(node))
    return fetch_late_row(node->rows, node->group[node->group_next++].number);
  // Rows without a distance fulfil no radius, and come last where there is none.
  if (node->plan.bounded && is_complete(node))
    node->step = SearchStep::kDone;
  else
    turn_to_all(node);
  return nullptr;
}

/// Finds out what the search is for, and where its rows come from.
void begin_search(SearchNode* node) {
  ResetExprContext(expressions_of(node));
  end_sort(node);
  node->next = node->group_count = node->group_next = 0;
  open_search(node);
  const bool can = node->search != nullptr && node->search->connection.socket >= 0;
  // Without rows PostgreSQL would compute nothing.
  const Reach reach = can && node->search->kept.rows > 0 ? find_question(node) : Reach::kUnknown;
  if (reach == Reach::kNothing) {
    node->step = SearchStep::kDone;
    return;
  }
  const auto wanted = static_cast<std::uint64_t>(fmin(2 * node->plan.wanted, 1000)) + 16;
  node->step = SearchStep::kFound;
  if (reach == Reach::kSome && ask(node, wanted) && (node->plan.ordered || take_all(node))) return;
  node->next = 0;
  if (node->search != nullptr) node->search->count = 0;
  turn_to_all(node);
}

// ---- The node

/// ExecScanAccessMtd: the next row, or an empty slot after the last one.
TupleTableSlot* next_row(ScanState* state) {
  SearchNode* const node = reinterpret_cast<SearchNode*>(state);
  for (;;) {
    switch (node->step) {
      case SearchStep::kBegin:
        begin_search(node);
        break;
      case SearchStep::kFound:
        if (TupleTableSlot* const row = next_found(node)) return row;
        break;
      case SearchStep::kScan:
        if (TupleTableSlot* const row = next_late_row(node->rows)) return row;
        node->step = SearchStep::kDone;
        break;
      case SearchStep::kSorted:
        if (TupleTableSlot* const row = next_sorted(node)) return row;
        node->step = SearchStep::kDone;
        break;
      case SearchStep::kDone:
        return ExecClearTuple(state->ss_ScanTupleSlot);
    }
  }
}

/// ExecScanRecheckMtd: all conditions are evaluated anyway.
bool recheck(ScanState*, TupleTableSlot*) { return true; }

/// Takes over which test it is. Tests are numbers in plans, for their tables lie elsewhere in
/// another process.
void take_test(const CustomScan* scan, int at, SimilarityTest* test) {
  const SimilarityTest found = numbered_test(intVal(list_nth(scan->custom_private, at)));
  test->type = found.type;
  test->by = found.by;
}

SearchPlan decode(const CustomScan* scan) {
  const auto* const bytes = castNode(Const, linitial(scan->custom_private));
  SearchPlan plan;
  std::memcpy(&plan, VARDATA(DatumGetPointer(bytes->constvalue)), sizeof plan);
  take_test(scan, 1, &plan.test);
  take_test(scan, 2, &plan.radius);
  return plan;
}

/// Which expressions there are, in their order.
SearchExpressions decode_expressions(const SearchPlan& plan, List* encoded) {
  SearchExpressions expressions = {};
  expressions.value = static_cast<Expr*>(linitial(encoded));
  if (plan.bounded) expressions.eps = static_cast<Expr*>(lsecond(encoded));
  if (plan.ordered) expressions.distance = static_cast<Expr*>(llast(encoded));
  return expressions;
}

/// Has the node emit rows as the table has them, where PostgreSQL expects a custom scan to copy
/// them.
void take_rows_as_stored(ScanState* state) {
  ExecInitScanTupleSlot(state->ps.state, state, RelationGetDescr(state->ss_currentRelation),
                        table_slot_callbacks(state->ss_currentRelation));
  state->ps.subPlan = NIL;  // of expressions that are made anew
  ExecAssignScanProjectionInfo(state);
  state->ps.qual = ExecInitQual(state->ps.plan->qual, &state->ps);
}

/// CustomExecMethods::BeginCustomScan. Reads no table: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int) {
  SearchNode* const node = from_state(state);
  const CustomScan* const scan = castNode(CustomScan, state->ss.ps.plan);
  node->plan = decode(scan);
  take_rows_as_stored(&state->ss);
  const SearchExpressions expressions = decode_expressions(node->plan, scan->custom_exprs);
  const auto init = [&](Expr* expression) { return ExecInitExpr(expression, &state->ss.ps); };
  node->value = init(expressions.value);
  node->eps = init(expressions.eps);
  node->distance = init(expressions.distance);
  node->rows = open_late_rows(state->ss.ss_currentRelation, estate->es_snapshot);
}

/// CustomExecMethods::ExecCustomScan.
TupleTableSlot* next(CustomScanState* state) { return ExecScan(&state->ss, next_row, recheck); }

/// CustomExecMethods::ReScanCustomScan. What the table is, the snapshot says, which stays.
void rescan(CustomScanState* state) {
  SearchNode* const node = from_state(state);
  ExecScanReScan(&state->ss);
  end_sort(node);
  node->step = SearchStep::kBegin;
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  SearchNode* const node = from_state(state);
  end_sort(node);
  close_late_rows(node->rows);
  if (node->search != nullptr) close_table_search(node->search);
}

void explain_expression(const SearchNode* node, const char* label, Expr* expression,
                        const char* after, List* ancestors, ExplainState* es) {
  if (expression == nullptr) return;
  Plan* const plan = node->css.ss.ps.plan;
  List* const context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
  const bool prefix = es->verbose || list_length(es->rtable) > 1;
  const char* const text =
      deparse_expression(reinterpret_cast<Node*>(expression), context, prefix, false);
  ExplainPropertyText(label, psprintf("%s%s", text, after), es);
}

/// CustomExecMethods::ExplainCustomScan.
void explain(CustomScanState* state, List* ancestors, ExplainState* es) {
  const SearchNode* const node = from_state(state);
  const CustomScan* const scan = castNode(CustomScan, state->ss.ps.plan);
  const SearchExpressions expressions = decode_expressions(node->plan, scan->custom_exprs);
  ExplainPropertyText("Search Method",
                      !node->plan.ordered   ? "Rows Within a Radius"
                      : !node->plan.bounded ? "Nearest Rows"
                                            : "Nearest Rows Within a Radius",
                      es);
  explain_expression(node, "Order By", expressions.distance, node->plan.descending ? " DESC" : "",
                     ancestors, es);
  explain_expression(node, "Radius", expressions.eps, "", ancestors, es);
  if (is_detailed(es)) explain_expression(node, "Value", expressions.value, "", ancestors, es);
  ExplainPropertyText("Index", node->plan.kept ? "kept" : "built when searched again", es);
  if (!es->analyze) return;
  const SearchReport& report = node->report;
  if (report.searches > 0) ExplainPropertyText("Engine", report.engine, es);
  explain_count("Searches", report.searches, es);
  if (report.scans > 0 || is_detailed(es)) explain_count("Scans", report.scans, es);
  explain_count("Candidates", report.candidates, es);
  explain_count("Rows Fetched", node->rows->fetched, es);
  if (is_detailed(es)) explain_count("Rows Measured", report.measured, es);
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

CustomScan* make_search_scan(const SearchPlan& plan, const SearchExpressions& expressions) {
  CustomScan* const scan = makeNode(CustomScan);
  const Size size = VARHDRSZ + sizeof plan;
  char* const bytes = static_cast<char*>(palloc(size));
  SET_VARSIZE(bytes, size);
  std::memcpy(VARDATA(bytes), &plan, sizeof plan);
  scan->methods = &kScanMethods;
  scan->custom_private =
      list_make3(makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes), false, false),
                 makeInteger(test_number(plan.test)), makeInteger(test_number(plan.radius)));
  scan->custom_exprs = list_make1(expressions.value);
  if (expressions.eps != nullptr) scan->custom_exprs = lappend(scan->custom_exprs, expressions.eps);
  if (expressions.distance != nullptr)
    scan->custom_exprs = lappend(scan->custom_exprs, expressions.distance);
  return scan;
}

void install_search_node() { RegisterCustomScanMethods(&kScanMethods); }

}  // namespace gpujoin

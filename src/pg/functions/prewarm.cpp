// gpu_prewarm(): a table is read and indexed before anybody waits for it. Without a radius, a score
// or boxes it brings what searches in plain SQL use, by making the searches; else what a join by
// the functions uses, by counting the pairs of that join.
#include "pg/errors.h"
#include "pg/executor/operation.h"
#include "pg/executor/search_node.h"
#include "pg/functions/prewarmed.h"
#include "pg/settings.h"
#include "pg/types/similarity_test.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(gpujoin_prewarm);
}

namespace gpujoin {
namespace {

/// A join of a table with itself, by the arguments of gpu_prewarm(), whose pairs are counted.
constexpr Operation prewarming(Shape shape, Output::Kind output, int eps, int columns,
                               int score_column) {
  const ArgumentPositions at = {.relation = {kTable, -1},
                                .eps = eps,
                                .id_column = {kIdColumn, -1},
                                .columns = {columns, -1},
                                .score_column = {score_column, -1},
                                .metric = kMetric,
                                .count = kKeep};
  return {{"gpu_prewarm", shape, output, DefaultEps::kZero, at, nullptr},
          nullptr,
          RowKind::kPair,
          0,
          nullptr,
          nullptr};
}

constexpr Operation kSearches = prewarming(Shape::kPoints, Output::kNearest, -1, kVectors, -1);
constexpr Operation kVectorPairs = prewarming(Shape::kPoints, Output::kPairs, kEps, kVectors, -1);
constexpr Operation kScoredPairs =
    prewarming(Shape::kPoints, Output::kTopPairs, kEps, kVectors, kScoreColumn);
constexpr Operation kBoxPairs = prewarming(Shape::kBoxes, Output::kPairs, kEps, kBoxes, -1);

/// Whether the call asks for what searches in plain SQL use.
bool is_for_searches(FunctionCallInfo fcinfo) {
  return PG_ARGISNULL(kEps) && PG_ARGISNULL(kScoreColumn) && PG_ARGISNULL(kBoxes) &&
         (PG_ARGISNULL(kIdColumn) || namestrcmp(PG_GETARG_NAME(kIdColumn), "ctid") == 0);
}

const Operation* choose_join(FunctionCallInfo fcinfo) {
  const bool scored = !PG_ARGISNULL(kScoreColumn);
  if (PG_ARGISNULL(kBoxes)) return scored ? &kScoredPairs : &kVectorPairs;
  if (scored || !PG_ARGISNULL(kVectors))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("cannot specify box_columns beside vector_columns or score_column"),
                    errhint("Call gpu_prewarm() for boxes and for vectors, one after the other.")));
  return &kBoxPairs;
}

[[noreturn]] void raise_cannot_stay(Oid relation, const char* reason) {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the rows of relation \"%s\" cannot stay in the service", get_rel_name(relation)),
           errdetail_internal("The reason: %s.", reason),
           errhint("Rows of logged tables stay that are read without row-level security and whose "
                   "values are finite and of one size, as far as gpujoin.table_memory allows.")));
  pg_unreachable();
}

// ---- Joins

/// Returns the reason why the rows of a join do not stay.
const char* reason_of(const JoinReport& report) {
  return report.place_reason[0] != '\0' ? report.place_reason : why_not_kept();
}

/// Returns the rows that stay.
std::uint64_t prewarm_join(FunctionCallInfo fcinfo) {
  JoinScan* const scan = prewarm_join_scan(CurrentMemoryContext, choose_join(fcinfo),
                                           fcinfo->flinfo->fn_expr, fcinfo->args);
  count_join_rows(scan);
  const bool stays = scan->kept[0].kept && scan->run.engine == service_engine();
  const std::uint64_t rows = scan->left.rows;
  const JoinReport report = report_run(&scan->run);
  const Oid relation = scan->arguments.left.relation;
  close_join_scan(scan);
  if (!stays) raise_cannot_stay(relation, reason_of(report));
  return rows;
}

// ---- Searches

/// The metric of searches: one of the functions' metrics, or pgvector's inner product.
struct SearchMetric {
  PointMetric metric;
  bool by_product;
};

constexpr const char* kProductName = "inner_product";

/// Whether searches by the function need the rows that the metric means.
bool is_of_metric(const ValueType& type, const TestFunction& by, SearchMetric wanted) {
  const PointMetric metric = wanted.metric;
  if (!has_form(type, by.compared)) return false;
  if (wanted.by_product) return by.compared == ValueForm::kProduct;
  switch (by.compared) {
    case ValueForm::kPoint:
      return by.metric == metric.metric && !metric.on_earth;
    case ValueForm::kDirection:
      return metric.metric == Metric::kCosine;
    case ValueForm::kPlace:
    case ValueForm::kSpheroidPlace:
      return by.metric == metric.metric && (metric.on_earth || !has_form(type, ValueForm::kPoint));
    default:
      return false;
  }
}

/// Makes a search at the point whose coordinates are all 1, or words of bits.
void search_somewhere(TableSearch* search, Metric metric) {
  constexpr std::uint64_t kUsualCount = 16;  // of a query for ten rows
  Dataset point = {};
  point.rows = 1;
  point.dims = search->kept.dims;
  point.scalar = search->points.scalar;
  if (point.dims == 0 || !has_room_for(point)) return;
  char* const coordinates = static_cast<char*>(palloc(point_bytes(point)));
  for (std::uint32_t d = 0; d < point.dims; ++d) {
    if (point.scalar == ScalarType::kFloat32)
      reinterpret_cast<float*>(coordinates)[d] = 1;
    else if (point.scalar == ScalarType::kBits)
      reinterpret_cast<std::uint64_t*>(coordinates)[d] = 1;
    else
      reinterpret_cast<double*>(coordinates)[d] = 1;
  }
  point.first_chunk = coordinates;
  const Status status = find_neighbors(search, {metric, DBL_MAX}, kUsualCount, point);
  if (!status.ok()) raise_status(status);
}

/// Has the service keep the numbered columns of a table in one form, with an index. Returns the
/// rows.
std::uint64_t prewarm_form(Oid table, const List* attributes, const ValueType& type,
                           const TestFunction& by) {
  const Relation relation = table_open(table, NoLock);  // it is locked
  SideColumns columns;
  const bool fits = take_value_columns(relation, attributes, type, by.compared, &columns);
  table_close(relation, NoLock);
  if (!fits) raise_cannot_stay(table, "plain SQL does not compare such columns");
  Status why;
  TableSearch* const search = open_kept_search(columns, &why);
  if (search == nullptr) raise_cannot_stay(table, why.message);
  const std::uint64_t rows = search->kept.rows;
  search_somewhere(search, by.metric);
  close_table_search(search);
  return rows;
}

/// Has the service keep the numbered columns of a table for all distances of the metric. Returns
/// the rows.
std::uint64_t prewarm_table(Oid table, const List* attributes, const ValueType& type,
                            SearchMetric metric) {
  List* forms = NIL;  // that are kept
  std::uint64_t rows = 0;
  for (int i = 0; i < type.test_count; ++i) {
    const TestFunction& by = type.tests[i];
    const int form = static_cast<int>(by.compared);
    if (!is_of_metric(type, by, metric) || list_member_int(forms, form)) continue;
    forms = lappend_int(forms, form);
    rows = prewarm_form(table, attributes, type, by);
  }
  if (forms == NIL)
    raise_cannot_stay(table, psprintf("no distance of type %s has the metric \"%s\"", type.name,
                                      metric.by_product ? kProductName : to_string(metric.metric)));
  return rows;
}

/// The columns of the same names in a table that inherits from theirs.
List* inherited_attributes(const SideColumns& columns, Oid table) {
  List* attributes = NIL;
  for (int i = 0; i < columns.count; ++i) {
    const char* const name = get_attname(columns.relation, columns.attributes[i], false);
    attributes = lappend_int(attributes, get_attnum(table, name));
  }
  return attributes;
}

/// The type whose tests plain SQL applies to the columns: several numbers are an array.
const ValueType& type_of(const SideColumns& columns) {
  if (columns.value_type != nullptr) return *columns.value_type;
  return *find_value_type(columns.types[0] == FLOAT4OID ? FLOAT4ARRAYOID : FLOAT8ARRAYOID);
}

/// Has the service keep what searches use of a table and of those that inherit from it. Returns the
/// rows.
std::uint64_t prewarm_searches(FunctionCallInfo fcinfo) {
  NullableDatum values[kKeep];
  std::copy_n(fcinfo->args, kKeep, values);
  const bool by_product = !values[kMetric].isnull &&
                          strcmp(TextDatumGetCString(values[kMetric].value), kProductName) == 0;
  if (by_product) values[kMetric].value = CStringGetTextDatum("l2");
  const JoinArguments arguments =
      read_arguments(&kSearches.function, fcinfo->flinfo->fn_expr, values);
  const SearchMetric metric = {arguments.metric, by_product};
  SideArguments side = arguments.left;
  side.is_searched = true;
  const SideColumns columns = find_values(arguments, side);
  const ValueType& type = type_of(columns);
  std::uint64_t rows = 0;
  ListCell* cell;
  List* const tables = find_all_inheritors(columns.relation, AccessShareLock, nullptr);
  foreach (cell, tables) {
    const Oid table = lfirst_oid(cell);
    if (get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE) continue;
    rows += prewarm_table(table, inherited_attributes(columns, table), type, metric);
  }
  return rows;
}

}  // namespace
}  // namespace gpujoin

extern "C" {
PGDLLEXPORT Datum gpujoin_prewarm(PG_FUNCTION_ARGS) {
  using namespace gpujoin;
  if (PG_ARGISNULL(kTable)) PG_RETURN_NULL();
  // Before version 1.2 of the extension the function has no such argument.
  const bool keeps = PG_NARGS() > kKeep && !PG_ARGISNULL(kKeep) && PG_GETARG_BOOL(kKeep);
  if (keeps) check_may_keep(PG_GETARG_OID(kTable));
  const std::uint64_t rows =
      is_for_searches(fcinfo) ? prewarm_searches(fcinfo) : prewarm_join(fcinfo);
  if (keeps) keep_prewarmed(fcinfo);
  PG_RETURN_INT64(static_cast<int64>(rows));
}
}

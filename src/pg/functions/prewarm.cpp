// gpu_prewarm(): a table is read, and indexed for a radius, before anybody waits for it.
#include "pg/executor/operation.h"
#include "pg/settings.h"

extern "C" {
#include "fmgr.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(gpujoin_prewarm);
}

namespace gpujoin {
namespace {

/// Arguments that say what is to stay.
constexpr int kVectorColumns = 3, kScoreColumn = 5, kBoxColumns = 6;

/// A join of a table with itself, by the arguments of gpu_prewarm(), whose pairs are counted.
constexpr Operation prewarming(Shape shape, Output::Kind output, int columns, int score_column) {
  const ArgumentPositions at = {.relation = {0, -1},
                                .eps = 1,
                                .id_column = {2, -1},
                                .columns = {columns, -1},
                                .score_column = {score_column, -1},
                                .metric = 4,
                                .count = 7};
  return {{"gpu_prewarm", shape, output, DefaultEps::kNone, at, nullptr},
          nullptr,
          RowKind::kPair,
          0,
          nullptr,
          nullptr};
}

constexpr Operation kVectors = prewarming(Shape::kPoints, Output::kPairs, kVectorColumns, -1);
constexpr Operation kScoredVectors =
    prewarming(Shape::kPoints, Output::kTopPairs, kVectorColumns, kScoreColumn);
constexpr Operation kBoxes = prewarming(Shape::kBoxes, Output::kPairs, kBoxColumns, -1);

const Operation* choose_operation(FunctionCallInfo fcinfo) {
  const bool scored = !PG_ARGISNULL(kScoreColumn);
  if (PG_ARGISNULL(kBoxColumns)) return scored ? &kScoredVectors : &kVectors;
  if (scored || !PG_ARGISNULL(kVectorColumns))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("cannot specify box_columns beside vector_columns or score_column"),
                    errhint("Call gpu_prewarm() for boxes and for vectors, one after the other.")));
  return &kBoxes;
}

/// Why the rows do not stay.
const char* reason_of(const JoinReport& report) {
  if (report.place_reason[0] != '\0') return report.place_reason;
  return service_preference() == ServicePreference::kOff ? "gpujoin.service is off"
                                                         : "They are of a kind that cannot stay";
}

/// Returns the rows that stay.
std::uint64_t prewarm(FunctionCallInfo fcinfo) {
  JoinScan* const scan = prewarm_join_scan(CurrentMemoryContext, choose_operation(fcinfo),
                                           fcinfo->flinfo->fn_expr, fcinfo->args);
  count_join_rows(scan);
  const bool stays = scan->kept[0].kept && scan->run.engine == service_engine();
  const std::uint64_t rows = scan->left.rows;
  const Oid relation = scan->arguments.left.relation;
  const JoinReport report = report_run(&scan->run);
  close_join_scan(scan);
  if (!stays)
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("the rows of relation \"%s\" cannot stay in the service", get_rel_name(relation)),
         errdetail_internal("%s.", reason_of(report)),
         errhint("Rows of logged tables stay that are read without row-level security, as far "
                 "as gpujoin.table_memory allows.")));
  return rows;
}

}  // namespace
}  // namespace gpujoin

extern "C" {
PGDLLEXPORT Datum gpujoin_prewarm(PG_FUNCTION_ARGS) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(gpujoin::prewarm(fcinfo)));
}
}

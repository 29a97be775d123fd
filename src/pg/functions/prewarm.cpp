// gpu_prewarm(): a table is read, and indexed for a radius, before anybody waits for it.
#include "pg/executor/operation.h"
#include "pg/settings.h"

extern "C" {
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(gpujoin_prewarm);
Datum gpujoin_selfjoin(PG_FUNCTION_ARGS);
}

namespace gpujoin {
namespace {

/// Why the rows do not stay.
const char* reason_of(const JoinReport& report) {
  if (report.place_reason[0] != '\0') return report.place_reason;
  return service_preference() == ServicePreference::kOff ? "gpujoin.service is off"
                                                         : "They are of a kind that cannot stay";
}

/// Joins as gpu_selfjoin() does where its pairs are only counted. The arguments of both have the
/// same order; there is no `pairs` here. Returns the rows that stay.
std::uint64_t prewarm(FunctionCallInfo fcinfo) {
  const Operation* const operation = find_operation(gpujoin_selfjoin);
  NullableDatum arguments[FUNC_MAX_ARGS];
  std::copy_n(fcinfo->args, fcinfo->nargs, arguments);
  arguments[operation->function.at.pairs] = {CStringGetTextDatum("all"), false};
  JoinScan* const scan =
      prewarm_join_scan(CurrentMemoryContext, operation, fcinfo->flinfo->fn_expr, arguments);
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

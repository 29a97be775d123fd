// The set-returning functions as PostgreSQL calls them: row by row, wherever the plan node does not
// take their place (executor/function_node.cpp).
#include "pg/executor/operation.h"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"

PG_FUNCTION_INFO_V1(gpujoin_selfjoin);
PG_FUNCTION_INFO_V1(gpujoin_selfjoin_distance);
PG_FUNCTION_INFO_V1(gpujoin_join);
PG_FUNCTION_INFO_V1(gpujoin_join_distance);
PG_FUNCTION_INFO_V1(gpujoin_neighbors);
PG_FUNCTION_INFO_V1(gpujoin_topk_join);
PG_FUNCTION_INFO_V1(gpujoin_knn_join);
PG_FUNCTION_INFO_V1(gpujoin_box_join);
PG_FUNCTION_INFO_V1(gpujoin_components);
PG_FUNCTION_INFO_V1(gpujoin_dbscan);
PG_FUNCTION_INFO_V1(gpujoin_density);
PG_FUNCTION_INFO_V1(gpujoin_dedup);
PG_FUNCTION_INFO_V1(gpujoin_spanning_tree);
PG_FUNCTION_INFO_V1(gpujoin_hdbscan);
}

namespace gpujoin {
namespace {

/// First call: reads the tables and starts the join, in memory that lives until the last call; its
/// end stops the engine when the caller wants no more.
void start(FunctionCallInfo fcinfo) {
  FuncCallContext* const calls = SRF_FIRSTCALL_INIT();
  const MemoryContext caller = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
  const Operation* const operation = find_operation(fcinfo->flinfo->fn_addr);
  if (get_call_result_type(fcinfo, nullptr, &calls->tuple_desc) != TYPEFUNC_COMPOSITE ||
      calls->tuple_desc->natts != operation->columns)
    elog(ERROR, "%s must return rows of %d columns", operation->function.name, operation->columns);
  BlessTupleDesc(calls->tuple_desc);
  calls->user_fctx = open_join_scan(calls->multi_call_memory_ctx, operation,
                                    fcinfo->flinfo->fn_expr, fcinfo->args, false);
  MemoryContextSwitchTo(caller);
}

Datum next_row(FunctionCallInfo fcinfo) {
  if (SRF_IS_FIRSTCALL()) start(fcinfo);
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  JoinScan* const scan = static_cast<JoinScan*>(calls->user_fctx);
  Datum values[kMaxResultColumns];
  bool nulls[kMaxResultColumns];
  if (!next_join_row(scan, values, nulls)) {
    close_join_scan(scan);
    SRF_RETURN_DONE(calls);
  }
  const HeapTuple row = heap_form_tuple(calls->tuple_desc, values, nulls);
  SRF_RETURN_NEXT(calls, HeapTupleGetDatum(row));
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_selfjoin(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_selfjoin_distance(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_join_distance(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_neighbors(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_topk_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_knn_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_box_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_components(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_dbscan(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_density(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_dedup(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_spanning_tree(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_hdbscan(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }
}

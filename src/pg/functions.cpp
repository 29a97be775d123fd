// The set-returning functions as PostgreSQL calls them: row by row, wherever the plan node does not
// take their place. See custom_scan.cpp for that.
#include "pg/function_scan.h"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(gpujoin_selfjoin);
PG_FUNCTION_INFO_V1(gpujoin_selfjoin_distance);
PG_FUNCTION_INFO_V1(gpujoin_join);
PG_FUNCTION_INFO_V1(gpujoin_join_distance);
}

namespace gpujoin {
namespace {

constexpr JoinFunction kSelfJoin = {"gpu_selfjoin", true, false, gpujoin_selfjoin};
constexpr JoinFunction kSelfJoinDistance = {"gpu_selfjoin_distance", true, true,
                                            gpujoin_selfjoin_distance};
constexpr JoinFunction kJoin = {"gpu_join", false, false, gpujoin_join};
constexpr JoinFunction kJoinDistance = {"gpu_join_distance", false, true, gpujoin_join_distance};

/// First call: reads the tables and starts the join, in memory that lives until the last call; its
/// end stops the engine when the caller wants no more.
void start(FunctionCallInfo fcinfo, const JoinFunction* function) {
  FuncCallContext* const calls = SRF_FIRSTCALL_INIT();
  const MemoryContext caller = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
  if (get_call_result_type(fcinfo, nullptr, &calls->tuple_desc) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "%s must return rows", function->name);
  BlessTupleDesc(calls->tuple_desc);
  calls->user_fctx =
      open_join_scan(calls->multi_call_memory_ctx, function, fcinfo->args, pairs_of(function));
  MemoryContextSwitchTo(caller);
}

Datum next_row(FunctionCallInfo fcinfo, const JoinFunction* function) {
  if (SRF_IS_FIRSTCALL()) start(fcinfo, function);
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  JoinScan* const scan = static_cast<JoinScan*>(calls->user_fctx);
  if (!next_join_pair(scan)) {
    close_join_scan(scan);
    SRF_RETURN_DONE(calls);
  }
  Datum values[] = {Int64GetDatum(scan->pair.id1), Int64GetDatum(scan->pair.id2),
                    Float8GetDatum(scan->pair.distance)};
  bool nulls[] = {false, false, false};
  const HeapTuple row = heap_form_tuple(calls->tuple_desc, values, nulls);
  SRF_RETURN_NEXT(calls, HeapTupleGetDatum(row));
}

}  // namespace

const JoinFunction* find_join_function(PGFunction address) {
  for (const JoinFunction* function : {&kSelfJoin, &kSelfJoinDistance, &kJoin, &kJoinDistance})
    if (function->address == address) return function;
  return nullptr;
}

}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_selfjoin(PG_FUNCTION_ARGS) {
  return gpujoin::next_row(fcinfo, &gpujoin::kSelfJoin);
}

PGDLLEXPORT Datum gpujoin_selfjoin_distance(PG_FUNCTION_ARGS) {
  return gpujoin::next_row(fcinfo, &gpujoin::kSelfJoinDistance);
}

PGDLLEXPORT Datum gpujoin_join(PG_FUNCTION_ARGS) {
  return gpujoin::next_row(fcinfo, &gpujoin::kJoin);
}

PGDLLEXPORT Datum gpujoin_join_distance(PG_FUNCTION_ARGS) {
  return gpujoin::next_row(fcinfo, &gpujoin::kJoinDistance);
}
}

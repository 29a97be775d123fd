// The set-returning functions as PostgreSQL calls them: row by row, wherever the plan node does not
// take their place. See custom_scan.cpp for that.
#include "pg/executor/function_scan.h"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(gpujoin_selfjoin);
PG_FUNCTION_INFO_V1(gpujoin_selfjoin_distance);
PG_FUNCTION_INFO_V1(gpujoin_join);
PG_FUNCTION_INFO_V1(gpujoin_join_distance);
PG_FUNCTION_INFO_V1(gpujoin_topk_join);
PG_FUNCTION_INFO_V1(gpujoin_box_join);
}

namespace gpujoin {
namespace {

constexpr ArgumentPositions kJoinArguments = {
    .relation = {0, 1}, .eps = 2, .id_column = {3, 4}, .columns = {5, 6}, .metric = 7, .count = 8};
constexpr ArgumentPositions kTopkJoinArguments = {.relation = {0, 1},
                                                  .eps = 2,
                                                  .k = 3,
                                                  .id_column = {4, 5},
                                                  .columns = {6, 7},
                                                  .score_column = {8, 9},
                                                  .metric = 10,
                                                  .score = 11,
                                                  .weights = 12,
                                                  .best = 13,
                                                  .count = 14};
constexpr ArgumentPositions kBoxJoinArguments = {.relation = {0, 1},
                                                 .eps = 2,
                                                 .id_column = {3, 4},
                                                 .columns = {5, 6},
                                                 .metric = 7,
                                                 .pairs = 8,
                                                 .count = 9};

constexpr JoinFunction kFunctions[] = {
    {"gpu_selfjoin", "Range Self-Join", Shape::kPoints, Output::kPairs, false, kSelfJoinArguments,
     gpujoin_selfjoin},
    {"gpu_selfjoin_distance", "Range Self-Join", Shape::kPoints, Output::kPairsWithDistances, false,
     kSelfJoinArguments, gpujoin_selfjoin_distance},
    {"gpu_join", "Range Join", Shape::kPoints, Output::kPairs, false, kJoinArguments, gpujoin_join},
    {"gpu_join_distance", "Range Join", Shape::kPoints, Output::kPairsWithDistances, false,
     kJoinArguments, gpujoin_join_distance},
    {"gpu_topk_join", "Top-k Join", Shape::kPoints, Output::kTopPairs, false, kTopkJoinArguments,
     gpujoin_topk_join},
    {"gpu_box_join", "Box Join", Shape::kBoxes, Output::kPairs, true, kBoxJoinArguments,
     gpujoin_box_join}};

/// First call: reads the tables and starts the join, in memory that lives until the last call; its
/// end stops the engine when the caller wants no more.
void start(FunctionCallInfo fcinfo, const JoinFunction* function) {
  FuncCallContext* const calls = SRF_FIRSTCALL_INIT();
  const MemoryContext caller = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
  if (get_call_result_type(fcinfo, nullptr, &calls->tuple_desc) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "%s must return rows", function->name);
  BlessTupleDesc(calls->tuple_desc);
  calls->user_fctx =
      open_join_scan(calls->multi_call_memory_ctx, function, fcinfo->args, function->output);
  MemoryContextSwitchTo(caller);
}

Datum next_row(FunctionCallInfo fcinfo) {
  if (SRF_IS_FIRSTCALL()) start(fcinfo, find_join_function(fcinfo->flinfo->fn_addr));
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
  for (const JoinFunction& function : kFunctions)
    if (function.address == address) return &function;
  return nullptr;
}

}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_selfjoin(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_selfjoin_distance(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_join_distance(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_topk_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }

PGDLLEXPORT Datum gpujoin_box_join(PG_FUNCTION_ARGS) { return gpujoin::next_row(fcinfo); }
}

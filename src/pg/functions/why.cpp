// gpu_why(): which distances of a query the node serves, and why not the others.
#include "pg/functions/result_row.h"
#include "pg/planner/missed.h"
#include "pg/planner/planning.h"

namespace gpujoin {
namespace {

/// The query within a statement that has one: CREATE TABLE AS, DECLARE CURSOR, EXPLAIN.
Query* query_within(Query* statement) {
  while (statement->commandType == CMD_UTILITY) {
    const Node* const utility = statement->utilityStmt;
    Node* query = nullptr;
    if (IsA(utility, CreateTableAsStmt))
      query = reinterpret_cast<const CreateTableAsStmt*>(utility)->query;
    else if (IsA(utility, DeclareCursorStmt))
      query = reinterpret_cast<const DeclareCursorStmt*>(utility)->query;
    else if (IsA(utility, ExplainStmt))
      query = reinterpret_cast<const ExplainStmt*>(utility)->query;
    if (query == nullptr || !IsA(query, Query))
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("gpu_why takes a query, not another statement"),
                      errhint("Pass one SELECT, INSERT, UPDATE, DELETE or MERGE statement.")));
    statement = reinterpret_cast<Query*>(query);
  }
  return statement;
}

/// Plans what the text says, and returns what became of its distances: of SeenDistance*.
List* distances_of(const char* text) {
  const List* const statements = pg_parse_query(text);
  if (list_length(statements) != 1)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("gpu_why takes one query, not %d statements", list_length(statements)),
                    errhint("Pass one SELECT, INSERT, UPDATE, DELETE or MERGE statement.")));
  const std::uint64_t before = plannings_begun();
  const List* const queries = analyze_and_rewrite(linitial_node(RawStmt, statements), text);
  ListCell* cell;
  foreach (cell, queries)
    pg_plan_query(query_within(lfirst_node(Query, cell)), text, CURSOR_OPT_PARALLEL_OK, nullptr);
  return distances_seen(before, 0);
}

Datum tuple_of(TupleDesc description, const SeenDistance& distance) {
  Row row = {};
  add_text(&row, distance.relations);
  add_text(&row, distance.condition);
  add(&row, BoolGetDatum(distance.served));
  const RefusalWords words = distance.searched ? RefusalWords{"served by search", ""}
                             : distance.served ? RefusalWords{"", ""}
                                               : words_of(distance.refusal);
  add_text(&row, words.reason);
  add_text(&row, words.hint);
  return make_tuple(description, &row);
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_why);

PGDLLEXPORT Datum gpujoin_why(PG_FUNCTION_ARGS) {
  if (SRF_IS_FIRSTCALL()) {
    FuncCallContext* const first = gpujoin::start_rows(fcinfo);
    const MemoryContext caller = MemoryContextSwitchTo(first->multi_call_memory_ctx);
    first->user_fctx = gpujoin::distances_of(text_to_cstring(PG_GETARG_TEXT_PP(0)));
    MemoryContextSwitchTo(caller);
  }
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  const List* const distances = static_cast<const List*>(calls->user_fctx);
  const auto next = static_cast<int>(calls->call_cntr);
  if (next >= list_length(distances)) SRF_RETURN_DONE(calls);
  const auto* const distance = static_cast<const gpujoin::SeenDistance*>(list_nth(distances, next));
  const Datum tuple = gpujoin::tuple_of(calls->tuple_desc, *distance);
  SRF_RETURN_NEXT(calls, tuple);
}
}

// The planner support function of the join functions and of distances. Being called while a query
// is planned, it is also what loads this library before the planner first asks for paths.
#include "pg/planner/function_estimate.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/safe_expression.h"
#include "pg/trap.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"

PG_FUNCTION_INFO_V1(gpujoin_support);
}

namespace gpujoin {
namespace {

/// Values of the call's arguments as far as the planner knows them; NULL where it does not, or
/// where an error would be the answer: the call may never be run.
int known_values(PlannerInfo* root, const FuncExpr* call, NullableDatum* values, bool* known) {
  int count = 0;
  ListCell* cell;
  foreach (cell, call->args) {
    Node* value = static_cast<Node*>(lfirst(cell));
    if (cannot_raise(root, reinterpret_cast<Expr*>(value)))
      value = estimate_expression_value(root, value);
    known[count] = IsA(value, Const);
    const Const* const constant = reinterpret_cast<const Const*>(value);
    values[count] = {known[count] ? constant->constvalue : 0,
                     !known[count] || constant->constisnull};
    ++count;
  }
  return count;
}

/// read_arguments(), or false where it raises an error about them. It only reads its arguments, so
/// nothing has to be undone.
bool try_arguments(const JoinFunction* function, Node* call, const NullableDatum* values,
                   JoinArguments* arguments) {
  return try_run([](int code) { return !is_about_server(code); },
                 [&] { *arguments = read_arguments(function, call, values); });
}

/// False when the tables are not known, or the call would raise an error.
bool estimate_call(PlannerInfo* root, Node* node, JoinEstimate* estimate) {
  if (root == nullptr || node == nullptr || !IsA(node, FuncExpr)) return false;
  const FuncExpr* const call = castNode(FuncExpr, node);
  FmgrInfo info;
  fmgr_info(call->funcid, &info);
  const Operation* const operation = find_operation(info.fn_addr);
  NullableDatum values[kMaxJoinArguments];
  bool known[kMaxJoinArguments];
  if (operation == nullptr || list_length(call->args) > kMaxJoinArguments) return false;
  const ArgumentPositions& at = operation->function.at;
  if (known_values(root, call, values, known) != at.count) return false;
  if (!known[at.relation[0]] || (at.relation[1] >= 0 && !known[at.relation[1]])) return false;
  const bool eps_known = at.eps < 0 || known[at.eps];
  if (!eps_known) values[at.eps] = {Float8GetDatum(0), false};
  if (at.k >= 0 && !known[at.k]) values[at.k] = {Int64GetDatum(kMostTopPairs), false};
  for (const int size : {at.min_points, at.min_cluster_size})
    if (size >= 0 && !known[size]) values[size] = {Int64GetDatum(2), false};
  JoinArguments arguments;
  if (!try_arguments(&operation->function, node, values, &arguments)) return false;
  if (arguments.no_rows)
    *estimate = {1, 0};
  else
    *estimate = estimate_join(operation->row, arguments, eps_known);
  return true;
}

/// The share of pairs that a call of gpu_within() between two relations leaves.
bool estimate_within(SupportRequestSelectivity* request) {
  if (!request->is_join) return false;
  Expr* const call =
      reinterpret_cast<Expr*>(makeFuncExpr(request->funcid, BOOLOID, request->args, InvalidOid,
                                           request->inputcollid, COERCE_EXPLICIT_CALL));
  SimilarityClause clause;
  if (!implied_distance(call, &clause) || !is_the_same_for_all_rows(clause.eps)) return false;
  const JoinSelectivities estimate = estimate_selectivity(request->root, call, clause);
  request->selectivity = request->jointype == JOIN_INNER ? estimate.pairs : estimate.outer;
  return true;
}

}  // namespace
}  // namespace gpujoin

extern "C" PGDLLEXPORT Datum gpujoin_support(PG_FUNCTION_ARGS) {
  Node* const request = static_cast<Node*>(static_cast<void*>(PG_GETARG_POINTER(0)));
  gpujoin::JoinEstimate estimate;
  Node* answer = nullptr;
  if (IsA(request, SupportRequestRows)) {
    SupportRequestRows* const rows = reinterpret_cast<SupportRequestRows*>(request);
    if (gpujoin::estimate_call(rows->root, rows->node, &estimate)) {
      rows->rows = estimate.rows;
      answer = request;
    }
  } else if (IsA(request, SupportRequestCost)) {
    SupportRequestCost* const cost = reinterpret_cast<SupportRequestCost*>(request);
    if (gpujoin::estimate_call(cost->root, cost->node, &estimate)) {
      cost->startup = 0;
      cost->per_tuple = estimate.cost;
      answer = request;
    }
  } else if (IsA(request, SupportRequestSelectivity)) {
    if (gpujoin::estimate_within(reinterpret_cast<SupportRequestSelectivity*>(request)))
      answer = request;
  }
  PG_RETURN_POINTER(answer);
}

#include "pg/reading/row_filter.h"

#include "pg/trap.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

bool needs_executor(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan)) return true;
  if (IsA(node, Param) && castNode(Param, node)->paramkind != PARAM_EXTERN) return true;
  return walk_expression(node, needs_executor, context);
}

Const* value_of(const Param* param, ParamListInfo params) {
  ParamExternData room;
  const int number = param->paramid;
  const ParamExternData* const found = params->paramFetch != nullptr
                                           ? params->paramFetch(params, number, false, &room)
                                           : &params->params[number - 1];
  int16 length;
  bool by_value;
  get_typlenbyval(param->paramtype, &length, &by_value);
  return makeConst(param->paramtype, param->paramtypmod, param->paramcollid, length, found->value,
                   found->isnull, by_value);
}

Node* replace_params(Node* node, void* params) {
  if (node == nullptr) return nullptr;
  if (IsA(node, Param))
    return reinterpret_cast<Node*>(
        value_of(castNode(Param, node), static_cast<ParamListInfo>(params)));
  return mutate_expression(node, replace_params, params);
}

bool evaluate(RowFilter* filter, TupleTableSlot* slot) {
  ResetExprContext(filter->values);
  filter->values->ecxt_scantuple = slot;
  return ExecQual(filter->conditions, filter->values);
}

}  // namespace

bool can_be_shared(List* conditions) {
  Node* const node = reinterpret_cast<Node*>(conditions);
  return !needs_executor(node, nullptr) && !contain_volatile_functions(node);
}

List* with_values_of(List* conditions, ParamListInfo params) {
  return reinterpret_cast<List*>(replace_params(reinterpret_cast<Node*>(conditions), params));
}

RowFilter* start_filter(const ScanFilter& filter, bool traps) {
  if (filter.conditions == NIL) return nullptr;
  RowFilter* const started = static_cast<RowFilter*>(palloc(sizeof(RowFilter)));
  *started = {ExecInitQual(filter.conditions, nullptr), CreateStandaloneExprContext(),
              traps && filter.may_raise};
  return started;
}

bool passes(RowFilter* filter, TupleTableSlot* slot, bool* raised) {
  if (filter == nullptr) return true;
  if (!filter->traps) return evaluate(filter, slot);
  bool wanted = false;
  if (try_run(is_about_value, [&] { wanted = evaluate(filter, slot); })) return wanted;
  *raised = true;
  return false;
}

}  // namespace gpujoin

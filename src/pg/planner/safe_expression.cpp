#include "pg/planner/safe_expression.h"

#include "pg/planner/numeric_digits.h"
#include "pg/reading/relation.h"
#include "pg/types/extension_object.h"

extern "C" {
#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "nodes/subscripting.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// True for PostGIS's functions that make a point of numbers, or set the SRID of a geometry: they
/// take any numbers, and turn an unknown SRID into another one.
bool is_point_maker(Oid function) {
  const char* const name = get_func_name(function);
  for (const char* const known : {"st_makepoint", "st_point", "st_setsrid"})
    if (name != nullptr && strcmp(name, known) == 0)
      return is_compiled_function_of(function, "postgis");
  return false;
}

/// check_functions_in_node() callback. A leakproof function raises no error that depends on its
/// arguments; the functions listed here are not marked so, but raise none either.
bool function_may_raise(Oid function, void*) {
  switch (function) {
    case F_POINT_FLOAT8_FLOAT8:
    case F_BOX_POINT:
    case F_BOX_POLYGON:
    case F_CENTER_CIRCLE:
    case F_RADIUS:
    case F_NUMERIC_INT2:
    case F_NUMERIC_INT4:
    case F_NUMERIC_INT8:
    case F_NUMERIC_FLOAT4:
    case F_NUMERIC_FLOAT8:
    case F_FLOAT4UM:
    case F_FLOAT8UM:
    case F_NUMERIC_UMINUS:
    case F_FLOAT4ABS:
    case F_FLOAT8ABS:
    case F_NUMERIC_ABS:
    case F_ABS_FLOAT4:
    case F_ABS_FLOAT8:
    case F_ABS_NUMERIC:
      return false;
    default:
      return function >= FirstGenbkiObjectId ? !is_point_maker(function)
                                             : !get_func_leakproof(function);
  }
}

/// Whether the parameter's value is there already. The value of a sub-select is computed when it is
/// first needed, which may raise any error.
bool is_computed(const PlannerInfo* root, const Param* param) {
  if (param->paramkind == PARAM_EXTERN) return true;
  if (param->paramkind != PARAM_EXEC) return false;
  for (; root != nullptr; root = root->parent_root) {
    ListCell* cell;
    foreach (cell, root->init_plans)
      if (list_member_int(lfirst_node(SubPlan, cell)->setParam, param->paramid)) return false;
  }
  return true;
}

/// Whether an element is read: one out of an array's bounds is NULL. Slices of some types are
/// errors.
bool reads_element(const SubscriptingRef* reference) {
  const SubscriptRoutines* const routines =
      getSubscriptingRoutines(reference->refcontainertype, nullptr);
  return reference->refassgnexpr == nullptr && reference->reflowerindexpr == NIL &&
         routines != nullptr && routines->fetch_leakproof;
}

/// check_functions_in_node() callback. Built-in functions that are immutable touch no table and no
/// file, and those of gpujoin, cube and pgvector compute like them; input functions of types are
/// left out, for some read catalogs.
bool function_may_hold(Oid function, void*) {
  if (func_volatile(function) != PROVOLATILE_IMMUTABLE) return true;
  if (function < FirstGenbkiObjectId) return false;
  for (const char* const extension : {"gpujoin", "cube", "vector"})
    if (is_compiled_function_of(function, extension)) return false;
  return true;
}

/// Whether a cast through text may hold anything when it raises an error. The input function of
/// arrays reads catalogs, but is done with them when it comes to the elements; that of numbers
/// reads none.
bool cast_may_hold(const CoerceViaIO* cast) {
  Oid input, output, parameter;
  bool is_varlena;
  getTypeInputInfo(cast->resulttype, &input, &parameter);
  getTypeOutputInfo(exprType(reinterpret_cast<Node*>(cast->arg)), &output, &is_varlena);
  return function_may_hold(output, nullptr) ||
         (function_may_hold(input, nullptr) && !is_number_type(get_element_type(cast->resulttype)));
}

/// What a walk over an expression requires of its functions, and where it was planned.
struct Walk {
  const PlannerInfo* root;
  bool (*is_refused)(Oid function, void*);
  bool drops;  ///< errors of the expression's own nodes do no harm
};

bool may_raise(Node* node, void* context) {
  if (node == nullptr) return false;
  const Walk* const walk = static_cast<const Walk*>(context);
  switch (nodeTag(node)) {
    case T_Var:
    case T_Const:
    case T_RelabelType:
    case T_FieldSelect:
    case T_List:
    case T_CoalesceExpr:
    case T_CaseExpr:
    case T_CaseWhen:
    case T_CaseTestExpr:
    case T_NullTest:
    case T_BooleanTest:
    case T_BoolExpr:
    case T_PlaceHolderVar:
      break;
    case T_ArrayCoerceExpr:  // an error may be in the elements' cast, which is walked into
      if (has_few_digits(node))
        return may_raise(reinterpret_cast<Node*>(reinterpret_cast<ArrayCoerceExpr*>(node)->arg),
                         context);
      break;
    case T_Param:
      if (!is_computed(walk->root, reinterpret_cast<Param*>(node))) return true;
      break;
    case T_ArrayExpr:
      // Rows of unequal lengths are errors.
      if (reinterpret_cast<ArrayExpr*>(node)->multidims && !walk->drops) return true;
      break;
    case T_SubscriptingRef:
      if (!walk->drops && !reads_element(reinterpret_cast<SubscriptingRef*>(node))) return true;
      break;
    case T_CoerceViaIO:
      if (!walk->drops || cast_may_hold(reinterpret_cast<CoerceViaIO*>(node))) return true;
      break;
    case T_MinMaxExpr:
      if (!is_number_type(exprType(node))) return true;
      break;
    case T_OpExpr:
    case T_FuncExpr:
    case T_DistinctExpr:
    case T_NullIfExpr:
    case T_ScalarArrayOpExpr:
      if (check_functions_in_node(node, walk->is_refused, nullptr) && !has_few_digits(node))
        return true;
      break;
    default:
      return true;
  }
  return walk_expression(node, may_raise, context);
}

/// Whether some parameter's value is still to be computed.
bool has_uncomputed(Node* node, void* root) {
  if (node == nullptr) return false;
  if (IsA(node, Param) &&
      !is_computed(static_cast<const PlannerInfo*>(root), castNode(Param, node)))
    return true;
  return walk_expression(node, has_uncomputed, root);
}

}  // namespace

bool cannot_raise(const PlannerInfo* root, Expr* expression) {
  Walk walk = {root, function_may_raise, false};
  return !may_raise(reinterpret_cast<Node*>(expression), &walk);
}

bool can_drop_errors(const PlannerInfo* root, Expr* expression) {
  Walk walk = {root, function_may_hold, true};
  return !may_raise(reinterpret_cast<Node*>(expression), &walk);
}

bool can_roll_back_errors(PlannerInfo* root, Expr* expression) {
  Node* const node = reinterpret_cast<Node*>(expression);
  return !contain_mutable_functions(node) && !contain_subplans(node) && !has_uncomputed(node, root);
}

bool can_be_evaluated(PlannerInfo* root, Expr* expression) {
  return cannot_raise(root, expression) || can_drop_errors(root, expression) ||
         can_roll_back_errors(root, expression);
}

}  // namespace gpujoin

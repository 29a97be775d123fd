#include "pg/planner/comparison.h"

#include "pg/reading/relation.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
bool as_comparison(Expr* expression, Comparison* found) {
  Oid function;
  List* arguments;
  if (!as_call(expression, &function, &arguments)) return false;
  const Ordering ordering = ordering_of(function);
  if (ordering == Ordering::kNone) return false;
  Expr *const one = argument(arguments, 0), *const other = argument(arguments, 1);
  const bool turned = ordering == Ordering::kAtLeast || ordering == Ordering::kGreater;
  *found = {turned ? other : one, turned ? one : other,
            ordering == Ordering::kLess || ordering == Ordering::kGreater,
            ordering == Ordering::kEqual};
  return true;
}

bool as_call(Expr* expression, Oid* function, List** arguments) {
  if (IsA(expression, OpExpr)) {
    OpExpr* const operation = reinterpret_cast<OpExpr*>(expression);
    set_opfuncid(operation);
    *function = operation->opfuncid;
    *arguments = operation->args;
    return true;
  }
  if (!IsA(expression, FuncExpr)) return false;
  *function = reinterpret_cast<FuncExpr*>(expression)->funcid;
  *arguments = reinterpret_cast<FuncExpr*>(expression)->args;
  return true;
}

Expr* argument(List* arguments, int number) {
  return static_cast<Expr*>(list_nth(arguments, number));
}

Arithmetic as_arithmetic(Expr* expression, List** arguments) {
  Oid function;
  return as_call(expression, &function, arguments) ? arithmetic_of(function) : Arithmetic::kNone;
}

Expr* cast_by(Oid cast, Expr* value) {
  return reinterpret_cast<Expr*>(makeFuncExpr(cast, FLOAT8OID, list_make1(value), InvalidOid,
                                              InvalidOid, COERCE_IMPLICIT_CAST));
}

Expr* as_float8(Expr* value) {
  Oid cast;
  switch (exprType(reinterpret_cast<Node*>(value))) {
    case FLOAT8OID:
      return value;
    case FLOAT4OID:
      cast = F_FLOAT8_FLOAT4;
      break;
    case INT2OID:
      cast = F_FLOAT8_INT2;
      break;
    case INT4OID:
      cast = F_FLOAT8_INT4;
      break;
    default:
      return nullptr;
  }
  return cast_by(cast, value);
}

Expr* make_call(Oid function, Oid result, List* arguments) {
  return reinterpret_cast<Expr*>(
      makeFuncExpr(function, result, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
}

CaseWhen* make_when(Expr* test, Expr* result) {
  CaseWhen* const when = makeNode(CaseWhen);
  when->expr = test;
  when->result = result;
  when->location = -1;
  return when;
}

Expr* make_case(List* whens, Expr* otherwise) {
  CaseExpr* const choice = makeNode(CaseExpr);
  choice->casetype = FLOAT8OID;
  choice->args = whens;
  choice->defresult = otherwise;
  choice->location = -1;
  return reinterpret_cast<Expr*>(choice);
}

Expr* or_default(Expr* number, double otherwise) {
  CoalesceExpr* const choice = makeNode(CoalesceExpr);
  choice->coalescetype = FLOAT8OID;
  choice->args = list_make2(number, float8_constant(otherwise));
  choice->location = -1;
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(choice)));
}

Expr* make_null_test(Expr* value) {
  NullTest* const test = makeNode(NullTest);
  test->arg = value;
  test->nulltesttype = IS_NULL;
  test->location = -1;
  return reinterpret_cast<Expr*>(test);
}

namespace {

struct Replacement {
  const Expr* part;
  Expr* by;
};

Node* replace(Node* node, void* context) {
  const auto* const replacement = static_cast<const Replacement*>(context);
  if (node == nullptr) return nullptr;
  if (equal(node, replacement->part)) return reinterpret_cast<Node*>(replacement->by);
  return mutate_expression(node, replace, context);
}

}  // namespace

Expr* with_replaced(Expr* expression, const Expr* part, Expr* by) {
  Replacement replacement = {part, by};
  return reinterpret_cast<Expr*>(replace(reinterpret_cast<Node*>(expression), &replacement));
}

Expr* float8_constant(double number) {
  return reinterpret_cast<Expr*>(makeConst(FLOAT8OID, -1, InvalidOid, sizeof(double),
                                           Float8GetDatum(number), false, FLOAT8PASSBYVAL));
}

bool read_number(const Expr* value, double* number) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  if (!IsA(value, Const) || constant->constisnull || !is_number_type(constant->consttype))
    return false;
  *number = number_of(constant->consttype, constant->constvalue);
  return std::isfinite(*number);
}

Expr* as_array(List* values) {
  ArrayExpr* const array = makeNode(ArrayExpr);
  array->array_typeid = FLOAT8ARRAYOID;
  array->element_typeid = FLOAT8OID;
  array->elements = values;
  array->location = -1;
  return reinterpret_cast<Expr*>(array);
}

}  // namespace gpujoin

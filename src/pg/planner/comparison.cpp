#include "pg/planner/comparison.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

constexpr Comparison kComparisons[] = {
    {F_FLOAT8LE, true, false},   {F_FLOAT8LT, true, true},    {F_FLOAT8GE, false, false},
    {F_FLOAT8GT, false, true},   {F_FLOAT84LE, true, false},  {F_FLOAT84LT, true, true},
    {F_FLOAT84GE, false, false}, {F_FLOAT84GT, false, true},  {F_FLOAT48LE, true, false},
    {F_FLOAT48LT, true, true},   {F_FLOAT48GE, false, false}, {F_FLOAT48GT, false, true},
    {F_FLOAT4LE, true, false},   {F_FLOAT4LT, true, true},    {F_FLOAT4GE, false, false},
    {F_FLOAT4GT, false, true},   {F_INT4LE, true, false},     {F_INT4LT, true, true},
    {F_INT4GE, false, false},    {F_INT4GT, false, true},     {F_INT2LE, true, false},
    {F_INT2LT, true, true},      {F_INT2GE, false, false},    {F_INT2GT, false, true},
    {F_INT24LE, true, false},    {F_INT24LT, true, true},     {F_INT42GE, false, false},
    {F_INT42GT, false, true},    {F_INT8LE, true, false},     {F_INT8LT, true, true},
    {F_INT8GE, false, false},    {F_INT8GT, false, true},     {F_INT84LE, true, false},
    {F_INT84LT, true, true},     {F_INT48GE, false, false},   {F_INT48GT, false, true},
    {F_INT82LE, true, false},    {F_INT82LT, true, true},     {F_INT28GE, false, false},
    {F_INT28GT, false, true},    {F_INT84GE, false, false},   {F_INT84GT, false, true},
    {F_INT48LE, true, false},    {F_INT48LT, true, true}};

constexpr Comparison kNumericComparisons[] = {{F_NUMERIC_LE, true, false},
                                              {F_NUMERIC_LT, true, true},
                                              {F_NUMERIC_GE, false, false},
                                              {F_NUMERIC_GT, false, true}};

}  // namespace

const Comparison* find_comparison(Oid function, bool numeric) {
  for (const Comparison& comparison : kComparisons)
    if (comparison.function == function) return &comparison;
  for (const Comparison& comparison : kNumericComparisons)
    if (numeric && comparison.function == function) return &comparison;
  return nullptr;
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

Expr* as_array(List* values) {
  ArrayExpr* const array = makeNode(ArrayExpr);
  array->array_typeid = FLOAT8ARRAYOID;
  array->element_typeid = FLOAT8OID;
  array->elements = values;
  array->location = -1;
  return reinterpret_cast<Expr*>(array);
}

}  // namespace gpujoin

#include "pg/planner/distance_call.h"

#include "pg/planner/bit_clause.h"
#include "pg/planner/comparison.h"
#include "pg/types/extension_object.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// A constant text or boolean in SQL's words, or null.
const char* words_of(const Node* node) {
  if (!IsA(node, Const)) return nullptr;
  const Const* const constant = reinterpret_cast<const Const*>(node);
  if (constant->constisnull) return nullptr;
  if (constant->consttype == BOOLOID) return DatumGetBool(constant->constvalue) ? "true" : "false";
  return constant->consttype == TEXTOID ? TextDatumGetCString(constant->constvalue) : nullptr;
}

/// Whether a value has no more dimensions than conditions compare, as far as its type limits them.
bool may_compare(const ValueType& type, const Expr* value) {
  const std::int32_t dims = exprTypmod(reinterpret_cast<const Node*>(value));
  return type.most_declared == 0 || (dims > 0 && dims <= type.most_declared);
}

}  // namespace

void take_values(List* arguments, SimilarityClause* clause) {
  clause->left = argument(arguments, 0);
  clause->right = argument(arguments, 1);
  if (exprType(reinterpret_cast<Node*>(clause->left)) != FLOAT8OID) return;
  clause->left = as_array(list_make2(clause->left, clause->right));
  clause->right = as_array(list_copy_tail(arguments, 2));
}

bool find_test(Oid function, List* arguments, TestUse use, SimilarityClause* clause) {
  const int count = list_length(arguments);
  if (count < 2) return false;
  const auto type_of = [&](int i) { return exprType(static_cast<Node*>(list_nth(arguments, i))); };
  const bool columns = type_of(0) == FLOAT8OID;
  const bool known =
      columns
          ? count == 4 && find_test(function, InvalidOid, 0, nullptr, use, &clause->test)
          : type_of(0) == type_of(1) &&
                find_test(function, type_of(0), count - 2,
                          words_of(static_cast<const Node*>(llast(arguments))), use, &clause->test);
  if (!known) return false;
  take_values(arguments, clause);
  return may_compare(*clause->test.type, clause->left) &&
         may_compare(*clause->test.type, clause->right);
}

bool as_measure(Expr* expression, Oid* function, List** arguments) {
  if (List* const operands = differing_bits(expression)) {
    *function = F_BIT_COUNT_BIT;
    *arguments = operands;
    return true;
  }
  return as_call(expression, function, arguments);
}

bool measures_extent(Oid function) {
  const char* const name = get_func_name(function);
  for (const char* const known : {"st_area", "st_length"})
    if (name != nullptr && strcmp(name, known) == 0)
      return is_compiled_function_of(function, "postgis");
  return false;
}

Expr* as_radius(Expr* radius) {
  const bool wide = exprType(reinterpret_cast<Node*>(radius)) == INT8OID;
  Expr* const number = wide ? cast_by(F_FLOAT8_INT8, radius) : as_float8(radius);
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(number)));
}

}  // namespace gpujoin

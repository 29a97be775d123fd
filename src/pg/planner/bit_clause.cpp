#include "pg/planner/bit_clause.h"

#include "pg/planner/comparison.h"
#include "pg/types/bit_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

bool is_integer(const Expr* value, int integer) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && constant->consttype == INT4OID && !constant->constisnull &&
         DatumGetInt32(constant->constvalue) == integer;
}

bool is_text(const Expr* value, const char* words) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && constant->consttype == TEXTOID && !constant->constisnull &&
         strcmp(TextDatumGetCString(constant->constvalue), words) == 0;
}

/// The arguments of a call of the function; NIL: it is another expression.
List* arguments_of(Expr* expression, Oid function) {
  Oid called;
  List* arguments;
  return as_call(expression, &called, &arguments) && called == function ? arguments : NIL;
}

/// The string whose ones `bit_count(x)` or `length(replace(x::text, '0', ''))` counts; or null.
Expr* counted(Expr* count) {
  if (List* const arguments = arguments_of(count, F_BIT_COUNT_BIT)) return argument(arguments, 0);
  List* const text = arguments_of(count, F_LENGTH_TEXT);
  List* const replaced = text != NIL ? arguments_of(argument(text, 0), F_REPLACE) : NIL;
  if (replaced == NIL || !is_text(argument(replaced, 1), "0") ||
      !is_text(argument(replaced, 2), ""))
    return nullptr;
  Expr* const bits = argument(replaced, 0);
  return IsA(bits, CoerceViaIO) ? reinterpret_cast<CoerceViaIO*>(bits)->arg : nullptr;
}

/// The operands of `x & y` or `x | y` whose ones a number counts, be it cast, multiplied with 1 or
/// no quotient's divisor where it is 0; or NIL.
List* counted_operands(Expr* number, Oid operation) {
  List* arguments;
  double one;
  for (;;) {
    if (IsA(number, RelabelType)) {
      number = reinterpret_cast<RelabelType*>(number)->arg;
      continue;
    }
    if (IsA(number, NullIfExpr)) {
      number = static_cast<Expr*>(linitial(reinterpret_cast<NullIfExpr*>(number)->args));
      continue;
    }
    const Arithmetic arithmetic = as_arithmetic(number, &arguments);
    if (arithmetic == Arithmetic::kCast)
      number = argument(arguments, 0);
    else if (arithmetic == Arithmetic::kProduct && read_number(argument(arguments, 0), &one) &&
             one == 1)
      number = argument(arguments, 1);
    else
      break;
  }
  Expr* const bits = counted(number);
  return bits != nullptr ? arguments_of(bits, operation) : NIL;
}

bool are_same(const List* one, const List* other) {
  return (equal(linitial(one), linitial(other)) && equal(lsecond(one), lsecond(other))) ||
         (equal(linitial(one), lsecond(other)) && equal(lsecond(one), linitial(other)));
}

}  // namespace

List* differing_bits(Expr* count) {
  Expr* const bits = counted(count);
  if (bits == nullptr) return NIL;
  if (List* const operands = arguments_of(bits, F_BITXOR)) return operands;
  // (a # b)::bit(n) of integers.
  Oid cast;
  List* arguments;
  if (!as_call(bits, &cast, &arguments)) return NIL;
  const bool wide = cast == F_BIT_INT8_INT4;
  if ((!wide && cast != F_BIT_INT4_INT4) || !is_integer(argument(arguments, 1), wide ? 64 : 32))
    return NIL;
  return arguments_of(argument(arguments, 0), wide ? F_INT8XOR : F_INT4XOR);
}

bool match_common_share(Expr* expression, SimilarityClause* clause) {
  List* arguments;
  const Oid type = exprType(reinterpret_cast<Node*>(expression));
  if (as_arithmetic(expression, &arguments) != Arithmetic::kQuotient ||
      (type != FLOAT8OID && type != NUMERICOID))
    return false;
  List* const common = counted_operands(argument(arguments, 0), F_BITAND);
  List* const all = counted_operands(argument(arguments, 1), F_BITOR);
  if (common == NIL || all == NIL || !are_same(common, all)) return false;
  clause->test = common_share_test();
  clause->left = argument(common, 0);
  clause->right = argument(common, 1);
  return exprType(reinterpret_cast<Node*>(clause->left)) == BITOID;
}

}  // namespace gpujoin

#include "pg/planner/score_clause.h"

#include "pg/planner/comparison.h"
#include "pg/planner/safe_expression.h"
#include "pg/reading/relation.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

bool is_number(const void* expression) {
  return is_number_type(exprType(static_cast<const Node*>(expression)));
}

/// The sign of an operator on numbers that PostgreSQL itself comes with; 0 for anything else.
char number_operator(const Node* node) {
  if (!IsA(node, OpExpr)) return 0;
  const OpExpr* const operation = reinterpret_cast<const OpExpr*>(node);
  if (operation->opno >= FirstGenbkiObjectId || !is_number(operation)) return 0;
  ListCell* cell;
  foreach (cell, operation->args)
    if (!is_number(lfirst(cell))) return 0;
  const char* const name = get_opname(operation->opno);
  return name != nullptr && name[1] == '\0' ? name[0] : 0;
}

// Numbers between these, or 0, are tame. Arithmetic over at most kMostNumbers of them stays in the
// range of float8: no product or sum exceeds (2e19)^8, and what is left of a difference that is not
// 0 is at least 2^-53 of its smaller operand, so that nothing falls below (1e-35)^8.
constexpr double kLeast = 1e-19, kMost = 1e19;
constexpr int kMostNumbers = 8;

bool is_tame(double number) {
  return number == 0 || (std::fabs(number) >= kLeast && std::fabs(number) <= kMost);
}

bool is_tame(const Const* constant) {
  return constant->constisnull || is_tame(number_of(constant->consttype, constant->constvalue));
}

/// Whether a constant is a number other than 0.
bool is_nonzero(const Node* node) {
  if (!IsA(node, Const)) return false;
  const Const* const constant = reinterpret_cast<const Const*>(node);
  return !constant->constisnull && number_of(constant->consttype, constant->constvalue) != 0;
}

/// Whether the operator raises no error over tame numbers. Differences of numerics are exact, and
/// may be too small for a cast to float8: `sums` is false below one.
bool is_safe_operator(const OpExpr* operation, bool sums) {
  const Oid type = operation->opresulttype;
  if (type != FLOAT8OID && type != NUMERICOID) return false;
  switch (number_operator(reinterpret_cast<const Node*>(operation))) {
    case '+':
    case '-':
      return sums || list_length(operation->args) == 1;
    case '*':
    case '@':
      return true;
    case '/':
      return is_nonzero(static_cast<const Node*>(lsecond(operation->args)));
    default:
      return false;
  }
}

/// Whether the expression is arithmetic over numbers that can be had without an error, and raises
/// none itself if they are tame. Appends the numbers that may not be tame.
bool find_numbers(const PlannerInfo* root, Expr* expression, bool sums, List** numbers,
                  int* count) {
  Node* const node = reinterpret_cast<Node*>(expression);
  const Oid type = exprType(node);
  if (cannot_raise(root, expression) && is_number_type(type)) {
    if (IsA(node, Const))
      return is_tame(reinterpret_cast<const Const*>(node)) && ++*count <= kMostNumbers;
    if (type == FLOAT4OID || type == FLOAT8OID || type == NUMERICOID)
      *numbers = list_append_unique(*numbers, node);
    return ++*count <= kMostNumbers;
  }
  List* operands = NIL;
  if (IsA(node, FuncExpr) && reinterpret_cast<FuncExpr*>(node)->funcid == F_FLOAT8_NUMERIC) {
    operands = reinterpret_cast<FuncExpr*>(node)->args;
    sums = false;
  } else if (IsA(node, OpExpr) && is_safe_operator(reinterpret_cast<OpExpr*>(node), sums)) {
    operands = reinterpret_cast<OpExpr*>(node)->args;
  } else {
    return false;
  }
  ListCell* cell;
  foreach (cell, operands)
    if (!find_numbers(root, static_cast<Expr*>(lfirst(cell)), sums, numbers, count)) return false;
  return true;
}

/// `number` is tame, as an expression.
Expr* make_tame_test(Expr* number) {
  const Oid type = exprType(reinterpret_cast<Node*>(number));
  if (type == FLOAT4OID)
    return make_tame_test(make_call(F_FLOAT8_FLOAT4, FLOAT8OID, list_make1(number)));
  const bool numeric = type == NUMERICOID;
  const auto constant = [&](double value) {
    return numeric
               ? makeConst(NUMERICOID, -1, InvalidOid, -1,
                           DirectFunctionCall1(float8_numeric, Float8GetDatum(value)), false, false)
               : reinterpret_cast<Const*>(float8_constant(value));
  };
  const auto compare = [&](Oid floats, Oid numerics, Expr* left, double right) {
    return make_call(numeric ? numerics : floats, BOOLOID, list_make2(left, constant(right)));
  };
  Expr* const size = make_call(numeric ? F_NUMERIC_ABS : F_FLOAT8ABS, type, list_make1(number));
  Expr* const not_small =
      make_orclause(list_make2(compare(F_FLOAT8EQ, F_NUMERIC_EQ, number, 0),
                               compare(F_FLOAT8GE, F_NUMERIC_GE, size, kLeast)));
  return make_andclause(list_make2(compare(F_FLOAT8LE, F_NUMERIC_LE, size, kMost), not_small));
}

/// The expression as it can be evaluated for any row: itself where it raises no error, or NULL for
/// rows for which it might raise one; the executor detects these NULLs. Null where nothing is known
/// of it.
Expr* without_errors(const PlannerInfo* root, Expr* expression) {
  if (cannot_raise(root, expression)) return expression;
  List* numbers = NIL;
  int count = 0;
  if (!find_numbers(root, expression, true, &numbers, &count)) return nullptr;
  if (numbers == NIL) return expression;
  List* tests = NIL;
  ListCell* cell;
  foreach (cell, numbers) tests = lappend(tests, make_tame_test(static_cast<Expr*>(lfirst(cell))));
  CaseWhen* const tame = makeNode(CaseWhen);
  tame->expr = make_ands_explicit(tests);
  tame->result = expression;
  tame->location = -1;
  CaseExpr* const choice = makeNode(CaseExpr);
  choice->casetype = exprType(reinterpret_cast<Node*>(expression));
  choice->args = list_make1(tame);
  choice->defresult = reinterpret_cast<Expr*>(makeNullConst(choice->casetype, -1, InvalidOid));
  choice->location = -1;
  return reinterpret_cast<Expr*>(choice);
}

/// The function behind the expression and the two numbers it is applied to.
bool split(Expr* expression, ScoreClause* score) {
  score->signs[0] = score->signs[1] = 1;
  List* numbers = NIL;
  if (IsA(expression, MinMaxExpr)) {
    const MinMaxExpr* const choice = reinterpret_cast<const MinMaxExpr*>(expression);
    if (!is_number(choice)) return false;
    score->function = choice->op == IS_LEAST ? ScoreFunction::kMin : ScoreFunction::kMax;
    numbers = choice->args;
  } else {
    const char sign = number_operator(reinterpret_cast<const Node*>(expression));
    if (sign != '+' && sign != '-' && sign != '*') return false;
    score->function = sign == '*' ? ScoreFunction::kProduct : ScoreFunction::kSum;
    if (sign == '-') score->signs[1] = -1;
    numbers = reinterpret_cast<const OpExpr*>(expression)->args;
  }
  if (list_length(numbers) != 2) return false;
  score->left = static_cast<Expr*>(linitial(numbers));
  score->right = static_cast<Expr*>(lsecond(numbers));
  return true;
}

}  // namespace

bool match_score(PlannerInfo* root, Expr* expression, const SimilarityClause& clause, Relids left,
                 Relids right, ScoreClause* score) {
  if (is_distance_of(expression, clause)) {
    *score = {nullptr, nullptr, ScoreFunction::kDistance, {1, 1}};
    return clause.test.by->compared != ValueForm::kDirection &&
           clause.test.by->compared != ValueForm::kProduct &&
           !is_on_earth(clause.test.by->compared);
  }
  if (!split(expression, score)) return false;
  if (comes_from(root, score->left, right)) {
    std::swap(score->left, score->right);
    std::swap(score->signs[0], score->signs[1]);
  }
  if (!comes_from(root, score->left, left) || !comes_from(root, score->right, right)) return false;
  score->left = without_errors(root, score->left);
  score->right = without_errors(root, score->right);
  return score->left != nullptr && score->right != nullptr;
}

}  // namespace gpujoin

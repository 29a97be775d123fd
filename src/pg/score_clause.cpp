#include "pg/score_clause.h"

#include "pg/relation.h"
#include "pg/vector_datum.h"

extern "C" {
#include "access/transam.h"
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

/// Whether a constant is a number other than 0.
bool is_nonzero(const Node* node) {
  if (!IsA(node, Const)) return false;
  const Const* const constant = reinterpret_cast<const Const*>(node);
  return !constant->constisnull && number_of(constant->consttype, constant->constvalue) != 0;
}

/// Whether the operator raises no errors but those of floating-point numbers out of range.
bool is_safe_operator(const OpExpr* operation) {
  const Oid type = operation->opresulttype;
  if (type != FLOAT4OID && type != FLOAT8OID && type != NUMERICOID) return false;
  switch (number_operator(reinterpret_cast<const Node*>(operation))) {
    case '+':
    case '-':
    case '*':
    case '@':
      return true;
    case '/':
      return is_nonzero(static_cast<const Node*>(lsecond(operation->args)));
    default:
      return false;
  }
}

/// check_functions_in_node() callback: of functions, leakproof ones raise no errors, nor do these.
bool may_raise(Oid function, void*) {
  switch (function) {
    case F_FLOAT8_NUMERIC:
    case F_NUMERIC_FLOAT4:
    case F_NUMERIC_FLOAT8:
    case F_NUMERIC_INT2:
    case F_NUMERIC_INT4:
    case F_NUMERIC_INT8:
      return false;
    default:
      return !get_func_leakproof(function);
  }
}

/// Whether evaluating the expression may raise an error.
bool may_raise_errors(Node* node, void* context) {
  if (node == nullptr) return false;
  switch (nodeTag(node)) {
    case T_Var:
    case T_Const:
    case T_Param:
    case T_RelabelType:
    case T_List:
    case T_CoalesceExpr:
    case T_CaseExpr:
    case T_CaseWhen:
    case T_CaseTestExpr:
    case T_NullTest:
    case T_BoolExpr:
    case T_PlaceHolderVar:
      break;
    case T_MinMaxExpr:
      if (!is_number(node)) return true;
      break;
    case T_OpExpr:
      if (is_safe_operator(reinterpret_cast<OpExpr*>(node))) break;
      [[fallthrough]];
    case T_FuncExpr:
    case T_DistinctExpr:
    case T_NullIfExpr:
    case T_ScalarArrayOpExpr:
      if (check_functions_in_node(node, may_raise, context)) return true;
      break;
    default:
      return true;
  }
  return walk_expression(node, may_raise_errors, context);
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
    return !is_direction(clause.test.kind);
  }
  if (!split(expression, score)) return false;
  if (comes_from(root, score->left, right)) {
    std::swap(score->left, score->right);
    std::swap(score->signs[0], score->signs[1]);
  }
  return comes_from(root, score->left, left) && comes_from(root, score->right, right) &&
         !may_raise_errors(reinterpret_cast<Node*>(score->left), nullptr) &&
         !may_raise_errors(reinterpret_cast<Node*>(score->right), nullptr);
}

}  // namespace gpujoin

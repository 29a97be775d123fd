#include "pg/planner/sum_clause.h"

#include "pg/planner/comparison.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/unique_rows.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

// ---- Aggregates

struct KnownAggregate {
  Oid function;
  SumState state;
};

constexpr KnownAggregate kKnown[] = {
    {F_COUNT_, SumState::kCount},
    {F_COUNT_ANY, SumState::kCount},
    {F_SUM_INT2, SumState::kInt8},
    {F_SUM_INT4, SumState::kInt8},
    {F_SUM_INT8, SumState::kInt8Sums},
    {F_SUM_NUMERIC, SumState::kNumericSums},
    {F_SUM_FLOAT4, SumState::kFloat4},
    {F_SUM_FLOAT8, SumState::kFloat8},
    {F_AVG_INT2, SumState::kInt8Average},
    {F_AVG_INT4, SumState::kInt8Average},
    {F_AVG_INT8, SumState::kInt8Sums},
    {F_AVG_NUMERIC, SumState::kNumericSums},
    {F_AVG_FLOAT4, SumState::kFloatAverage},
    {F_AVG_FLOAT8, SumState::kFloatAverage},
    {F_VARIANCE_INT2, SumState::kIntSquares},
    {F_VARIANCE_INT4, SumState::kIntSquares},
    {F_VAR_SAMP_INT2, SumState::kIntSquares},
    {F_VAR_SAMP_INT4, SumState::kIntSquares},
    {F_VAR_POP_INT2, SumState::kIntSquares},
    {F_VAR_POP_INT4, SumState::kIntSquares},
    {F_STDDEV_INT2, SumState::kIntSquares},
    {F_STDDEV_INT4, SumState::kIntSquares},
    {F_STDDEV_SAMP_INT2, SumState::kIntSquares},
    {F_STDDEV_SAMP_INT4, SumState::kIntSquares},
    {F_STDDEV_POP_INT2, SumState::kIntSquares},
    {F_STDDEV_POP_INT4, SumState::kIntSquares},
    {F_VARIANCE_FLOAT4, SumState::kFloatDeviation},
    {F_VARIANCE_FLOAT8, SumState::kFloatDeviation},
    {F_VAR_SAMP_FLOAT4, SumState::kFloatDeviation},
    {F_VAR_SAMP_FLOAT8, SumState::kFloatDeviation},
    {F_VAR_POP_FLOAT4, SumState::kFloatDeviation},
    {F_VAR_POP_FLOAT8, SumState::kFloatDeviation},
    {F_STDDEV_FLOAT4, SumState::kFloatDeviation},
    {F_STDDEV_FLOAT8, SumState::kFloatDeviation},
    {F_STDDEV_SAMP_FLOAT4, SumState::kFloatDeviation},
    {F_STDDEV_SAMP_FLOAT8, SumState::kFloatDeviation},
    {F_STDDEV_POP_FLOAT4, SumState::kFloatDeviation},
    {F_STDDEV_POP_FLOAT8, SumState::kFloatDeviation},
    {F_MIN_INT2, SumState::kLeast},
    {F_MIN_INT4, SumState::kLeast},
    {F_MIN_INT8, SumState::kLeast},
    {F_MIN_FLOAT4, SumState::kLeast},
    {F_MIN_FLOAT8, SumState::kLeast},
    {F_MIN_DATE, SumState::kLeast},
    {F_MIN_TIMESTAMP, SumState::kLeast},
    {F_MIN_TIMESTAMPTZ, SumState::kLeast},
    {F_MAX_INT2, SumState::kMost},
    {F_MAX_INT4, SumState::kMost},
    {F_MAX_INT8, SumState::kMost},
    {F_MAX_FLOAT4, SumState::kMost},
    {F_MAX_FLOAT8, SumState::kMost},
    {F_MAX_DATE, SumState::kMost},
    {F_MAX_TIMESTAMP, SumState::kMost},
    {F_MAX_TIMESTAMPTZ, SumState::kMost},
    {F_BOOL_AND, SumState::kAnd},
    {F_EVERY, SumState::kAnd},
    {F_BOOL_OR, SumState::kOr},
};

bool find_state(Oid function, SumState* state) {
  for (const KnownAggregate& known : kKnown) {
    if (known.function != function) continue;
    *state = known.state;
    return true;
  }
  return false;
}

constexpr int kMostDigits = 18;  // of numerics

/// The digits and the scale that all numerics of a column have, if they are up to 18.
bool find_scale(const Node* argument, int* digits, int* scale) {
  const std::int32_t modifier = exprTypmod(argument) - static_cast<std::int32_t>(VARHDRSZ);
  if (modifier < 0) return false;
  *digits = modifier >> 16 & 0xffff;
  *scale = modifier & 0x7ff;
  return *digits <= kMostDigits && *scale <= *digits;
}

// ---- Whose rows

/// Whether the value may be computed for any row: what raises an error is noted, and raised if a
/// pair asks for it.
bool can_be_had(PlannerInfo* root, Node* expression) {
  Expr* const value = reinterpret_cast<Expr*>(expression);
  return cannot_raise(root, value) || can_drop_errors(root, value);
}

/// Whose rows an expression is of; kPair also where it cannot be had of rows alone.
SumOf side_of(PlannerInfo* root, const SumJoin& join, Node* expression) {
  if (expression == nullptr || !contain_var_clause(expression)) return SumOf::kNothing;
  if (is_of(root, expression, join.left)) return SumOf::kLeft;
  return is_of(root, expression, join.right) && can_be_had(root, expression) ? SumOf::kRight
                                                                             : SumOf::kPair;
}

// ---- Arithmetic over pairs

/// Turns an expression into the program of an aggregate.
struct Compiler {
  PlannerInfo* root;
  const SumJoin& join;
  SumClause* sum;
  int depth;

  bool compile(Node* node) {
    if (exprType(node) != FLOAT8OID && exprType(node) != FLOAT4OID) return false;
    if (measures_exactly(reinterpret_cast<Expr*>(node), *join.clause))
      return add(ValueStep::kDistance, 0, 1);
    if (is_of(root, node, join.left)) return add_leaf(node, true);
    if (is_of(root, node, join.right)) return add_leaf(node, false);
    List* operands = NIL;
    const Arithmetic arithmetic = as_arithmetic(reinterpret_cast<Expr*>(node), &operands);
    return exprType(node) == FLOAT8OID && compile_call(arithmetic, operands);
  }

  bool add_leaf(Node* node, bool left) {
    SumPlan& plan = sum->plan;
    if (!can_be_had(root, node) ||
        !add(left ? ValueStep::kLeft : ValueStep::kRight, plan.leaf_count, 1))
      return false;
    plan.leaf_is_left[plan.leaf_count++] = left;
    sum->expressions.leaves = lappend(sum->expressions.leaves, node);
    return true;
  }

  bool add(ValueStep step, int leaf, int deeper) {
    SumPlan& plan = sum->plan;
    depth += deeper;
    if (plan.step_count == static_cast<int>(kMostValueSteps) ||
        depth > static_cast<int>(kMostValueDepth))
      return false;
    plan.steps[plan.step_count] = step;
    plan.leaves[plan.step_count++] = leaf;
    return true;
  }

 private:
  bool compile_two(List* operands, ValueStep step) {
    return compile(static_cast<Node*>(linitial(operands))) &&
           compile(static_cast<Node*>(lsecond(operands))) && add(step, 0, -1);
  }
  bool compile_one(List* operands, ValueStep step) {
    return compile(static_cast<Node*>(linitial(operands))) && add(step, 0, 0);
  }

  bool compile_call(Arithmetic arithmetic, List* operands) {
    switch (arithmetic) {
      case Arithmetic::kSum:
        return compile_two(operands, ValueStep::kAdd);
      case Arithmetic::kDifference:
        return compile_two(operands, ValueStep::kSubtract);
      case Arithmetic::kProduct:
        return compile_two(operands, ValueStep::kMultiply);
      case Arithmetic::kQuotient:
        return compile_two(operands, ValueStep::kDivide);
      case Arithmetic::kNegation:
        return compile_one(operands, ValueStep::kNegate);
      case Arithmetic::kRoot:
        return compile_one(operands, ValueStep::kSquareRoot);
      case Arithmetic::kExponential:
        return compile_one(operands, ValueStep::kExponential);
      case Arithmetic::kPower:
        return is_two(static_cast<Node*>(lsecond(operands))) &&
               compile_one(operands, ValueStep::kSquare);
      default:
        return false;
    }
  }

  static bool is_two(const Node* node) {
    if (!IsA(node, Const)) return false;
    const Const* const constant = reinterpret_cast<const Const*>(node);
    return !constant->constisnull && DatumGetFloat8(constant->constvalue) == 2;
  }
};

/// Whether the program's values are PostgreSQL's to the last bit: pow() does not always round x^2
/// as x * x, and a device has an exp() of its own. In sums that is less than their order does.
bool is_to_the_bit(const SumPlan& plan) {
  return std::none_of(plan.steps, plan.steps + plan.step_count, [](ValueStep step) {
    return step == ValueStep::kSquare || step == ValueStep::kExponential;
  });
}

/// Arithmetic over pairs; a filter on right rows makes the program's numbers of theirs NULL.
bool compile(PlannerInfo* root, const SumJoin& join, Node* argument, SumClause* sum) {
  Compiler compiler = {root, join, sum, 0};
  if (!compiler.compile(argument)) return false;
  const SumPlan& plan = sum->plan;
  if ((plan.state == SumState::kLeast || plan.state == SumState::kMost) && !is_to_the_bit(plan))
    return false;
  if (plan.filter != SumOf::kRight ||
      std::count(plan.leaf_is_left, plan.leaf_is_left + plan.leaf_count, false) > 0)
    return true;
  // x + -0 is x, also where x is 0 or -0.
  Node* const zero = reinterpret_cast<Node*>(float8_constant(-0.0));
  return compiler.add_leaf(zero, false) && compiler.add(ValueStep::kAdd, 0, -1);
}

// ---- Integers and numerics of both rows

/// Returns how an operation combines two integers, or two numerics, which may only be multiplied.
Combination combination_of(OpExpr* operation) {
  List* operands;
  const bool numeric = operation->opresulttype == NUMERICOID;
  if (!numeric && !is_integer_type(operation->opresulttype)) return Combination::kNone;
  switch (as_arithmetic(reinterpret_cast<Expr*>(operation), &operands)) {
    case Arithmetic::kProduct:
      return Combination::kTimes;
    case Arithmetic::kSum:
      return numeric ? Combination::kNone : Combination::kPlus;
    case Arithmetic::kDifference:
      return numeric ? Combination::kNone : Combination::kMinus;
    default:
      return Combination::kNone;
  }
}

/// The digits and the scale of all numbers that an operand may be, where they are known.
bool find_digits(const Node* operand, int* digits, int* scale) {
  *scale = 0;
  const Oid function =
      IsA(operand, FuncExpr) ? reinterpret_cast<const FuncExpr*>(operand)->funcid : InvalidOid;
  if (function == F_NUMERIC_INT2 || function == F_NUMERIC_INT4) {
    *digits = function == F_NUMERIC_INT2 ? 5 : 10;
    return true;
  }
  return exprType(operand) == NUMERICOID && find_scale(operand, digits, scale);
}

/// Whether the products of both operands are numerics of so few digits that they are exact.
bool are_short(const List* operands, SumPlan* plan) {
  int all = 0;
  ListCell* cell;
  foreach (cell, operands) {
    int digits;
    int& scale = plan->leaf_scales[foreach_current_index(cell)];
    if (!find_digits(static_cast<Node*>(lfirst(cell)), &digits, &scale)) return false;
    all += digits;
  }
  plan->scale = plan->leaf_scales[0] + plan->leaf_scales[1];
  return all <= kMostDigits;
}

/// One number of each row, whose sum, difference or product is exact, or raises an error.
bool combine(PlannerInfo* root, const SumJoin& join, Node* argument, SumClause* sum) {
  if (!IsA(argument, OpExpr)) return false;
  OpExpr* const operation = reinterpret_cast<OpExpr*>(argument);
  SumPlan plan = sum->plan;
  plan.combination = combination_of(operation);
  if (plan.combination == Combination::kNone || plan.state == SumState::kIntSquares ||
      (plan.type == NUMERICOID &&
       (plan.state != SumState::kNumericSums || !are_short(operation->args, &plan))))
    return false;
  int lefts = 0;
  ListCell* cell;
  foreach (cell, operation->args) {
    const int leaf = foreach_current_index(cell);
    Node* const operand = static_cast<Node*>(lfirst(cell));
    const SumOf side = side_of(root, join, operand);
    if (side != SumOf::kLeft && side != SumOf::kRight) return false;
    plan.leaf_is_left[leaf] = side == SumOf::kLeft;
    plan.leaf_types[leaf] = exprType(operand);
    lefts += plan.leaf_is_left[leaf];
    // A left number is computed for rows whose pairs no filter lets pass, too.
    if (side == SumOf::kLeft && plan.filter == SumOf::kRight &&
        !cannot_raise(root, reinterpret_cast<Expr*>(operand)))
      return false;
  }
  if (lefts != 1) return false;
  plan.leaf_count = 2;
  sum->plan = plan;
  sum->expressions.leaves = list_copy(operation->args);
  return true;
}

bool is_plain(const Aggref* aggregate) {
  return aggregate->aggsplit == AGGSPLIT_SIMPLE && aggregate->aggkind == AGGKIND_NORMAL &&
         aggregate->agglevelsup == 0 && aggregate->aggorder == NIL && !aggregate->aggvariadic;
}

/// Whether count(DISTINCT key) counts left rows that have pairs, which is a state of its own, or
/// counts pairs, as those of one left row differ in the right row's key.
bool counts_keys(PlannerInfo* root, const Aggref* aggregate, const SumJoin& join, SumPlan* plan) {
  if (plan->state != SumState::kCount || aggregate->aggstar ||
      list_length(aggregate->aggdistinct) != 1)
    return false;
  const Node* const key = below_outer_joins(
      root, reinterpret_cast<Node*>(linitial_node(TargetEntry, aggregate->args)->expr));
  if (!IsA(key, Var)) return false;
  const Var* const column = reinterpret_cast<const Var*>(key);
  const Oid equality = linitial_node(SortGroupClause, aggregate->aggdistinct)->eqop;
  if (is_key(root, join.left, column, equality)) {
    plan->state = SumState::kRows;
    return true;
  }
  return join.groups_are_rows && is_key(root, join.right, column, equality);
}

}  // namespace

bool has_placeholders(Node* expression) {
  List* const used = pull_var_clause(
      expression, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, used)
    if (IsA(lfirst(cell), PlaceHolderVar)) return true;
  return false;
}

bool is_of(PlannerInfo* root, Node* expression, Relids relations) {
  return !contain_volatile_functions(expression) && !contain_subplans(expression) &&
         bms_is_subset(pull_varnos(root, expression), relations);
}

Aggref* partial_of(const Aggref* aggregate) {
  Aggref* const partial = makeNode(Aggref);
  *partial = *aggregate;
  mark_partial_aggref(partial, AGGSPLIT_INITIAL_SERIAL);
  return partial;
}

bool match_sum(PlannerInfo* root, const Aggref* aggregate, const SumJoin& join, SumClause* sum) {
  *sum = {};
  SumPlan& plan = sum->plan;
  if (!is_plain(aggregate) || !find_state(aggregate->aggfnoid, &plan.state)) return false;
  sum->aggregate = const_cast<Aggref*>(aggregate);
  const bool distinct = aggregate->aggdistinct != NIL;
  if (distinct && !counts_keys(root, aggregate, join, &plan)) return false;

  Node* const filter = below_outer_joins(root, reinterpret_cast<Node*>(aggregate->aggfilter));
  plan.filter = side_of(root, join, filter);
  if (filter != nullptr &&
      (contain_volatile_functions(filter) || contain_subplans(filter) || has_placeholders(filter)))
    return false;
  if (plan.filter == SumOf::kPair) return false;
  if (filter != nullptr && plan.filter == SumOf::kNothing) plan.filter = SumOf::kLeft;
  sum->expressions.filter = reinterpret_cast<Expr*>(filter);
  if (aggregate->aggstar || plan.state == SumState::kRows) return true;

  Node* const argument = below_outer_joins(
      root, reinterpret_cast<Node*>(linitial_node(TargetEntry, aggregate->args)->expr));
  plan.type = exprType(argument);
  sum->expressions.argument = reinterpret_cast<Expr*>(argument);
  if (contain_volatile_functions(argument) || contain_subplans(argument) ||
      has_placeholders(argument))
    return false;
  plan.of = side_of(root, join, argument);
  if (plan.of == SumOf::kPair)
    return combine(root, join, argument, sum) || compile(root, join, argument, sum);
  int digits;
  if (plan.type == NUMERICOID && plan.state == SumState::kNumericSums &&
      !find_scale(argument, &digits, &plan.scale))
    return false;
  // What depends on the left row alone is computed once for each; its filter has to as well.
  return plan.of != SumOf::kLeft || plan.filter != SumOf::kRight;
}

}  // namespace gpujoin

#include "pg/planner/key_clause.h"

#include "engine/request/request.h"
#include "pg/planner/comparison.h"
#include "pg/planner/safe_expression.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// The relations of both sides, and where expressions are planned.
struct Place {
  PlannerInfo* root;
  Relids left, right;
};

const Node* as_node(const void* expression) { return static_cast<const Node*>(expression); }

Expr* stripped(const void* expression) {
  Expr* value = static_cast<Expr*>(const_cast<void*>(expression));
  while (IsA(value, RelabelType)) value = reinterpret_cast<RelabelType*>(value)->arg;
  return value;
}

/// The function behind a call of one or two arguments, by an operator or not; InvalidOid.
Oid called(const Expr* expression, List** arguments) {
  Oid function;
  return as_call(const_cast<Expr*>(expression), &function, arguments) ? function : InvalidOid;
}

bool adds(Oid function) {
  return arithmetic_of(function) == Arithmetic::kSum || function == F_DATE_PLI ||
         function == F_TIMESTAMP_PL_INTERVAL || function == F_TIMESTAMPTZ_PL_INTERVAL;
}

/// A value less an offset, or with `differ` one value less another.
bool subtracts(Oid function, bool differ) {
  switch (function) {
    case F_DATE_MI:
    case F_TIMESTAMP_MI:
    case F_TIMESTAMPTZ_MI:
      return differ;
    case F_DATE_MII:
    case F_TIMESTAMP_MI_INTERVAL:
    case F_TIMESTAMPTZ_MI_INTERVAL:
      return !differ;
    default:
      return arithmetic_of(function) == Arithmetic::kDifference;
  }
}

bool takes_magnitude(Oid function) { return arithmetic_of(function) == Arithmetic::kMagnitude; }

/// Types whose values are compared with each other's. 0: bands of it are not known.
int family_of(Oid type) {
  switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
      return 1;
    case DATEOID:
      return 2;
    case TIMESTAMPOID:
      return 3;
    case TIMESTAMPTZOID:
      return 4;
    case FLOAT4OID:
    case FLOAT8OID:
      return 5;
    case NUMERICOID:
      return 6;
    default:
      return 0;
  }
}

KeyNumbers numbers_of(Oid type) {
  return family_of(type) >= 5 ? KeyNumbers::kReals : KeyNumbers::kIntegers;
}

/// Whether values of this type are offsets of values of the family.
bool is_offset_of(int family, Oid type) {
  switch (family) {
    case 1:
    case 2:
      return family_of(type) == 1;
    case 3:
    case 4:
      return type == INTERVALOID;
    default:
      return family_of(type) == family;
  }
}

bool is_bound(const Place& place, Expr* value) {
  return is_the_same_for_all_rows(value) && cannot_raise(place.root, value);
}

/// A value of one side's rows that raises no error.
bool is_value_of(const Place& place, Expr* value, Relids side) {
  return comes_from(place.root, value, side) && cannot_raise(place.root, value);
}

/// `value + sign * offset`.
struct Term {
  Expr* value;
  Expr* offset;  ///< null: none
  bool negated;
};

/// Takes a side of a comparison apart.
Term term_of(const Place& place, Expr* side) {
  List* arguments = NIL;
  const Oid function = called(side, &arguments);
  const bool negated = subtracts(function, false);
  if (!negated && !adds(function)) return {side, nullptr, false};
  Expr *one = static_cast<Expr*>(linitial(arguments)),
       *other = static_cast<Expr*>(lsecond(arguments));
  if (!negated && is_bound(place, one)) std::swap(one, other);
  if (!is_bound(place, other)) return {side, nullptr, false};
  return {one, other, negated};
}

/// Adds a bound of the difference of both values, a left row's and a right one's, to the key of
/// these values.
void add_bound(List** keys, Expr* left, Expr* right, const KeyBound& bound, Expr* offset,
               Expr* condition) {
  KeyClause* key = nullptr;
  ListCell* cell;
  foreach (cell, *keys) {
    KeyClause* const known = static_cast<KeyClause*>(lfirst(cell));
    if (known->plan.numbers != KeyNumbers::kRanks && !known->plan.is_interval &&
        equal(known->expressions.values[0], left) && equal(known->expressions.values[1], right))
      key = known;
  }
  if (key == nullptr) {
    key = static_cast<KeyClause*>(palloc0(sizeof(KeyClause)));
    const Oid types[2] = {exprType(as_node(left)), exprType(as_node(right))};
    key->plan.numbers = numbers_of(types[0]);
    std::copy_n(types, 2, key->plan.types);
    key->expressions = {{left, right}, {}, NIL, NIL};
    *keys = lappend(*keys, key);
  }
  if (key->plan.bound_count == kMostBounds) return;  // it stays a condition
  key->plan.bounds[key->plan.bound_count++] = bound;
  key->expressions.offsets = lappend(key->expressions.offsets, offset);
  key->expressions.conditions = lappend(key->expressions.conditions, condition);
}

/// `x OP y`, where either may have an offset: a bound of x - y.
bool match_sum(const Place& place, Expr* condition, Expr* one, Expr* other, bool less, bool strict,
               List** keys) {
  Term x = term_of(place, one), y = term_of(place, other);
  if (is_value_of(place, x.value, place.right)) {
    std::swap(x, y);
    less = !less;
  }
  if (!is_value_of(place, x.value, place.left) || !is_value_of(place, y.value, place.right) ||
      (x.offset != nullptr && y.offset != nullptr))
    return false;
  // x OP y + c is x - y OP c, and x + c OP y is x - y OP -c.
  Expr* const offset = x.offset != nullptr ? x.offset : y.offset;
  const bool negated = x.offset != nullptr ? !x.negated : y.negated;
  const int family = family_of(exprType(as_node(x.value)));
  const Oid type = offset != nullptr ? exprType(as_node(offset)) : InvalidOid;
  if (family == 0 || family_of(exprType(as_node(y.value))) != family ||
      (offset != nullptr && !is_offset_of(family, type)))
    return false;
  const KeyBound bound = {less ? BoundForm::kMost : BoundForm::kLeast, strict, negated, true, type};
  add_bound(keys, x.value, y.value, bound, offset, condition);
  return true;
}

/// `x - y OP c`, or `abs(x - y) OP c`.
bool match_difference(const Place& place, Expr* condition, Expr* difference, Expr* limit, bool less,
                      bool strict, List** keys) {
  if (!is_bound(place, limit)) return false;
  List* arguments = NIL;
  Oid function = called(difference, &arguments);
  const bool apart = takes_magnitude(function) && list_length(arguments) == 1;
  if (apart) {
    difference = stripped(linitial(arguments));
    function = called(difference, &arguments);
  }
  if (!subtracts(function, true) || (apart && !less)) return false;
  Expr *x = stripped(linitial(arguments)), *y = stripped(lsecond(arguments));
  const bool turned = is_value_of(place, x, place.right);
  if (turned) std::swap(x, y);  // x - y OP c is y - x OP' -c
  if (!is_value_of(place, x, place.left) || !is_value_of(place, y, place.right)) return false;
  const int family = family_of(exprType(as_node(x)));
  const Oid type = exprType(as_node(limit));
  if (family == 0 || family_of(exprType(as_node(y))) != family || !is_offset_of(family, type))
    return false;
  const BoundForm form = apart            ? BoundForm::kApart
                         : less != turned ? BoundForm::kMost
                                          : BoundForm::kLeast;
  add_bound(keys, x, y, {form, strict, turned && !apart, false, type}, limit, condition);
  return true;
}

bool match_bound(const Place& place, Expr* condition, List** keys) {
  const OpExpr* const operation = reinterpret_cast<const OpExpr*>(condition);
  if (!IsA(condition, OpExpr) || list_length(operation->args) != 2) return false;
  const int strategy = order_strategy(operation->opno);
  if (strategy == 0) return false;
  const bool less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber,
             strict = strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber;
  Expr *const one = stripped(linitial(operation->args)), *const other =
                                                             stripped(lsecond(operation->args));
  return match_sum(place, condition, one, other, less, strict, keys) ||
         match_difference(place, condition, one, other, less, strict, keys) ||
         match_difference(place, condition, other, one, !less, strict, keys);
}

bool makes_range(Oid function) {
  switch (function) {
    case F_INT4RANGE_INT4_INT4:
    case F_INT4RANGE_INT4_INT4_TEXT:
    case F_INT8RANGE_INT8_INT8:
    case F_INT8RANGE_INT8_INT8_TEXT:
    case F_NUMRANGE_NUMERIC_NUMERIC:
    case F_NUMRANGE_NUMERIC_NUMERIC_TEXT:
    case F_DATERANGE_DATE_DATE:
    case F_DATERANGE_DATE_DATE_TEXT:
    case F_TSRANGE_TIMESTAMP_TIMESTAMP:
    case F_TSRANGE_TIMESTAMP_TIMESTAMP_TEXT:
    case F_TSTZRANGE_TIMESTAMPTZ_TIMESTAMPTZ:
    case F_TSTZRANGE_TIMESTAMPTZ_TIMESTAMPTZ_TEXT:
      return true;
    default:
      return false;
  }
}

/// Which of its ends a range contains, as the further argument of its function has it.
bool read_brackets(const List* arguments, MadeRange* range) {
  *range = {true, true, false};
  if (list_length(arguments) == 2) return true;
  const Const* const brackets = static_cast<const Const*>(lthird(arguments));
  if (!IsA(brackets, Const) || brackets->constisnull) return false;
  const char* const pair = TextDatumGetCString(brackets->constvalue);
  if (strlen(pair) != 2 || strchr("[(", pair[0]) == nullptr || strchr("])", pair[1]) == nullptr)
    return false;
  range->has_low = pair[0] == '[';
  range->has_high = pair[1] == ']';
  return true;
}

/// Takes the range or the value of one side's rows, 0 for left, as the key's interval of that side.
bool take_interval(const Place& place, Expr* value, int side, KeyClause* key) {
  if (!comes_from(place.root, value, side == 0 ? place.left : place.right)) return false;
  Expr *low = value, *high = value;
  List* arguments = NIL;
  if (makes_range(called(value, &arguments))) {
    if (!read_brackets(arguments, &key->plan.ranges[side])) return false;
    low = stripped(linitial(arguments));
    high = stripped(lsecond(arguments));
  }
  key->plan.types[side] = exprType(as_node(low));
  key->plan.high_types[side] = exprType(as_node(high));
  key->expressions.values[side] = low;
  key->expressions.high_values[side] = high;
  return cannot_raise(place.root, low) && cannot_raise(place.root, high);
}

/// `x && y` of ranges, `x @> y` or `y <@ x` of a range and a value.
bool match_ranges(const Place& place, Expr* condition, List** keys) {
  List* arguments = NIL;
  const Oid function = called(condition, &arguments);
  if (function != F_RANGE_OVERLAPS && function != F_RANGE_CONTAINS_ELEM &&
      function != F_ELEM_CONTAINED_BY_RANGE)
    return false;
  Expr *x = stripped(linitial(arguments)), *y = stripped(lsecond(arguments));
  if (comes_from(place.root, x, place.right)) std::swap(x, y);
  KeyClause* const key = static_cast<KeyClause*>(palloc0(sizeof(KeyClause)));
  if (!take_interval(place, x, 0, key) || !take_interval(place, y, 1, key)) return false;
  const Oid types[2] = {exprType(as_node(x)), exprType(as_node(y))};
  const Oid range = OidIsValid(element_of_range(types[0])) ? types[0] : types[1],
            element = element_of_range(range);
  if (!OidIsValid(element)) return false;
  for (const Oid* const of : {key->plan.types, key->plan.high_types})
    for (int side = 0; side < 2; ++side)
      if (of[side] != range && of[side] != element) return false;
  key->plan.numbers = numbers_of(element);
  key->plan.is_interval = true;
  key->expressions.conditions = list_make1(condition);
  *keys = lappend(*keys, key);
  return true;
}

/// An equality that PostgreSQL could join by.
bool match_equality(const Place& place, const RestrictInfo* info, List** keys) {
  if (!OidIsValid(info->hashjoinoperator)) return false;
  const OpExpr* const operation = castNode(OpExpr, info->clause);
  Expr *x = static_cast<Expr*>(linitial(operation->args)),
       *y = static_cast<Expr*>(lsecond(operation->args));
  Oid equality = operation->opno;
  if (comes_from(place.root, x, place.right)) {
    std::swap(x, y);
    equality = get_commutator(equality);
  }
  Oid hashes[2];
  if (!is_value_of(place, x, place.left) || !is_value_of(place, y, place.right) ||
      !OidIsValid(equality) || !get_op_hash_functions(equality, &hashes[0], &hashes[1]))
    return false;
  KeyClause* const key = static_cast<KeyClause*>(palloc0(sizeof(KeyClause)));
  key->plan.numbers = KeyNumbers::kRanks;
  key->plan.types[0] = exprType(as_node(x));
  key->plan.types[1] = exprType(as_node(y));
  key->plan.equality = equality;
  key->plan.collation = operation->inputcollid;
  key->expressions = {{x, y}, {}, NIL, list_make1(info->clause)};
  *keys = lappend(*keys, key);
  return true;
}

/// Whether an equality, an interval, or bounds on both sides.
bool is_bounded(const KeyClause& key) {
  bool most = false, least = false;
  for (int i = 0; i < key.plan.bound_count; ++i) {
    const BoundForm form = key.plan.bounds[i].form;
    most = most || form != BoundForm::kLeast;
    least = least || form != BoundForm::kMost;
  }
  return key.plan.numbers == KeyNumbers::kRanks || key.plan.is_interval || (most && least);
}

/// Whether a bound on one side, all of whose conditions compare values, be it with an offset: the
/// differences of NaN and infinite ones are in no order.
bool is_half(const KeyClause& key, BoundForm form) {
  for (int i = 0; i < key.plan.bound_count; ++i)
    if (key.plan.bounds[i].form != form || !key.plan.bounds[i].summed) return false;
  return key.plan.bound_count > 0 && !key.plan.is_interval;
}

/// Whether both are the same column of the same table.
bool is_same_column(const PlannerInfo* root, const Expr* a, const Expr* b) {
  if (!IsA(a, Var) || !IsA(b, Var)) return false;
  const Var *const x = reinterpret_cast<const Var*>(a), *const y = reinterpret_cast<const Var*>(b);
  const Oid table = planner_rt_fetch(x->varno, root)->relid;
  return x->varattno == y->varattno && OidIsValid(table) &&
         table == planner_rt_fetch(y->varno, root)->relid;
}

/// Whether x <= y' and x' >= y are of the same two columns of a table joined with itself.
bool are_mirrored(const PlannerInfo* root, const KeyExpressions& most,
                  const KeyExpressions& least) {
  return is_same_column(root, most.values[0], least.values[1]) &&
         is_same_column(root, most.values[1], least.values[0]);
}

/// The interval that two bounds on one side make: x <= y' and x' >= y.
KeyClause* make_interval(const KeyClause& most, const KeyClause& least) {
  KeyClause* const key = static_cast<KeyClause*>(palloc0(sizeof(KeyClause)));
  key->plan = most.plan;
  key->plan.is_interval = true;
  key->plan.types[1] = least.plan.types[1];
  key->plan.high_types[0] = least.plan.types[0];
  key->plan.high_types[1] = most.plan.types[1];
  for (int i = 0; i < least.plan.bound_count; ++i)
    key->plan.bounds[key->plan.bound_count++] = least.plan.bounds[i];
  key->expressions = {{most.expressions.values[0], least.expressions.values[1]},
                      {least.expressions.values[0], most.expressions.values[1]},
                      list_concat_copy(most.expressions.offsets, least.expressions.offsets),
                      list_concat_copy(most.expressions.conditions, least.expressions.conditions)};
  return key;
}

/// Makes intervals of bounds on one side, which they take the place of, in the order of the
/// conditions; `mirrored`: only of those that surely belong together.
void join_halves(const PlannerInfo* root, List* keys, bool mirrored) {
  for (int i = 0; i < list_length(keys); ++i) {
    for (int j = i + 1; j < list_length(keys); ++j) {
      const KeyClause &one = *static_cast<KeyClause*>(list_nth(keys, i)),
                      &other = *static_cast<KeyClause*>(list_nth(keys, j));
      const bool first = is_half(one, BoundForm::kMost);
      const KeyClause &most = first ? one : other, &least = first ? other : one;
      if (!is_half(most, BoundForm::kMost) || !is_half(least, BoundForm::kLeast) ||
          family_of(most.plan.types[0]) != family_of(least.plan.types[0]) ||
          most.plan.bound_count + least.plan.bound_count > kMostBounds ||
          (mirrored && !are_mirrored(root, most.expressions, least.expressions)))
        continue;
      lfirst(list_nth_cell(keys, i)) = make_interval(most, least);
      static_cast<KeyClause*>(list_nth(keys, j))->plan.bound_count = 0;  // of no key
      break;
    }
  }
}

}  // namespace

List* match_keys(PlannerInfo* root, const SimilarityClause& clause, const List* conditions,
                 Relids left, Relids right) {
  const Place place = {root, left, right};
  List* found = NIL;
  ListCell* cell;
  foreach (cell, conditions) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    const bool comes_later = info->security_level > 0 && !info->leakproof;
    if (equal(info->clause, clause.condition) || list_member_ptr(clause.with, info) ||
        comes_later || info->pseudoconstant)
      continue;
    if (!match_equality(place, info, &found) && !match_bound(place, info->clause, &found))
      match_ranges(place, info->clause, &found);
  }
  for (const bool mirrored : {true, false}) join_halves(root, found, mirrored);
  List* keys = NIL;
  int columns = 0;
  for (const bool intervals : {false, true})
    foreach (cell, found) {
      const KeyClause& key = *static_cast<KeyClause*>(lfirst(cell));
      if (key.plan.is_interval != intervals || !is_bounded(key) ||
          columns + columns_of(key.plan) > static_cast<int>(kMostKeys))
        continue;
      columns += columns_of(key.plan);
      keys = lappend(keys, lfirst(cell));
    }
  return keys;
}

bool is_of_key(const List* keys, const Expr* condition) {
  ListCell* cell;
  foreach (cell, keys)
    if (list_member(static_cast<KeyClause*>(lfirst(cell))->expressions.conditions, condition))
      return true;
  return false;
}

}  // namespace gpujoin

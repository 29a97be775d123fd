#include "pg/planner/join_conditions.h"

#include "pg/planner/implied_distance.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/scan_columns.h"
#include "pg/planner/serial_statements.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// How the function compares two integers of the same type.
KeyOrder order_of(Oid function) {
  switch (function) {
    case F_INT2LT:
    case F_INT4LT:
    case F_INT8LT:
      return KeyOrder::kLess;
    case F_INT2GT:
    case F_INT4GT:
    case F_INT8GT:
      return KeyOrder::kGreater;
    case F_INT2NE:
    case F_INT4NE:
    case F_INT8NE:
      return KeyOrder::kDifferent;
    default:
      return KeyOrder::kNone;
  }
}

/// The comparison of a column of the left side with one of the right side, if the condition is one;
/// sets the columns.
KeyOrder match_order(Node* condition, Relids left, Relids right, Var** keys) {
  if (!IsA(condition, OpExpr)) return KeyOrder::kNone;
  OpExpr* const operation = reinterpret_cast<OpExpr*>(condition);
  set_opfuncid(operation);
  KeyOrder order = order_of(operation->opfuncid);
  if (order == KeyOrder::kNone) return order;
  for (int i = 0; i < 2; ++i) {
    keys[i] = static_cast<Var*>(list_nth(operation->args, i));
    if (!IsA(keys[i], Var)) return KeyOrder::kNone;
  }
  if (bms_is_member(keys[0]->varno, right)) {
    std::swap(keys[0], keys[1]);
    if (order != KeyOrder::kDifferent)
      order = order == KeyOrder::kLess ? KeyOrder::kGreater : KeyOrder::kLess;
  }
  const bool both = bms_is_member(keys[0]->varno, left) && bms_is_member(keys[1]->varno, right);
  return both ? order : KeyOrder::kNone;
}

bool is_guard(PlannerInfo* root, Expr* condition, Relids left) {
  const Relids used = pull_varnos(root, reinterpret_cast<Node*>(condition));
  return bms_is_subset(used, left) && cannot_raise(root, condition);
}

/// A condition and what its place among others depends on.
struct Candidate {
  RestrictInfo* info;
  Index security_level;
  Cost cost;
};

/// Whether the condition may come first whatever it costs: PostgreSQL may join by an equality of
/// one side's value with the other's before it evaluates anything else, and a cheap condition that
/// raises no error harms nobody.
bool may_come_first(PlannerInfo* root, const RestrictInfo* info, Cost cost) {
  const bool joins =
      info->can_join && (info->mergeopfamilies != NIL || OidIsValid(info->hashjoinoperator));
  return joins || (cost < 10 * cpu_operator_cost && cannot_raise(root, info->clause));
}

}  // namespace

List* cheapest_first(PlannerInfo* root, const List* conditions, bool of_join) {
  const int count = list_length(conditions);
  Candidate* const candidates = static_cast<Candidate*>(palloc(sizeof(Candidate) * (count + 1)));
  for (int i = 0; i < count; ++i) {
    RestrictInfo* const info = list_nth_node(RestrictInfo, conditions, i);
    QualCost cost;
    cost_qual_eval_node(&cost, reinterpret_cast<Node*>(info), root);
    const bool harmless = info->leakproof && cost.per_tuple < 10 * cpu_operator_cost;
    candidates[i] = {info, harmless ? 0 : info->security_level,
                     of_join && may_come_first(root, info, cost.per_tuple) ? 0 : cost.per_tuple};
  }
  std::stable_sort(candidates, candidates + count, [](const Candidate& a, const Candidate& b) {
    return a.security_level != b.security_level ? a.security_level < b.security_level
                                                : a.cost < b.cost;
  });
  List* ordered = NIL;
  for (int i = 0; i < count; ++i) ordered = lappend(ordered, candidates[i].info);
  return ordered;
}

List* in_order(PlannerInfo* root, List* conditions, int before, Expr* radius) {
  for (int i = before; radius != nullptr && i < list_length(conditions); ++i)
    if (!cannot_raise(root, static_cast<Expr*>(list_nth(conditions, i))))
      return list_insert_nth(conditions, before, radius);
  return conditions;
}

BoxRule box_rule(PlannerInfo* root, Expr* condition, const SimilarityClause& distance, Relids left,
                 Relids right) {
  SimilarityClause clause;
  if (!implied_distance(condition, &clause) || !tests_boxes(clause.test)) return BoxRule::kNone;
  const BoxRule rule = clause.test.by->boxes;
  const Expr* const first = clause.left;
  if (!bind_to_sides(root, left, right, &clause) || !equal(clause.left, distance.left) ||
      !equal(clause.right, distance.right))
    return BoxRule::kNone;
  return equal(first, clause.left) ? rule : turned(rule);
}

Conditions sort_conditions(PlannerInfo* root, const SimilarityClause& clause, JoinType type,
                           List* conditions, Relids joined, Relids left, Relids right) {
  Conditions found = {};
  List* const ordered = cheapest_first(root, conditions, true);
  if (IS_OUTER_JOIN(type))
    extract_actual_join_clauses(ordered, joined, &found.all, &found.parts.where);
  else
    found.all = extract_actual_clauses(ordered, false);
  List** others = &found.parts.early;
  ListCell* cell;
  foreach (cell, found.all) {
    Expr* const condition = static_cast<Expr*>(lfirst(cell));
    if (found.boxes == BoxRule::kNone) found.boxes = box_rule(root, condition, clause, left, right);
    Var* keys[2];
    const KeyOrder order = found.order == KeyOrder::kNone
                               ? match_order(reinterpret_cast<Node*>(condition), left, right, keys)
                               : KeyOrder::kNone;
    if (equal(condition, clause.condition)) {
      found.parts.condition = condition;
      others = &found.parts.late;
    } else if (order != KeyOrder::kNone) {
      found.order = order;
      std::copy_n(keys, 2, found.keys);
      found.parts.order = list_make1(condition);
    } else {
      *others = lappend(*others, condition);
      if (is_guard(root, condition, left))
        found.parts.guard = lappend(found.parts.guard, condition);
    }
  }
  return found;
}

bool can_be_counted(const SimilarityClause& clause, const List* conditions, const List* keys,
                    Relids left, Relids right) {
  bool ordered = false;
  ListCell* cell;
  foreach (cell, conditions) {
    Expr* const condition = lfirst_node(RestrictInfo, cell)->clause;
    Var* ordered_keys[2];
    if (equal(condition, clause.condition) || is_of_key(keys, condition)) continue;
    if (ordered || match_order(reinterpret_cast<Node*>(condition), left, right, ordered_keys) ==
                       KeyOrder::kNone)
      return false;
    ordered = true;
  }
  return true;
}

bool computes_all_operands(const PlannerInfo* root, JoinType type, const List* conditions) {
  const bool may_stop_early = root->tuple_fraction > 0 && root->parse->sortClause == NIL;
  return (type == JOIN_INNER || type == JOIN_LEFT) && list_length(conditions) == 1 &&
         !may_stop_early;
}

bool can_have_values(PlannerInfo* root, const SimilarityClause& clause) {
  return can_be_evaluated(root, clause.left) && can_be_evaluated(root, clause.right);
}

ErrorTrap trap_of(const PlannerInfo* root, Expr* operand, bool for_all_rows) {
  if (can_drop_errors(root, operand)) return ErrorTrap::kCatch;
  if (for_all_rows) return ErrorTrap::kNone;
  need_subtransactions();
  return ErrorTrap::kSubtransaction;
}

AttrNumber place_operand(PlannerInfo* root, Plan** input, Expr* operand, bool for_all_rows,
                         Expr** computed, ErrorTrap* trap) {
  *computed = nullptr;
  *trap = ErrorTrap::kNone;
  if (cannot_raise(root, operand)) return place_value(input, operand);
  *computed = operand;
  *trap = trap_of(root, operand, for_all_rows);
  return 0;
}

void set_radius(const PlannerInfo* root, Expr* eps, JoinPlanData* data,
                JoinPlanExpressions* parts) {
  parts->eps = eps;
  data->eps_may_raise = !cannot_raise(root, eps);
  data->can_drop_eps_error = can_drop_errors(root, eps);
}

}  // namespace gpujoin

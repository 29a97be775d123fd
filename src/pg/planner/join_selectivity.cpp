#include "pg/planner/join_selectivity.h"

#include "pg/planner/planning.h"
#include "pg/planner/safe_radius.h"
#include "pg/reading/column_sample.h"
#include "pg/reading/relation.h"
#include "pg/reading/table_sample.h"
#include "pg/types/extension_object.h"
#include "pg/types/product_test.h"
#include "pg/types/sphere_tests.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

/// So few pairs are not worth an estimate: PostgreSQL has compared them before a join by the node
/// has started.
constexpr double kFewPairs = 1000;

constexpr PairShare kUnknown = {-1, false};  // as PairShare has it

/// The array that a function makes a value of, as cube(ARRAY[x, y]) and ARRAY[x, y]::vector do;
/// what is passed besides is constant. Any other value as it is.
Expr* made_of(Expr* value) {
  const FuncExpr* const call = reinterpret_cast<const FuncExpr*>(value);
  if (!IsA(value, FuncExpr) || call->args == NIL) return value;
  ListCell* cell;
  for_each_from(cell, call->args, 1) if (!IsA(lfirst(cell), Const)) return value;
  Expr* const array = static_cast<Expr*>(linitial(call->args));
  return IsA(array, ArrayExpr) || IsA(array, ArrayCoerceExpr) ? array : value;
}

/// The columns or expressions whose values make up a value: x and y for ARRAY[x, y], whatever is
/// made of that, and point(x, y).
List* parts_of(Expr* value) {
  value = made_of(value);
  if (IsA(value, ArrayCoerceExpr) && IsA(reinterpret_cast<ArrayCoerceExpr*>(value)->arg, ArrayExpr))
    value = reinterpret_cast<ArrayCoerceExpr*>(value)->arg;
  if (IsA(value, ArrayExpr)) return reinterpret_cast<ArrayExpr*>(value)->elements;
  if (IsA(value, FuncExpr) && reinterpret_cast<FuncExpr*>(value)->funcid == F_POINT_FLOAT8_FLOAT8)
    return reinterpret_cast<FuncExpr*>(value)->args;
  return list_make1(value);
}

/// The statistics of an expression, if the user may see them; casts between numbers are ignored.
ColumnSample sample_of(PlannerInfo* root, Node* expression) {
  while (IsA(expression, FuncExpr) &&
         reinterpret_cast<FuncExpr*>(expression)->funcformat != COERCE_EXPLICIT_CALL &&
         list_length(reinterpret_cast<FuncExpr*>(expression)->args) == 1)
    expression = static_cast<Node*>(linitial(reinterpret_cast<FuncExpr*>(expression)->args));
  const Oid type = getBaseType(exprType(expression));
  ColumnSample sample = {};
  VariableStatData data;
  examine_variable(root, expression, 0, &data);
  if (HeapTupleIsValid(data.statsTuple) && data.acl_ok) sample = load_sample(type, data.statsTuple);
  ReleaseVariableStats(data);
  return sample;
}

double rows_of(PlannerInfo* root, Relids relids) {
  double rows = 1;
  int relid = -1;
  while ((relid = bms_next_member(relids, relid)) >= 0)
    if (relid < root->simple_rel_array_size && root->simple_rel_array[relid] != nullptr)
      rows *= fmax(root->simple_rel_array[relid]->rows, 1);
  return rows;
}

/// Of radii that differ from row to row: one that leaves about as many pairs as all of them do, one
/// that no row exceeds, or one that leaves about as many where rows are joined in classes by them.
enum class RadiusOf { kTypicalRow, kAnyRow, kClass };

/// The radius of one side's rows as statistics have it, or NaN.
double radius_of_rows(PlannerInfo* root, Expr* radius, RadiusOf rows) {
  Expr* const number = number_of_safe_radius(radius);
  const ColumnSample sample =
      sample_of(root, reinterpret_cast<Node*>(number != nullptr ? number : radius));
  double squares = 0, weights = 0, largest = 0;
  for (int i = 0; i < sample.count; ++i) {
    const double of_row =
        number != nullptr ? safe_radius_at(radius, sample.values[i]) : sample.values[i];
    if (!std::isfinite(of_row)) continue;
    const double value = fmax(of_row, 0);
    largest = fmax(largest, value);
    squares += sample.weights[i] * value * value;
    weights += sample.weights[i];
  }
  if (!(weights > 0)) return NAN;
  const double typical = sqrt(squares / weights);
  return rows == RadiusOf::kAnyRow  ? largest
         : rows == RadiusOf::kClass ? fmin(largest, 2 * typical)
                                    : typical;
}

/// The radius that an engine joins with, on average. One side's rows may be joined in classes.
double radius_of_search(PlannerInfo* root, const SimilarityClause& clause) {
  double any = 0, saved = 0;
  for (Expr* const radius : clause.radii) {
    if (radius == nullptr) continue;
    const double largest = radius_of_rows(root, radius, RadiusOf::kAnyRow);
    any += largest;
    saved = fmax(saved, largest - radius_of_rows(root, radius, RadiusOf::kClass));
  }
  return any - saved;
}

/// The value of eps if evaluating it calls immutable functions only, or else NaN; `of_search`: not
/// of a typical pair, but as far as an engine has to look.
double known_eps(PlannerInfo* root, const SimilarityClause& clause, bool of_search) {
  Node* const eps = reinterpret_cast<Node*>(clause.eps);
  if (contain_mutable_functions(eps)) return NAN;
  Node* const value = estimate_expression_value(root, eps);
  if (!IsA(value, Const) || reinterpret_cast<Const*>(value)->constisnull) return NAN;
  double radius = DatumGetFloat8(reinterpret_cast<Const*>(value)->constvalue);
  if (of_search) return radius + radius_of_search(root, clause);
  for (Expr* const of_rows : clause.radii)
    if (of_rows != nullptr) radius += radius_of_rows(root, of_rows, RadiusOf::kTypicalRow);
  return radius;
}

/// Whether both are one column of one table, so that their samples are of the same rows.
bool are_same_column(PlannerInfo* root, const Node* a, const Node* b) {
  const Oid table = table_of(root, a);
  return OidIsValid(table) && table == table_of(root, b) &&
         reinterpret_cast<const Var*>(a)->varattno == reinterpret_cast<const Var*>(b)->varattno;
}

/// The share of pairs of places, of columns of longitudes and of latitudes, within a straight line
/// of each other; unknown where statistics lack one of the columns.
PairShare share_of_places(PlannerInfo* root, const List* left, const List* right, double chord) {
  ColumnSample samples[2][2];
  bool same = true;
  for (int i = 0; i < 2; ++i) {
    Node *const one = static_cast<Node*>(list_nth(left, i)), *const other = static_cast<Node*>(
                                                                 list_nth(right, i));
    same = same && are_same_column(root, one, other);
    samples[0][i] = sample_of(root, one);
    samples[1][i] = sample_of(root, other);
    if (samples[0][i].count == 0 || samples[1][i].count == 0) return kUnknown;
  }
  return matching_places(samples[0], samples[1], chord, same);
}

/// Returns the share of pairs within eps by the statistics of the parts; unknown if no part has
/// any. A part without statistics leaves the share that PostgreSQL expects of a comparison, and
/// then all parts leave `unseen` at most.
PairShare kept_share(PlannerInfo* root, const SimilarityClause& clause, double eps, double unseen) {
  if (is_of_bits(clause.test.by->metric)) return kUnknown;  // statistics keep no bits
  const List *left = parts_of(clause.left), *right = parts_of(clause.right);
  const int parts = list_length(left);
  if (parts != list_length(right)) return kUnknown;
  if (parts > 1 && clause.test.by->metric == Metric::kCosine) return kUnknown;
  const NearTest test = {false, make_box_test(clause.test.by->metric, eps)};
  if (clause.test.by->compared == ValueForm::kPlace && parts == 2)
    return share_of_places(root, left, right, eps);
  PairShare share = {1, true};
  int known = 0;
  ListCell *a, *b;
  forboth(a, left, b, right) {
    Node *const one = static_cast<Node*>(lfirst(a)), *const other = static_cast<Node*>(lfirst(b));
    const bool same = are_same_column(root, one, other);
    const auto sample = [&](Node* value) {
      const ColumnSample found = sample_of(root, value);
      return clause.test.by->compared == ValueForm::kPlace ? places_of(found) : found;
    };
    const ColumnSample left_sample = sample(one);
    const ColumnSample right_sample = same ? left_sample : sample(other);
    if (left_sample.count == 0 || right_sample.count == 0) {
      share = both(share, {DEFAULT_INEQ_SEL, false});
      continue;
    }
    ++known;
    share =
        both(share, matching_share(left_sample, right_sample, test, same, parts == 1 ? unseen : 1));
  }
  if (known == 0) return kUnknown;
  if (known < parts) share.share = fmin(share.share, unseen);
  return share;
}

/// Whether the user's rights alone allow reading the rows of a column's table.
bool is_readable(PlannerInfo* root, const Node* column) {
  if (!OidIsValid(table_of(root, column)) || !ActiveSnapshotSet()) return false;
  const RangeTblEntry* const entry =
      planner_rt_fetch(reinterpret_cast<const Var*>(column)->varno, root);
  return entry->relkind == RELKIND_RELATION && !entry->inh && entry->securityQuals == NIL &&
         pg_class_aclcheck(entry->relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
         check_enable_rls(entry->relid, InvalidOid, true) != RLS_ENABLED;
}

/// Lifts the points of both sides, and returns the band of their distances.
EpsBand lift_sample(const Dataset& left, const Dataset& right, double eps, std::uint32_t dims) {
  LiftedSides sides = begin_lifting(largest_norm(left), largest_norm(right), false);
  lift_points(left, true, &sides);
  lift_points(right, false, &sides);
  return product_band(sides, eps, dims);
}

/// Returns the share of pairs within eps among values of both tables; unknown if the user may not
/// read them. In one table neighbouring rows are often near each other, so they are not compared.
PairShare looked_up_share(PlannerInfo* root, const SimilarityClause& clause, double eps,
                          double unseen) {
  const Node *const left = reinterpret_cast<const Node*>(clause.left),
                    *const right = reinterpret_cast<const Node*>(clause.right);
  if (!is_readable(root, left) || !is_readable(root, right)) return kUnknown;
  const ValueType& type = *clause.test.type;
  const bool boxes = has_form(type, ValueForm::kBox);
  const ValueForm form = boxes ? ValueForm::kBox : clause.test.by->compared;
  ValueShape shape = {};
  const auto sample = [&](const Node* column) {
    return sample_table(table_of(root, column), reinterpret_cast<const Var*>(column)->varattno,
                        type, form, &shape);
  };
  const bool same = are_same_column(root, left, right);
  const bool product = is_product(clause.test);  // whose sides are lifted in different ways
  PointBuffer left_points = sample(left);
  PointBuffer right_points = same && !product ? PointBuffer{} : sample(right);
  if (boxes) widen_boxes(&left_points, shape.dims);
  const Dataset one = finish_points(&left_points);
  const Dataset other = same && !product ? one : finish_points(&right_points);
  if (one.rows == 0 || other.rows == 0) return kUnknown;
  const EpsBand band =
      product ? lift_sample(one, other, eps, shape.dims) : eps_band(clause.test, eps, shape.dims);
  if (!band.engine_serves || band.none) return kUnknown;
  return matching_share(make_sample(one), make_sample(other),
                        {boxes, make_box_test(clause.test.by->metric, band.select)},
                        table_of(root, left) == table_of(root, right), unseen);
}

/// Whether the condition belongs to a join that asks whether there is a match, not which.
bool asks_for_existence(PlannerInfo* root, Relids relids, Relids* right) {
  ListCell* cell;
  foreach (cell, root->join_info_list) {
    const SpecialJoinInfo* const join = lfirst_node(SpecialJoinInfo, cell);
    if ((join->jointype != JOIN_SEMI && join->jointype != JOIN_ANTI) ||
        !bms_overlap(relids, join->min_lefthand) || !bms_overlap(relids, join->min_righthand))
      continue;
    *right = bms_intersect(relids, join->min_righthand);
    return true;
  }
  return false;
}

/// Whether the column's table is read WHERE column IS NOT NULL.
bool is_filtered_by_null(PlannerInfo* root, const Var* column) {
  const auto number = static_cast<int>(column->varno);
  const RelOptInfo* const rel =
      number < root->simple_rel_array_size ? root->simple_rel_array[number] : nullptr;
  ListCell* cell;
  foreach (cell, rel != nullptr ? rel->baserestrictinfo : NIL) {
    const auto* const test =
        reinterpret_cast<const NullTest*>(lfirst_node(RestrictInfo, cell)->clause);
    if (IsA(test, NullTest) && test->nulltesttype == IS_NOT_NULL && equal(test->arg, column))
      return true;
  }
  return false;
}

/// Whether an extension other than ours estimates the condition.
bool is_estimated_by_others(const Expr* condition) {
  if (IsA(condition, OpExpr))
    return get_oprjoin(reinterpret_cast<const OpExpr*>(condition)->opno) >= FirstNormalObjectId;
  if (!IsA(condition, FuncExpr)) return false;
  const Oid support = get_func_support(reinterpret_cast<const FuncExpr*>(condition)->funcid);
  return OidIsValid(support) && !is_compiled_function_of(support, "gpujoin");
}

}  // namespace

Oid table_of(PlannerInfo* root, const Node* value) {
  if (!IsA(value, Var)) return InvalidOid;
  const Var* const column = reinterpret_cast<const Var*>(value);
  if (column->varlevelsup > 0 || column->varattno <= 0) return InvalidOid;
  const RangeTblEntry* const entry = planner_rt_fetch(column->varno, root);
  return entry->rtekind == RTE_RELATION ? entry->relid : InvalidOid;
}

namespace {

/// True if a condition keeps each row from itself by comparing one column, as a.id < b.id does.
bool parts_from_itself(PlannerInfo* root, const Expr* condition) {
  const auto* const comparison = reinterpret_cast<const OpExpr*>(condition);
  if (!IsA(condition, OpExpr) || list_length(comparison->args) != 2 ||
      !are_same_column(root, static_cast<Node*>(linitial(comparison->args)),
                       static_cast<Node*>(lsecond(comparison->args))))
    return false;
  const RegProcedure kind = get_oprrest(comparison->opno);
  return kind == F_SCALARLTSEL || kind == F_SCALARGTSEL || kind == F_NEQSEL;
}

/// True if both sides are the same value of one table, so that each row is a pair with itself.
bool meets_itself(PlannerInfo* root, const SimilarityClause& clause, Relids left, Relids right) {
  int one, other;
  if (!bms_get_singleton_member(left, &one) || !bms_get_singleton_member(right, &other) ||
      one >= root->simple_rel_array_size || root->simple_rel_array[one] == nullptr)
    return false;
  const RangeTblEntry *const entry = planner_rt_fetch(one, root), *const second =
                                                                      planner_rt_fetch(other, root);
  if (entry->rtekind != RTE_RELATION || second->rtekind != RTE_RELATION ||
      entry->relid != second->relid)
    return false;
  Node* const renamed = static_cast<Node*>(copyObjectImpl(clause.right));
  ChangeVarNodes(renamed, other, one, 0);
  if (!equal(renamed, clause.left)) return false;
  ListCell* cell;
  foreach (cell, root->simple_rel_array[one]->joininfo) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (bms_is_member(other, info->clause_relids) && parts_from_itself(root, info->clause))
      return false;
  }
  return true;
}

/// The share of pairs within the radius.
PairShare share_within(PlannerInfo* root, const SimilarityClause& clause, double eps) {
  const Relids left = pull_varnos(root, reinterpret_cast<Node*>(clause.left));
  const Relids right = pull_varnos(root, reinterpret_cast<Node*>(clause.right));
  const double left_rows = rows_of(root, left), right_rows = rows_of(root, right);
  const double rows = fmax(left_rows, right_rows);
  const double unseen = kDefaultNeighbors / fmax(rows, kDefaultNeighbors);
  PairShare share = kUnknown;
  const bool product = is_product(clause.test);
  if ((eps >= 0 || product) && std::isfinite(eps)) {
    // A statement may have thousands of conditions, and keeps what planning allocates to its end.
    const MemoryContext samples =
        AllocSetContextCreate(CurrentMemoryContext, "gpujoin samples", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext planner = MemoryContextSwitchTo(samples);
    const EpsBand band = eps_band(clause.test, eps, 1);
    const bool compares_otherwise = band.engine_serves && !band.none && !is_exact(clause.test);
    if (!product) share = kept_share(root, clause, compares_otherwise ? band.select : eps, unseen);
    if (share.share < 0 && left_rows * right_rows > kFewPairs)
      share = looked_up_share(root, clause, eps, unseen);
    if (share.share >= 0 && !product && meets_itself(root, clause, left, right))
      share.share = fmin(1, share.share + 1 / rows);
    MemoryContextSwitchTo(planner);
    MemoryContextDelete(samples);
  }
  return share.share < 0 ? PairShare{unseen, false} : share;
}

}  // namespace

PairShare share_of_pairs(PlannerInfo* root, const Expr* condition, const SimilarityClause& clause) {
  Planning* const planning = planning_of(root);
  ListCell *expression, *share;
  forboth(expression, planning->estimated, share, planning->shares) {
    if (equal(lfirst(expression), condition)) return *static_cast<PairShare*>(lfirst(share));
  }
  const PairShare found = share_within(root, clause, known_eps(root, clause, false));
  const MemoryContext caller = MemoryContextSwitchTo(root->planner_cxt);  // GEQO has shorter ones
  auto* const copy = static_cast<PairShare*>(palloc(sizeof(PairShare)));
  *copy = found;
  planning->estimated = lappend(planning->estimated, copyObjectImpl(condition));
  planning->shares = lappend(planning->shares, copy);
  MemoryContextSwitchTo(caller);
  return found;
}

JoinSelectivities estimate_selectivity(PlannerInfo* root, const Expr* condition,
                                       const SimilarityClause& clause) {
  const double share = share_of_pairs(root, condition, clause).share;
  const Relids compared = pull_varnos(root, reinterpret_cast<Node*>(const_cast<Expr*>(condition)));
  Relids tested;
  JoinSelectivities result = {share, share};
  if (asks_for_existence(root, compared, &tested))
    result.outer = fmin(1, share * rows_of(root, tested));
  return result;
}

PairShare share_of_candidates(PlannerInfo* root, const SimilarityClause& clause, PairShare share) {
  if (!has_row_radii(clause)) return share;
  const double eps = known_eps(root, clause, true);
  return std::isnan(eps) ? kUnknown : share_within(root, clause, eps);
}

double share_of_nulls(PlannerInfo* root, Expr* value) {
  double share = 0;
  ListCell* cell;
  foreach (cell, pull_var_clause(reinterpret_cast<Node*>(value), PVC_RECURSE_PLACEHOLDERS)) {
    const Var* const column = lfirst_node(Var, cell);
    if (is_filtered_by_null(root, column)) continue;
    VariableStatData data;
    examine_variable(root, static_cast<Node*>(lfirst(cell)), 0, &data);
    if (HeapTupleIsValid(data.statsTuple))
      share += reinterpret_cast<Form_pg_statistic>(GETSTRUCT(data.statsTuple))->stanullfrac;
    ReleaseVariableStats(data);
  }
  return share;
}

bool has_statistics(PlannerInfo* root, const SimilarityClause& clause) {
  ListCell* cell;
  foreach (cell, list_concat_copy(parts_of(clause.left), parts_of(clause.right)))
    if (sample_of(root, static_cast<Node*>(lfirst(cell))).count == 0) return false;
  return true;
}

void set_selectivities(PlannerInfo* root, RestrictInfo* info, const SimilarityClause& clause) {
  // Beside its haversine q3c_join() has an operator that is there for the estimate.
  if (is_estimated_by_others(info->clause) || tests_haversines(clause.test)) return;
  const JoinSelectivities estimate = estimate_selectivity(root, info->clause, clause);
  info->norm_selec = estimate.pairs;
  info->outer_selec = estimate.outer;
}

}  // namespace gpujoin

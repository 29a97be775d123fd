#include "pg/planner/function_estimate.h"

#include "pg/planner/pair_cost.h"
#include "pg/reading/column_sample.h"
#include "pg/reading/relation.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

constexpr double kDefaultRows = 1000;  // of a relation that nothing is known about

struct SideEstimate {
  double rows;
  double pages;
  SideColumns columns;
  ColumnSample* samples;  ///< [columns.count]; null: no statistics that this user may see
};

/// Null unless every column of the vector has statistics that the user may see; boxes have none.
ColumnSample* load_samples(const SideColumns& columns, bool inherited) {
  if (columns.shape == Shape::kBoxes || !may_select(columns) ||
      check_enable_rls(columns.relation, InvalidOid, true) == RLS_ENABLED)
    return nullptr;
  ColumnSample* const samples =
      static_cast<ColumnSample*>(palloc(sizeof(ColumnSample) * columns.count));
  for (int c = 0; c < columns.count; ++c) {
    const HeapTuple statistics =
        SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(columns.relation),
                        Int16GetDatum(columns.attributes[c]), BoolGetDatum(inherited));
    if (!HeapTupleIsValid(statistics)) return nullptr;
    samples[c] = load_sample(columns.types[c], statistics);
    ReleaseSysCache(statistics);
    if (is_on_earth(columns.form) && columns.value_type != nullptr)
      samples[c] = places_of(samples[c]);
    if (samples[c].count == 0) return nullptr;
  }
  return samples;
}

SideEstimate estimate_side(const SideArguments& side) {
  SideEstimate result = {kDefaultRows, 0, {}, nullptr};
  if (!may_select_some(side.relation)) return result;  // nor lock it
  const Relation relation = try_relation_open(side.relation, AccessShareLock);
  if (relation == nullptr) return result;
  if (find_value_columns(relation, side, &result.columns).problem == ColumnProblem::kNone) {
    BlockNumber pages = 0;
    double rows = 0, visible;
    if (relation->rd_rel->relkind != RELKIND_VIEW)
      estimate_rel_size(relation, nullptr, &pages, &rows, &visible);
    if (rows > 0 || relation->rd_rel->relkind == RELKIND_RELATION) result.rows = fmax(rows, 1);
    result.pages = pages;
    result.samples =
        load_samples(result.columns, relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);
  }
  relation_close(relation, NoLock);
  return result;
}

/// Pairs of different rows within eps, both orders counted.
double estimate_pairs(const JoinArguments& arguments, const SideEstimate& left,
                      const SideEstimate& right) {
  // Statistics of single columns do not give the angle between rows.
  const bool angle_of_columns =
      arguments.metric.metric == Metric::kCosine &&
      (left.columns.value_type == nullptr || right.columns.value_type == nullptr);
  if (left.samples == nullptr || right.samples == nullptr || arguments.left.bits ||
      left.columns.count != right.columns.count || angle_of_columns)
    return left.rows * fmin(right.rows, kDefaultNeighbors);
  const NearTest test = {false, make_box_test(arguments.metric.metric, arguments.eps)};
  const bool same = left.samples == right.samples;
  const double unseen = left.columns.count == 1 ? kDefaultNeighbors / right.rows : 1;
  double pairs = left.rows * right.rows;
  if (arguments.metric.on_earth && left.columns.count == 2)
    return pairs * matching_places(left.samples, right.samples, arguments.eps, same).share;
  for (int c = 0; c < left.columns.count; ++c)
    pairs *= matching_share(left.samples[c], right.samples[c], test, same, fmin(unseen, 1)).share;
  return pairs;
}

Cost reading_cost(const SideEstimate& side) {
  return seq_page_cost * side.pages + (cpu_tuple_cost + cpu_operator_cost) * side.rows;
}

}  // namespace

JoinEstimate estimate_join(RowKind row, const JoinArguments& arguments, bool eps_known) {
  const bool self_join =
      arguments.function->takes_one_table() || same_side(arguments.left, arguments.right);
  const bool top = arguments.function->output == Output::kTopPairs;
  SideEstimate left = estimate_side(arguments.left);
  const SideEstimate right = self_join ? left : estimate_side(arguments.right);
  if (!eps_known) left.samples = nullptr;
  double rows = left.rows;
  if (arguments.function->output == Output::kNearest) {
    const bool itself = self_join && arguments.pairs == PairSelection::kDistinct;
    rows *= fmin(static_cast<double>(arguments.top.k), fmax(right.rows - itself, 0));
  } else if (arguments.function->output == Output::kSpanningTree) {
    rows -= 1;
  } else if (row == RowKind::kPair) {
    rows = estimate_pairs(arguments, left, right);
    if (self_join && (top || arguments.pairs == PairSelection::kUnordered)) rows /= 2;
    if (self_join && !top && arguments.pairs == PairSelection::kAll) rows += left.rows;
    if (top) rows = fmin(rows, static_cast<double>(arguments.top.k));
    if (arguments.function->output == Output::kDuplicates) rows = fmin(rows - left.rows, left.rows);
  }
  const Cost cost = kStartOperators * cpu_operator_cost + reading_cost(left) +
                    (self_join ? 0 : reading_cost(right));
  return {clamp_row_est(rows), cost};
}

}  // namespace gpujoin

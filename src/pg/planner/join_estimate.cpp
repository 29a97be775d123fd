#include "pg/planner/join_estimate.h"

#include "core/hamming.h"
#include "pg/planner/join_selectivity.h"
#include "pg/settings.h"

extern "C" {
#include "access/table.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gpujoin {
namespace {

// In operators, so that prices rise and fall with the prices of PostgreSQL's own plans.
constexpr double kRowOperators = 10;          // taking a row in, and its share of the index
constexpr double kCandidateOperators = 0.04;  // for each pair within the radius, with those in vain
constexpr double kPairOperators = 0.8;        // handing over a row
constexpr double kUntilFirst = 64;            // pairs of a row of which the first suffices, at most

/// Bytes that a table holds out of line for each of its rows.
double toasted_width(const RelOptInfo* rel, Oid table) {
  const Relation relation = table_open(table, NoLock);  // the planner holds a lock
  const Oid toast = relation->rd_rel->reltoastrelid;
  table_close(relation, NoLock);
  if (!OidIsValid(toast)) return 0;
  const Relation values = table_open(toast, AccessShareLock);
  const double bytes = static_cast<double>(RelationGetNumberOfBlocks(values)) * BLCKSZ;
  table_close(values, AccessShareLock);
  return bytes / fmax(rel->tuples, 1);
}

/// Bytes of a value. Where values lie out of line statistics know the width of the pointer to them.
double stored_width(PlannerInfo* root, const Node* value) {
  constexpr double kUnknown = 32;  // what PostgreSQL expects of a type of any length
  if (!IsA(value, Var)) return get_typavgwidth(exprType(value), exprTypmod(value));
  const Var* const column = reinterpret_cast<const Var*>(value);
  const RelOptInfo* const rel = find_base_rel(root, column->varno);
  const double width = rel->attr_widths[column->varattno - rel->min_attr];
  const Oid table = table_of(root, value);
  return width > kUnknown || !OidIsValid(table) ? width : fmax(width, toasted_width(rel, table));
}

/// Numbers that a value becomes as a point or a box.
double coordinates_of(PlannerInfo* root, const Expr* value, const ValueType& type) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  if (type.fixed_numbers > 0) return type.fixed_numbers;
  if (IsA(value, ArrayExpr))
    return list_length(reinterpret_cast<const ArrayExpr*>(value)->elements);
  const std::int32_t dims = exprTypmod(node);
  if (dims > 0 && is_of_bits(type)) return (dims + kBitsPerWord - 1) / kBitsPerWord;
  return dims > 0 ? dims
                  : fmax(1, (stored_width(root, node) - type.head_bytes) / type.coordinate_bytes);
}

/// Returns how many rows an engine compares with a row: all rows in many dimensions, and all rows
/// of bits. In two dimensions these are the `near` rows of its neighbourhood.
double compared_rows(const ValueType& type, double dims, double near, double rows) {
  return is_of_bits(type) ? rows : fmin(rows, pow(3, fmin(dims, 64) - 2) * near);
}

/// Returns what a comparison costs, in operators. Measured on two cores: a twentieth of a
/// nanosecond for each dimension, where an operator is worth 44. PostgreSQL's own comparisons take
/// longer in many dimensions, too, which it does not price. So beyond 80 dimensions the price stays
/// in proportion to theirs: a hundredth of the time at 128 dimensions, less where values are
/// toasted.
double comparing_operators(double dims) {
  return kCandidateOperators * fmin(fmax(1, dims / 32), 2.5);
}

double bytes_of(PlannerInfo* root, const Path* input, const Expr* value,
                const SimilarityTest& test) {
  const std::uint64_t bytes = scalar_bytes(scalar_of(*test.type, test.by->compared));
  return input->rows * (coordinates_of(root, value, *test.type) * static_cast<double>(bytes) +
                        sizeof(std::int64_t));
}

constexpr double kLeastMemory = 16 << 20;  // parts of less are not worth their joins
constexpr double kPasses = 5;  // chunks and parts are written and read, parts more than once

/// What reading or writing so many bytes of a file costs.
Cost cost_of_file(double bytes) { return seq_page_cost * bytes / BLCKSZ; }

/// What computing a value costs for each row of an input.
Cost cost_of_value(PlannerInfo* root, const Path* input, Expr* value) {
  QualCost cost;
  cost_qual_eval_node(&cost, reinterpret_cast<Node*>(value), root);
  return cost.startup + cost.per_tuple * input->rows;
}

}  // namespace

bool has_memory(PlannerInfo* root, const Path* left, const Path* right,
                const SimilarityClause& clause, Cost* of_values) {
  const auto limit = static_cast<double>(host_memory_limit_bytes());
  const double bytes = bytes_of(root, left, clause.left, clause.test) +
                       bytes_of(root, right, clause.right, clause.test);
  const bool fits = 2 * bytes <= limit;
  *of_values = cost_of_value(root, left, clause.left) + cost_of_value(root, right, clause.right) +
               (fits ? 0 : cost_of_file(kPasses * bytes));
  return fits || limit >= kLeastMemory;
}

Selectivity compared_share(PlannerInfo* root, const Path* right, const SimilarityClause& clause,
                           Selectivity share) {
  if (tests_boxes(clause.test)) return share;
  const ValueType& type = *clause.test.type;
  const double dims = coordinates_of(root, clause.left, type);
  const double rows = fmax(right->rows, 1);
  return fmax(share, compared_rows(type, dims, share * rows, rows) / rows);
}

Cost comparing_cost(PlannerInfo* root, const SimilarityClause& clause, double pairs) {
  return cpu_operator_cost * pairs *
         comparing_operators(coordinates_of(root, clause.left, *clause.test.type));
}

Cost detoasting_cost(PlannerInfo* root, const Path* input, const Expr* value) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  const Oid table = table_of(root, node);
  if (!OidIsValid(table)) return 0;
  const RelOptInfo* const rel = find_base_rel(root, reinterpret_cast<const Var*>(value)->varno);
  return cost_of_file(input->rows * toasted_width(rel, table));
}

void set_join_cost(PlannerInfo* root, Path* path, const Path* left, const Path* right,
                   Selectivity share, JoinType type, List* conditions, bool asked, Cost of_values) {
  const double pairs = clamp_row_est(left->rows * right->rows * share);
  QualCost filter;
  cost_qual_eval(&filter, conditions, root);
  const bool pairs_wanted = type == JOIN_INNER || type == JOIN_LEFT || asked;
  const double found = pairs_wanted ? pairs : fmin(pairs, kUntilFirst * left->rows);
  const double of_rows = kStartOperators + kRowOperators * (left->rows + right->rows);
  const double of_pairs = (kCandidateOperators + (pairs_wanted ? kPairOperators : 0)) * found;
  path->rows = path->parent->rows;
  path->startup_cost = left->total_cost + right->total_cost + cpu_operator_cost * of_rows +
                       of_values + filter.startup + path->pathtarget->cost.startup;
  path->total_cost = path->startup_cost + cpu_operator_cost * of_pairs +
                     (asked ? filter.per_tuple * pairs : 0) +
                     path->pathtarget->cost.per_tuple * path->rows;
}

namespace {

/// What it costs that right rows do not fit in memory, so that each part of the left side meets
/// parts of the right one. False where there is too little memory.
bool add_parts_cost(double left_bytes, double right_bytes, const NearestCost& cost, Path* path) {
  constexpr double kShares = 6;  // as dataset_share() has it for two sides
  constexpr double kListShare = 4, kNeighborBytes = 16;
  const double limit = static_cast<double>(host_memory_limit_bytes()) / cost.processes;
  if (kShares * right_bytes <= limit) return true;
  const double lists = cost.left->rows * cost.k * kNeighborBytes;
  const double parts = 1 + 2 * left_bytes / limit + kListShare * lists / limit;
  path->startup_cost = cost_of_file(kPasses * (left_bytes + right_bytes) + parts * right_bytes) +
                       cpu_operator_cost * kRowOperators * cost.right->rows * (parts - 1);
  return 2 * (left_bytes + right_bytes) <= limit || limit >= kLeastMemory;
}

}  // namespace

namespace {

/// The expression over parameters instead of columns.
Node* hide_columns(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (IsA(node, RestrictInfo))
    return hide_columns(reinterpret_cast<Node*>(reinterpret_cast<RestrictInfo*>(node)->clause),
                        context);
  if (!IsA(node, Var)) return mutate_expression(node, hide_columns, context);
  const Var* const column = reinterpret_cast<const Var*>(node);
  Param* const parameter = makeNode(Param);
  parameter->paramkind = PARAM_EXEC;
  parameter->paramtype = column->vartype;
  parameter->paramtypmod = column->vartypmod;
  parameter->paramcollid = column->varcollid;
  parameter->location = -1;
  return reinterpret_cast<Node*>(parameter);
}

/// What an expression costs that may be of columns beyond a subquery's own: PostgreSQL must not
/// look for statistics of these, as it does for the lengths of arrays.
QualCost cost_of_columns(PlannerInfo* root, Node* expression) {
  QualCost cost;
  cost_qual_eval_node(&cost, hide_columns(expression, nullptr), root);
  return cost;
}

}  // namespace

bool set_nearest_cost(PlannerInfo* root, PlannerInfo* subroot, const SimilarityClause& distance,
                      Expr* value, const NearestCost& cost, Path* path) {
  constexpr double kSearchOperators = 20, kLeafRows = 32, kDistanceOperators = 10;
  const Path *left = cost.left, *right = cost.right;
  const bool plane = has_form(*distance.test.type, ValueForm::kMiddle);
  path->startup_cost = 0;
  if (!add_parts_cost(bytes_of(root, left, distance.left, distance.test),
                      bytes_of(subroot, right, value, distance.test), cost, path) ||
      (plane && path->startup_cost > 0))  // values with extents are not looked for in parts
    return false;
  const double dims = plane ? 2 : coordinates_of(subroot, value, *distance.test.type);
  const double found = fmin(cost.k / fmax(cost.share, 1e-9), right->rows);
  const double compared =
      compared_rows(*distance.test.type, dims, 9 * (kLeafRows + found), right->rows);
  const QualCost filter =
      cost_of_columns(root, reinterpret_cast<Node*>(const_cast<List*>(cost.conditions)));
  const QualCost measuring = cost_of_columns(root, reinterpret_cast<Node*>(distance.condition));
  // Extensions price distances so that indexes are preferred; PostgreSQL prices none that an index
  // orders by.
  const Cost of_distance = fmin(measuring.per_tuple, kDistanceOperators * cpu_operator_cost);
  const bool measures = !is_exact(distance.test) || cost.conditions != NIL;
  const double measured = plane ? found + 2 : 1;
  const double of_rows = kStartOperators + kRowOperators * (left->rows + right->rows);
  const double of_search =
      kSearchOperators + kPairOperators * found + comparing_operators(dims) * compared;
  path->rows = path->parent->rows;
  path->startup_cost += left->total_cost + right->total_cost + cpu_operator_cost * of_rows +
                        cost_of_value(root, left, distance.left) +
                        cost_of_value(subroot, right, value) + filter.startup +
                        path->pathtarget->cost.startup;
  path->total_cost = path->startup_cost + left->rows * cpu_operator_cost * of_search +
                     left->rows * found * filter.per_tuple +
                     (measures ? left->rows * measured * of_distance : 0) +
                     path->pathtarget->cost.per_tuple * path->rows;
  return true;
}

void set_counting_cost(Path* path, const Path* input) {
  path->startup_cost = input->startup_cost + cpu_operator_cost * kCandidateOperators * input->rows;
  path->total_cost = path->startup_cost + cpu_tuple_cost * path->rows;
}

void prefer(Path* path) {
  constexpr double kShare = 1e-9;
  path->startup_cost *= kShare;
  path->total_cost *= kShare;
}

}  // namespace gpujoin

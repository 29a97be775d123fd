#include "pg/planner/pair_cost.h"

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
constexpr double kSearchOperators = 20;       // looking for the nearest rows of one
constexpr double kSampleOperators = 0.012;    // a sampled pair in one dimension, to choose an index
constexpr double kSampledPairs = 1 << 15;
constexpr double kBruteOperators = 0.1;  // a pair of few, for which no index is chosen
constexpr double kLeafRows = 32;         // rows of a leaf, which are all compared
constexpr double kUntilFirst = 64;       // pairs of a row of which the first suffices, at most

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

/// Returns the cost of reading or writing a file of this size.
Cost cost_of_file(double bytes) { return seq_page_cost * bytes / BLCKSZ; }

/// What computing a value costs for each row of an input.
Cost cost_of_value(PlannerInfo* root, const Path* input, Expr* value) {
  QualCost cost;
  cost_qual_eval_node(&cost, reinterpret_cast<Node*>(value), root);
  return cost.startup + cost.per_tuple * input->rows;
}

/// The work of a node, from which its cost follows.
struct PairWork {
  const Path* left;
  const Path* right;
  double dims;      ///< dimensions of a compared value
  double choosing;  ///< choosing an index, in operators
  double in_vain;   ///< pairs compared before the first result
  double compared;  ///< pairs compared after it
  double searches;  ///< rows whose nearest rows are searched
  double emitted;   ///< pairs that the engine returns
  double asked;     ///< pairs for which `conditions` are evaluated
  QualCost conditions;
  double measured;   ///< pairs whose distance is computed by its own function
  Cost of_distance;  ///< cost of computing it once
  Cost of_values;    ///< cost of computing the compared values and of files for them
};

void set_cost(const PairWork& work, Path* path) {
  const double rows = work.left->rows + work.right->rows;
  const double of_rows = kStartOperators + kRowOperators * rows + work.choosing +
                         comparing_operators(work.dims) * work.in_vain;
  const double of_pairs = comparing_operators(work.dims) * work.compared +
                          kSearchOperators * work.searches + kPairOperators * work.emitted;
  path->rows = path->parent->rows;
  path->startup_cost = work.left->total_cost + work.right->total_cost +
                       cpu_operator_cost * of_rows + work.of_values + work.conditions.startup +
                       path->pathtarget->cost.startup;
  path->total_cost = path->startup_cost + cpu_operator_cost * of_pairs +
                     work.conditions.per_tuple * work.asked + work.of_distance * work.measured +
                     path->pathtarget->cost.per_tuple * path->rows;
  add_disabled_nodes(path, {work.left, work.right});
}

/// Returns the cost of reading all values that are stored out of line.
Cost detoasting_cost(PlannerInfo* root, const Path* input, const Expr* value) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  const Oid table = table_of(root, node);
  if (!OidIsValid(table)) return 0;
  const RelOptInfo* const rel = find_base_rel(root, reinterpret_cast<const Var*>(value)->varno);
  return cost_of_file(input->rows * toasted_width(rel, table));
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

Cost set_join_cost(PlannerInfo* root, const JoinWork& join, PairPath* path) {
  const Path *const left = left_input(path), *const right = right_input(path);
  const SimilarityClause& clause = path->clause;
  const double all = left->rows * right->rows, pairs = clamp_row_est(all * join.found);
  const bool pairs_wanted = path->type == JOIN_INNER || path->type == JOIN_LEFT || join.asked;
  const double found = pairs_wanted ? pairs : fmin(pairs, kUntilFirst * left->rows);
  const Cost of_left = detoasting_cost(root, left, clause.left),
             of_right = detoasting_cost(root, right, clause.right);
  PairWork work = {};
  work.left = left;
  work.right = right;
  work.dims = tests_boxes(clause.test) ? 1 : coordinates_of(root, clause.left, *clause.test.type);
  work.choosing =
      fmin(kSampleOperators * work.dims * fmin(all, kSampledPairs), kBruteOperators * all);
  work.in_vain = fmax(0, all * (join.compared - join.found));
  work.compared = found;
  work.emitted = pairs_wanted ? found : 0;
  work.asked = join.asked ? pairs : 0;
  cost_qual_eval(&work.conditions, path->conditions, root);
  work.of_values = join.of_values + of_left + of_right;
  set_cost(work, &path->custom.path);
  return of_left / fmax(left->rows, 1) + of_right / fmax(right->rows, 1);
}

namespace {

/// Sets *of_parts to the cost of joining in parts because right rows do not fit in memory; 0 if
/// they fit. Returns false if there is too little memory even for that.
bool find_parts_cost(double left_bytes, double right_bytes, const PairPath& path, Cost* of_parts) {
  constexpr double kShares = 6;  // as dataset_share() has it for two sides
  constexpr double kListShare = 4, kNeighborBytes = 16;
  const Path *const left = left_input(&path), *const right = right_input(&path);
  const double limit = static_cast<double>(host_memory_limit_bytes()) / path.processes;
  *of_parts = 0;
  if (kShares * right_bytes <= limit) return true;
  const double lists = left->rows * path.nearest.rows * kNeighborBytes;
  const double parts = 1 + 2 * left_bytes / limit + kListShare * lists / limit;
  *of_parts = cost_of_file(kPasses * (left_bytes + right_bytes) + parts * right_bytes) +
              cpu_operator_cost * kRowOperators * right->rows * (parts - 1);
  return 2 * (left_bytes + right_bytes) <= limit || limit >= kLeastMemory;
}

/// Mutator: replaces columns by parameters.
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

/// Returns the cost of an expression that may have columns numbered beyond a subquery's own.
/// PostgreSQL must not look up statistics of these, as it does for the lengths of arrays.
QualCost cost_of_columns(PlannerInfo* root, void* expression) {
  QualCost cost;
  cost_qual_eval_node(&cost, hide_columns(static_cast<Node*>(expression), nullptr), root);
  return cost;
}

}  // namespace

bool set_nearest_cost(PlannerInfo* root, Selectivity share, PairPath* path) {
  constexpr double kDistanceOperators = 10;
  const Path *const left = left_input(path), *const right = right_input(path);
  const SimilarityClause& distance = path->clause;
  PlannerInfo* const right_root = path->inner != nullptr ? path->inner->subroot : root;
  Expr* const value = path->inner != nullptr ? path->nearest.value : distance.right;
  const bool plane = has_form(*distance.test.type, ValueForm::kMiddle);
  PairWork work = {};
  work.left = left;
  work.right = right;
  if (!find_parts_cost(bytes_of(root, left, distance.left, distance.test),
                       bytes_of(right_root, right, value, distance.test), *path,
                       &work.of_values) ||
      (plane && work.of_values > 0))  // values with extents are not looked for in parts
    return false;
  const double found = fmin(path->nearest.rows / fmax(share, 1e-9), right->rows);
  const bool measures = !is_exact(distance.test) || path->nearest.conditions != NIL;
  work.dims = plane ? 2 : coordinates_of(right_root, value, *distance.test.type);
  work.compared = left->rows * compared_rows(*distance.test.type, work.dims,
                                             9 * (kLeafRows + found), right->rows);
  work.searches = left->rows;
  work.emitted = work.asked = left->rows * found;
  work.conditions = cost_of_columns(root, path->nearest.conditions);
  work.measured = measures ? left->rows * (plane ? found + 2 : 1) : 0;
  // Extensions price distances so that indexes are preferred; PostgreSQL prices none that an index
  // orders by.
  work.of_distance = fmin(cost_of_columns(root, distance.condition).per_tuple,
                          kDistanceOperators * cpu_operator_cost);
  work.of_values +=
      cost_of_value(root, left, distance.left) + cost_of_value(right_root, right, value);
  set_cost(work, &path->custom.path);
  return true;
}

Cost search_cost(PlannerInfo* root, const RelOptInfo* table, const Expr* value,
                 const SimilarityTest& test, double found) {
  constexpr double kMessageOperators = 2000;  // there and back: 0.1 ms
  const double dims = coordinates_of(root, value, *test.type);
  const double compared =
      compared_rows(*test.type, dims, 9 * (kLeafRows + found), fmax(table->tuples, 1));
  return cpu_operator_cost * (kMessageOperators + kSearchOperators + kPairOperators * found +
                              comparing_operators(dims) * compared);
}

void set_counting_cost(Path* path, const Path* input) {
  path->startup_cost = input->startup_cost + cpu_operator_cost * kCandidateOperators * input->rows;
  path->total_cost = path->startup_cost + cpu_tuple_cost * path->rows;
  add_disabled_nodes(path, {input});
}

void prefer(Path* path) {
  constexpr double kShare = 1e-9;
  path->startup_cost *= kShare;
  path->total_cost *= kShare;
}

void undercut(Path* path, const Path* other, double factor, double share) {
  path->total_cost = fmin(path->total_cost, factor * other->total_cost);
  const Cost startup = fmin(path->startup_cost, path->total_cost);
  const Cost run = path->total_cost - startup;
  const Cost most =
      factor * (other->startup_cost + share * (other->total_cost - other->startup_cost));
  const bool exceeds = share < 1 && startup + share * run > most;
  path->startup_cost = exceeds ? fmax(0, (most - share * path->total_cost) / (1 - share)) : startup;
}

}  // namespace gpujoin

#include "pg/join_estimate.h"

#include "core/box.h"
#include "core/distance.h"
#include "pg/column_sample.h"
#include "pg/relation.h"
#include "pg/settings.h"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

// In the planner's units, of which a hundred are about a millisecond.
constexpr Cost kStartCost = 40;          // threads and the like: what even an empty join costs
constexpr Cost kRowCost = 0.015;         // taking a row in, and its share of the index
constexpr Cost kCandidateCost = 0.0001;  // for each pair within the radius, with those in vain
constexpr Cost kPairCost = 0.002;        // handing over a row

/// The columns or expressions whose values make up a value: of ARRAY[x, y] and point(x, y) they are
/// x and y.
List* parts_of(Expr* value) {
  if (IsA(value, ArrayExpr)) return reinterpret_cast<ArrayExpr*>(value)->elements;
  if (IsA(value, FuncExpr) && reinterpret_cast<FuncExpr*>(value)->funcid == F_POINT_FLOAT8_FLOAT8)
    return reinterpret_cast<FuncExpr*>(value)->args;
  return list_make1(value);
}

bool can_be_sampled(Oid type) {
  return is_number_type(type) || type == FLOAT4ARRAYOID || type == FLOAT8ARRAYOID;
}

/// What statistics tell of an expression that the user may see them of; casts between numbers are
/// looked through.
ColumnSample sample_of(PlannerInfo* root, Node* expression) {
  ColumnSample sample = {};
  while (IsA(expression, FuncExpr) &&
         reinterpret_cast<FuncExpr*>(expression)->funcformat != COERCE_EXPLICIT_CALL &&
         list_length(reinterpret_cast<FuncExpr*>(expression)->args) == 1)
    expression = static_cast<Node*>(linitial(reinterpret_cast<FuncExpr*>(expression)->args));
  VariableStatData data;
  examine_variable(root, expression, 0, &data);
  const Oid type = getBaseType(exprType(expression));
  if (HeapTupleIsValid(data.statsTuple) && data.acl_ok && can_be_sampled(type))
    sample = load_sample(type, data.statsTuple);
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

/// The value of eps if it is known, or else NaN.
double known_eps(PlannerInfo* root, const SimilarityClause& clause) {
  Node* const value = estimate_expression_value(root, reinterpret_cast<Node*>(clause.eps));
  if (!IsA(value, Const) || reinterpret_cast<Const*>(value)->constisnull) return NAN;
  return DatumGetFloat8(reinterpret_cast<Const*>(value)->constvalue);
}

/// The table that a value is a column of; InvalidOid where it is none.
Oid table_of(PlannerInfo* root, const Node* value) {
  if (!IsA(value, Var)) return InvalidOid;
  const Var* const column = reinterpret_cast<const Var*>(value);
  if (column->varlevelsup > 0 || column->varattno <= 0) return InvalidOid;
  const RangeTblEntry* const entry = planner_rt_fetch(column->varno, root);
  return entry->rtekind == RTE_RELATION ? entry->relid : InvalidOid;
}

/// Whether both are one column of one table, so that their samples are of the same rows.
bool are_same_column(PlannerInfo* root, const Node* a, const Node* b) {
  const Oid table = table_of(root, a);
  return OidIsValid(table) && table == table_of(root, b) &&
         reinterpret_cast<const Var*>(a)->varattno == reinterpret_cast<const Var*>(b)->varattno;
}

/// The share of pairs within eps by the samples of all parts; negative when there are none.
double sampled_share(PlannerInfo* root, const SimilarityClause& clause, double eps) {
  if (!(eps >= 0) || std::isinf(eps)) return -1;
  const List *left = parts_of(clause.left), *right = parts_of(clause.right);
  if (list_length(left) != list_length(right)) return -1;
  const Threshold threshold = make_threshold(clause.test.metric, eps);
  double share = 1;
  ListCell *a, *b;
  forboth(a, left, b, right) {
    Node *const one = static_cast<Node*>(lfirst(a)), *const other = static_cast<Node*>(lfirst(b));
    const ColumnSample left_sample = sample_of(root, one), right_sample = sample_of(root, other);
    if (left_sample.count == 0 || right_sample.count == 0) return -1;
    const bool same = are_same_column(root, one, other);
    share *= matching_share(left_sample, same ? left_sample : right_sample, clause.test.metric,
                            threshold);
  }
  return share;
}

/// Whether the rows of a column's table may be looked at, by nothing but the user's rights.
bool is_readable(PlannerInfo* root, const Node* column) {
  if (!OidIsValid(table_of(root, column)) || !ActiveSnapshotSet()) return false;
  const RangeTblEntry* const entry =
      planner_rt_fetch(reinterpret_cast<const Var*>(column)->varno, root);
  return entry->relkind == RELKIND_RELATION && !entry->inh && entry->securityQuals == NIL &&
         pg_class_aclcheck(entry->relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
         check_enable_rls(entry->relid, InvalidOid, true) != RLS_ENABLED;
}

/// Adds the column's values in some blocks of a table, evenly spread, to the points, or where they
/// have them their boxes. Values of other shape are left out.
void sample_table(Oid table, const Var* column, PointKind kind, PointBuffer* points,
                  PointShape* shape) {
  constexpr BlockNumber kBlocks = 32;
  constexpr std::uint64_t kMostValues = 256;
  const Relation relation = table_open(table, NoLock);  // the planner holds a lock
  if (relation->rd_tableam == GetHeapamTableAmRoutine()) {
    const BlockNumber all = RelationGetNumberOfBlocks(relation);
    const BlockNumber blocks = all < kBlocks ? all : kBlocks;
    TupleTableSlot* const slot = table_slot_create(relation, nullptr);
    for (BlockNumber i = 0; i < blocks; ++i) {
      const TableScanDesc scan =
          table_beginscan_strat(relation, GetActiveSnapshot(), 0, nullptr, true, false);
      heap_setscanlimits(scan, static_cast<BlockNumber>(std::uint64_t{all} * i / blocks), 1);
      const std::uint64_t most = kMostValues * (i + 1) / blocks;
      while (points->rows < most && table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        bool is_null;
        const Datum value = slot_getattr(slot, column->varattno, &is_null);
        if (is_null) continue;
        if (has_boxes(kind))
          add_box(points, shape, kind, i, value);
        else
          add_value(points, shape, kind, i, value);
      }
      table_endscan(scan);
    }
    ExecDropSingleTupleTableSlot(slot);
  }
  table_close(relation, NoLock);
}

PointBuffer sample_values(PlannerInfo* root, const SimilarityClause& clause, const Expr* value,
                          PointShape* shape) {
  const Node* const column = reinterpret_cast<const Node*>(value);
  PointBuffer points = {};
  if (!is_readable(root, column)) return points;
  points.context = CurrentMemoryContext;
  points.source = "a sample";
  points.limit = MaxAllocSize;
  points.scalar = scalar_of(clause.test.kind);
  sample_table(table_of(root, column), reinterpret_cast<const Var*>(value), clause.test.kind,
               &points, shape);
  return points;
}

template <class T>
bool are_near(const PointBuffer& left, std::uint64_t a, const PointBuffer& right, std::uint64_t b,
              const BoxTest& test, bool boxes) {
  const std::uint32_t dims = left.dims;
  const T* const one = reinterpret_cast<const T*>(left.coordinates) + a * dims;
  const T* const other = reinterpret_cast<const T*>(right.coordinates) + b * dims;
  if (boxes)
    return is_box(one, dims / 2) && is_box(other, dims / 2) && passes(test, one, other, dims / 2);
  return gpujoin::raw_distance(test.metric, one, other, dims) <= test.threshold;
}

/// The share of pairs within eps among values of both tables; negative when they cannot be read. In
/// one table rows that lie next to each other are often near each other, so they are not compared.
double looked_up_share(PlannerInfo* root, const SimilarityClause& clause, double eps) {
  PointShape shape = {};
  PointBuffer left = sample_values(root, clause, clause.left, &shape);
  const PointBuffer right = sample_values(root, clause, clause.right, &shape);
  const bool boxes = has_boxes(clause.test.kind);
  if (boxes) widen_boxes(&left, shape.dims);
  if (left.rows == 0 || right.rows == 0) return -1;
  const EpsBand band = eps_band(clause.test, eps, shape.dims);
  if (!band.engine_serves || band.none) return -1;
  const BoxTest test = make_box_test(clause.test.metric, band.select);
  const auto near = left.scalar == ScalarType::kFloat32 ? are_near<float> : are_near<double>;
  const bool same_table = table_of(root, reinterpret_cast<const Node*>(clause.left)) ==
                          table_of(root, reinterpret_cast<const Node*>(clause.right));
  double matches = 0, pairs = 0;
  for (std::uint64_t a = 0; a < left.rows; ++a) {
    for (std::uint64_t b = 0; b < right.rows; ++b) {
      if (same_table && left.ids[a] == right.ids[b]) continue;
      ++pairs;
      if (near(left, a, right, b, test, boxes)) ++matches;
    }
  }
  return pairs > 0 ? fmax(matches, 0.5) / pairs : -1;
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
double coordinates_of(PlannerInfo* root, const Expr* value, PointKind kind) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  const auto elements = [&](double head, double size) {
    const std::int32_t dims = exprTypmod(node);
    return dims > 0 ? dims : fmax(1, (stored_width(root, node) - head) / size);
  };
  constexpr double kPairOfWords = 2 * sizeof(std::int32_t);
  switch (kind) {
    case PointKind::kFloat4Array:
    case PointKind::kFloat8Array:
      if (IsA(value, ArrayExpr))
        return list_length(reinterpret_cast<const ArrayExpr*>(value)->elements);
      return elements(ARR_OVERHEAD_NONULLS(1), scalar_bytes(scalar_of(kind)));
    case PointKind::kVector:
    case PointKind::kVectorDirection:
      return elements(kPairOfWords, sizeof(float));
    case PointKind::kHalfvec:
    case PointKind::kHalfvecDirection:
      return elements(kPairOfWords, sizeof(std::uint16_t));
    case PointKind::kCube:
      return elements(kPairOfWords, sizeof(double));
    case PointKind::kBox:
    case PointKind::kGeometry:
      return 4;
    case PointKind::kPoint:
      return 2;
  }
  pg_unreachable();
}

double bytes_of(PlannerInfo* root, const Path* input, const Expr* value, PointKind kind) {
  return input->rows *
         (coordinates_of(root, value, kind) * scalar_bytes(scalar_of(kind)) + sizeof(std::int64_t));
}

}  // namespace

bool fits_in_memory(PlannerInfo* root, const Path* left, const Path* right,
                    const SimilarityClause& clause) {
  const PointKind kind = clause.test.kind;
  const double bytes =
      bytes_of(root, left, clause.left, kind) + bytes_of(root, right, clause.right, kind);
  return 2 * bytes <= static_cast<double>(host_memory_limit_bytes());
}

JoinSelectivities estimate_selectivity(PlannerInfo* root, const SimilarityClause& clause) {
  const Relids left = pull_varnos(root, reinterpret_cast<Node*>(clause.left));
  const Relids right = pull_varnos(root, reinterpret_cast<Node*>(clause.right));
  const double left_rows = rows_of(root, left), right_rows = rows_of(root, right);
  const double eps = known_eps(root, clause);
  double share = sampled_share(root, clause, eps);
  if (share < 0) share = looked_up_share(root, clause, eps);
  if (share < 0) share = kDefaultNeighbors / fmax(fmax(left_rows, right_rows), kDefaultNeighbors);
  Relids tested;
  JoinSelectivities result = {share, share};
  if (asks_for_existence(root, bms_union(left, right), &tested))
    result.outer = fmin(1, share * rows_of(root, tested));
  return result;
}

void set_join_cost(PlannerInfo* root, Path* path, const Path* left, const Path* right,
                   Selectivity share, JoinType type, List* conditions, bool asked) {
  const double pairs = clamp_row_est(left->rows * right->rows * share);
  QualCost filter;
  cost_qual_eval(&filter, conditions, root);
  const bool pairs_wanted = type == JOIN_INNER || type == JOIN_LEFT || asked;
  path->rows = path->parent->rows;
  path->startup_cost = kStartCost + left->total_cost + right->total_cost +
                       kRowCost * (left->rows + right->rows) + filter.startup +
                       path->pathtarget->cost.startup;
  path->total_cost =
      path->startup_cost + kCandidateCost * pairs + (pairs_wanted ? kPairCost * pairs : 0) +
      (asked ? filter.per_tuple * pairs : 0) + path->pathtarget->cost.per_tuple * path->rows;
}

void set_counting_cost(Path* path, const Path* input) {
  path->startup_cost = input->startup_cost + kCandidateCost * input->rows;
  path->total_cost = path->startup_cost + cpu_tuple_cost * path->rows;
}

}  // namespace gpujoin

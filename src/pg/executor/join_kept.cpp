// A join whose matches are counted, of tables that are read as they are: their rows may be in the
// service already. Whatever stands in the way, the join goes the ordinary way.
#include "pg/executor/join_node.h"
#include "pg/reading/kept_side.h"

extern "C" {
#include "access/relscan.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

/// The scan of a whole table that an input is, in parallel or not; null: it is something else.
const SeqScanState* bare_scan(const PlanState* input) {
  if (IsA(input, GatherState)) input = outerPlanState(input);
  if (!IsA(input, SeqScanState) || input->qual != nullptr) return nullptr;
  return reinterpret_cast<const SeqScanState*>(input);
}

/// The table's column that an input's rows have; InvalidAttrNumber: a value of another kind.
AttrNumber table_column(const PlanState* input, AttrNumber column) {
  const SeqScanState* const scan = bare_scan(input);
  if (scan == nullptr || column <= 0) return InvalidAttrNumber;
  const Plan* const plan = scan->ss.ps.plan;
  const List* const columns = IsA(input, GatherState) ? input->plan->targetlist : plan->targetlist;
  const Node* value =
      reinterpret_cast<const Node*>(list_nth_node(TargetEntry, columns, column - 1)->expr);
  if (!IsA(value, Var)) return InvalidAttrNumber;
  const Var* var = reinterpret_cast<const Var*>(value);
  if (var->varno == OUTER_VAR) {  // a Gather's, of the scan below it
    value = reinterpret_cast<const Node*>(
        list_nth_node(TargetEntry, plan->targetlist, var->varattno - 1)->expr);
    if (!IsA(value, Var)) return InvalidAttrNumber;
    var = reinterpret_cast<const Var*>(value);
  }
  return var->varattno > 0 ? var->varattno : InvalidAttrNumber;
}

/// The value's column and the key of a side's table. False: it is not one that can be kept.
bool find_side(const JoinNode* node, const Side& side, SideColumns* columns) {
  const AttrNumber value = table_column(side.plan, side.value);
  if (value == InvalidAttrNumber) return false;
  const Relation table = bare_scan(side.plan)->ss.ss_currentRelation;
  const Oid type = column_type(table, value);
  if (type != FLOAT4ARRAYOID && type != FLOAT8ARRAYOID) return false;
  const AttrNumber key = primary_key(table);
  if (key == InvalidAttrNumber) return false;
  *columns = {};
  columns->relation = RelationGetRelid(table);
  columns->shape = Shape::kPoints;
  columns->id = key;
  columns->id_type = column_type(table, key);
  columns->unique_id = is_unique(table, key);
  columns->value_type = node->data.test.type;
  columns->count = 1;
  columns->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber)));
  columns->attributes[0] = value;
  columns->types = static_cast<Oid*>(palloc(sizeof(Oid)));
  columns->types[0] = type;
  return true;
}

/// The selection of pairs that the condition on the keys' order makes, in *pairs. False: it
/// compares other columns than one table's primary key with itself.
bool find_pairs(const JoinNode* node, const SideColumns& left, const SideColumns& right,
                PairSelection* pairs) {
  *pairs = PairSelection::kAll;
  if (node->order == nullptr) return true;
  const OrderPlan& order = node->data.order;
  const AttrNumber* const attributes = node->data.attributes;
  *pairs =
      order.order == KeyOrder::kDifferent ? PairSelection::kDistinct : PairSelection::kUnordered;
  return left.unique_id && left.relation == right.relation &&
         left.attributes[0] == right.attributes[0] &&
         table_column(node->left.plan, attributes[order.left_column]) == left.id &&
         table_column(node->right.plan, attributes[order.right_column]) == right.id;
}

/// Whether nothing but the distance and the order of keys decides, and pairs are only counted.
bool is_plain_count(const JoinNode* node) {
  const JoinPlanExpressions& expressions = node->expressions;
  return node->early == nullptr && node->late == nullptr && node->where == nullptr &&
         expressions.left_operand == nullptr && expressions.right_operand == nullptr &&
         node->data.test.by->compared == ValueForm::kPoint && is_exact(node->data.test) &&
         !node->data.eps_may_raise;
}

/// The radius up to which the engine decides as the condition does; -1: there is none.
double plain_radius(JoinNode* node, std::uint32_t dims) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  bool is_null;
  const Datum value = ExecEvalExprSwitchContext(node->eps, expressions, &is_null);
  if (is_null) return -1;
  const EpsBand band = eps_band(node->data.test, DatumGetFloat8(value), dims);
  ResetExprContext(expressions);
  const bool plain = band.engine_serves && !band.none && band.accept == band.select;
  return plain ? band.select : -1;
}

/// EngineRun::read_whole: the join goes the ordinary way.
bool give_up(EngineRun*) { return false; }

/// Tables whose rows are read by a node may not hold any that functions refuse.
bool read_side(JoinNode* node, std::uint32_t number, const SideColumns& columns, KeptSide* kept) {
  Side& side = number == 0 ? node->left : node->right;
  side.buffer = {};
  side.buffer.context = node->rows;
  side.buffer.limit = dataset_share(node->run, 2);
  side.buffer.spill = &node->run->spill;
  side.buffer.scalar = scalar_of(columns);
  side.buffer.shares = true;
  ValueShape shape = {};
  if (!read_kept_side(&node->run->service, number, columns, TableReader::kNode, &side.buffer,
                      &shape, kept))
    return false;
  side.points = {nullptr, nullptr, kept->rows, kept->dims, side.buffer.scalar};
  share_side(node->run, static_cast<int>(number), side.buffer.shared, *kept, give_up);
  return true;
}

/// Reads both sides. False where one of them cannot be kept.
bool read_sides(JoinNode* node, const SideColumns& left, const SideColumns& right, bool self_join,
                KeptSide* kept) {
  forget_sides(node->run);
  if (!read_side(node, 0, left, &kept[0])) return false;
  if (self_join) return true;
  return read_side(node, 1, right, &kept[1]) && node->left.points.dims == node->right.points.dims;
}

/// Joins what was read. False: the service could not.
bool count_pairs(JoinNode* node, const Sides& sides, double eps) {
  begin_join(node->run);
  set_request(node->run, {sides, PointsWithin{node->data.test.by->metric, eps}, Output::total()});
  start_engine(node->run);
  while (next_engine_batch(node->run)) node->total += node->run->batch.pair_count;
  return !node->run->exhausted;
}

bool count_tables(JoinNode* node, const SideColumns& left, const SideColumns& right,
                  PairSelection pairs) {
  const bool self_join = same_columns(left, right);
  if (!self_join && scalar_of(left) != scalar_of(right)) return false;
  const double rows = expected_rows(left) + (self_join ? 0 : expected_rows(right));
  if (!begin_service_join(node->run, rows)) return false;
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  KeptSide kept[2] = {};
  if (!read_sides(node, left, right, self_join, kept)) return false;
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  node->run->report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  node->run->report.dims = node->left.points.dims;
  const Dataset &a = node->left.points, &b = node->right.points;
  if (a.rows == 0 || (!self_join && b.rows == 0)) return true;
  const double eps = plain_radius(node, a.dims);
  if (eps < 0) return false;
  return count_pairs(node, self_join ? Sides::one(a, pairs) : Sides::two(a, b), eps);
}

}  // namespace

bool count_in_service(JoinNode* node) {
  SideColumns left, right;
  PairSelection pairs;
  if (!is_plain_count(node) || node->css.ss.ps.state->es_snapshot != GetActiveSnapshot())
    return false;
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  const bool counted = find_side(node, node->left, &left) && find_side(node, node->right, &right) &&
                       find_pairs(node, left, right, &pairs) &&
                       count_tables(node, left, right, pairs);
  MemoryContextSwitchTo(caller);
  node->step = Step::kDone;
  node->looping = false;
  return counted;
}

}  // namespace gpujoin

// An input that is a scan of a large table, with conditions or without: its compared values are
// read block by block, by parallel workers, too, and its rows are known by their ctids. Other
// columns are fetched when pairs need them, or all read after all (join_kept.cpp).
#include "pg/executor/join_blocks.h"

#include "pg/executor/input_scan.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_kept.h"
#include "pg/reading/block_rows.h"
#include "pg/reading/resident_table.h"

extern "C" {
#include "executor/instrument.h"
#include "optimizer/paths.h"
}

namespace gpujoin {
namespace {

/// Whether a side has only the compared value to give.
bool has_value_alone(const Side& side) {
  const AttrNumber* const tested = side.tested.rows->attributes;
  return side.shown.count == 0 && std::all_of(tested, tested + side.tested.count,
                                              [&](AttrNumber a) { return a == side.value; });
}

/// Whether a side's rows are wanted for pairs alone, and their values as the table has them.
bool serves_pairs_alone(const JoinNode* node, const Side& side) {
  const bool left = &side == &node->left;
  const bool numbers_rows =
      left ? node->data.join_type != JOIN_INNER || node->data.grouped || node->sums != nullptr
           : node->sums != nullptr && !has_value_alone(side);
  return !numbers_rows && !node->data.test.of_null && node->nearest == nullptr &&
         node->pairs.keys == nullptr && node->top == nullptr && node->conditions.order == nullptr &&
         !node->data.eps_may_raise && side.operand.state == nullptr && side.scores.value == 0 &&
         side.radii.value == 0;
}

/// Whether whoever reads blocks can evaluate the scan's conditions.
bool can_share_filter(const SeqScanState* scan, ErrorTrap trap) {
  const Plan* const plan = scan->ss.ps.plan;
  return plan->qual == NIL ||
         (plan->parallel_safe && trap != ErrorTrap::kSubtransaction && can_be_shared(plan->qual));
}

/// Whether values of the form the node wants are alike in how many numbers they have.
bool has_even_form(const JoinNode* node) {
  return node->inputs.form != ValueForm::kBox || node->data.test.type->fixed_numbers > 0;
}

/// Whether the side is to be read so, with these columns.
bool serves_blocks(const JoinNode* node, const Side& side, SideColumns* columns) {
  const SeqScanState* const scan = table_scan(side.plan);
  if (scan == nullptr || !serves_pairs_alone(node, side) || !has_even_form(node) ||
      !may_read_tables(node->css.ss.ps.state))
    return false;
  const bool left = &side == &node->left;
  const Relation table = scan->ss.ss_currentRelation;
  return can_share_filter(scan, left ? node->data.left.filter : node->data.right.filter) &&
         find_table_side(side.plan, side.value, *node->data.test.type, node->inputs.form,
                         columns) &&
         can_read_blocks(table, *columns) &&
         RelationGetNumberOfBlocks(table) >=
             static_cast<BlockNumber>(min_parallel_table_scan_size) &&
         table_bytes(table) <= side.buffer.limit;
}

ScanFilter filter_of(const JoinNode* node, const Side& side) {
  const bool left = &side == &node->left;
  const ErrorTrap trap = left ? node->data.left.filter : node->data.right.filter;
  List* const conditions = table_scan(side.plan)->ss.ps.plan->qual;
  return {with_values_of(conditions, node->css.ss.ps.state->es_param_list_info),
          trap != ErrorTrap::kNone};
}

/// Reads the values. False where one of them is no point or box like the others, or where there is
/// too little memory.
bool read_values(JoinNode* node, Side* side, const SideColumns& columns, ValueShape* shape) {
  bool has_odd = false;
  RowCollector rows = {&columns,          &side->buffer, {},
                       node->inputs.form, &has_odd,      filter_of(node, *side)};
  rows.shape.demands = shape->demands;
  read_blocks(table_scan(side->plan)->ss.ss_currentRelation, &rows, {});
  const bool fits =
      shape->dims == 0 || (rows.shape.dims == shape->dims && rows.shape.srid == shape->srid);
  if (has_odd || is_spilled(side->buffer) || (side->buffer.rows > 0 && !fits)) return false;
  if (side->buffer.rows == 0) return true;
  rows.shape.has_approximate |= shape->has_approximate;
  *shape = rows.shape;
  return true;
}

/// Whether the side's values are those of the left one, which was read so, and no error of its
/// conditions was dropped there that this side would raise. Inner products change the points of
/// each side in another way.
bool is_like_left(const JoinNode* node, const Side& side, const SideColumns& columns) {
  const Side& left = node->left;
  const JoinPlanData& data = node->data;
  return &side != &left && left.late != nullptr && !is_product(data.test) &&
         (data.left.filter == ErrorTrap::kNone || data.left.filter == data.right.filter) &&
         are_alike(left.plan, side.plan) &&
         table_column(left.plan, left.value) == columns.attributes[0];
}

}  // namespace

bool read_side_blocks(JoinNode* node, Side* side, ValueShape* shape) {
  SideColumns columns;
  if (!serves_blocks(node, *side, &columns)) return false;
  const bool once = is_like_left(node, *side, columns);
  const PointBuffer& buffer = once ? node->left.buffer : side->buffer;
  Instrumentation* const instrument = side->plan->instrument;
  if (instrument != nullptr) InstrStartNode(instrument);
  const bool read = open_late(node, side) && (once || read_values(node, side, columns, shape));
  if (instrument != nullptr) InstrStopNode(instrument, read ? static_cast<double>(buffer.rows) : 0);
  if (!read) {
    close_late(node, side);
    forget_points(&side->buffer);
    return false;
  }
  side->points = {nullptr, nullptr, buffer.rows, buffer.dims, buffer.scalar};
  if (once) node->pairs.sides.compared = node->pairs.sides.same = true;
  return true;
}

void store_late_rows(JoinNode* node) {
  const MemoryContext caller = MemoryContextSwitchTo(node->rows);
  for (Side* const side : {&node->left, &node->right})
    if (side->late != nullptr) store_late(node, side);
  node->output.left_shown = kNoRow;
  MemoryContextSwitchTo(caller);
}

}  // namespace gpujoin

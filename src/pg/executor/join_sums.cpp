// Pairs that are added up. Rows of the node are groups of left rows, with the transition states of
// aggregates, which PostgreSQL's own combine and finish. The engine adds up the pairs of each left
// row: numbers of right rows, which are columns that are computed before the join, and arithmetic
// over both rows and the distance. What it finds of a left row is added to the row's group. Pairs
// that only the condition decides, and all pairs where the engine cannot have it right, are added
// here, one by one.
#include "pg/executor/join_sums.h"

#include "pg/executor/join_explain.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_work.h"
#include "pg/settings.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
constexpr std::uint64_t kRowsAtOnce = 64;

/// NULLs in the place of a side's row.
void show_no_row(JoinNode* node, const Side& side) {
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show_nothing(slot, side.shown);
  show_nothing(slot, side.tested);
  if (side.rebuilt >= 0) slot->tts_isnull[side.rebuilt] = true;
}

// ---- Groups

std::uint64_t add_group(JoinNode* node, std::uint64_t row) {
  SumWork* const work = node->sums;
  const std::uint64_t group = work->table.count++;
  reserve_next(work->context, &work->table.first_rows, group, &work->table.first_room);
  reserve_next(work->context, &work->table.pairs, group, &work->table.pair_room);
  while ((group + 1) * work->count > work->table.tally_room)
    reserve_next(work->context, &work->table.tallies, work->table.tally_room,
                 &work->table.tally_room);
  work->table.first_rows[group] = row;
  work->table.pairs[group] = 0;
  for (int i = 0; i < work->count; ++i)
    clear_tally(work->sums[i].plan, &work->table.tallies[group * work->count + i]);
  return group;
}

/// The group of a left row, which show_row() has shown.
std::uint64_t find_group(JoinNode* node, std::uint64_t row) {
  SumWork* const work = node->sums;
  if (work->table.of_row == nullptr) return 0;
  std::uint32_t& known = work->table.of_row[row];
  if (known != kUnknown) return known;
  const std::uint64_t group = group_of_row(work->groups, over_scan_tuple(node));
  if (group == work->table.count) add_group(node, row);
  return known = static_cast<std::uint32_t>(group);
}

bool is_group_known(const SumWork* work, std::uint64_t row) {
  return work->table.of_row == nullptr || work->table.of_row[row] != kUnknown;
}

/// Finds the groups of all rows, in their order, while the engine is at work.
void find_groups(JoinNode* node) {
  for (std::uint64_t row = 0; row < row_count(node, node->left); ++row) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node->asked);
    show_row(node, true, row, node->sums->shows_values_to_engine[true]);
    find_group(node, row);
  }
}

// ---- One pair at a time

/// Adds what the scan tuple shows, a pair or a left row that has none, to the row's group.
void add_shown(JoinNode* node, std::uint64_t left) {
  SumWork* const work = node->sums;
  const std::uint64_t group = find_group(node, left);
  ++work->table.pairs[group];
  ExprContext* const expressions = over_scan_tuple(node);
  for (int i = 0; i < work->count; ++i) {
    const Sum& sum = work->sums[i];
    Datum value = 0;
    if (!passes_filter(sum, expressions)) continue;
    Tally* const tally = &work->table.tallies[group * work->count + i];
    if (sum.met != nullptr)
      count_row(sum, tally, left);
    else if (has_argument(sum, expressions, &value))
      add_value(sum.plan, tally, value, 1);
  }
}

/// Adds the match that next_match() has shown.
void add_match(JoinNode* node) {
  const SumWork* const work = node->sums;
  MemoryContextReset(node->asked);
  show_row(node, true, node->output.last_left, work->shows_values[true]);
  show_row(node, false, node->output.last_right, work->shows_values[false]);
  add_shown(node, node->output.last_left);
}

/// Adds a row of a semi or anti join that next_joined_row() has shown.
void add_row(JoinNode* node) {
  MemoryContextReset(node->asked);
  show_row(node, true, node->output.last_left, node->sums->shows_values[true]);
  add_shown(node, node->output.last_left);
}

/// Adds the left rows without matches, of a left join.
void add_unmatched(JoinNode* node) {
  show_no_row(node, node->right);
  for (std::uint64_t row = 0; row < row_count(node, node->left); ++row) {
    CHECK_FOR_INTERRUPTS();
    if (node->output.matches[row] > 0) continue;
    MemoryContextReset(node->asked);
    show_row(node, true, row, node->sums->shows_values[true]);
    add_shown(node, row);
  }
  node->output.left_shown = kNoRow;
}

// ---- What the engine has added up

void clear_groups(JoinNode* node) {
  SumWork* const work = node->sums;
  MemoryContextReset(work->context);
  work->table.of_row = nullptr;
  work->table.first_rows = work->table.pairs = nullptr;
  work->table.tallies = nullptr;
  work->table.count = work->table.first_room = work->table.pair_room = work->table.tally_room = 0;
  work->table.emitted = 0;
  work->found = {};
  forget_sum_request(node);
  const bool grouped = work->groups != nullptr;
  work->table.row_room = row_count(node, node->left);
  if (grouped) {
    resize_array(work->context, &work->table.of_row, work->table.row_room);
    std::fill_n(work->table.of_row, work->table.row_room, kUnknown);
  }
  if (grouped) start_groups(work->groups, work->context);
  if (!grouped) add_group(node, kNoRow);
  for (int s = 0; s < work->count; ++s)
    if (work->sums[s].plan.state == SumState::kRows)
      work->sums[s].met = allocate_rows<bool>(work, row_count(node, node->left));
  if (node->output.matches != nullptr)
    std::fill_n(node->output.matches, row_count(node, node->left), 0);
}

/// Adds some rows of a batch to the groups; false where one of them is not right. They lie all over
/// the left side, so that their columns are fetched before they are read.
bool take_rows(JoinNode* node, const ResultBatch& batch, std::uint64_t first, std::uint64_t count) {
  SumWork* const work = node->sums;
  const std::uint32_t width = row_words(work->asked);
  std::uint64_t rows[kRowsAtOnce];
  for (std::uint64_t i = 0; i < count; ++i) {
    rows[i] = row_of(node, node->left, batch.left_ids[batch.rows[first + i]]);
    if (work->needs_left) {
      expect_row(node->left.shown.rows, rows[i]);
      expect_row(node->left.tested.rows, rows[i]);
    }
    if (work->table.of_row != nullptr) __builtin_prefetch(work->table.of_row + rows[i]);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t pairs = batch.counts[first + i], row = rows[i];
    if (pairs == 0) continue;
    const FoldWord* const words =
        batch.sums != nullptr ? batch.sums + (first + i) * width : nullptr;
    if (!are_right(work, words, work->left_fails != nullptr && work->left_fails[row])) return false;
    if (work->needs_left || !is_group_known(work, row)) {
      MemoryContextReset(node->asked);
      show_row(node, true, row, work->shows_values_to_engine[true]);
    }
    const std::uint64_t group = find_group(node, row);
    work->table.pairs[group] += pairs;
    if (node->output.matches != nullptr) node->output.matches[row] += pairs;
    ExprContext* const expressions = over_scan_tuple(node);
    for (int s = 0; s < work->count; ++s)
      if (!add_words(work->sums[s], &work->table.tallies[group * work->count + s], row,
                     static_cast<std::int64_t>(pairs), words, expressions))
        return false;
  }
  return true;
}

/// Adds what was found of a group; false where it is not right.
bool take_group(JoinNode* node, std::uint64_t group, std::uint64_t pairs, const FoldWord* words) {
  SumWork* const work = node->sums;
  if (!are_right(work, words, false)) return false;
  work->table.pairs[group] += pairs;
  for (int s = 0; s < work->count; ++s)
    if (!add_words(work->sums[s], &work->table.tallies[group * work->count + s], kNoRow,
                   static_cast<std::int64_t>(pairs), words, over_scan_tuple(node)))
      return false;
  return true;
}

/// Adds what was found of the groups so far, and forgets it.
bool take_found(JoinNode* node) {
  GroupSums& found = node->sums->found;
  const std::uint64_t width = row_words(node->sums->asked);
  bool right = true;
  for (std::uint64_t group = 0; right && group < found.groups; ++group)
    right = found.counts[group] == 0 ||
            take_group(node, group, found.counts[group],
                       found.sums != nullptr ? found.words + group * width : nullptr);
  clear_groups(&found);
  return right;
}

/// Adds a batch whose left rows are wanted by their groups alone.
bool take_by_groups(JoinNode* node, const ResultBatch& batch) {
  SumWork* const work = node->sums;
  bool right = true;
  if (!gives_groups(node->pairs.run)) {
    for (std::uint64_t row = 0; right && row < batch.row_count;) {
      row = add_rows(batch, row, &work->found);
      if (row < batch.row_count) right = take_found(node);
    }
    return right;
  }
  const std::uint64_t width = batch.sums != nullptr ? row_words(work->asked) : 0;
  for (std::uint64_t i = 0; right && i < batch.row_count; ++i)
    right = take_group(node, batch.rows[i], batch.counts[i],
                       width > 0 ? batch.sums + i * width : nullptr);
  return right;
}

bool take_batch(JoinNode* node, const ResultBatch& batch) {
  if (node->sums->found.groups > 0) return take_by_groups(node, batch);
  for (std::uint64_t first = 0; first < batch.row_count; first += kRowsAtOnce) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t count = std::min(kRowsAtOnce, batch.row_count - first);
    if (!take_rows(node, batch, first, count)) return false;
  }
  return true;
}

// ---- States

/// The function that makes the result of a state; null: there is none.
FmgrInfo* find_finish(const Aggref* aggregate) {
  const HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate->aggfnoid));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "an aggregate of a similarity join is missing");
  const Oid function = reinterpret_cast<Form_pg_aggregate>(GETSTRUCT(tuple))->aggfinalfn;
  ReleaseSysCache(tuple);
  if (!OidIsValid(function)) return nullptr;
  FmgrInfo* const found = static_cast<FmgrInfo*>(palloc(sizeof(FmgrInfo)));
  fmgr_info(function, found);
  return found;
}

/// The result of a state that is not NULL.
Datum finish(const Sum& sum, Datum state, bool* is_null) {
  LOCAL_FCINFO(call, 1);
  InitFunctionCallInfoData(*call, sum.finish, 1, InvalidOid, nullptr, nullptr);
  call->args[0] = {state, false};
  const Datum result = FunctionCallInvoke(call);
  *is_null = call->isnull;
  return result;
}

/// Finds the functions, in the order of the columns.
void find_finishes(JoinNode* node) {
  const List* const columns = castNode(CustomScan, node->css.ss.ps.plan)->custom_scan_tlist;
  for (int column = 0, s = 0; column < node->data.columns.count; ++column)
    if (node->data.columns.attributes[column] == 0)
      node->sums->sums[s++].finish =
          find_finish(castNode(Aggref, list_nth_node(TargetEntry, columns, column)->expr));
}

/// Puts a group and its states into the scan tuple.
void show_group(JoinNode* node, std::uint64_t group) {
  SumWork* const work = node->sums;
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  ExecClearTuple(slot);
  MemoryContextReset(node->asked);
  if (work->table.first_rows[group] != kNoRow)
    show(slot, node->left.shown, work->table.first_rows[group]);
  else
    show_nothing(slot, node->left.shown);
  show_nothing(slot, node->right.shown);
  node->output.left_shown = kNoRow;
  const MemoryContext caller = MemoryContextSwitchTo(node->asked);
  for (int column = 0, s = 0; column < node->data.columns.count; ++column) {
    if (node->data.columns.attributes[column] != 0) continue;
    const Sum& sum = work->sums[s];
    Datum& value = slot->tts_values[column];
    value = state_of(sum.plan, work->table.tallies[group * work->count + s++],
                     &slot->tts_isnull[column]);
    if (sum.finish != nullptr && !slot->tts_isnull[column])
      value = finish(sum, value, &slot->tts_isnull[column]);
  }
  MemoryContextSwitchTo(caller);
}

Bitmapset* columns_of(void* expression) {
  Bitmapset* used = nullptr;
  pull_varattnos(static_cast<Node*>(expression), INDEX_VAR, &used);
  return used;
}

}  // namespace

void show_row(JoinNode* node, bool left, std::uint64_t row, bool value) {
  Side& side = left ? node->left : node->right;
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  show(slot, side.shown, row);
  if (value)
    show_tested(node, &side, row);
  else
    show(slot, side.tested, row);
}

ExprContext* over_scan_tuple(JoinNode* node) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple =
      ExecStoreVirtualTuple(ExecClearTuple(node->css.ss.ss_ScanTupleSlot));
  return expressions;
}

bool passes_filter(const Sum& sum, ExprContext* expressions) {
  if (sum.filter == nullptr) return true;
  bool is_null;
  const Datum passes = ExecEvalExprSwitchContext(sum.filter, expressions, &is_null);
  return !is_null && DatumGetBool(passes);
}

bool take_leaf(const Sum& sum, int leaf, ExprContext* expressions, std::int64_t* number,
               bool* is_null) {
  const Datum value = ExecEvalExprSwitchContext(sum.leaves[leaf], expressions, is_null);
  *number = 0;
  return *is_null ||
         take_integer(sum.plan.leaf_types[leaf], sum.plan.leaf_scales[leaf], value, number);
}

bool has_argument(const Sum& sum, ExprContext* expressions, Datum* value) {
  if (sum.argument == nullptr) return true;
  bool is_null;
  *value = ExecEvalExprSwitchContext(sum.argument, expressions, &is_null);
  return !is_null;
}

void note_group(JoinNode* node, std::uint64_t row, const TupleTableSlot* slot) {
  SumWork* const work = node->sums;
  if (work->groups == nullptr) return;
  RowStore* const firsts = node->left.shown.rows;
  const std::uint64_t group = group_of_row(work->groups, over_scan_tuple(node));
  if (group == work->table.count) {
    add_group(node, firsts->rows);
    store_row(firsts, slot->tts_values, slot->tts_isnull);
  }
  reserve_next(work->context, &work->table.of_row, row, &work->table.row_room);
  work->table.of_row[row] = static_cast<std::uint32_t>(group);
}

void begin_sums(JoinNode* node) {
  SumWork* const work = static_cast<SumWork*>(palloc0(sizeof(SumWork)));
  PlanState* const parent = &node->css.ss.ps;
  node->sums = work;
  work->count = node->data.groups.sum_count;
  work->sums = static_cast<Sum*>(palloc0(sizeof(Sum) * work->count));
  for (int s = 0; s < work->count; ++s) {
    Sum& sum = work->sums[s];
    sum.plan = node->data.groups.sums[s];
    sum.expressions = decode_sum(list_nth_node(List, node->expressions.sums, s));
    sum.argument = ExecInitExpr(sum.expressions.argument, parent);
    sum.filter = ExecInitExpr(sum.expressions.filter, parent);
    work->needs_left = work->needs_left || sum.plan.of == SumOf::kLeft ||
                       sum.plan.filter == SumOf::kLeft || combines(sum);
    sum.leaves = static_cast<ExprState**>(palloc(sizeof(ExprState*) * (sum.plan.leaf_count + 1)));
    for (int l = 0; l < sum.plan.leaf_count; ++l)
      sum.leaves[l] = ExecInitExpr(static_cast<Expr*>(list_nth(sum.expressions.leaves, l)), parent);
  }
  if (node->data.groups.finishes) find_finishes(node);
  if (node->data.groups.columns > 0)
    work->groups = begin_groups(parent, node->expressions.groups, node->data.groups.operators,
                                node->data.groups.collations);
}

void clear_sums(JoinNode* node) {
  SumWork* const work = node->sums;
  if (work->context == nullptr)
    work->context = AllocSetContextCreate(node->rows, "gpujoin sums", ALLOCSET_DEFAULT_SIZES);
  Bitmapset *all = columns_of(node->expressions.groups), *told = bms_copy(all);
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    all = bms_add_members(all, columns_of(list_nth(node->expressions.sums, s)));
    told = bms_add_members(told, columns_of(sum.expressions.leaves));
    told = bms_add_members(told, columns_of(sum.expressions.filter));
    if (sum.plan.of != SumOf::kPair)
      told = bms_add_members(told, columns_of(sum.expressions.argument));
  }
  for (const bool left : {true, false}) {
    const int column = left ? node->left.rebuilt : node->right.rebuilt;
    const int member = column + 1 - FirstLowInvalidHeapAttributeNumber;
    work->shows_values[left] = column >= 0 && bms_is_member(member, all);
    work->shows_values_to_engine[left] = column >= 0 && bms_is_member(member, told);
  }
  work->problem = nullptr;
  clear_groups(node);
}

void start_sums(JoinNode* node) {
  if (!comes_from(node, RowSource::kSummed)) clear_sums(node);
  start_join(node);
}

void forget_sums(JoinNode* node) {
  node->sums->context = nullptr;
  node->sums->told_bytes = 0;
}

Mode mode_of_sums(const JoinNode* node) {
  if (!shows_right(node) || !decides_pairs(node)) return mode_of_rows(node);
  const bool on_device_only = engine_preference() == EnginePreference::kCuda &&
                              node->data.test.by->metric == Metric::kCosine;
  const bool serves =
      node->sums->problem == nullptr && node->inputs.form != ValueForm::kBox && !on_device_only &&
      !(node->pairs.order_by_engine && node->data.order.order == KeyOrder::kGreater);
  return serves ? Mode::kSums : Mode::kPairs;
}

Output wanted_sums(JoinNode* node) {
  const SumWork* const work = node->sums;
  if (work->asked.measures > 0) return Output::sums(&work->asked);
  return work->count > 0 ? Output::count_per_row() : Output::matched_rows();
}

bool prepare_sums(JoinNode* node) {
  if (comes_from(node, RowSource::kSummed)) return true;
  make_sum_request(node);
  if (node->sums->problem != nullptr) forget_sum_request(node);
  return node->sums->problem == nullptr;
}

void group_sums(JoinNode* node) {
  constexpr std::uint64_t kFewestRows = 16;  // of a group; with fewer there is little to save
  SumWork* const work = node->sums;
  const std::uint64_t groups = work->table.count;
  const auto needs_rows = [](const Sum& sum) {
    return sum.plan.state == SumState::kFloatDeviation;  // the more pairs, the less exact
  };
  work->found = {};
  if (!comes_from(node, RowSource::kSummed) || node->output.matches != nullptr ||
      groups > kMostSumGroups || groups * kFewestRows > node->left.points.rows ||
      std::any_of(work->sums, work->sums + work->count, needs_rows))
    return;
  const bool counts = work->asked.measures == 0;
  work->found = {counts ? nullptr : &work->asked, work->table.of_row, groups, 0, nullptr, nullptr};
  work->found.counts = allocate_rows<std::uint64_t>(work, groups);
  if (!counts) work->found.words = allocate_rows<FoldWord>(work, groups * row_words(work->asked));
  clear_groups(&work->found);
  node->pairs.run->groups = {work->table.of_row, groups};
}

bool take_sums(JoinNode* node) {
  SumWork* const work = node->sums;
  const bool knows_groups = work->groups == nullptr || comes_from(node, RowSource::kSummed);
  if (!knows_groups && !node->data.groups.may_raise) find_groups(node);
  bool right = true;
  while (right && next_engine_batch(node->pairs.run)) {
    right = take_batch(node, node->pairs.run->batch);
    if (right) node->output.total += node->pairs.run->batch.pair_count;
  }
  if (right && !node->pairs.run->exhausted) right = take_found(node);
  if (right && !node->pairs.run->exhausted) {
    forget_sum_request(node);
    return true;
  }
  if (!right) restart_run(node->pairs.run);
  work->problem = right ? "the sums do not fit in gpujoin.host_memory_limit"
                        : "some values are special, out of range, or raise errors";
  if (comes_from(node, RowSource::kSummed))
    node->pairs.run->exhausted = true;
  else
    clear_groups(node);
  return false;
}

bool is_group_complete(const JoinNode* node, std::uint64_t left) {
  const SumWork* const work = node->sums;
  if (work == nullptr || work->count > 0 || node->pairs.mode == Mode::kSums) return false;
  return is_group_known(work, left) && work->table.pairs[work->table.of_row[left]] > 0;
}

void explain_sums(const JoinNode* node, const Words& words, ExplainState* es) {
  if (node->data.groups.sum_count == 0) {
    explain_conditions("Groups", node->expressions.groups, words, es);
  } else {
    const CustomScan* const plan = castNode(CustomScan, node->css.ss.ps.plan);
    List* sums = NIL;
    for (int i = 0; i < node->data.columns.count; ++i)
      if (node->data.columns.attributes[i] == 0)
        sums = lappend(sums, words(list_nth_node(TargetEntry, plan->custom_scan_tlist, i)->expr));
    ExplainPropertyList("Added Up", sums, es);
  }
  if (node->sums->problem != nullptr) ExplainPropertyText("Sums Fallback", node->sums->problem, es);
}

bool next_group(JoinNode* node) {
  SumWork* const work = node->sums;
  if (!shows_right(node)) {
    while (next_joined_row(node)) add_row(node);
  } else if (!node->output.draining) {
    while (next_match(node)) add_match(node);
    if (emits_unmatched(node)) add_unmatched(node);
    node->output.draining = true;
  }
  const bool always = work->table.of_row == nullptr;
  while (work->table.emitted < work->table.count) {
    const std::uint64_t group = work->table.emitted++;
    if (!always && work->table.pairs[group] == 0) continue;
    show_group(node, group);
    return true;
  }
  return false;
}

}  // namespace gpujoin

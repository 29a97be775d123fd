#include "pg/executor/row_groups.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr int kKnownBits = 10;
constexpr std::size_t kKnownGroups = std::size_t{1} << kKnownBits;

/// Where the group of a value is known, or will be.
KnownGroup* place_of(RowGroups* groups, Datum value) {
  const std::uint64_t mixed = static_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15;
  return groups->known + (mixed >> (64 - kKnownBits));
}

}  // namespace

RowGroups* begin_groups(PlanState* parent, List* expressions, const Oid* operators,
                        const Oid* collations) {
  RowGroups* const groups = static_cast<RowGroups*>(palloc0(sizeof(RowGroups)));
  groups->columns = list_length(expressions);
  groups->parent = parent;
  groups->expressions = ExecInitExprList(expressions, parent);
  groups->collations = const_cast<Oid*>(collations);
  groups->slot = MakeSingleTupleTableSlot(ExecTypeFromExprList(expressions), &TTSOpsVirtual);
  if (groups->columns == 1 && TupleDescAttr(groups->slot->tts_tupleDescriptor, 0)->attbyval)
    groups->known = static_cast<KnownGroup*>(palloc(sizeof(KnownGroup) * kKnownGroups));
  execTuplesHashPrepare(groups->columns, operators, &groups->equality, &groups->hashing);
  return groups;
}

void start_groups(RowGroups* groups, MemoryContext context) {
  constexpr int kFewGroups = 256;  // the table grows
  AttrNumber* const columns =
      static_cast<AttrNumber*>(MemoryContextAlloc(context, sizeof(AttrNumber) * groups->columns));
  for (int i = 0; i < groups->columns; ++i) columns[i] = static_cast<AttrNumber>(i + 1);
  groups->count = 0;
  if (groups->known != nullptr) memset(groups->known, 0, sizeof(KnownGroup) * kKnownGroups);
  groups->table =
      build_group_table(groups->parent, groups->slot, groups->columns, columns, groups->equality,
                        groups->hashing, groups->collations, kFewGroups, context,
                        groups->parent->ps_ExprContext->ecxt_per_tuple_memory);
}

std::uint64_t group_of_row(RowGroups* groups, ExprContext* row) {
  const MemoryContext caller = MemoryContextSwitchTo(row->ecxt_per_tuple_memory);
  TupleTableSlot* const slot = ExecClearTuple(groups->slot);
  ListCell* cell;
  foreach (cell, groups->expressions) {
    const int i = foreach_current_index(cell);
    slot->tts_values[i] =
        ExecEvalExpr(static_cast<ExprState*>(lfirst(cell)), row, &slot->tts_isnull[i]);
  }
  KnownGroup* known = nullptr;
  if (groups->known != nullptr && !slot->tts_isnull[0]) {
    known = place_of(groups, slot->tts_values[0]);
    if (known->numbered != 0 && known->value == slot->tts_values[0]) {
      MemoryContextSwitchTo(caller);
      return known->numbered - 1;
    }
  }
  ExecStoreVirtualTuple(slot);
  bool is_new;
  const TupleHashEntry entry = LookupTupleHashEntry(groups->table, slot, &is_new, nullptr);
  std::uint64_t* const number = number_of_entry(groups->table, entry);
  if (is_new) *number = groups->count++;
  if (known != nullptr) *known = {slot->tts_values[0], *number + 1};
  MemoryContextSwitchTo(caller);
  return *number;
}

}  // namespace gpujoin

#include "pg/executor/row_groups.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {

RowGroups* begin_groups(PlanState* parent, List* expressions, const Oid* operators,
                        const Oid* collations) {
  RowGroups* const groups = static_cast<RowGroups*>(palloc0(sizeof(RowGroups)));
  groups->columns = list_length(expressions);
  groups->parent = parent;
  groups->expressions = ExecInitExprList(expressions, parent);
  groups->collations = const_cast<Oid*>(collations);
  groups->slot = MakeSingleTupleTableSlot(ExecTypeFromExprList(expressions), &TTSOpsVirtual);
  execTuplesHashPrepare(groups->columns, operators, &groups->equality, &groups->hashing);
  return groups;
}

void start_groups(RowGroups* groups, MemoryContext context) {
  constexpr int kFewGroups = 256;  // the table grows
  AttrNumber* const columns =
      static_cast<AttrNumber*>(MemoryContextAlloc(context, sizeof(AttrNumber) * groups->columns));
  for (int i = 0; i < groups->columns; ++i) columns[i] = static_cast<AttrNumber>(i + 1);
  groups->count = 0;
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
  ExecStoreVirtualTuple(slot);
  bool is_new;
  const TupleHashEntry entry = LookupTupleHashEntry(groups->table, slot, &is_new, nullptr);
  std::uint64_t* const number = number_of_entry(groups->table, entry);
  if (is_new) *number = groups->count++;
  MemoryContextSwitchTo(caller);
  return *number;
}

}  // namespace gpujoin

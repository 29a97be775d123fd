#include "pg/reading/block_rows.h"

#include "pg/reading/parallel_blocks.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

namespace gpujoin {
namespace {

/// The reader looks after this many blocks whether a row has made all rows useless.
constexpr BlockNumber kBlocksAtOnce = 64;

/// Returns true if rows that are kept need not be read again: they are known by their ctids, and no
/// row is left out.
bool leaves_same(const RowCollector& rows) {
  return rows.columns->id == SelfItemPointerAttributeNumber && rows.filter.conditions == NIL;
}

}  // namespace

BlockColumns make_block_columns(const SideColumns& side) {
  const int most = side.count + 3;
  BlockColumns columns = {0,
                          0,
                          static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * most)),
                          static_cast<Oid*>(palloc(sizeof(Oid) * most)),
                          static_cast<Datum*>(palloc(sizeof(Datum) * most)),
                          static_cast<bool*>(palloc(sizeof(bool) * most))};
  for_each_column(side, [&](AttrNumber attribute, Oid type) {
    columns.last = std::max(columns.last, attribute);
    columns.attributes[columns.count] = attribute;
    columns.types[columns.count++] = type;
  });
  return columns;
}

void collect_slot(const BlockColumns& columns, TupleTableSlot* slot, RowCollector* rows) {
  for (int i = 0; i < columns.count; ++i) {
    const int at = columns.attributes[i] - 1;
    if (columns.attributes[i] == SelfItemPointerAttributeNumber) {
      columns.nulls[i] = false;
      columns.values[i] = Int64GetDatum(itemptr_encode(&slot->tts_tid));
      continue;
    }
    columns.nulls[i] = slot->tts_isnull[at];
    columns.values[i] = slot->tts_values[at];
    if (columns.types[i] == NUMERICOID && !columns.nulls[i])
      columns.values[i] = DirectFunctionCall1(numeric_float8, columns.values[i]);
  }
  collect_row(rows, columns.values, columns.nulls);
}

BlocksRead read_blocks(Relation relation, RowCollector* rows, const KeptBlocks& kept) {
  const BlockColumns columns = make_block_columns(*rows->columns);
  const MemoryContext scratch = create_scratch();
  HeapBlocks heap = begin_blocks(relation, columns.last);
  heap.leaves_same = leaves_same(*rows);
  BlocksRead read = {};
  if (heap.leaves_same && kept.count > 0 && rows->columns->count == 1 && !rows->points->scored)
    read.moved = start_moved_rows(relation, rows->columns->attributes[0]);
  heap.notes_updates = read.moved != nullptr;
  read.blocks = heap.count;
  read.map = read_map(heap, kept);
  RowFilter* const filter = start_filter(rows->filter, false);
  const auto is_useless = [&] {
    return (rows->has_odd != nullptr && *rows->has_odd) ||
           (rows->is_full != nullptr && *rows->is_full);
  };
  for (BlockNumber at = read_in_parallel(heap, kept, rows, &read);
       at < heap.count && !is_useless();) {
    const BlockNumber end = at + std::min(kBlocksAtOnce, heap.count - at);
    read_block_range(
        heap, kept, read.map, at, end, *rows->points, scratch,
        [&](TupleTableSlot* slot) {
          if (passes(filter, slot, nullptr)) collect_slot(columns, slot, rows);
        },
        &read);
    at = end;
  }
  end_blocks(&heap);
  MemoryContextDelete(scratch);
  return read;
}

}  // namespace gpujoin

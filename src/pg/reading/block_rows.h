// The rows of a table's blocks: of those for which nothing proves that they are what is kept, in
// the order of a scan, by this process or by PostgreSQL's parallel workers with it.
#pragma once

#include "pg/reading/block_proof.h"
#include "pg/reading/moved_rows.h"
#include "pg/reading/relation.h"
#include "pg/reading/row_values.h"
#include "pg/store/huge_array.h"

namespace gpujoin {

/// Blocks that were read, in their order.
struct BlockPatches {
  service::BlockPatch* patches;  ///< [count] by block; their rows lie in the same order
  std::uint64_t count, room;
  MovedRows* moved;  ///< rows without their values; null if all values are to be read
};

inline std::uint64_t moved_rows(const BlockPatches& read) {
  return read.moved != nullptr ? read.moved->count : 0;
}

/// What came of reading a table. Everything is in the memory context of the reader.
struct BlocksRead : BlockPatches {
  std::uint64_t blocks;  ///< that the table has now
  MapReading map;
};

/// Reads those blocks from `first` up to `end` that `kept` and the map do not prove: row(slot) is
/// called for each tuple, with the columns up to last_column in the slot and `scratch`, which is
/// reset after each block, as the memory context, and adds rows to `points`, or not.
template <class Row>
void read_block_range(const HeapBlocks& heap, const KeptBlocks& kept, const MapReading& map,
                      BlockNumber first, BlockNumber end, const PointBuffer& points,
                      MemoryContext scratch, const Row& row, BlockPatches* read) {
  const MemoryContext context = CurrentMemoryContext;
  SeenTuples seen;
  for (BlockNumber block = next_unproven(map, first, end); block < end;
       block = next_unproven(map, block + 1, end)) {
    const service::BlockProof* const old = block < kept.count ? &kept.blocks[block] : nullptr;
    service::BlockPatch patch = {};
    if (!visit_block(heap, block, old, &seen, &patch.proof)) continue;
    const std::uint64_t before = points.rows, moved_before = moved_rows(*read);
    if (read->moved != nullptr) find_moved_rows(read->moved, heap, &seen);
    MemoryContextSwitchTo(scratch);
    read_tuples(heap, seen, row);
    MemoryContextSwitchTo(context);
    MemoryContextReset(scratch);
    patch.block = block;
    patch.same = seen.same;
    const auto rows = static_cast<std::uint32_t>(points.rows - before);
    const auto moved = static_cast<std::uint32_t>(moved_rows(*read) - moved_before);
    patch.proof.rows = rows + moved + patch.same.count();
    if (rows != static_cast<std::uint32_t>(seen.count)) patch.proof.horizon = 0;  // some are NULL
    patch.lasts = replaces(patch.proof, old);
    reserve_next(context, &read->patches, read->count, &read->room);
    read->patches[read->count++] = patch;
  }
}

inline MemoryContext create_scratch() {
  return AllocSetContextCreate(CurrentMemoryContext, "gpujoin rows of a block",
                               ALLOCSET_DEFAULT_SIZES);
}

/// Columns of a tuple as collect_row() takes them. A numeric becomes the float8 of its cast.
struct BlockColumns {
  int count;
  AttrNumber last;         ///< the greatest of them
  AttrNumber* attributes;  ///< [count]
  Oid* types;              ///< likewise
  Datum* values;           ///< likewise, of the row at hand
  bool* nulls;
};

BlockColumns make_block_columns(const SideColumns& side);

void collect_slot(const BlockColumns& columns, TupleTableSlot* slot, RowCollector* rows);

/// Reads the blocks of a relation that can_read_blocks() into `rows`, as read_points() would, but
/// for those that `kept` proves; without it, all. Parallel workers help where PostgreSQL's settings
/// have it so. Raises the same errors, but for privileges: those are the caller's to check. Ends
/// early where *rows->has_odd or *rows->is_full is set.
BlocksRead read_blocks(Relation relation, RowCollector* rows, const KeptBlocks& kept);

}  // namespace gpujoin

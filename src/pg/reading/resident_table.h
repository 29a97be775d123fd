// Tables whose rows may stay in gpujoin_service: what they are known by, and the rows of those of
// their blocks for which nothing proves that they are what is kept.
#pragma once

#include "pg/reading/block_proof.h"
#include "pg/reading/relation.h"
#include "pg/reading/row_values.h"
#include "pg/store/huge_array.h"

namespace gpujoin {

/// What came of reading a table. Everything is in the memory context of the reader.
struct BlocksRead {
  service::BlockPatch* patches;  ///< [count] by block; their rows lie in the same order
  std::uint64_t count, room;
  std::uint64_t blocks;  ///< that the table has now
  MapReading map;
};

/// Whether the columns of a relation can be read block by block: its rows are its own alone, and
/// all of them visible to the current user; values are stored, and become points or boxes without a
/// cast in SQL.
bool can_read_blocks(Relation relation, const SideColumns& columns);

/// Checks that the current user may select the columns, as a query does.
void check_block_columns(const SideColumns& columns);

/// Names the columns of a relation that can_read_blocks(), whose coordinates are kept as `scalar`.
/// False: they may be read so, but not stay.
bool name_table(Relation relation, const SideColumns& columns, ScalarType scalar,
                service::TableKey* key);

/// The columns that a key names, the id first, as name[]; those that are there no more are left
/// out.
Datum named_columns(const service::TableKey& key);

/// Reads the blocks that `kept` does not prove under the active snapshot: row(slot) is called for
/// each tuple, with the columns up to last_column in the slot and a context that the next block
/// resets, and adds rows to `points`, or not. For nodes; functions have read_blocks().
template <class Row>
BlocksRead read_unproven_blocks(Relation relation, AttrNumber last_column, const KeptBlocks& kept,
                                const PointBuffer& points, const Row& row) {
  const MemoryContext context = CurrentMemoryContext;
  const MemoryContext scratch =
      AllocSetContextCreate(context, "gpujoin rows of a block", ALLOCSET_DEFAULT_SIZES);
  HeapBlocks heap = begin_blocks(relation, last_column);
  BlocksRead read = {};
  read.blocks = heap.count;
  read.map = read_map(heap, kept);
  SeenTuples seen;
  for (BlockNumber block = next_unproven(heap, read.map, 0); block < heap.count;
       block = next_unproven(heap, read.map, block + 1)) {
    const service::BlockProof* const old = block < kept.count ? &kept.blocks[block] : nullptr;
    service::BlockPatch patch = {};
    if (!visit_block(heap, block, old, &seen, &patch.proof)) continue;
    const std::uint64_t before = points.rows;
    MemoryContextSwitchTo(scratch);
    read_tuples(heap, seen, row);
    MemoryContextSwitchTo(context);
    MemoryContextReset(scratch);
    patch.block = block;
    patch.proof.rows = static_cast<std::uint32_t>(points.rows - before);
    patch.lasts = replaces(patch.proof, old);
    reserve_next(context, &read.patches, read.count, &read.room);
    read.patches[read.count++] = patch;
  }
  end_blocks(&heap);
  MemoryContextDelete(scratch);
  return read;
}

/// Reads those blocks of a relation that can_read_blocks() into `rows`, as read_points() would:
/// without `kept`, all of them, in the order of a scan. Raises the same errors, but for privileges:
/// those are the caller's to check.
BlocksRead read_blocks(Relation relation, RowCollector* rows, const KeptBlocks& kept);

}  // namespace gpujoin

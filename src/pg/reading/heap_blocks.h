// A heap table read block by block, as heapam's own scans read it, and with each block what proves
// later that its rows are still the same. Why that is a proof stands in heap_blocks.cpp.
#pragma once

#include "pg/compat.h"
#include "service/protocol/messages.h"

extern "C" {
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpujoin {

/// What a table looked like when reading began: the same for all processes that read it together.
struct HeapExtent {
  BlockNumber count;       ///< blocks with rows that the snapshot may see
  std::uint64_t horizon;   ///< transactions before it, with epochs, are over for the snapshot
  FullTransactionId next;  ///< close to all transactions of unfrozen tuples
};

/// A table that is read under a snapshot. Plain data: an error may drop it.
struct HeapBlocks : HeapExtent {
  Relation relation;
  Snapshot snapshot;
  AttrNumber last_column;  ///< columns up to it are deformed
  TupleTableSlot* slot;
  BufferAccessStrategy strategy;
  bool checks_conflicts;  ///< of serializable transactions
  bool leaves_same;       ///< tuples that are kept are not read again
  bool notes_updates;     ///< SeenTuples::updated is wanted
};

/// A tuple that a transaction has updated, as the snapshot sees it.
struct UpdatedTuple {
  OffsetNumber offset;
  bool is_kept;          ///< it has a row among those that are kept
  TransactionId xid;     ///< the transaction
  ItemPointerData next;  ///< where it put the new tuple
};

/// The tuples of a block that the snapshot sees, and the pin that keeps them where they are.
struct SeenTuples {
  Buffer buffer;
  int count;
  OffsetNumber offsets[MaxHeapTuplesPerPage];  ///< without those in `same`
  service::Lines same;                         ///< as in BlockPatch
  int updated_count;
  UpdatedTuple updated[MaxHeapTuplesPerPage];
};

/// Whether a relation is one whose blocks can be read so: a table or materialized view of
/// PostgreSQL's own heap, no temporary one, its file older than the current transaction, on a
/// server that is no standby, under an MVCC snapshot. Its children in an inheritance tree are
/// relations of their own.
bool has_readable_blocks(Relation relation);

/// Whether blocks of a relation that can be read so can be proven later. An unlogged one's have no
/// LSN.
bool has_provable_blocks(Relation relation);

/// About what its rows take, values out of line included.
std::uint64_t table_bytes(Relation relation);

/// Begins to read a relation that has_readable_blocks() under the active snapshot. It counts as a
/// scan, and under SERIALIZABLE as one that has read all rows, whichever blocks follow.
HeapBlocks begin_blocks(Relation relation, AttrNumber last_column);

/// The same in a parallel worker, whose leader has begun.
HeapBlocks join_blocks(Relation relation, AttrNumber last_column, const HeapExtent& extent);

void end_blocks(HeapBlocks* heap);

/// Whether a block that has a proof needs no reading: its rows are the ones that the snapshot sees.
/// `lsn` is the block's.
inline bool serves(const HeapBlocks& heap, const service::BlockProof& kept, XLogRecPtr lsn) {
  if (kept.lsn != lsn) return false;
  return kept.state == service::BlockState::kAllVisible ||
         (kept.state == service::BlockState::kCommitted && kept.newest_xid < heap.horizon);
}

/// Visits a block. False where `kept` (may be null) serves. Else *seen are its tuples, to be
/// released by read_tuples(), and *proof is the block's but for the number of rows. If the heap
/// leaves_same, tuples that were read with `kept` go to seen->same.
bool visit_block(const HeapBlocks& heap, BlockNumber block, const service::BlockProof* kept,
                 SeenTuples* seen, service::BlockProof* proof);

/// Calls row(slot) for each tuple, with the columns up to last_column in it, and releases them. An
/// error that row() raises releases them, too.
template <class Row>
void read_tuples(const HeapBlocks& heap, const SeenTuples& seen, const Row& row) {
  const Page page = BufferGetPage(seen.buffer);
  HeapTupleData tuple;
  tuple.t_tableOid = RelationGetRelid(heap.relation);
  // Once for all tuples: what was stored in parts a moment ago is slow to be copied as a whole.
  ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(seen.buffer), InvalidOffsetNumber);
  for (int i = 0; i < seen.count; ++i) {
    const ItemId item = PageGetItemId(page, seen.offsets[i]);
    tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSetOffsetNumber(&tuple.t_self, seen.offsets[i]);
    ExecStoreHeapTuple(&tuple, heap.slot, false);
    slot_getsomeattrs(heap.slot, heap.last_column);
    pgstat_count_heap_getnext(heap.relation);
    row(heap.slot);
  }
  ExecClearTuple(heap.slot);
  ReleaseBuffer(seen.buffer);
}

}  // namespace gpujoin

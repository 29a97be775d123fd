// Why a block whose proof serves has the rows that were read from it, for the snapshot at hand.
//
// What is proven. A tuple's columns are those of its row version, which never change in place, and
// a scan returns the versions on a page that HeapTupleSatisfiesMVCC() accepts, or all of them where
// PD_ALL_VISIBLE is set. So two things have to be the same as when the block was read: the versions
// on the page, and which of them the snapshot sees.
//
// 1. The same LSN: the same line pointers, and the same tuples but for hint bits.
// Whatever adds, removes, moves, locks, freezes or otherwise changes a tuple or a line pointer of a
// relation that needs WAL (insert, COPY FREEZE, update, delete, row locks, speculative insertion
// and its end, pruning, vacuum, freezing, pg_surgery) does so under the buffer's exclusive lock,
// writes a WAL record, and gives the page that record's LSN before the lock is released. Later
// records have later LSNs. Both readings of the LSN are under the buffer's share lock, the first
// one the same as that of the tuples. So equal LSNs mean that there was no such change in between.
// What changes without a new LSN: hint bits (they are computed from what 2. relies on, the outcome
// of finished transactions), PD_ALL_VISIBLE when vacuum sets it or clears a wrong one, pd_prune_xid
// and the hint about free space. With checksums a hint bit can give the page a new LSN under the
// share lock alone: the proof fails without need, and BufferGetLSNAtomic() keeps such an LSN from
// being read in halves. The LSN belongs to a block of a file. Records about a file are written
// while it is there, so that a file that gets the same number later, or a block that truncation
// took away and extension brought back, has LSNs later than those that were kept. A page that no
// record knows has LSN 0, which proves that it has no tuples if it had none before: several
// transactions that extend a table at once leave such pages, and VACUUM leaves them as they are. If
// it had tuples, LSN 0 proves nothing. These were written without WAL: by wal_level = minimal in
// the transaction that made the file, whose relations are left out until it is over, as its new
// rows are visible to nobody else and may be frozen already. LSNs repeat if the end of the WAL is
// lost, in a crash of the server. Rows are kept by a program that the crash ends, as it ends all
// backends, before WAL is written again.
//
// 2. The same tuples are seen, by one of two proofs.
// kAllVisible: PD_ALL_VISIBLE was set when the block was read. Who sets it has found that each
// tuple is visible to every snapshot of the database in use and to come, and whatever makes that
// false clears it and has a record (1.). So each snapshot sees the page's every tuple, the one
// under which they were read and the one at hand. On a standby that does not hold for snapshots
// taken there, as heapam says where it looks at takenDuringRecovery: such are left out. With
// old_snapshot_threshold (until 16) vacuum may disregard old snapshots: then no relation is read in
// this way. kCommitted: every tuple's hint bits decided about it when the block was read. Either
// its xmin had aborted: no snapshot sees it. Or its xmin had committed, or is frozen, and it had no
// xmax but aborted ones and lockers: every snapshot sees it for which xmin is over. Or xmin and
// xmax, no multixact, had committed: no snapshot sees it for which both are over. And the snapshot
// under which it was read agreed, tuple by tuple. newest_xid is the last one of these transactions;
// for a snapshot whose xmin is later all of them are over, and it sees the tuples that the first
// one saw. Hint bits are set after the outcome is recorded and, for a commit, durable; they are
// never taken back. In-progress and prepared transactions, the current one and its subtransactions
// set none, nor does the commit of a prepared transaction later on: their blocks are kUnproven, as
// are pages with tuples moved by a VACUUM FULL before 9.0.
//
// 3. What is not on the page. TOAST: a version's pointer is the same, and its chunks stay as long
// as it does. Missing attributes (ADD COLUMN with a default) and virtual columns come from the
// catalog: resident_table.cpp leaves such columns out, and has numbers, types and typmods of the
// others in its key. A rewrite gives another file. Promotion: snapshots of the standby are left
// out, see above; crash recovery: see 1.
//
// 4. Serializable transactions. The relation is locked as by a scan (SIREAD) before any block is
// visited. Writers look for the lock under the exclusive lock of the block that they change. So a
// writer that comes after a visit finds it, and one that came before has given the block its LSN,
// if the visit takes the block's lock: the visibility map alone is not enough (block_proof.cpp).
// A scan asks for each tuple whether its writer is a conflict. On a block that serves none is: all
// tuples are visible and live, or dead since before this transaction's snapshot.
//
// 5. One tuple that is as it was, on a block whose LSN has changed. The block was read before, by a
// snapshot for which all transactions before a horizon were over, and what was read had a proof
// (2.). A tuple whose xmin is before that horizon was on the page then, where it is now: a
// transaction inserts nothing once it is over, and tuples keep their line pointers. (Its raw xmin
// stays when it is frozen. An xmin of long ago that looks like one to come is not before the
// horizon; pg_surgery makes it no normal one.) If nobody has deleted it by now, nobody had then,
// and all tuples of such a page that are not deleted were read: so the tuple was, with the values
// that it has. It has a row that is kept, unless its value is NULL: a block with such tuples has no
// horizon.
#include "pg/reading/heap_blocks.h"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

using service::BlockProof;
using service::BlockState;

/// The transaction with its epoch. Transactions of tuples are less than 2^31 from the next one.
std::uint64_t with_epoch(const HeapExtent& heap, TransactionId xid) {
  const auto distance = static_cast<std::int32_t>(xid - XidFromFullTransactionId(heap.next));
  return U64FromFullTransactionId(heap.next) + static_cast<std::uint64_t>(std::int64_t{distance});
}

/// Whether hint bits decide about a tuple for all snapshots for which transactions up to *newest
/// are over, which rises; *exists: they see it.
bool is_decided(const HeapBlocks& heap, HeapTupleHeader tuple, bool* exists,
                std::uint64_t* newest) {
  const std::uint16_t bits = tuple->t_infomask;
  const auto rise_to = [&](TransactionId xid) {
    if (TransactionIdIsNormal(xid)) *newest = std::max(*newest, with_epoch(heap, xid));
  };
  if ((bits & HEAP_MOVED) != 0) return false;
  *exists = false;
  if (HeapTupleHeaderXminInvalid(tuple)) return true;
  if (!HeapTupleHeaderXminCommitted(tuple)) return false;
  if (!HeapTupleHeaderXminFrozen(tuple)) rise_to(HeapTupleHeaderGetRawXmin(tuple));
  *exists = (bits & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(bits);
  if (*exists) return true;
  if ((bits & HEAP_XMAX_IS_MULTI) != 0 || (bits & HEAP_XMAX_COMMITTED) == 0) return false;
  rise_to(HeapTupleHeaderGetRawXmax(tuple));
  return true;
}

/// Whether a tuple was on the page when its block was read with `kept` (5. above).
bool was_there(const HeapBlocks& heap, const BlockProof& kept, HeapTupleHeader tuple) {
  const TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple);
  return (tuple->t_infomask & HEAP_MOVED) == 0 && TransactionIdIsNormal(xmin) &&
         HeapTupleHeaderXminCommitted(tuple) && with_epoch(heap, xmin) < kept.horizon;
}

/// Whether a tuple that the snapshot sees is among those that were read with `kept`.
bool is_kept(const HeapBlocks& heap, const BlockProof& kept, HeapTupleHeader tuple) {
  const std::uint16_t bits = tuple->t_infomask;
  return was_there(heap, kept, tuple) &&
         ((bits & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(bits));
}

/// Adds a tuple that the snapshot does not see to those that were updated, if it is one.
void note_update(const HeapBlocks& heap, const BlockProof* kept, const HeapTupleData& tuple,
                 SeenTuples* seen) {
  const HeapTupleHeader header = tuple.t_data;
  constexpr std::uint16_t kOthers =
      HEAP_MOVED | HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI | HEAP_XMAX_LOCK_ONLY;
  if ((header->t_infomask & kOthers) != 0 || (header->t_infomask & HEAP_XMAX_COMMITTED) == 0 ||
      !HeapTupleHeaderXminCommitted(header) ||
      ItemPointerEquals(&header->t_ctid, const_cast<ItemPointer>(&tuple.t_self)))
    return;
  const TransactionId xmax = HeapTupleHeaderGetRawXmax(header);
  const bool is_kept = kept != nullptr && was_there(heap, *kept, header) &&
                       with_epoch(heap, xmax) > kept->newest_xid;
  seen->updated[seen->updated_count++] = {ItemPointerGetOffsetNumber(&tuple.t_self), is_kept, xmax,
                                          header->t_ctid};
}

/// Finds the visible tuples of a page that is locked, as heapam does, and the state of the block.
/// The LSN comes last: with checksums the first hint bits give the page a new one.
void see_tuples(const HeapBlocks& heap, BlockNumber block, const BlockProof* kept, SeenTuples* seen,
                BlockProof* proof) {
  const Page page = BufferGetPage(seen->buffer);
  const bool all_visible = PageIsAllVisible(page);
  bool decided = true;
  HeapTupleData tuple;
  tuple.t_tableOid = RelationGetRelid(heap.relation);
  *proof = {};
  proof->horizon = heap.horizon;
  seen->count = seen->updated_count = 0;
  seen->same = {};
  const bool leaves_same = heap.leaves_same && kept != nullptr;
  const OffsetNumber last = PageGetMaxOffsetNumber(page);
  for (OffsetNumber offset = FirstOffsetNumber; offset <= last; ++offset) {
    const ItemId item = PageGetItemId(page, offset);
    if (!ItemIdIsNormal(item)) continue;
    bool visible = true;
    tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    if (!all_visible || heap.checks_conflicts) {
      tuple.t_len = ItemIdGetLength(item);
      ItemPointerSet(&tuple.t_self, block, offset);
      if (!all_visible) visible = HeapTupleSatisfiesVisibility(&tuple, heap.snapshot, seen->buffer);
      if (heap.checks_conflicts)
        HeapCheckForSerializableConflictOut(visible, heap.relation, &tuple, seen->buffer,
                                            heap.snapshot);
    }
    if (!all_visible && decided) {
      bool exists;
      decided = is_decided(heap, tuple.t_data, &exists, &proof->newest_xid) && exists == visible;
    }
    if (!visible) {
      if (heap.notes_updates) note_update(heap, kept, tuple, seen);
      continue;
    }
    if (leaves_same && offset < service::Lines::kEnd && is_kept(heap, *kept, tuple.t_data))
      seen->same.add(offset);
    else
      seen->offsets[seen->count++] = offset;
  }
  proof->lsn = BufferGetLSNAtomic(seen->buffer);
  const bool is_known = proof->lsn != InvalidXLogRecPtr || last < FirstOffsetNumber;
  proof->state = is_known && all_visible ? BlockState::kAllVisible
                 : is_known && decided   ? BlockState::kCommitted
                                         : BlockState::kUnproven;
}

}  // namespace

bool has_readable_blocks(Relation relation) {
  const char kind = relation->rd_rel->relkind;
  if (kind != RELKIND_RELATION && (kind != RELKIND_MATVIEW || !RelationIsPopulated(relation)))
    return false;
  if (relation->rd_tableam != GetHeapamTableAmRoutine() || IsSystemRelation(relation)) return false;
  if (RelationUsesLocalBuffers(relation) || has_new_file(relation)) return false;
  const Snapshot snapshot = GetActiveSnapshot();
  return snapshot->snapshot_type == SNAPSHOT_MVCC && !snapshot->takenDuringRecovery &&
         !RecoveryInProgress() && !snapshots_expire();
}

bool has_provable_blocks(Relation relation) { return RelationNeedsWAL(relation); }

std::uint64_t table_bytes(Relation relation) {
  std::uint64_t blocks = RelationGetNumberOfBlocks(relation);
  if (OidIsValid(relation->rd_rel->reltoastrelid)) {
    const Relation toast = table_open(relation->rd_rel->reltoastrelid, AccessShareLock);
    blocks += RelationGetNumberOfBlocks(toast);
    table_close(toast, NoLock);
  }
  return blocks * BLCKSZ;
}

HeapBlocks begin_blocks(Relation relation, AttrNumber last_column) {
  HeapExtent extent = {};
  const Snapshot snapshot = GetActiveSnapshot();
  // The lock comes before the number of blocks, so that whoever adds a block finds the lock.
  PredicateLockRelation(relation, snapshot);
  // The snapshot sees nothing in blocks that are added from here on.
  extent.count = RelationGetNumberOfBlocks(relation);
  extent.next = ReadNextFullTransactionId();
  extent.horizon = with_epoch(extent, snapshot->xmin);
  pgstat_count_heap_scan(relation);
  return join_blocks(relation, last_column, extent);
}

HeapBlocks join_blocks(Relation relation, AttrNumber last_column, const HeapExtent& extent) {
  HeapBlocks heap = {};
  static_cast<HeapExtent&>(heap) = extent;
  heap.relation = relation;
  heap.snapshot = GetActiveSnapshot();
  heap.checks_conflicts = CheckForSerializableConflictOutNeeded(relation, heap.snapshot);
  heap.last_column = last_column;
  heap.slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  if (heap.count > static_cast<BlockNumber>(NBuffers) / 4)
    heap.strategy = GetAccessStrategy(BAS_BULKREAD);
  return heap;
}

void end_blocks(HeapBlocks* heap) {
  ExecDropSingleTupleTableSlot(heap->slot);
  if (heap->strategy != nullptr) FreeAccessStrategy(heap->strategy);
}

bool visit_block(const HeapBlocks& heap, BlockNumber block, const BlockProof* kept,
                 SeenTuples* seen, BlockProof* proof) {
  CHECK_FOR_INTERRUPTS();
  const Buffer buffer =
      ReadBufferExtended(heap.relation, MAIN_FORKNUM, block, RBM_NORMAL, heap.strategy);
  if (kept != nullptr && kept->state == BlockState::kUnproven) kept = nullptr;
  if (kept != nullptr) {
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const XLogRecPtr lsn = BufferGetLSNAtomic(buffer);
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
    if (serves(heap, *kept, lsn)) {
      ReleaseBuffer(buffer);
      return false;
    }
  }
  // Pruning would remove the tuples that tell of updates.
  if (!heap.notes_updates || kept == nullptr) heap_page_prune_opt(heap.relation, buffer);
  seen->buffer = buffer;
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  see_tuples(heap, block, kept, seen, proof);
  LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
  return true;
}

}  // namespace gpujoin

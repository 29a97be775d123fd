// Why a tuple has the value of a row that is kept.
//
// 1. The row was kept. The tuple `before` was on the page when its block was read: it was inserted
// by a transaction before the horizon of the block's proof (heap_blocks.cpp, 5.). It was not
// deleted then: either the page was all-visible, or hint bits decided about each of its tuples, and
// no transaction that had deleted one is later than BlockProof::newest_xid, but this tuple's is.
// All tuples of such a page that are not deleted were read; that each of them has a row follows
// from the horizon, too.
//
// 2. The tuple `after` came of it by an update: `before` names its ctid, and the transaction that
// deleted `before` inserted `after`. A ctid may be vacuumed and used again, but then it has a tuple
// of a later transaction. If `after` is updated again, the new tuple has come of `before`, too.
//
// 3. The values are the same if both tuples have the same pointer to a value out of line. An update
// that stores a value of its own gives it an OID that no value of the TOAST table has, dead ones
// included, and the value of `before` is there while it updates. Without an own value it copies the
// pointer.
#include "pg/reading/moved_rows.h"

#include "pg/store/huge_array.h"

extern "C" {
#include "access/detoast.h"
#include "catalog/index.h"
}

namespace gpujoin {
namespace {

/// Updates beyond this number are not remembered: their values are read.
constexpr long kMostUpdates = 1 << 20;

/// An update of a row that is kept.
struct Update {
  std::int64_t after;   ///< ctid; the key
  std::int64_t before;  ///< ctid of the row that is kept
  TransactionId xid;    ///< that inserted `after`
  varatt_external value;
};

/// Sets the pointer of the tuple's value; false if the value is not out of line.
bool read_pointer(const MovedRows& moved, const HeapBlocks& heap, HeapTuple tuple,
                  varatt_external* value) {
  bool is_null;
  const Datum datum = heap_getattr(tuple, moved.column, RelationGetDescr(heap.relation), &is_null);
  if (is_null) return false;
  const auto* const bytes = reinterpret_cast<const varattrib_1b_e*>(DatumGetPointer(datum));
  if (!VARATT_IS_EXTERNAL_ONDISK(bytes)) return false;
  VARATT_EXTERNAL_GET_POINTER(*value, reinterpret_cast<const varlena*>(bytes));
  return true;
}

bool is_same_value(const varatt_external& a, const varatt_external& b) {
  return a.va_valueid == b.va_valueid && a.va_toastrelid == b.va_toastrelid;
}

/// Returns the update that a tuple came of, with the value that the row before it had; or null.
const Update* find_update(const MovedRows& moved, HeapTuple tuple, const varatt_external& value) {
  const std::int64_t ctid = itemptr_encode(&tuple->t_self);
  const auto* const update =
      static_cast<const Update*>(hash_search(moved.updates, &ctid, HASH_FIND, nullptr));
  return update != nullptr && update->xid == HeapTupleHeaderGetRawXmin(tuple->t_data) &&
                 is_same_value(update->value, value)
             ? update
             : nullptr;
}

HeapTupleData tuple_at(const HeapBlocks& heap, Buffer buffer, OffsetNumber offset) {
  const Page page = BufferGetPage(buffer);
  const ItemId item = PageGetItemId(page, offset);
  HeapTupleData tuple;
  tuple.t_tableOid = RelationGetRelid(heap.relation);
  tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
  tuple.t_len = ItemIdGetLength(item);
  ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
  return tuple;
}

void remember_update(MovedRows* moved, const HeapBlocks& heap, Buffer buffer,
                     const UpdatedTuple& updated) {
  HeapTupleData tuple = tuple_at(heap, buffer, updated.offset);
  varatt_external value;
  if (hash_get_num_entries(moved->updates) >= kMostUpdates ||
      !read_pointer(*moved, heap, &tuple, &value))
    return;
  std::int64_t before = itemptr_encode(&tuple.t_self);
  if (!updated.is_kept) {
    const Update* const update = find_update(*moved, &tuple, value);
    if (update == nullptr) return;
    before = update->before;
  }
  ItemPointerData next = updated.next;
  const std::int64_t after = itemptr_encode(&next);
  auto* const update =
      static_cast<Update*>(hash_search(moved->updates, &after, HASH_ENTER, nullptr));
  update->before = before;
  update->xid = updated.xid;
  update->value = value;
}

}  // namespace

MovedRows* start_moved_rows(Relation relation, AttrNumber column) {
  if (!OidIsValid(relation->rd_rel->reltoastrelid) ||
      TupleDescAttr(RelationGetDescr(relation), column - 1)->attlen != -1)
    return nullptr;
  auto* const moved = static_cast<MovedRows*>(palloc0(sizeof(MovedRows)));
  moved->context = CurrentMemoryContext;
  moved->column = column;
  HASHCTL control = {};
  control.keysize = sizeof(std::int64_t);
  control.entrysize = sizeof(Update);
  control.hcxt = CurrentMemoryContext;
  moved->updates =
      hash_create("gpujoin updates", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  return moved;
}

void find_moved_rows(MovedRows* moved, const HeapBlocks& heap, SeenTuples* seen) {
  for (int i = 0; i < seen->updated_count; ++i)
    remember_update(moved, heap, seen->buffer, seen->updated[i]);
  if (hash_get_num_entries(moved->updates) == 0) return;
  int left = 0;
  for (int i = 0; i < seen->count; ++i) {
    HeapTupleData tuple = tuple_at(heap, seen->buffer, seen->offsets[i]);
    varatt_external value;
    const Update* const update =
        read_pointer(*moved, heap, &tuple, &value) ? find_update(*moved, &tuple, value) : nullptr;
    if (update == nullptr) {
      seen->offsets[left++] = seen->offsets[i];
      continue;
    }
    reserve_next(moved->context, &moved->rows, moved->count, &moved->room);
    moved->rows[moved->count++] = {itemptr_encode(&tuple.t_self), update->before};
  }
  seen->count = left;
}

}  // namespace gpujoin

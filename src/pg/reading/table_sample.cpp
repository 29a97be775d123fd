#include "pg/reading/table_sample.h"

extern "C" {
#include "access/detoast.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

constexpr BlockNumber kBlocks = 32;
constexpr std::uint64_t kMostValues = 256;
/// Fetching and unpacking as much takes some tenths of a millisecond.
constexpr std::uint64_t kMostBytes = 128 * 1024;
constexpr std::uint64_t kFewestValues = 8;

struct Sampler {
  Relation relation;
  AttrNumber column;
  const ValueType* type;
  ValueForm form;
  ValueShape* shape;
  PointBuffer points;
  std::uint64_t bytes;  ///< of the values that were read
  bool too_wide;        ///< a value is, to read kFewestValues such
};

Datum value_of(const Sampler& sampler, HeapTuple tuple, bool* is_null) {
  return heap_getattr(tuple, sampler.column, RelationGetDescr(sampler.relation), is_null);
}

/// Bytes of a value in memory; nothing is fetched for it.
std::uint64_t width_of(const Sampler& sampler, Datum value) {
  const Form_pg_attribute column =
      TupleDescAttr(RelationGetDescr(sampler.relation), sampler.column - 1);
  return column->attlen == -1 ? toast_raw_datum_size(value) : column->attlen;
}

/// Adds rows of a block until the sample has `values` of `bytes`. What is seen is decided under the
/// buffer's lock; the pin alone keeps rows where they are, as in any scan.
void add_block(Sampler* sampler, BlockNumber block, std::uint64_t values, std::uint64_t bytes) {
  HeapTupleData seen[kMostValues];
  std::uint64_t count = 0, wanted = sampler->bytes;
  const Snapshot snapshot = GetActiveSnapshot();
  const Buffer buffer = ReadBuffer(sampler->relation, block);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  const Page page = BufferGetPage(buffer);
  const OffsetNumber last = PageGetMaxOffsetNumber(page);
  for (OffsetNumber offset = FirstOffsetNumber;
       offset <= last && sampler->points.rows + count < values && wanted < bytes; ++offset) {
    const ItemId item = PageGetItemId(page, offset);
    if (!ItemIdIsNormal(item)) continue;
    HeapTupleData* const tuple = &seen[count];
    tuple->t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    tuple->t_len = ItemIdGetLength(item);
    tuple->t_tableOid = RelationGetRelid(sampler->relation);
    ItemPointerSet(&tuple->t_self, block, offset);
    if (!HeapTupleSatisfiesVisibility(tuple, snapshot, buffer)) continue;
    bool is_null;
    const Datum value = value_of(*sampler, tuple, &is_null);
    if (is_null) continue;
    const std::uint64_t width = width_of(*sampler, value);
    sampler->too_wide = width > kMostBytes / kFewestValues;
    if (sampler->too_wide) break;
    wanted += width;
    ++count;
  }
  LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
  for (std::uint64_t i = 0; i < count && !sampler->too_wide; ++i) {
    // Points of sparse vectors take any times the bytes of values.
    if (affordable_rows(sampler->points, sampler->points.limit) <= sampler->points.rows) break;
    bool is_null;
    const Datum value = value_of(*sampler, &seen[i], &is_null);
    add_value(*sampler->type, sampler->form, &sampler->points, sampler->shape, block, value);
  }
  sampler->bytes = wanted;
  ReleaseBuffer(buffer);
}

}  // namespace

PointBuffer sample_table(Oid table, AttrNumber column, const ValueType& type, ValueForm form,
                         ValueShape* shape) {
  const Relation relation = table_open(table, NoLock);
  Sampler sampler = {relation, column, &type, form, shape, {}, 0, false};
  sampler.points.context = CurrentMemoryContext;
  sampler.points.source = "a sample";
  sampler.points.limit = 8 * kMostBytes;  // most points take at most four times those of values
  sampler.points.scalar = scalar_of(type, form);
  if (relation->rd_tableam == GetHeapamTableAmRoutine() && !RELATION_IS_OTHER_TEMP(relation)) {
    const BlockNumber all = RelationGetNumberOfBlocks(relation), blocks = std::min(all, kBlocks);
    const auto block = [&](BlockNumber i) {
      return static_cast<BlockNumber>(std::uint64_t{all} * i / blocks);
    };
    for (BlockNumber i = 0; i < blocks; ++i) PrefetchBuffer(relation, MAIN_FORKNUM, block(i));
    for (BlockNumber i = 0; i < blocks && !sampler.too_wide; ++i) {
      CHECK_FOR_INTERRUPTS();
      add_block(&sampler, block(i), kMostValues * (i + 1) / blocks, kMostBytes * (i + 1) / blocks);
    }
  }
  table_close(relation, NoLock);
  if (sampler.too_wide || sampler.points.rows < kFewestValues) sampler.points.rows = 0;
  return sampler.points;
}

}  // namespace gpujoin

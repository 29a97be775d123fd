// A library of its own with one function for SQL, which keeps a table's rows as gpujoin_service
// does, and compares what the proofs make of them with a scan under the same snapshot. Sessions
// share what they keep through a file, so that rows serve snapshots older and newer than the one
// under which they were read.
#include <span>

#include "pg/reading/block_rows.h"

extern "C" {
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;
PGDLLEXPORT Datum proof_check(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(proof_check);
}

namespace gpujoin {
namespace {

using service::BlockProof;

/// A row, and the value that updates may leave as it was. A hash of 0 is unknown.
struct Row {
  std::uint64_t tid, hash, value;
};

constexpr AttrNumber kValueColumn = 2;

/// What is kept, in one piece of memory: head, LSNs of the map, proofs, rows.
struct Kept {
  std::uint64_t map_pages, blocks, rows;
};

std::uint64_t* map_of(Kept* kept) { return reinterpret_cast<std::uint64_t*>(kept + 1); }
BlockProof* proofs_of(Kept* kept) {
  return reinterpret_cast<BlockProof*>(map_of(kept) + kept->map_pages);
}
Row* rows_of(Kept* kept) { return reinterpret_cast<Row*>(proofs_of(kept) + kept->blocks); }
std::size_t bytes_of(const Kept& kept) {
  return sizeof kept + kept.map_pages * sizeof(std::uint64_t) + kept.blocks * sizeof(BlockProof) +
         kept.rows * sizeof(Row);
}

Row row_of(TupleTableSlot* slot) {
  slot_getallattrs(slot);
  const TupleDesc columns = slot->tts_tupleDescriptor;
  Row row = {static_cast<std::uint64_t>(itemptr_encode(&slot->tts_tid)), 14695981039346656037u, 0};
  for (int i = 0; i < columns->natts; ++i) {
    const Form_pg_attribute column = TupleDescAttr(columns, i);
    if (column->attisdropped || strcmp(NameStr(column->attname), "wide") == 0) continue;
    const std::uint64_t value =
        slot->tts_isnull[i]
            ? 1
            : datum_image_hash(slot->tts_values[i], column->attbyval, column->attlen);
    if (i == kValueColumn - 1) row.value = value;
    row.hash = (row.hash ^ value) * 1099511628211u + static_cast<std::uint64_t>(i);
  }
  return row;
}

const char* file_of(Relation relation) {
  return psprintf("pgsql_tmp_proof_%u_%u_%d", RelationGetRelid(relation),
                  stored_file(relation).number, RelationGetNumberOfAttributes(relation));
}

Kept* load(const char* name) {
  Kept* const kept = static_cast<Kept*>(palloc0(sizeof(Kept)));
  FILE* const file = fopen(name, "rb");
  if (file == nullptr) return kept;
  Kept head;
  if (fread(&head, sizeof head, 1, file) != 1) elog(ERROR, "could not read what is kept");
  Kept* const whole = static_cast<Kept*>(palloc_extended(bytes_of(head), MCXT_ALLOC_HUGE));
  *whole = head;
  if (fread(whole + 1, bytes_of(head) - sizeof head, 1, file) != 1 && bytes_of(head) > sizeof head)
    elog(ERROR, "could not read what is kept");
  fclose(file);
  return whole;
}

void save(const char* name, const Kept& kept) {
  const char* const fresh = psprintf("%s_%d", name, MyProcPid);
  FILE* const file = fopen(fresh, "wb");
  if (file == nullptr || fwrite(&kept, bytes_of(kept), 1, file) != 1) elog(ERROR, "could not keep");
  fclose(file);
  if (rename(fresh, name) != 0) elog(ERROR, "could not keep");
}

/// The value of the row with this ctid.
std::uint64_t value_of(Kept* kept, std::int64_t tid) {
  const Row *const rows = rows_of(kept), *const end = rows + kept->rows;
  const Row* const row = std::find_if(
      rows, end, [tid](const Row& other) { return other.tid == static_cast<std::uint64_t>(tid); });
  if (row == end) elog(PANIC, "stale: no row has moved from here");
  return row->value;
}

/// Writes the rows of a block: `fresh` ones, `moved` ones, and old ones that stay. Returns their
/// end.
Row* patch_block(Kept* kept, const service::BlockPatch& patch, std::span<const Row> old,
                 std::span<const Row> fresh, std::span<const service::MovedRow> moved, Row* to) {
  Row* const first = to;
  for (const Row& row : old)
    if (is_same(patch, static_cast<std::int64_t>(row.tid))) *to++ = row;
  if (to - first != patch.same.count()) elog(PANIC, "stale: rows that stay are not kept");
  for (const service::MovedRow& row : moved)
    *to++ = {static_cast<std::uint64_t>(row.ctid), 0, value_of(kept, row.before)};
  to = std::copy(fresh.begin(), fresh.end(), to);
  std::sort(first, to, [](const Row& a, const Row& b) { return a.tid < b.tid; });
  return to;
}

/// The kept rows with the patches, or with those that last.
Kept* patch(Kept* kept, const BlocksRead& read, const Row* fresh, bool only_lasting) {
  std::uint64_t most = kept->rows;
  for (std::uint64_t i = 0; i < read.count; ++i) most += read.patches[i].proof.rows;
  const Kept shape = {read.map.pages, read.blocks, most};
  Kept* const made = static_cast<Kept*>(palloc_extended(bytes_of(shape), MCXT_ALLOC_HUGE));
  *made = shape;
  std::memcpy(map_of(made), read.map.lsns, read.map.pages * sizeof(std::uint64_t));
  Row *row = rows_of(made), *old = rows_of(kept);
  const service::BlockPatch* next = read.patches;
  const service::MovedRow *moved = read.moved->rows, *const end = moved + read.moved->count;
  for (std::uint64_t block = 0; block < read.blocks; ++block) {
    const std::uint32_t had = block < kept->blocks ? proofs_of(kept)[block].rows : 0;
    const bool patched = next < read.patches + read.count && next->block == block;
    const auto* const end_moved = std::find_if(moved, end, [block](const auto& other) {
      return static_cast<std::uint64_t>(other.ctid) >> 16 != block;
    });
    const auto count_moved = static_cast<std::uint32_t>(end_moved - moved);
    const std::uint32_t count = patched ? next->proof.rows - next->same.count() - count_moved : 0;
    if (patched && (next->lasts || !only_lasting)) {
      proofs_of(made)[block] = next->proof;
      row = patch_block(kept, *next, {old, had}, {fresh, count}, {moved, count_moved}, row);
    } else {
      if (block >= kept->blocks) elog(ERROR, "block %d has no proof", static_cast<int>(block));
      proofs_of(made)[block] = proofs_of(kept)[block];
      row = std::copy(old, old + had, row);
    }
    old += had;
    fresh += count;
    moved = end_moved;
    if (patched) ++next;
  }
  made->rows = static_cast<std::uint64_t>(row - rows_of(made));
  return made;
}

void compare(Relation relation, Kept* kept, const BlocksRead& read) {
  const TableScanDesc scan =
      table_beginscan_strat(relation, GetActiveSnapshot(), 0, nullptr, true, false);
  TupleTableSlot* const slot = table_slot_create(relation, nullptr);
  std::uint64_t at = 0;
  while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
    const Row row = row_of(slot);
    const Row* const there = rows_of(kept) + at;
    if (at == kept->rows || there->tid != row.tid || there->value != row.value ||
        (there->hash != 0 && there->hash != row.hash))
      elog(PANIC, "stale: row %d of block %d, offset %d, patches %d of %d", static_cast<int>(at),
           static_cast<int>(row.tid >> 16), static_cast<int>(row.tid & 0xffff),
           static_cast<int>(read.count), static_cast<int>(read.blocks));
    ++at;
  }
  if (at != kept->rows) elog(PANIC, "stale: %d rows too many", static_cast<int>(kept->rows - at));
  ExecDropSingleTupleTableSlot(slot);
  table_endscan(scan);
}

}  // namespace
}  // namespace gpujoin

/// proof_check(table): blocks that had to be read, NULL where the table cannot be kept. A row that
/// is kept and is not what a scan finds ends the server.
Datum proof_check(PG_FUNCTION_ARGS) {
  using namespace gpujoin;
  const Relation relation = table_open(PG_GETARG_OID(0), AccessShareLock);
  if (!has_provable_blocks(relation)) {
    table_close(relation, NoLock);
    PG_RETURN_NULL();
  }
  const char* const file = file_of(relation);
  Kept* const kept = load(file);
  PointBuffer points = {};
  Row* fresh = nullptr;
  std::uint64_t room = 0;
  const MemoryContext context = CurrentMemoryContext;
  const KeptBlocks blocks = kept_blocks(map_of(kept), kept->map_pages, kept->blocks);
  const MemoryContext scratch = create_scratch();
  HeapBlocks heap =
      begin_blocks(relation, static_cast<AttrNumber>(RelationGetNumberOfAttributes(relation)));
  BlocksRead read = {};
  read.blocks = heap.count;
  read.map = read_map(heap, blocks);
  read.moved = start_moved_rows(relation, kValueColumn);
  heap.leaves_same = heap.notes_updates = true;
  read_block_range(
      heap, blocks, read.map, 0, heap.count, points, scratch,
      [&](TupleTableSlot* slot) {
        reserve_next(context, &fresh, points.rows, &room);
        fresh[points.rows++] = row_of(slot);
      },
      &read);
  end_blocks(&heap);
  MemoryContextDelete(scratch);
  compare(relation, patch(kept, read, fresh, false), read);
  // Only what commits or is over is kept: a private reading may be kept just as well.
  save(file, *patch(kept, read, fresh, true));
  table_close(relation, NoLock);
  PG_RETURN_INT32(static_cast<int>(read.count));
}

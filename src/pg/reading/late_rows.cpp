#include "pg/reading/late_rows.h"

#include "pg/store/huge_array.h"

extern "C" {
#include "storage/bufmgr.h"
}

namespace gpujoin {
namespace {

constexpr int kOffsetBits = 16;  // of a number, below those of the block
constexpr int kWordBits = 64;

/// Marks of a block: one for each offset from 0, which no row has, to the largest.
constexpr std::uint64_t kBlockMarks = MaxHeapTuplesPerPage + 1;

/// Returns the position of a row's bit among the marks.
std::uint64_t mark_of(std::int64_t number) {
  const std::uint64_t offset = static_cast<std::uint16_t>(number);
  return (static_cast<std::uint64_t>(number) >> kOffsetBits) * kBlockMarks + offset;
}

std::int64_t number_of(std::uint64_t mark) {
  const std::uint64_t block = mark / kBlockMarks, offset = mark % kBlockMarks;
  return static_cast<std::int64_t>((block << kOffsetBits) + offset);
}

}  // namespace

LateRows* open_late_rows(Relation relation, Snapshot snapshot) {
  LateRows* const rows = static_cast<LateRows*>(palloc0(sizeof(LateRows)));
  rows->context = CurrentMemoryContext;
  rows->relation = relation;
  rows->snapshot = snapshot;
  rows->slot = table_slot_create(relation, nullptr);
  rows->held = -1;
  return rows;
}

IdRange ids_of_table(const LateRows& rows) {
  const auto blocks = static_cast<std::int64_t>(RelationGetNumberOfBlocks(rows.relation));
  return {blocks << kOffsetBits, MaxHeapTuplesPerPage};
}

void restart_late_rows(LateRows* rows) {
  if (rows->scan != nullptr) table_endscan(rows->scan);
  rows->scan = nullptr;
}

void close_late_rows(LateRows* rows) {
  if (rows->slot != nullptr) ExecDropSingleTupleTableSlot(rows->slot);
  rows->slot = nullptr;
  restart_late_rows(rows);
}

TupleTableSlot* fetch_late_row(LateRows* rows, std::int64_t number) {
  if (rows->held == number) return rows->slot;
  rows->held = -1;
  ItemPointerData tid;
  itemptr_decode(&tid, number);
  if (!table_tuple_fetch_row_version(rows->relation, &tid, rows->snapshot, rows->slot))
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("row (%u,%u) of relation \"%s\" is not what it was when it was joined",
                           ItemPointerGetBlockNumber(&tid), ItemPointerGetOffsetNumber(&tid),
                           RelationGetRelationName(rows->relation))));
  slot_getsomeattrs(rows->slot, rows->last_column);
  rows->held = number;
  ++rows->fetched;
  return rows->slot;
}

TupleTableSlot* next_late_row(LateRows* rows) {
  rows->held = -1;
  if (rows->scan == nullptr) {
    const MemoryContext caller = MemoryContextSwitchTo(rows->context);
    rows->scan = table_beginscan_strat(rows->relation, rows->snapshot, 0, nullptr, true, false);
    MemoryContextSwitchTo(caller);
  }
  if (!table_scan_getnextslot(rows->scan, ForwardScanDirection, rows->slot)) return nullptr;
  slot_getsomeattrs(rows->slot, rows->last_column);
  rows->held = itemptr_encode(&rows->slot->tts_tid);
  return rows->slot;
}

void mark_late_row(LateRows* rows, std::int64_t number) {
  if (rows->marks == nullptr) {
    // Nobody takes blocks away while the table is locked.
    const std::uint64_t blocks = RelationGetNumberOfBlocks(rows->relation);
    rows->mark_words = blocks * kBlockMarks / kWordBits + 1;
    resize_array(rows->context, &rows->marks, rows->mark_words);
    std::fill_n(rows->marks, rows->mark_words, 0);
  }
  const std::uint64_t mark = mark_of(number), bit = std::uint64_t{1} << mark % kWordBits;
  std::uint64_t& word = rows->marks[mark / kWordBits];
  rows->marked += (word & bit) == 0;
  word |= bit;
}

bool is_marked(const LateRows& rows, std::int64_t number) {
  const std::uint64_t mark = mark_of(number);
  return rows.marks != nullptr && (rows.marks[mark / kWordBits] >> mark % kWordBits & 1) != 0;
}

bool next_marked(const LateRows& rows, std::int64_t* number) {
  if (rows.marks == nullptr) return false;
  const std::uint64_t from = *number < 0 ? 0 : mark_of(*number) + 1;
  std::uint64_t at = from / kWordBits;
  if (at >= rows.mark_words) return false;
  std::uint64_t word = rows.marks[at] & ~std::uint64_t{0} << from % kWordBits;
  while (word == 0) {
    if (++at == rows.mark_words) return false;
    word = rows.marks[at];
  }
  *number = number_of(at * kWordBits + static_cast<std::uint64_t>(__builtin_ctzll(word)));
  return true;
}

void add_row_place(RowPlaces* places, std::int64_t number) {
  const auto block = static_cast<std::uint64_t>(number) >> kOffsetBits;
  while (places->blocks <= block) {
    reserve_next(places->context, &places->first, places->blocks, &places->block_room);
    places->first[places->blocks++] = places->rows;
  }
  reserve_next(places->context, &places->offsets, places->rows, &places->row_room);
  places->offsets[places->rows++] = static_cast<std::uint16_t>(number);
}

std::uint64_t find_row_place(const RowPlaces& places, std::int64_t number) {
  const auto block = static_cast<std::uint64_t>(number) >> kOffsetBits;
  const auto offset = static_cast<std::uint16_t>(number);
  std::uint64_t found = places.rows;
  if (block < places.blocks) {
    const std::uint64_t end = block + 1 < places.blocks ? places.first[block + 1] : places.rows;
    // Offsets begin with 1, and most blocks have no gaps.
    const std::uint64_t likely = places.first[block] + offset - 1;
    if (likely < end && places.offsets[likely] == offset) return likely;
    found = static_cast<std::uint64_t>(
        std::lower_bound(places.offsets + places.first[block], places.offsets + end, offset) -
        places.offsets);
    if (found == end || places.offsets[found] != offset) found = places.rows;
  }
  if (found == places.rows)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg_internal("row %llu of a similarity join is not in its table",
                                    static_cast<unsigned long long>(number))));
  return found;
}

}  // namespace gpujoin

#include "pg/store/row_store.h"

#include <bit>

#include "pg/store/buffile.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kFirstRows = 64;
constexpr std::uint64_t kWordBits = 64;
constexpr Size kBlockBytes = 8192;
constexpr std::uint64_t kRecordsRead = 64;  // at once

std::uint64_t width(const RowStore* store) {
  return static_cast<std::uint64_t>(store->columns->natts);
}

/// Bytes of a row's entries in `values` and `nulls`.
Size entry_bytes(const RowStore* store) { return width(store) * (sizeof(Datum) + sizeof(bool)); }

// ---- In memory

/// What stores in memory may take.
Size memory_for_stores(const RowBudget& budget) {
  return budget.spilled ? budget.limit / 2 : budget.limit;
}

void take(RowStore* store, Size bytes) {
  store->bytes += bytes;
  store->budget->taken += bytes;
}

void give_back(RowStore* store, Size bytes) {
  store->bytes -= bytes;
  store->budget->taken -= bytes;
}

void resize(RowStore* store, std::uint64_t capacity) {
  resize_array(store->context, &store->values, capacity * width(store));
  resize_array(store->context, &store->nulls, capacity * width(store));
  give_back(store, store->capacity * entry_bytes(store));
  take(store, capacity * entry_bytes(store));
  store->capacity = capacity;
}

/// Doubles the room for rows, or takes what is left of the budget where that is less.
void grow(RowStore* store) {
  const RowBudget& budget = *store->budget;
  const Size most = memory_for_stores(budget);
  const Size left = most - std::min(most, budget.taken);
  const std::uint64_t capacity = store->capacity;
  resize(store, std::max(capacity + capacity / 8 + kFirstRows,
                         std::min(2 * capacity, capacity + left / entry_bytes(store))));
}

/// Room for a small value. Many of them share a block, since most take less than what palloc()
/// adds to each.
char* room_for(RowStore* store, Size bytes) {
  if (bytes > store->block_left) {
    store->block = static_cast<char*>(palloc(kBlockBytes));
    store->block_left = kBlockBytes;
    take(store, GetMemoryChunkSpace(store->block));
  }
  char* const room = store->block;
  store->block += bytes;
  store->block_left -= bytes;
  return room;
}

/// A copy in the store's memory, which is the current context.
Datum keep(RowStore* store, int column, Datum value) {
  const Form_pg_attribute attribute = TupleDescAttr(store->columns, column);
  if (attribute->attbyval) return value;
  const auto* const from = static_cast<const char*>(static_cast<void*>(DatumGetPointer(value)));
  const bool expanded = attribute->attlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(from);
  const Size bytes = expanded ? kBlockBytes : datumGetSize(value, false, attribute->attlen);
  if (bytes > kBlockBytes / 8) {
    const Datum copy = datumCopy(value, false, attribute->attlen);
    take(store, GetMemoryChunkSpace(DatumGetPointer(copy)));
    return copy;
  }
  char* const to = room_for(store, MAXALIGN(bytes));
  std::memcpy(to, from, bytes);
  return PointerGetDatum(to);
}

void keep_in_memory(RowStore* store, const Datum* row_values, const bool* row_nulls) {
  if (store->rows == store->capacity) grow(store);
  Datum* const values = store->values + store->rows * width(store);
  bool* const nulls = store->nulls + store->rows * width(store);
  const MemoryContext caller = MemoryContextSwitchTo(store->context);
  for (int i = 0; i < store->columns->natts; ++i) {
    const int from = store->attributes[i] - 1;
    nulls[i] = row_nulls[from];
    values[i] = nulls[i] ? 0 : keep(store, i, row_values[from]);
  }
  MemoryContextSwitchTo(caller);
  ++store->rows;
}

// ---- In a file, as PostgreSQL's tuples

/// Appends to the file, which is written from its end on.
void write_tuple(RowStore* store, const Datum* values, const bool* nulls) {
  reserve_next(store->context, &store->places, store->rows, &store->capacity);
  const MinimalTuple tuple = form_minimal_tuple(store->columns, values, nulls);
  store->places[store->rows++] = store->end;
  write_exactly(store->file, tuple, tuple->t_len);
  store->end += tuple->t_len;
  pfree(tuple);
}

std::uint64_t tuple_bytes(const RowStore* store, std::uint64_t row) {
  return (row + 1 < store->rows ? store->places[row + 1] : store->end) - store->places[row];
}

/// Reads a row to a place that is aligned and has room for its tuple, to which values point.
void read_tuple(RowStore* store, std::uint64_t row, char* to, Datum* values, bool* nulls) {
  const std::uint64_t bytes = tuple_bytes(store, row);
  seek_exactly(store->file, store->places[row]);
  read_exactly(store->file, to, bytes);
  HeapTupleData head = {};
  head.t_len = static_cast<std::uint32_t>(bytes + MINIMAL_TUPLE_OFFSET);
  head.t_data = reinterpret_cast<HeapTupleHeader>(to - MINIMAL_TUPLE_OFFSET);
  heap_deform_tuple(&head, store->columns, values, nulls);
}

// ---- In a file, as records: the values of a row, and after them which are NULL

Size record_bytes(const RowStore* store) {
  return width(store) * sizeof(Datum) + MAXALIGN(width(store));
}

Datum* values_of(const RowStore* store, std::uint64_t record) {
  return reinterpret_cast<Datum*>(store->records + record * record_bytes(store));
}

bool* nulls_of(const RowStore* store, std::uint64_t record) {
  return reinterpret_cast<bool*>(values_of(store, record) + width(store));
}

void write_record(RowStore* store, const Datum* values, const bool* nulls) {
  std::copy_n(values, width(store), values_of(store, 0));
  std::copy_n(nulls, width(store), nulls_of(store, 0));
  write_exactly(store->file, store->records, record_bytes(store));
  ++store->rows;
}

/// Reads a row and some of those after it: most who want one row want the next one as well.
void read_records(RowStore* store, std::uint64_t row) {
  store->fetched_count = 0;
  const std::uint64_t count = std::min(kRecordsRead, store->rows - row);
  seek_exactly(store->file, row * record_bytes(store));
  read_exactly(store->file, store->records, count * record_bytes(store));
  store->fetched = row;
  store->fetched_count = count;
}

bool has_fetched(const RowStore* store, std::uint64_t row) {
  return row >= store->fetched && row - store->fetched < store->fetched_count;
}

// ---- In a file, either way

void write_row(RowStore* store, const Datum* values, const bool* nulls) {
  store->by_value ? write_record(store, values, nulls) : write_tuple(store, values, nulls);
}

/// What a row takes in memory besides its entries, once it was read.
Size read_bytes(const RowStore* store, std::uint64_t row) {
  return store->by_value ? 0 : MAXALIGN(tuple_bytes(store, row));
}

/// Reads a row, and its tuple to a place that has read_bytes().
void read_row(RowStore* store, std::uint64_t row, char* to, Datum* values, bool* nulls) {
  if (!store->by_value) return read_tuple(store, row, to, values, nulls);
  if (!has_fetched(store, row)) read_records(store, row);
  std::copy_n(values_of(store, row - store->fetched), width(store), values);
  std::copy_n(nulls_of(store, row - store->fetched), width(store), nulls);
}

void spill(RowStore* store) {
  const std::uint64_t rows = store->rows;
  const Datum* const values = store->values;
  const bool* const nulls = store->nulls;
  const MemoryContext filled = store->context;
  const MemoryContext parent = MemoryContextGetParent(filled);
  give_back(store, store->bytes);
  store->budget->spilled = true;
  store->context = AllocSetContextCreate(parent, "gpujoin rows", ALLOCSET_DEFAULT_SIZES);
  store->rows = store->capacity = store->block_left = 0;
  const MemoryContext caller = MemoryContextSwitchTo(parent);
  PrepareTempTablespaces();
  store->file = BufFileCreateTemp(false);
  MemoryContextSwitchTo(caller);
  if (store->by_value) {
    resize_array(store->context, &store->records, kRecordsRead * record_bytes(store));
    std::fill_n(store->records, record_bytes(store), 0);
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    write_row(store, values + row * width(store), nulls + row * width(store));
  }
  MemoryContextDelete(filled);
  store->values = nullptr;
  store->nulls = nullptr;
  resize_array(store->context, &store->values, width(store));
  resize_array(store->context, &store->nulls, width(store));
  store->fetched_context =
      AllocSetContextCreate(store->context, "gpujoin row", ALLOCSET_SMALL_SIZES);
  store->wanted.context =
      AllocSetContextCreate(store->context, "gpujoin wanted rows", ALLOCSET_DEFAULT_SIZES);
}

/// Moves stores to files, the largest first, until the others are within the budget.
void spill_over(RowBudget* budget) {
  while (budget->taken > memory_for_stores(*budget)) {
    RowStore* largest = budget->stores;
    for (RowStore* store = largest; store != nullptr; store = store->next)
      if (store->bytes > largest->bytes) largest = store;
    spill(largest);
  }
}

bool is_wanted(const RowStore* store, std::uint64_t row) {
  const std::uint64_t* const bits = store->wanted.bits;
  return bits != nullptr && (bits[row / kWordBits] >> row % kWordBits & 1) != 0;
}

void* allocate(MemoryContext context, Size bytes) {
  return MemoryContextAllocHuge(context, bytes + 1);
}

void make_bits(RowStore* store) {
  const std::uint64_t words = (store->rows + kWordBits - 1) / kWordBits;
  WantedRows& wanted = store->wanted;
  resize_array(store->context, &wanted.bits, words);
  resize_array(store->context, &wanted.before, words);
  std::fill_n(wanted.bits, words, 0);
  wanted.first_word = kNoRow;
}

}  // namespace

RowStore* create_row_store(MemoryContext parent, RowBudget* budget, TupleDesc input,
                           const AttrNumber* attributes, int count) {
  const MemoryContext caller = MemoryContextSwitchTo(parent);
  RowStore* const store = static_cast<RowStore*>(palloc0(sizeof(RowStore)));
  store->columns = CreateTemplateTupleDesc(count);
  store->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (count + 1)));
  store->by_value = true;
  for (int i = 0; i < count; ++i) {
    store->attributes[i] = attributes[i];
    TupleDescCopyEntry(store->columns, static_cast<AttrNumber>(i + 1), input, attributes[i]);
    store->by_value = store->by_value && TupleDescAttr(store->columns, i)->attbyval;
  }
  store->budget = budget;
  store->next = budget->stores;
  budget->stores = store;
  store->context = AllocSetContextCreate(parent, "gpujoin rows", ALLOCSET_DEFAULT_SIZES);
  MemoryContextSwitchTo(caller);
  return store;
}

void store_row(RowStore* store, const Datum* values, const bool* nulls) {
  if (store->columns->natts == 0) {
    ++store->rows;
    return;
  }
  if (store->file == nullptr) {
    keep_in_memory(store, values, nulls);
    spill_over(store->budget);
    return;
  }
  for (int i = 0; i < store->columns->natts; ++i) {
    store->values[i] = values[store->attributes[i] - 1];
    store->nulls[i] = nulls[store->attributes[i] - 1];
  }
  store->fetched_count = 0;
  write_row(store, store->values, store->nulls);
}

void trim_row_store(RowStore* store) {
  if (store->file == nullptr && store->capacity > store->rows) resize(store, store->rows);
}

Size want_row(RowStore* store, std::uint64_t row) {
  if (store->file == nullptr || is_wanted(store, row)) return 0;
  WantedRows& wanted = store->wanted;
  if (wanted.bits == nullptr) make_bits(store);
  const std::uint64_t word = row / kWordBits;
  wanted.bits[word] |= std::uint64_t{1} << row % kWordBits;
  wanted.first_word = std::min(wanted.first_word, word);
  wanted.end_word = std::max(wanted.end_word, word + 1);
  const Size bytes = read_bytes(store, row);
  wanted.tuple_bytes += bytes;
  ++wanted.rows;
  return bytes + entry_bytes(store);
}

Size spilled_bytes(const RowStore* store) {
  if (store->file == nullptr || store->rows == 0) return 0;
  const Size tuple = store->by_value ? 0 : MAXALIGN(store->end / store->rows);
  return tuple + entry_bytes(store);
}

void read_wanted_rows(RowStore* store) {
  WantedRows& wanted = store->wanted;
  if (wanted.rows == 0) return;
  const std::uint64_t cells = wanted.rows * width(store);
  wanted.values = static_cast<Datum*>(allocate(wanted.context, cells * sizeof(Datum)));
  wanted.nulls = static_cast<bool*>(allocate(wanted.context, cells * sizeof(bool)));
  char* tuple = static_cast<char*>(allocate(wanted.context, wanted.tuple_bytes));
  std::uint64_t read = 0;
  for (std::uint64_t word = wanted.first_word; word < wanted.end_word; ++word) {
    wanted.before[word] = static_cast<std::uint32_t>(read);
    for (std::uint64_t bits = wanted.bits[word]; bits != 0; bits &= bits - 1, ++read) {
      CHECK_FOR_INTERRUPTS();
      const std::uint64_t row = word * kWordBits + std::countr_zero(bits);
      read_row(store, row, tuple, wanted.values + read * width(store),
               wanted.nulls + read * width(store));
      tuple += read_bytes(store, row);
    }
  }
}

void forget_wanted_rows(RowStore* store) {
  WantedRows& wanted = store->wanted;
  if (wanted.rows == 0) return;
  std::fill(wanted.bits + wanted.first_word, wanted.bits + wanted.end_word, 0);
  wanted.first_word = kNoRow;
  wanted.end_word = 0;
  wanted.rows = wanted.tuple_bytes = 0;
  MemoryContextReset(wanted.context);
}

const Datum* fetch_spilled_row(RowStore* store, std::uint64_t row, const bool** nulls) {
  if (is_wanted(store, row)) {
    const WantedRows& wanted = store->wanted;
    const std::uint64_t word = row / kWordBits;
    const std::uint64_t lower = (std::uint64_t{1} << row % kWordBits) - 1;
    const std::uint64_t place =
        wanted.before[word] + static_cast<unsigned>(std::popcount(wanted.bits[word] & lower));
    *nulls = wanted.nulls + place * width(store);
    return wanted.values + place * width(store);
  }
  if (store->by_value) {
    if (!has_fetched(store, row)) read_records(store, row);
    *nulls = nulls_of(store, row - store->fetched);
    return values_of(store, row - store->fetched);
  }
  if (!has_fetched(store, row)) {
    store->fetched_count = 0;
    MemoryContextReset(store->fetched_context);
    char* const tuple =
        static_cast<char*>(allocate(store->fetched_context, tuple_bytes(store, row)));
    read_tuple(store, row, tuple, store->values, store->nulls);
    store->fetched = row;
    store->fetched_count = 1;
  }
  *nulls = store->nulls;
  return store->values;
}

void clear_row_store(RowStore* store) {
  if (store->file != nullptr) BufFileClose(store->file);
  give_back(store, store->bytes);
  MemoryContextReset(store->context);
  store->file = nullptr;
  store->values = nullptr;
  store->nulls = nullptr;
  store->places = nullptr;
  store->records = nullptr;
  store->fetched_context = nullptr;
  store->wanted = {};
  store->rows = store->capacity = store->block_left = store->end = store->fetched_count = 0;
}

}  // namespace gpujoin

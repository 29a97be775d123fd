#include "pg/store/row_store.h"

#include "pg/store/buffile.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "utils/datum.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kFirstRows = 256;

std::uint64_t width(const RowStore* store) {
  return static_cast<std::uint64_t>(store->columns->natts);
}

/// A copy in the store's memory, of which *bytes are counted.
Datum keep(RowStore* store, int column, Datum value) {
  const Form_pg_attribute attribute = TupleDescAttr(store->columns, column);
  if (attribute->attbyval) return value;
  store->bytes += datumGetSize(value, false, attribute->attlen) + 2 * sizeof(void*);
  return datumCopy(value, false, attribute->attlen);
}

void keep_in_memory(RowStore* store, const Datum* row_values, const bool* row_nulls) {
  if (store->rows == store->capacity) {
    store->capacity = store->capacity == 0 ? kFirstRows : 2 * store->capacity;
    resize_array(store->context, &store->values, store->capacity * width(store));
    resize_array(store->context, &store->nulls, store->capacity * width(store));
  }
  Datum* const values = store->values + store->rows * width(store);
  bool* const nulls = store->nulls + store->rows * width(store);
  const MemoryContext caller = MemoryContextSwitchTo(store->context);
  for (int i = 0; i < store->columns->natts; ++i) {
    const int from = store->attributes[i] - 1;
    nulls[i] = row_nulls[from];
    values[i] = nulls[i] ? 0 : keep(store, i, row_values[from]);
  }
  MemoryContextSwitchTo(caller);
  store->bytes += width(store) * (sizeof(Datum) + sizeof(bool));
  ++store->rows;
}

/// Appends to the file, which is written from its end on.
void write_row(RowStore* store, const Datum* values, const bool* nulls) {
  if (store->rows == store->capacity) {
    store->capacity = store->capacity == 0 ? kFirstRows : 2 * store->capacity;
    resize_array(store->context, &store->offsets, store->capacity);
  }
  const MinimalTuple tuple = form_minimal_tuple(store->columns, values, nulls);
  int segment;
  off_t offset;
  BufFileTell(store->file, &segment, &offset);
  store->offsets[store->rows++] = static_cast<std::int64_t>(segment) << 32 | offset;
  write_exactly(store->file, tuple, tuple->t_len);
  pfree(tuple);
}

}  // namespace

RowStore* create_row_store(MemoryContext parent, TupleDesc input, const AttrNumber* attributes,
                           int count, Size limit) {
  const MemoryContext caller = MemoryContextSwitchTo(parent);
  RowStore* const store = static_cast<RowStore*>(palloc0(sizeof(RowStore)));
  store->columns = CreateTemplateTupleDesc(count);
  store->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (count + 1)));
  for (int i = 0; i < count; ++i) {
    store->attributes[i] = attributes[i];
    TupleDescCopyEntry(store->columns, static_cast<AttrNumber>(i + 1), input, attributes[i]);
  }
  store->limit = limit;
  store->context = AllocSetContextCreate(parent, "gpujoin rows", ALLOCSET_DEFAULT_SIZES);
  store->fetched = kNoRow;
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
    if (store->bytes > store->limit) spill_rows(store);
    return;
  }
  for (int i = 0; i < store->columns->natts; ++i) {
    store->values[i] = values[store->attributes[i] - 1];
    store->nulls[i] = nulls[store->attributes[i] - 1];
  }
  store->fetched = kNoRow;
  write_row(store, store->values, store->nulls);
}

void spill_rows(RowStore* store) {
  const std::uint64_t rows = store->rows;
  const Datum* const values = store->values;
  const bool* const nulls = store->nulls;
  const MemoryContext filled = store->context;
  const MemoryContext parent = MemoryContextGetParent(filled);
  store->context = AllocSetContextCreate(parent, "gpujoin rows", ALLOCSET_DEFAULT_SIZES);
  store->rows = store->capacity = store->bytes = 0;
  const MemoryContext caller = MemoryContextSwitchTo(parent);
  PrepareTempTablespaces();
  store->file = BufFileCreateTemp(false);
  MemoryContextSwitchTo(caller);
  for (std::uint64_t row = 0; row < rows; ++row)
    write_row(store, values + row * width(store), nulls + row * width(store));
  MemoryContextDelete(filled);
  store->values = nullptr;
  store->nulls = nullptr;
  resize_array(store->context, &store->values, width(store));
  resize_array(store->context, &store->nulls, width(store));
  store->fetched_context =
      AllocSetContextCreate(store->context, "gpujoin row", ALLOCSET_SMALL_SIZES);
}

void fetch_spilled_row(RowStore* store, std::uint64_t row) {
  store->fetched = kNoRow;
  MemoryContextReset(store->fetched_context);
  const std::int64_t offset = store->offsets[row];
  seek_exactly(store->file, static_cast<int>(offset >> 32), offset & 0xffffffff);
  std::uint32_t length;
  read_exactly(store->file, &length, sizeof length);
  const MinimalTuple tuple =
      static_cast<MinimalTuple>(MemoryContextAlloc(store->fetched_context, length));
  tuple->t_len = length;
  read_exactly(store->file, reinterpret_cast<char*>(tuple) + sizeof length, length - sizeof length);
  HeapTupleData head = {};
  head.t_len = length + MINIMAL_TUPLE_OFFSET;
  head.t_data =
      reinterpret_cast<HeapTupleHeader>(reinterpret_cast<char*>(tuple) - MINIMAL_TUPLE_OFFSET);
  heap_deform_tuple(&head, store->columns, store->values, store->nulls);
  store->fetched = row;
}

void clear_row_store(RowStore* store) {
  if (store->file != nullptr) BufFileClose(store->file);
  MemoryContextReset(store->context);
  store->file = nullptr;
  store->values = nullptr;
  store->nulls = nullptr;
  store->offsets = nullptr;
  store->fetched_context = nullptr;
  store->rows = store->capacity = store->bytes = 0;
  store->fetched = kNoRow;
}

}  // namespace gpujoin

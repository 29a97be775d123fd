// Rows of functions that return what is known of joins, devices and tables, column by column.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
}

namespace gpujoin {

/// A row of a result in the making: values in the order of the columns.
struct Row {
  static constexpr int kMaxColumns = 40;
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];
  int count;
};

inline void add(Row* row, Datum value) {
  row->values[row->count] = value;
  row->nulls[row->count++] = false;
}

inline void add_null(Row* row) { row->nulls[row->count++] = true; }

/// "" stands for NULL.
inline void add_text(Row* row, const char* text) {
  if (text[0] == '\0')
    add_null(row);
  else
    add(row, CStringGetTextDatum(text));
}

inline void add_count(Row* row, std::uint64_t number) {
  add(row, Int64GetDatum(static_cast<std::int64_t>(number)));
}

/// An extension that was not updated yet has fewer columns.
inline Datum make_tuple(TupleDesc description, Row* row) {
  Assert(row->count >= description->natts);
  return HeapTupleGetDatum(heap_form_tuple(description, row->values, row->nulls));
}

inline TupleDesc row_type(FunctionCallInfo fcinfo) {
  TupleDesc description;
  if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  return BlessTupleDesc(description);
}

/// The first call of a function that returns a set of rows.
inline FuncCallContext* start_rows(FunctionCallInfo fcinfo) {
  FuncCallContext* const calls = SRF_FIRSTCALL_INIT();
  const MemoryContext caller = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
  calls->tuple_desc = row_type(fcinfo);
  MemoryContextSwitchTo(caller);
  return calls;
}

}  // namespace gpujoin

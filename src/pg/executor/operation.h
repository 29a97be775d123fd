// What the set-returning functions do: an entry for each says what is asked of the engine and how
// rows are made of its answer. PostgreSQL's calls and the plan node run the same entries.
#pragma once

#include "pg/executor/function_scan.h"

namespace gpujoin {

/// What a row of the result stands for, which counting and estimates follow from.
enum class RowKind {
  kPair,
  kLeftRow,  ///< each row of the left side has one
};

inline constexpr int kMaxResultColumns = 3;

struct Operation {
  JoinFunction function;
  const char* method;  ///< for EXPLAIN
  RowKind row;
  int columns;  ///< of a row, none of which is ever NULL
  /// Starts the engine on what the scan has read, for the first time or again.
  void (*start)(JoinScan* scan);
  /// Sets values[columns] to the next row, in the current memory context; false at the end.
  bool (*next)(JoinScan* scan, Datum* values);
};

/// The operation of a function of the SQL surface, by what identifies it whatever its name, schema
/// and OID are. Null when it is none.
const Operation* find_operation(PGFunction address);

/// neighbor_rows.cpp: a row with its neighbours as arrays.
void start_neighbors(JoinScan* scan);
bool next_neighbors(JoinScan* scan, Datum* values);

}  // namespace gpujoin

// What the set-returning functions do: an entry for each says what is asked of the engine and how
// rows are made of its answer. PostgreSQL's calls and the plan node run the same entries.
#pragma once

#include "pg/executor/function_scan.h"

namespace gpujoin {

/// What a row of the result stands for, which counting and estimates follow from.
enum class RowKind {
  kPair,
  kNeighbor,  ///< a pair, with its place among those of its left row
  kLeftRow,   ///< each row of the left side has one
  kGathered,  ///< likewise, with its pairs in it
};

inline constexpr int kMaxResultColumns = 4;

struct Operation {
  JoinFunction function;
  const char* method;  ///< for EXPLAIN
  RowKind row;
  int columns;  ///< of a row
  /// Starts the engine on what the scan has read, for the first time or again.
  void (*start)(JoinScan* scan);
  /// Sets values[columns] to the next row, in the current memory context; false at the end. Sets
  /// nulls[columns], all false before, where a value is NULL; only of a row that is none of a pair.
  bool (*next)(JoinScan* scan, Datum* values, bool* nulls);
};

/// The operation of a function of the SQL surface, by what identifies it whatever its name, schema
/// and OID are. Null when it is none.
const Operation* find_operation(PGFunction address);

/// neighbor_rows.cpp: a row with its neighbours as arrays.
void start_neighbors(JoinScan* scan);
bool next_neighbors(JoinScan* scan, Datum* values, bool* nulls);

/// sorted_neighbors.cpp: the same for points that lie in a file.
void start_sorted_neighbors(JoinScan* scan);
bool next_sorted_neighbors(JoinScan* scan, Datum* values);

/// row_numbers.cpp: a row with its number of neighbours, or with its cluster.
void start_row_numbers(JoinScan* scan);
bool next_density(JoinScan* scan, Datum* values, bool* nulls);
bool next_component(JoinScan* scan, Datum* values, bool* nulls);
bool next_cluster(JoinScan* scan, Datum* values, bool* nulls);

// What they have in common. JoinScan::rows is theirs, and begins with its memory context.

struct Neighbor {
  double distance;
  std::int64_t id;

  bool operator<(const Neighbor& other) const {
    return distance != other.distance ? distance < other.distance : id < other.id;
  }
};

/// Forgets what an earlier start has left.
inline void forget_rows(JoinScan* scan) {
  if (scan->rows != nullptr) MemoryContextDelete(*static_cast<MemoryContext*>(scan->rows));
  scan->rows = nullptr;
}

/// Raises an error where an array cannot hold the neighbours of a row.
void check_neighbor_count(std::int64_t id, std::uint64_t count);

/// Sorts the neighbours and makes (id, neighbors, distances) in the current memory context.
void make_neighbor_row(std::int64_t id, Neighbor* neighbors, std::uint64_t count, Datum* values);

}  // namespace gpujoin

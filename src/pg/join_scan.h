// The executor of a join, shared by functions and plan node: reads the tables, runs an engine,
// hands out pairs. Plain data and one engine handle, in a memory context whose end closes the
// engine, so an error anywhere leaves nothing behind.
#pragma once

#include "engine/engine.h"
#include "engine/pair_cursor.h"
#include "pg/arguments.h"
#include "pg/engine_loader.h"

namespace gpujoin {

/// What a join did, for EXPLAIN and gpu_last_join().
struct JoinReport {
  const JoinFunction* function;
  const char* engine;
  char fallback[sizeof(EngineChoice::fallback)];
  Metric metric;
  PairSelection pairs;
  double eps;
  std::uint32_t dims;
  std::uint64_t dataset_bytes;
  double read_ms;
  bool complete;
  JoinStats stats;
};

struct JoinScan {
  MemoryContext context;  ///< holds this struct, the arguments and the data
  JoinArguments arguments;
  Dataset left;
  Dataset right;
  const EngineTable* engine;
  Join* join;      ///< null when no engine is at work
  bool delivered;  ///< the engine has handed over a batch
  PairCursor cursor;
  IdPair pair;
  JoinReport report;
};

/// Starts a join in a child of `parent`. `arguments` are the function's. Reads both tables; raises
/// errors.
JoinScan* open_join_scan(MemoryContext parent, const JoinFunction* function,
                         const NullableDatum* arguments);

/// Starts over with other arguments, and reads again only if they name other data. Returns the scan
/// to go on with; the old one is gone. Leaves garbage in the current memory context. Snapshots must
/// be the same.
JoinScan* reopen_join_scan(JoinScan* scan, const NullableDatum* arguments);

/// Starts over with the same arguments, without reading again.
void rewind_join_scan(JoinScan* scan);

/// Moves the cursor to the next batch; false at the end of the result. Raises engine errors and
/// interrupts.
bool next_join_batch(JoinScan* scan);

/// Sets scan->pair to the next pair; false at the end of the result.
inline bool next_join_pair(JoinScan* scan) {
  while (!scan->cursor.next(&scan->pair))
    if (!next_join_batch(scan)) return false;
  return true;
}

/// Stops the engine and frees everything.
void close_join_scan(JoinScan* scan);

/// What the scan has done so far.
const JoinReport& report_join(JoinScan* scan);

/// What the session's last join did; null when there was none.
const JoinReport* last_join_report();

}  // namespace gpujoin

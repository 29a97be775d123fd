// A call of a set-returning function at work, wherever it stands: reads the tables, runs an engine,
// hands out pairs. In a memory context of its own.
#pragma once

#include "engine/pair_cursor.h"
#include "pg/executor/engine_run.h"
#include "pg/reading/arguments.h"

namespace gpujoin {

struct JoinScan {
  MemoryContext context;  ///< holds this struct, the arguments and the data
  JoinArguments arguments;
  Dataset left;
  Dataset right;
  bool self_join;  ///< the left data alone, with itself
  Output output;
  EngineRun run;
  PairCursor cursor;
  IdPair pair;
};

/// Reads what a join needs and prepares its request, but starts no engine. See open_join_scan().
JoinScan* prepare_join_scan(MemoryContext parent, const JoinFunction* function,
                            const NullableDatum* arguments, Output output);

/// Starts a join in a child of `parent`. `arguments` are the function's, `output` what is wanted of
/// it: its pairs, or their number. Reads both tables; raises errors.
JoinScan* open_join_scan(MemoryContext parent, const JoinFunction* function,
                         const NullableDatum* arguments, Output output);

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

}  // namespace gpujoin

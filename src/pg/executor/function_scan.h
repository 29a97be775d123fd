// A running call of a set-returning function, wherever it stands: it reads the tables, runs an
// engine and emits pairs. It has a memory context of its own.
#pragma once

#include "engine/request/pair_cursor.h"
#include "pg/executor/divided_rows.h"
#include "pg/executor/engine_run.h"
#include "pg/geometry/great_circle.h"
#include "pg/reading/arguments.h"
#include "pg/reading/kept_side.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

struct Operation;

struct JoinScan {
  MemoryContext context;  ///< holds this struct, the arguments and the data
  const Operation* operation;
  bool counted;        ///< the number of rows is wanted, not the rows
  bool warned;         ///< units were checked
  std::uint32_t dims;  ///< of the values
  JoinArguments arguments;
  PointBuffer left_points;
  PointBuffer right_points;
  Dataset left;
  Dataset right;
  DividedRows divided;  ///< where the left rows come in groups: `left` is those at hand
  KeptSide kept[2];     ///< rows that the service has
  bool prewarms;        ///< the service is to keep the rows, however few they are
  bool reads_whole;     ///< all rows are to be read
  bool started;         ///< since they were read
  bool self_join;       ///< the left data alone, with itself
  bool has_chords;      ///< distances of pairs are straight lines, and arcs are shown
  // gpu_neighbors() asks twice.
  bool rows_counted;  ///< the engine has counted each row's pairs, and is asked for them
  bool by_id;         ///< it names rows by their ids, not by their places: the service has them
  EngineRun run;
  PairCursor cursor;
  IdPair pair;
  double chord;  ///< of the pair, where it has_chords
  void* rows;    ///< what the operation makes rows of, its own; in a context below `context`
};

/// Starts a join in a child of `parent`. `arguments` are those of the call. Reads both tables;
/// raises errors.
JoinScan* open_join_scan(MemoryContext parent, const Operation* operation, Node* call,
                         const NullableDatum* arguments, bool counted, bool warned = false);

/// Starts a counted join in the service, however small it is, and waits for the service to start.
JoinScan* prewarm_join_scan(MemoryContext parent, const Operation* operation, Node* call,
                            const NullableDatum* arguments);

/// Starts over with other arguments, and reads again only if they name other data. Returns the scan
/// to go on with; the old one is gone. Leaves garbage in the current memory context. Snapshots must
/// be the same.
JoinScan* reopen_join_scan(JoinScan* scan, Node* call, const NullableDatum* arguments);

/// Starts over with the same arguments, without reading again.
void rewind_join_scan(JoinScan* scan);

/// Prepares the run for the first join of the rows, or for another one: what the service has of
/// them, it has found for one join, and is asked for again.
void prepare_join(JoinScan* scan);

/// Moves the cursor to the next batch; false at the end of the result. Raises engine errors and
/// interrupts.
bool next_join_batch(JoinScan* scan);

/// A distance or score of the engine's as the caller is to see it.
inline double shown_distance(const JoinScan* scan, double distance) {
  return scan->has_chords ? arc_of_chord(distance) : distance;
}

/// Sets scan->pair to the next pair; false at the end of the result.
inline bool next_join_pair(JoinScan* scan) {
  if (scan->has_chords) scan->pair.distance = scan->chord;  // which a mirrored pair keeps
  while (!scan->cursor.next(&scan->pair))
    if (!next_join_batch(scan)) return false;
  if (scan->has_chords) {
    scan->chord = scan->pair.distance;
    scan->pair.distance = arc_of_chord(scan->chord);
  }
  return true;
}

/// Sets values and nulls to the next row of the operation; false at the end of the result.
bool next_join_row(JoinScan* scan, Datum* values, bool* nulls);

/// The number of rows, of a scan that is counted.
std::uint64_t count_join_rows(JoinScan* scan);

/// Stops the engine and frees everything.
void close_join_scan(JoinScan* scan);

}  // namespace gpujoin

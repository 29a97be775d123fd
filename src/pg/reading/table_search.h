// Searches in one table for the rows nearest to a value, one value at a time, as one snapshot sees
// the table. gpujoin_service runs them if it can keep the table. If not, this session copies the
// column once and runs them on its own CPU engine.
#pragma once

#include "pg/reading/kept_side.h"
#include "pg/reading/row_values.h"
#include "pg/store/spill_file.h"

namespace gpujoin {

/// Result of a search, nearest row first.
struct FoundList {
  service::FoundRow* rows;  ///< [count]
  std::uint64_t count, room;
};

struct TableSearch {
  MemoryContext context;
  Connection connection;  ///< to the service; closed if this session searches by itself
  bool is_waiting;        ///< for the service's answer, so the connection cannot be reused
  bool is_sent;           ///< the service has the rows that this session read
  PointBuffer points;     ///< rows that this session read
  SpillFile spill;        ///< for `points` beyond their limit, which end the searches
  KeptSide kept;
  ValueShape shape;     ///< dimensions and SRID of the column's values
  std::uint64_t local;  ///< identity of `points` for the session's engine; 0: the service searches
  Join* join;           ///< on the session's engine; null unless one is running
  FoundList found;      ///< by the last search
  char engine[sizeof(service::FoundRows::engine)];
  std::uint64_t candidates;  ///< sum of all searches
};

/// Prepares searches in a table as the active snapshot sees it. Reads the blocks that the service
/// does not have; without a service, all blocks. Returns null if the table cannot be read by
/// blocks, or if some value is no finite point. The searches end with the current memory context.
/// Raises errors of reading, and interrupts.
TableSearch* open_table_search(const SideColumns& columns);

/// Adds the rows that are to be searched. Returns false if they are of no use.
using CollectRows = bool (*)(RowCollector* rows, void* argument);

/// Prepares searches by this session in the rows that `collect` adds. `columns` describe them:
/// values of one type, known by ctids. Returns null if `collect` fails or some value is no finite
/// point.
TableSearch* open_computed_search(const SideColumns& columns, CollectRows collect, void* argument);

/// Prepares searches by the service, as open_table_search() does. Starts the service and waits for
/// it if it is not running. Returns null with the reason in *why if the service cannot keep the
/// table.
TableSearch* open_kept_search(const SideColumns& columns, Status* why);

/// Finds the rows that `request`, an Output::nearest() without datasets, asks for. Sets
/// search->found. On failure it keeps the result of the search before. Raises interrupts.
Status search_table(TableSearch* search, const JoinRequest& request, service::WantedEngine engine,
                    const Dataset& point);

/// Returns true if a message to the service has room for the point.
inline bool has_room_for(const Dataset& point) {
  return point_bytes(point) <= service::kMostPointBytes;
}

/// Ends the searches. Returns the connection to the session for later use. Raises nothing.
void close_table_search(TableSearch* search);

}  // namespace gpujoin

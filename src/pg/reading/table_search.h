// Searches in a table whose rows stay in gpujoin_service: the nearest rows of one row at a time, as
// one snapshot has them.
#pragma once

#include "pg/reading/kept_side.h"

namespace gpujoin {

struct TableSearch {
  Connection connection;
  bool waits;          ///< an answer is due, without which the conversation is of no further use
  PointBuffer points;  ///< rows that were read in the place of those that nothing proves
  SpillFile spill;     ///< for these; a table that needs it is not searched
  bool told;           ///< the service has these
  KeptSide kept;
  ValueShape shape;  ///< of the values
  // What the last search found, the nearest first:
  MemoryContext found_context;
  service::FoundRow* rows;  ///< [count]
  std::uint64_t count;
  char engine[sizeof(service::FoundRows::engine)];
  std::uint64_t candidates;  ///< of all searches
};

/// Begins searches in a table as the active snapshot has it: reads those blocks that the service
/// does not have. Null where the table cannot stay or there is no service. Ends with the current
/// memory context, which keeps what was read. Raises errors of reading and interrupts.
TableSearch* open_table_search(const SideColumns& columns);

/// Looks for Output::nearest() of a request without rows, near a point as the columns have them.
/// Where that fails, what the search before found stays. Raises interrupts.
Status search_table(TableSearch* search, const JoinRequest& request, service::WantedEngine engine,
                    const Dataset& point);

/// Whether a point can be looked for: its message has room for it.
inline bool has_room_for(const Dataset& point) {
  return point_bytes(point) <= service::kMostPointBytes;
}

/// Ends the searches, and leaves their conversation for others. Raises nothing.
void close_table_search(TableSearch* search);

}  // namespace gpujoin

// Joins that run in the service, behind the table of an engine: to who pulls their batches they are
// joins like any other.
#pragma once

#include "pg/service/connection.h"
#include "pg/store/shared_points.h"

namespace gpujoin {

/// A side of a table that the service found in this conversation, and what the backend read in the
/// place of blocks that nothing proves.
struct TablePatches {
  Dataset rows;                   ///< those that were read, in the order of their blocks
  const std::uint64_t* map_lsns;  ///< [map_pages] of the visibility map, as it is now
  std::uint64_t map_pages;
  const service::BlockPatch* patches;  ///< [count]
  std::uint64_t count;
  const service::MovedRow* moved;  ///< [moved_count]
  std::uint64_t moved_count;
  std::uint64_t blocks;  ///< that the table has now
  service::TableTraits traits;
};

/// Where the rows of a side lie. Not owned.
struct SharedSide {
  SharedPoints* points = nullptr;       ///< in shared memory, as far as they do
  const TablePatches* table = nullptr;  ///< the rows are these, and the service's
};

/// By which groups of left rows counts and sums are wanted. Not owned.
struct SumGroups {
  const std::uint32_t* of_row = nullptr;  ///< [left rows]; unused where there is one group
  std::uint64_t count = 0;                ///< 0: each left row's are wanted
};

/// The table of joins that open_service_join() has opened. Its own open() opens none: a join needs
/// a conversation.
const EngineTable* service_engine();

/// Opens a join in a conversation that has none, which stays the caller's and outlives the join.
/// sides[0 .. 2), of a self-join the first: where the rows lie; what the request has elsewhere is
/// copied. Rows in a file cannot be joined. With `groups` batches name groups in the place of left
/// rows; a group may come several times, and not at all without pairs. On failure *join is null and
/// the conversation of no further use. Raises nothing.
Status open_service_join(const Connection* connection, service::WantedEngine engine,
                         const JoinRequest& request, const SharedSide* sides,
                         const SumGroups& groups, Join** join);

/// Whether a join failed because the service ended.
bool says_service_ended(const Status& status);

/// The engine at work for a join.
struct ServingEngine {
  const char* name;  ///< "cpu" or "cuda"; until it has emitted a batch, "service"
  char fallback[sizeof(Status::message)];  ///< why the CPU serves where a device was to; or ""
};

/// Holds as long as the join is open and no batch is asked for.
const ServingEngine* engine_of_service_join(const Join* join);

}  // namespace gpujoin

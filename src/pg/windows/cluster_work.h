// Clusters of the rows of one partition after the other, as window functions ask for them.
#pragma once

#include "pg/executor/engine_run.h"
#include "pg/reading/arguments.h"
#include "pg/types/value_type.h"

namespace gpujoin {

/// What is instead of the number of a row that is in no cluster.
inline constexpr std::uint32_t kInNoCluster = ~std::uint32_t{0};

/// The work on a partition, in a context of its own. That of a partition with few rows serves the
/// next one, too.
struct ClusterWork {
  MemoryContext context, scratch;
  EngineRun run;
  PointBuffer points;
  ValueShape shape;
};

/// The rows of a window's partition in the making, for one call site.
struct ClusterSite {
  MemoryContext context;  ///< that of the query
  const char* name;       ///< of the function, for reports
  ClusterWork* work;
  std::uint32_t* numbers;  ///< [room] by row: its cluster, or kInNoCluster
  std::uint64_t room;
};

/// Begins with a partition of so many rows, whose values become points of the scalar type. False:
/// their numbers do not fit in memory.
bool begin_partition(ClusterSite* site, std::int64_t rows, ScalarType scalar);

/// Forgets the partition's points; others of the scalar type can be added.
void begin_points(ClusterWork* work, ScalarType scalar);

/// Begins a join for the partition: its request, which may hold `bytes` besides its points and the
/// numbers of rows.
void begin_clusters(ClusterSite* site, std::int64_t rows, const JoinRequest& request,
                    std::uint64_t bytes, bool plain_sql);

/// Starts an engine on the request: a session's own on few rows.
void start_clusters_engine(ClusterSite* site, std::int64_t rows);

/// Sets the numbers of the rows, whose points are in work->points and named by their places, and
/// ends the work on them. False where `plain_sql` and memory does not suffice. Raises errors of
/// engines, and interrupts.
bool find_clusters(ClusterSite* site, std::int64_t rows, const Dataset& points, PointMetric metric,
                   double eps, const Output& output, bool plain_sql);

/// Ends the work on a partition of so many rows; its report stays until the next one begins.
void end_partition(ClusterSite* site, std::int64_t rows);

}  // namespace gpujoin

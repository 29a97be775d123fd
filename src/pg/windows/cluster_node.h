// The node over a WindowAgg that has gpu_postgis_clusters() in the place of PostGIS's window
// functions for clusters. It passes rows on; EXPLAIN shows what the function did.
#pragma once

#include "pg/executor/engine_run.h"

namespace gpujoin {

/// A window function of PostGIS.
enum class ClusterWindow {
  kNone,    ///< it is none of these
  kDbscan,  ///< st_clusterdbscan(geometry, eps, minpoints)
  kWithin,  ///< st_clusterwithinwin(geometry, distance), which PostGIS has as of 3.4
};

ClusterWindow cluster_window(Oid function);

/// gpu_postgis_clusters(), or InvalidOid. It takes what the window function takes, 1 for the points
/// that kWithin does not have, and the function itself.
Oid find_postgis_clusters();

/// What a call of gpu_postgis_clusters() did.
struct WindowReport {
  const Node* call;      ///< in the plan
  MemoryContext query;   ///< where it runs
  std::uint64_t served;  ///< partitions that gpujoin found clusters in
  std::uint64_t left;    ///< that it left to PostGIS
  const char* reason;    ///< for the last of these
  JoinReport report;     ///< of the last one that was served; its figures are those of all
  WindowReport* next;
};

/// The report of the call that the function is called for; null: nobody wants one.
WindowReport* find_window_report(const FmgrInfo* function);

/// Adds a partition that was served.
void note_served(WindowReport* report, EngineRun* run);

}  // namespace gpujoin

// Keeps what the node finds out about a query until the query is planned.
#pragma once

#include "pg/compat.h"
#include "pg/planner/refusal.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Belongs to one PlannerInfo: that of a query or of a subquery.
struct Planning {
  const PlannerInfo* root;
  std::uint64_t number;  ///< of plannings that began before
  bool matched;          ///< `conditions` is known
  List* conditions;      ///< of DistanceCondition*
  List* estimated;       ///< of Expr: conditions whose share of pairs is known
  List* shares;          ///< of PairShare*, one for each of these
  Relids joined;         ///< relations that a plan of the node joins, all such plans together
  Refusal nearest;  ///< why no node finds the nearest rows of the query, which is one in LATERAL
  bool ranked;      ///< one does
  Relids searched;  ///< tables that a plan of GpuSimilarityScan searches, partitions by the whole
  Planning* next;
};

/// Returns what is known, which lasts as long as the planner's memory. Lists are to be allocated
/// there too: GEQO plans in shorter contexts.
Planning* planning_of(PlannerInfo* root);

/// The number of plannings that have begun.
std::uint64_t plannings_begun();

/// The latest one that is known; Planning::next leads to the others.
const Planning* latest_planning();

}  // namespace gpujoin

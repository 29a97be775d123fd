// gpu_prewarmed, the table of the calls of gpu_prewarm() that are made again whenever the service
// starts (pg/service/prewarmer.h).
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Numbers of the arguments of gpu_prewarm(). The table gpu_prewarmed has a column for each one
/// before kKeep.
enum PrewarmArgument : int {
  kTable,
  kEps,
  kIdColumn,
  kVectors,
  kMetric,
  kScoreColumn,
  kBoxes,
  kKeep
};

/// Raises an error if the current user does not own the relation, or the transaction is read-only.
void check_may_keep(Oid relation);

/// Adds a call of gpu_prewarm() to the table.
void keep_prewarmed(FunctionCallInfo call);

/// Removes the calls for a relation. `function` is one of the extension that has the table.
void forget_prewarmed(Oid function, Oid relation);

}  // namespace gpujoin

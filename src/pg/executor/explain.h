// What EXPLAIN prints for both forms of the node.
#pragma once

#include "pg/executor/engine_run.h"

namespace gpujoin {

/// What an engine chose and measured: left out under COSTS OFF, times under TIMING OFF, so that
/// regression tests can show plans whatever they run on.
void explain_report(const JoinReport& report, ExplainState* es);

/// Whether rows that were kept for the join had to go to a file.
void explain_kept_rows(bool spilled, ExplainState* es);

}  // namespace gpujoin

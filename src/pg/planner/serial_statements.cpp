// Whether a statement enters parallel mode is decided when it is planned: the executor shares its
// plan with the plan cache and may not change it.
#include "pg/planner/serial_statements.h"

#include "pg/executor/custom_scan.h"

extern "C" {
#include "optimizer/planner.h"
}

namespace gpujoin {
namespace {

planner_hook_type previous_planner = nullptr;
bool needs_subtransactions = false;  // the statement that is being planned

/// planner_hook.
PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo parameters) {
  const bool outer = needs_subtransactions;  // functions plan statements while one is planned
  PlannedStmt* statement = nullptr;
  needs_subtransactions = false;
  PG_TRY();
  {
    const planner_hook_type next =
        previous_planner != nullptr ? previous_planner : standard_planner;
    statement = next(query, text, options, parameters);
    if (needs_subtransactions) statement->parallelModeNeeded = false;
  }
  PG_FINALLY();
  { needs_subtransactions = outer; }
  PG_END_TRY();
  return statement;
}

}  // namespace

void need_subtransactions() { needs_subtransactions = true; }

void install_serial_statements() {
  if (kSubtransactionsInParallelMode) return;
  previous_planner = planner_hook;
  planner_hook = plan;
}

}  // namespace gpujoin

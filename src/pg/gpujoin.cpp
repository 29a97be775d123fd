// The module: its magic block, and what happens when a backend loads it.
#include "pg/compat.h"
#include "pg/engine_loader.h"
#include "pg/executor/bulk_insert.h"
#include "pg/executor/custom_scan.h"
#include "pg/executor/engine_run.h"
#include "pg/planner/missed.h"
#include "pg/service/supervisor.h"
#include "pg/settings.h"

extern "C" {
#include "miscadmin.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
}

/// Runs once a backend, or once in the postmaster under shared_preload_libraries: no thread and no
/// device is touched here.
void _PG_init(void) {
  gpujoin::define_settings();
  gpujoin::install_custom_scan();
  gpujoin::install_bulk_insert();
  gpujoin::install_miss_reports();
  gpujoin::install_engine_runs();
  if (!process_shared_preload_libraries_in_progress) return;
  gpujoin::preload_engines();
  gpujoin::register_supervisor();
}

// CREATE TABLE AS and INSERT ... SELECT of what the node returns: rows go into the table page by
// page, as COPY's do, where PostgreSQL inserts one after the other.
#pragma once

namespace gpujoin {

/// Sets the hooks: for queries that run, and for tables that are created. Called once, when the
/// module is loaded.
void install_bulk_insert();

}  // namespace gpujoin

// CREATE TABLE AS of what the node returns: rows go into the new table page by page, as COPY's do,
// where PostgreSQL inserts one after the other.
#pragma once

namespace gpujoin {

/// Sets the hooks: for queries that run, and for tables that are created. Called once, when the
/// module is loaded.
void install_table_receiver();

}  // namespace gpujoin

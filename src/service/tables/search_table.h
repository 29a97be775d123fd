// Searches a table by the index that engines have of an earlier version, and compares the rows that
// have changed since one by one. So a small change to the table needs no new index.
#pragma once

#include "service/search_batches.h"
#include "service/tables/table_store.h"

namespace gpujoin::service {

/// Answers a checked request for Output::nearest() whose left side is one row and whose right side
/// is the rows of the table, as SearchBatches::find() does.
Status search_table(SearchBatches& searches, const JoinRequest& request, const TableHold& table,
                    WantedEngine engine, Interrupt& interrupt, SearchAnswer* answer);

}  // namespace gpujoin::service

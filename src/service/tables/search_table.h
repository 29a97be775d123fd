// Searches of a table: engines have an index of its rows as they were, and what has changed since
// is looked at row by row. So a change costs a search little, and no index is built for it.
#pragma once

#include "service/search_batches.h"
#include "service/tables/table_store.h"

namespace gpujoin::service {

/// Answers a checked request for Output::nearest() whose left side is one row and whose right side
/// is the rows of the table, as SearchBatches::find() does.
Status search_table(SearchBatches& searches, const JoinRequest& request, const TableHold& table,
                    WantedEngine engine, Interrupt& interrupt, SearchAnswer* answer);

}  // namespace gpujoin::service

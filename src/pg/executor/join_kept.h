// Inputs whose points the service keeps.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// RowSource::kKept: the same as read_inputs() where both inputs are whole tables whose points the
/// service has, or can have: of these only the blocks are read that have changed. Of nearest rows
/// the right input alone has to be such a table. False: the inputs have to be read.
bool read_kept_inputs(JoinNode* node);

/// Finds the right rows of nearest rows again, for another search. False: the service has ended.
bool find_kept_again(JoinNode* node);

/// Before a pair is shown: reads all rows that are fetched late where fetching them one by one
/// takes longer.
void read_late_rows(JoinNode* node);

/// Has a side's rows fetched from the table that its input is a scan of. False where they have
/// values that are no columns of it.
bool open_late(JoinNode* node, Side* side);

/// Reads all rows of such a side that its points name, or all of the table, into its stores.
void store_late(JoinNode* node, Side* side);

}  // namespace gpujoin

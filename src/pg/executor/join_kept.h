// Inputs whose points the service keeps.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// RowSource::kKept: replaces read_inputs() if the service keeps the points of both inputs, whole
/// tables, or can keep them. Reads only the blocks that have changed. A join of nearest rows needs
/// this of the right input alone. Returns false if the inputs have to be read.
bool read_kept_inputs(JoinNode* node);

/// Finds the right rows again for another search of nearest rows. Returns false if the service has
/// ended.
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

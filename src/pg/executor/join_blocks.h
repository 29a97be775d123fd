// Inputs that are scans of large tables.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// The same as reading a side by its plan, where that is a scan of a large table: its values are
/// in side->buffer and its rows fetched late. False, with nothing read: the plan has to be asked.
bool read_side_blocks(JoinNode* node, Side* side, ValueShape* shape);

/// Reads the rows of those sides that are fetched late into their stores.
void store_late_rows(JoinNode* node);

}  // namespace gpujoin

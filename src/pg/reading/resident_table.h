// Tables that can be read block by block, and may stay in gpujoin_service: which they are, and what
// they are known by there.
#pragma once

#include "pg/reading/relation.h"
#include "service/protocol/messages.h"

namespace gpujoin {

/// Whether the columns of a relation can be read block by block: its rows are its own alone, and
/// all of them visible to the current user; values are stored, and become points or boxes without a
/// cast in SQL.
bool can_read_blocks(Relation relation, const SideColumns& columns);

/// Checks that the current user may select the columns, as a query does.
void check_block_columns(const SideColumns& columns);

/// Names the columns of a relation that can_read_blocks(), whose coordinates are kept as `scalar`.
/// False: they may be read so, but not stay.
bool name_table(Relation relation, const SideColumns& columns, ScalarType scalar,
                service::TableKey* key);

/// The columns that a key names, the id first, as name[]; those that are there no more are left
/// out.
Datum named_columns(const service::TableKey& key);

}  // namespace gpujoin

// A table's blocks read by PostgreSQL's parallel workers, straight into memory that the join maps.
#pragma once

#include "pg/reading/block_rows.h"

namespace gpujoin {

/// Reads blocks, from the first one on, into the buffer of `rows`, which is empty or has rows in
/// memory to be shared alone, and into `read`, together
/// with parallel workers, as many as PostgreSQL would give to a scan of them. Returns the first
/// block that is left to the caller, as if a scan had come so far: 0 where no worker is to be had,
/// or a block with a row that cannot take part, or does not fit in memory any more. Raises errors
/// of workers.
BlockNumber read_in_parallel(const HeapBlocks& heap, const KeptBlocks& kept, RowCollector* rows,
                             BlocksRead* read);

}  // namespace gpujoin

// A side of a join whose rows stay in gpujoin_service: the backend reads the blocks for which
// nothing proves that their rows are still the ones that are kept, and no others.
#pragma once

#include "pg/reading/resident_table.h"
#include "pg/service/connection.h"
#include "pg/service/service_engine.h"

namespace gpujoin {

struct KeptSide {
  bool kept;           ///< the service keeps the table. If not, the backend has all rows.
  bool as_found;       ///< the service has all rows and all proofs.
  bool is_unfit;       ///< the values make no dataset in memory.
  bool is_outgrown;    ///< a value is longer than those kept. All have to be read anew.
  TablePatches table;  ///< for the service.
  std::uint64_t rows;  ///< of the table, as the snapshot sees it.
  std::uint32_t dims;  ///< Dataset::dims.
};

/// Who reads a table. To a function it was named: the current user has to have the privilege, and a
/// value that can be no part of the dataset is an error. A node reads for a query, whose privileges
/// were checked when it began, maybe those of a view's owner: a table with such a value cannot
/// stay.
enum class TableReader { kFunction, kNode };

/// About how many rows a relation has; INFINITY: not known.
double expected_rows(const SideColumns& columns);

/// Asks the service whether it keeps the columns. Returns false if no service is running. Raises no
/// error.
bool are_kept(const SideColumns& columns);

/// Returns the reason why rows do not stay, where the service has given none.
const char* why_not_kept();

/// Reads a table for side 0 or 1 of the join that `connection` is for. False where the table cannot
/// stay, or has rows of several kinds: then it has to be read whole, into other `points`. Else
/// these have the rows that were read, and *kept the number of the others. With `anew` it reads all
/// rows, whatever is kept. Allocates in the current memory context. Raises errors of reading, as
/// read_points() does.
bool read_kept_side(Connection* connection, std::uint32_t side, const SideColumns& columns,
                    TableReader reader, PointBuffer* points, ValueShape* shape, KeptSide* kept,
                    bool anew = false);

}  // namespace gpujoin

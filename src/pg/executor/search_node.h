// The plan node GpuSimilarityScan: scans one table by distance, like an index scan. It returns the
// rows within a radius of a value, or the rows ordered by their distance from the value, or both.
// search_path.cpp plans the node, search_node.cpp executes it.
#pragma once

#include "pg/compat.h"
#include "pg/reading/late_rows.h"
#include "pg/reading/table_search.h"
#include "pg/types/similarity_test.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
}

namespace gpujoin {

inline constexpr const char* kSearchName = "GpuSimilarityScan";

/// Returns the largest number of neighbors for which a search is cheaper than a scan of a table
/// with `rows` rows.
inline std::uint64_t most_neighbors(std::uint64_t rows) {
  return std::min<std::uint64_t>(kMostNeighbors, few_rows(rows));
}

/// Describes the search, but for its expressions. Plain bytes in CustomScan.
struct SearchPlan {
  SimilarityTest test;    ///< of the ORDER BY if there is one, else of the radius.
  SimilarityTest radius;  ///< comparison of the distance with the radius.
  bool is_ordered;        ///< by an expression that rises or falls with the distance.
  bool is_descending;     ///< ORDER BY ... DESC: the expression falls.
  bool nulls_first;
  bool is_bounded;      ///< only rows within a radius are wanted.
  bool is_computed;     ///< the searched values are computed from columns.
  bool may_raise;       ///< computing them may raise errors. The node drops these.
  bool is_kept;         ///< the service had the table at planning time.
  bool searches_first;  ///< the first search builds the index, else the second one.
  bool drops_errors;    ///< the node drops errors of the value and the radius. A scan raises them.
  double expected;      ///< rows that the plan above is expected to take.
  std::uint64_t limit;  ///< LIMIT + OFFSET as planned, or 0.
};

/// The expressions of a plan: CustomScan::custom_exprs.
struct SearchExpressions {
  Expr* value;     ///< whose neighbors are searched; has no columns of the table
  Expr* eps;       ///< float8 radius; null unless is_bounded
  Expr* order;     ///< float8 over the table's row; null unless is_ordered
  Expr* computed;  ///< over the table's row, what is searched; null unless is_computed
};

/// Makes the plan node. `attributes` are the searched columns, a list of integers: one, or several
/// that are coordinates; NIL if the values are computed. The caller sets scanrelid, target list,
/// quals and flags.
CustomScan* make_search_scan(const SearchPlan& plan, const List* attributes,
                             const SearchExpressions& expressions);

/// Finds the `count` rows of a table nearest to the point within a distance of the engine's. Sets
/// search->found. On failure it keeps the result of the search before. Raises interrupts.
Status find_neighbors(TableSearch* search, const PointsWithin& within, std::uint64_t count,
                      const Dataset& point);

void install_search_node();

}  // namespace gpujoin

// The plan node GpuSimilarityScan: a scan of one table by a distance, as an index of the table
// would make it. It returns the rows within a radius of a value, the rows in the order of their
// distance from one, or both. search_path.cpp plans it, search_node.cpp runs it.
#pragma once

#include "pg/compat.h"
#include "pg/types/similarity_test.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
}

namespace gpujoin {

inline constexpr const char* kSearchName = "GpuSimilarityScan";

/// What a plan says of its search, besides expressions.
struct SearchPlan {
  SimilarityTest test;    ///< of the distance that rows are ordered by, else of the radius
  SimilarityTest radius;  ///< of the same values
  AttrNumber attribute;   ///< of the table, whose values are compared
  bool ordered;           ///< rows come in the order of their distance, or of what rises with it
  bool descending;        ///< by what falls as the distance rises, the largest first
  bool nulls_first;       ///< rows without a distance come first; otherwise last
  bool bounded;           ///< up to a radius
  bool kept;              ///< the service had the table when the query was planned
  bool at_once;           ///< the first search is worth reading it, too
  bool drops_errors;      ///< of the value and the radius: PostgreSQL might not compute them
  double wanted;          ///< about how many rows of a search are taken
  std::uint64_t most;     ///< hardly more than these are taken of a search; 0: it is not known
};

/// The expressions of a plan: CustomScan::custom_exprs.
struct SearchExpressions {
  Expr* value;     ///< whose neighbours are looked for, of no row of the table
  Expr* eps;       ///< float8; null: no radius
  Expr* distance;  ///< float8 over the table's row, by which rows are ordered; null: they are not
};

/// Makes the plan that CustomScanMethods know; PostgreSQL copies both parts.
CustomScan* make_search_scan(const SearchPlan& plan, const SearchExpressions& expressions);

void install_search_node();

}  // namespace gpujoin

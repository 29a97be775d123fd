// The SQL that errors about columns show in their hints. It names the relation's own columns and
// the radius of the call, so that it runs as it stands.
#pragma once

#include "pg/reading/relation.h"

namespace gpujoin {

/// Describes where find_columns() failed.
struct Obstacle {
  Relation relation;
  const JoinArguments* arguments;
  const SideArguments* side;
  const SideColumns* columns;  ///< found before it
  const char* column;          ///< the one at fault, or null

  const char* name() const { return RelationGetRelationName(relation); }
  Shape shape() const { return side->shape; }
};

/// Returns a query that needs no id and finds the same pairs or clusters; null if no SQL does.
const char* plain_query(const Obstacle& o);

/// Returns a hint for a relation without a vector or box column: how to name columns of numbers, or
/// to make vectors of a column of another type. Returns null if no column can be meant.
const char* missing_value_hint(const Obstacle& o);

/// Returns a hint on how to make a vector of the named column, which is of another type. Returns
/// null if it cannot become one.
const char* named_value_hint(const Obstacle& o);

/// Returns a hint for a list of columns that holds an expression; null if it holds none.
const char* expression_hint(const Obstacle& o);

/// Returns a hint that names a score column for each side, `left_score_column => 'price', ..`.
/// Returns null if a side lacks one.
const char* score_hint(const Obstacle& o);

/// Returns `'name'`: a list of one name, quoted for SQL.
char* list_literal(const char* name);

}  // namespace gpujoin

// Which columns of a relation a join reads: the ones named, or the defaults. Looks at catalogs
// only.
#pragma once

#include "engine/dataset.h"
#include "pg/arguments.h"

extern "C" {
#include "utils/rel.h"
}

namespace gpujoin {

enum class VectorKind { kFloat4Array, kFloat8Array, kPoint, kNumbers };

/// The columns of one side, checked.
struct SideColumns {
  Oid relation;
  AttrNumber id;
  Oid id_type;  ///< int2, int4 or int8
  VectorKind kind;
  int count;               ///< columns that make up the vector; 1 unless kind is kNumbers
  AttrNumber* attributes;  ///< [count]
  Oid* types;              ///< [count], domains resolved
};

/// What stands in the way of finding the columns.
enum class ColumnProblem {
  kNone,
  kRelationKind,
  kNoVectorColumn,
  kSeveralVectorColumns,
  kMissingColumn,
  kVectorType,
  kMixedVectors,
  kRepeatedColumn,
  kNoColumnsNamed,
  kNoId,
  kIdType,
};

struct ColumnFinding {
  ColumnProblem problem;
  const char* column;  ///< the one at fault, if one is named
};

/// Finds the vector's columns, the cheap half of find_columns(). Raises no error.
ColumnFinding find_vector_columns(Relation relation, const SideArguments& side,
                                  SideColumns* columns);

/// Finds all columns and checks that the current user may read them; raises an error otherwise.
/// Takes AccessShareLock on the relation and keeps it until the end of the transaction.
SideColumns find_columns(const SideArguments& side);

/// Whether the current user may select all these columns.
bool may_select(const SideColumns& columns);

/// The base type of a column, domains resolved; InvalidOid for a dropped one.
Oid column_type(Relation relation, AttrNumber attribute);

bool is_id_type(Oid type);

/// Whether columns of this type can make up a vector.
bool is_number_type(Oid type);

/// Whether a column of this type is a vector by itself.
bool is_vector_type(Oid type);

/// float32 where nothing is lost by it, float64 otherwise.
ScalarType scalar_of(const SideColumns& columns);

/// Raises the error for a finding other than kNone.
[[noreturn]] void raise_finding(Relation relation, const SideArguments& side,
                                ColumnFinding finding);

}  // namespace gpujoin

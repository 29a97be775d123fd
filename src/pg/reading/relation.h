// Which columns of a relation a join reads: the ones named, or the defaults. Looks at catalogs
// only.
#pragma once

#include "engine/request/dataset.h"
#include "pg/reading/arguments.h"
#include "pg/types/value_type.h"

extern "C" {
#include "utils/rel.h"
}

namespace gpujoin {

/// The columns of one side, checked.
struct SideColumns {
  Oid relation;
  Shape shape;
  AttrNumber id;                ///< SelfItemPointerAttributeNumber: the ctid, as itemptr_encode()
                                ///< makes an int8 of it
  Oid id_type;                  ///< int2, int4 or int8
  bool unique_id;               ///< an index says that no two rows have the same
  const ValueType* value_type;  ///< of the one column that is a vector or box; null: it is made of
                                ///< several numbers, or of the two corners of a box in arrays
  int count;                    ///< columns that make up the vector or box
  AttrNumber* attributes;       ///< [count]
  Oid* types;                   ///< [count], domains resolved
  AttrNumber score;             ///< InvalidAttrNumber: rows have no scores
  Oid score_type;
  AttrNumber partition;  ///< of any type, whose values divide the rows; InvalidAttrNumber: none do
  Oid partition_type;
  Oid partition_collation;  ///< by which values are equal
  ValueForm form;           ///< what the vector or box becomes
};

/// What stands in the way of finding the columns.
enum class ColumnProblem {
  kNone,
  kRelationKind,
  kNoColumn,  ///< of a vector or box
  kSeveralColumns,
  kMissingColumn,
  kColumnType,
  kMixedColumns,
  kCornerCount,
  kNoDegrees,  ///< the vector is not of two numbers
  kRepeatedColumn,
  kNoColumnsNamed,
  kNoId,
  kNoCtid,
  kIdType,
  kNoScore,
  kSeveralScores,
  kScoreType,
  kNoEquality,
};

struct ColumnFinding {
  ColumnProblem problem;
  const char* column;  ///< the one at fault, if one is named
};

/// Finds the columns of the vector or box, the cheap half of find_columns(). Raises no error.
ColumnFinding find_value_columns(Relation relation, const SideArguments& side,
                                 SideColumns* columns);

/// Finds all columns of a side, and raises an error if one is missing or the user may not read it.
/// If the user may read no column, raises that error before the relation is opened. Takes
/// AccessShareLock on the relation and keeps it until the end of the transaction.
SideColumns find_columns(const JoinArguments& arguments, const SideArguments& side);

/// Likewise the columns of the vector or box alone. The id is InvalidAttrNumber.
SideColumns find_values(const JoinArguments& arguments, const SideArguments& side);

/// Returns the user column of that name, which may be quoted as in SQL, or InvalidAttrNumber.
AttrNumber find_attribute(Relation relation, const char* name);

/// Whether rows of different values never meet.
inline bool divides(const SideColumns& columns) { return columns.partition != InvalidAttrNumber; }

/// call(attribute, type read from it) for the id, the vector's columns, the score and the
/// partition, which is read as it is stored: InvalidOid.
template <class Call>
void for_each_column(const SideColumns& columns, const Call& call) {
  call(columns.id, columns.id_type);
  for (int i = 0; i < columns.count; ++i) call(columns.attributes[i], columns.types[i]);
  if (columns.score != InvalidAttrNumber) call(columns.score, columns.score_type);
  if (divides(columns)) call(columns.partition, InvalidOid);
}

/// What the values of a shape become, as far as that says.
inline ValueForm form_of(Shape shape) {
  return shape == Shape::kBoxes ? ValueForm::kBox : ValueForm::kPoint;
}

/// Whether the column is read as PostgreSQL's box, to which its type casts.
inline bool reads_as_box(const SideColumns& columns) {
  return columns.shape == Shape::kBoxes && columns.value_type != nullptr &&
         columns.value_type->casts_to_box;
}

/// Whether both are the same columns of the same relation.
bool same_columns(const SideColumns& a, const SideColumns& b);

/// Whether the current user may read the relation, or some column of it. True for one that does not
/// exist.
bool may_select_some(Oid relation);

/// Whether the current user may select all these columns.
bool may_select(const SideColumns& columns);

/// The base type of a column, domains resolved; InvalidOid for a dropped one.
Oid column_type(Relation relation, AttrNumber attribute);

/// Has rows known by their ctids, as integers.
void name_by_ctid(SideColumns* columns);

/// Sets the columns to the ctid and the numbered ones, a list of integers, which hold values of the
/// type: one column of the type, or floats that are the coordinates of its points. Returns false if
/// the columns have other types.
bool take_value_columns(Relation relation, const List* attributes, const ValueType& type,
                        ValueForm form, SideColumns* columns);

/// The single-column primary key of an integer type, or InvalidAttrNumber.
AttrNumber primary_key(Relation relation);

/// Whether a unique index says that no two rows have the same value in the column.
bool is_unique(Relation relation, AttrNumber attribute);

bool is_number_type(Oid type);

/// The type as which a column of this type is read: numeric as float8, arrays of numbers that are
/// no floats as float8[].
Oid type_read(Oid type);

/// Whether a column of this type is by itself what the side is made of: a vector, a box, or bits.
bool is_whole_type(const SideArguments& side, Oid type);

/// Whether several columns of this type can make up a vector, or two of them a box.
bool is_part_type(const SideArguments& side, Oid type);

/// Whether the column can be the score where none is named: a number that is neither the id nor of
/// the vector.
bool is_score_candidate(Relation relation, const SideColumns& columns, AttrNumber attribute);

/// float32 where nothing is lost by it, float64 otherwise.
ScalarType scalar_of(const SideColumns& columns);

/// Raises the error for a finding other than kNone about a side. `columns` are what was found
/// before it.
[[noreturn]] void raise_finding(Relation relation, const JoinArguments& arguments,
                                const SideArguments& side, const SideColumns& columns,
                                ColumnFinding finding);

}  // namespace gpujoin

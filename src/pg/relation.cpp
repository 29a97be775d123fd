// Finds a side's columns in the catalogs. The errors are worded in relation_errors.cpp.
#include "pg/relation.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

constexpr ColumnFinding kFound = {ColumnProblem::kNone, nullptr};

bool is_readable_kind(char relkind) {
  switch (relkind) {
    case RELKIND_RELATION:
    case RELKIND_VIEW:
    case RELKIND_MATVIEW:
    case RELKIND_PARTITIONED_TABLE:
    case RELKIND_FOREIGN_TABLE:
      return true;
    default:
      return false;
  }
}

/// The user column of that name, or InvalidAttrNumber.
AttrNumber find_attribute(Relation relation, const char* name) {
  const AttrNumber attribute = get_attnum(RelationGetRelid(relation), name);
  return attribute > 0 ? attribute : InvalidAttrNumber;
}

VectorKind kind_of(Oid type) {
  if (type == FLOAT4ARRAYOID) return VectorKind::kFloat4Array;
  if (type == FLOAT8ARRAYOID) return VectorKind::kFloat8Array;
  return type == POINTOID ? VectorKind::kPoint : VectorKind::kNumbers;
}

ColumnFinding find_default_vector(Relation relation, SideColumns* columns) {
  columns->count = 0;
  for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation); ++a) {
    if (!is_vector_type(column_type(relation, a))) continue;
    if (columns->count++ > 0) return {ColumnProblem::kSeveralVectorColumns, nullptr};
    columns->attributes[0] = a;
  }
  if (columns->count == 0) return {ColumnProblem::kNoVectorColumn, nullptr};
  return kFound;
}

ColumnFinding find_named_vector(Relation relation, const SideArguments& side,
                                SideColumns* columns) {
  columns->count = side.vector_column_count;
  if (columns->count == 0) return {ColumnProblem::kNoColumnsNamed, nullptr};
  for (int i = 0; i < columns->count; ++i) {
    const char* const name = side.vector_columns[i];
    const AttrNumber attribute = find_attribute(relation, name);
    if (attribute == InvalidAttrNumber) return {ColumnProblem::kMissingColumn, name};
    for (int j = 0; j < i; ++j)
      if (columns->attributes[j] == attribute) return {ColumnProblem::kRepeatedColumn, name};
    const Oid type = column_type(relation, attribute);
    if (!is_vector_type(type) && !is_number_type(type)) return {ColumnProblem::kVectorType, name};
    if (is_vector_type(type) && columns->count > 1) return {ColumnProblem::kMixedVectors, name};
    columns->attributes[i] = attribute;
  }
  return kFound;
}

/// The single-column primary key of an integer type, or InvalidAttrNumber.
AttrNumber find_default_id(Relation relation) {
  Oid constraint;
  const Bitmapset* const key =
      get_primary_key_attnos(RelationGetRelid(relation), true, &constraint);
  int member;
  if (!bms_get_singleton_member(key, &member)) return InvalidAttrNumber;
  const AttrNumber attribute = static_cast<AttrNumber>(member + FirstLowInvalidHeapAttributeNumber);
  return is_id_type(column_type(relation, attribute)) ? attribute : InvalidAttrNumber;
}

ColumnFinding find_id(Relation relation, const SideArguments& side, SideColumns* columns) {
  if (side.id_column == nullptr) {
    columns->id = find_default_id(relation);
    if (columns->id == InvalidAttrNumber) return {ColumnProblem::kNoId, nullptr};
  } else {
    columns->id = find_attribute(relation, side.id_column);
    if (columns->id == InvalidAttrNumber) return {ColumnProblem::kMissingColumn, side.id_column};
  }
  columns->id_type = column_type(relation, columns->id);
  if (!is_id_type(columns->id_type)) return {ColumnProblem::kIdType, side.id_column};
  return kFound;
}

[[noreturn]] void raise_no_privilege(Relation relation) {
  const Oid oid = RelationGetRelid(relation);
  const char* const name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(oid)),
                                                      RelationGetRelationName(relation));
  ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                  errmsg("permission denied to read \"%s\"", RelationGetRelationName(relation)),
                  errhint("Its owner allows it by GRANT SELECT ON %s TO %s.", name,
                          quote_identifier(GetUserNameFromId(GetUserId(), false)))));
  pg_unreachable();
}

}  // namespace

Oid column_type(Relation relation, AttrNumber attribute) {
  const Form_pg_attribute form = TupleDescAttr(RelationGetDescr(relation), attribute - 1);
  return form->attisdropped ? InvalidOid : getBaseType(form->atttypid);
}

bool is_number_type(Oid type) {
  switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case FLOAT4OID:
    case FLOAT8OID:
    case NUMERICOID:
      return true;
    default:
      return false;
  }
}

bool is_id_type(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }

bool is_vector_type(Oid type) {
  return type == FLOAT4ARRAYOID || type == FLOAT8ARRAYOID || type == POINTOID;
}

ScalarType scalar_of(const SideColumns& columns) {
  if (columns.kind == VectorKind::kFloat4Array) return ScalarType::kFloat32;
  if (columns.kind != VectorKind::kNumbers) return ScalarType::kFloat64;
  for (int i = 0; i < columns.count; ++i)
    if (columns.types[i] != FLOAT4OID) return ScalarType::kFloat64;
  return ScalarType::kFloat32;
}

bool may_select(const SideColumns& columns) {
  const Oid user = GetUserId();
  if (pg_class_aclcheck(columns.relation, user, ACL_SELECT) == ACLCHECK_OK) return true;
  for (int i = 0; i < columns.count; ++i)
    if (pg_attribute_aclcheck(columns.relation, columns.attributes[i], user, ACL_SELECT) !=
        ACLCHECK_OK)
      return false;
  return columns.id == InvalidAttrNumber ||
         pg_attribute_aclcheck(columns.relation, columns.id, user, ACL_SELECT) == ACLCHECK_OK;
}

ColumnFinding find_vector_columns(Relation relation, const SideArguments& side,
                                  SideColumns* columns) {
  if (!is_readable_kind(relation->rd_rel->relkind)) return {ColumnProblem::kRelationKind, nullptr};
  const int most = side.vector_column_count > 0 ? side.vector_column_count : 1;
  *columns = {};
  columns->relation = RelationGetRelid(relation);
  columns->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * most));
  columns->types = static_cast<Oid*>(palloc(sizeof(Oid) * most));
  const ColumnFinding finding = side.vector_column_count < 0
                                    ? find_default_vector(relation, columns)
                                    : find_named_vector(relation, side, columns);
  if (finding.problem != ColumnProblem::kNone) return finding;
  for (int i = 0; i < columns->count; ++i)
    columns->types[i] = column_type(relation, columns->attributes[i]);
  columns->kind = kind_of(columns->types[0]);
  return kFound;
}

SideColumns find_columns(const SideArguments& side) {
  const Relation relation = try_relation_open(side.relation, AccessShareLock);
  if (relation == nullptr)
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation with OID %u does not exist", side.relation),
                    errhint("Pass a table's name for %stbl.", side.prefix)));
  // Whoever may read nothing of it learns nothing more about it.
  if (is_readable_kind(relation->rd_rel->relkind) &&
      pg_class_aclcheck(side.relation, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
      pg_attribute_aclcheck_all(side.relation, GetUserId(), ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
    raise_no_privilege(relation);
  SideColumns columns;
  ColumnFinding finding = find_vector_columns(relation, side, &columns);
  if (finding.problem == ColumnProblem::kNone) finding = find_id(relation, side, &columns);
  if (finding.problem != ColumnProblem::kNone) raise_finding(relation, side, finding);
  if (!may_select(columns)) raise_no_privilege(relation);
  relation_close(relation, NoLock);
  return columns;
}

}  // namespace gpujoin

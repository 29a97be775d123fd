// Finds a side's columns in the catalogs. The errors are worded in relation_errors.cpp.
#include "pg/reading/relation.h"

#include "pg/reading/value_ranks.h"
#include "pg/types/number_datum.h"
#include "pg/types/value_types.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
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

/// Returns the name that SQL writes in these double quotes; null if it is not quoted.
const char* without_quotes(const char* name) {
  const std::size_t length = strlen(name);
  if (length < 3 || name[0] != '"' || name[length - 1] != '"') return nullptr;
  char* const result = static_cast<char*>(palloc(length));
  char* end = result;
  for (const char *c = name + 1, *const last = name + length - 1; c < last; ++c) {
    if (*c == '"' && (++c == last || *c != '"')) return nullptr;
    *end++ = *c;
  }
  *end = '\0';
  return result;
}

bool is_array_of_floats(Oid type) { return type == FLOAT4ARRAYOID || type == FLOAT8ARRAYOID; }

/// How likely a column of the type is meant where none is named, 0 first. An integer may be many
/// things but bits.
int precedence(Oid type) {
  constexpr int kNever = 3;
  const ValueType* const known = find_value_type(type);
  if (known != nullptr && is_of_bits(*known))
    return is_number_type(type) ? kNever : type == BYTEAOID ? 1 : 0;
  return known == nullptr ? 2 : known->extension != nullptr ? 1 : 0;
}

/// The only column that is a vector or box: one of PostgreSQL's own types, or else of another
/// extension, or else an array of numbers that are no floats.
ColumnFinding find_default_columns(Relation relation, const SideArguments& side,
                                   SideColumns* columns) {
  for (const int latest : {0, 1, 2}) {
    columns->count = 0;
    for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation); ++a) {
      const Oid type = column_type(relation, a);
      if (!is_whole_type(side, type) || precedence(type) > latest) continue;
      if (columns->count++ > 0) return {ColumnProblem::kSeveralColumns, nullptr};
      columns->attributes[0] = a;
    }
    if (columns->count == 1) return kFound;
  }
  return {ColumnProblem::kNoColumn, nullptr};
}

ColumnFinding find_named_columns(Relation relation, const SideArguments& side,
                                 SideColumns* columns) {
  columns->count = side.column_count;
  if (columns->count == 0) return {ColumnProblem::kNoColumnsNamed, nullptr};
  for (int i = 0; i < columns->count; ++i) {
    const char* const name = side.columns[i];
    const AttrNumber attribute = find_attribute(relation, name);
    if (attribute == InvalidAttrNumber) return {ColumnProblem::kMissingColumn, name};
    for (int j = 0; j < i; ++j)
      if (columns->attributes[j] == attribute) return {ColumnProblem::kRepeatedColumn, name};
    const Oid type = column_type(relation, attribute);
    const bool whole = is_whole_type(side, type), part = is_part_type(side, type);
    if (!whole && !part) return {ColumnProblem::kColumnType, name};
    if (whole && columns->count > 1) return {ColumnProblem::kMixedColumns, name};
    if (part && side.shape == Shape::kBoxes && columns->count != 2)
      return {ColumnProblem::kCornerCount, name};
    columns->attributes[i] = attribute;
  }
  return kFound;
}

/// Has rows named by their ctids, where these are of one table.
ColumnFinding find_ctid(Relation relation, SideColumns* columns) {
  const char kind = relation->rd_rel->relkind;
  if ((kind != RELKIND_RELATION && kind != RELKIND_MATVIEW) || relation->rd_rel->relhassubclass)
    return {ColumnProblem::kNoCtid, "ctid"};
  name_by_ctid(columns);
  return kFound;
}

ColumnFinding find_id(Relation relation, const SideArguments& side, SideColumns* columns) {
  if (side.id_column == nullptr) {
    columns->id = primary_key(relation);
    if (columns->id == InvalidAttrNumber) return {ColumnProblem::kNoId, nullptr};
  } else {
    columns->id = find_attribute(relation, side.id_column);
    if (columns->id == InvalidAttrNumber && strcmp(side.id_column, "ctid") == 0)
      return find_ctid(relation, columns);
    if (columns->id == InvalidAttrNumber) return {ColumnProblem::kMissingColumn, side.id_column};
  }
  columns->id_type = column_type(relation, columns->id);
  columns->unique_id = is_unique(relation, columns->id);
  if (!is_integer_type(columns->id_type)) return {ColumnProblem::kIdType, side.id_column};
  return kFound;
}

ColumnFinding find_score(Relation relation, const SideArguments& side, SideColumns* columns) {
  columns->score = InvalidAttrNumber;
  if (!side.scored) return kFound;
  if (side.score_column != nullptr) {
    columns->score = find_attribute(relation, side.score_column);
    if (columns->score == InvalidAttrNumber)
      return {ColumnProblem::kMissingColumn, side.score_column};
  } else {
    for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation); ++a) {
      if (!is_score_candidate(relation, *columns, a)) continue;
      if (columns->score != InvalidAttrNumber) return {ColumnProblem::kSeveralScores, nullptr};
      columns->score = a;
    }
    if (columns->score == InvalidAttrNumber) return {ColumnProblem::kNoScore, nullptr};
  }
  columns->score_type = column_type(relation, columns->score);
  if (!is_number_type(columns->score_type)) return {ColumnProblem::kScoreType, side.score_column};
  return kFound;
}

ColumnFinding find_partition(Relation relation, const SideArguments& side, SideColumns* columns) {
  columns->partition = InvalidAttrNumber;
  if (side.partition_column == nullptr) return kFound;
  columns->partition = find_attribute(relation, side.partition_column);
  if (columns->partition == InvalidAttrNumber)
    return {ColumnProblem::kMissingColumn, side.partition_column};
  RankFunctions functions;
  columns->partition_type = column_type(relation, columns->partition);
  columns->partition_collation =
      TupleDescAttr(RelationGetDescr(relation), columns->partition - 1)->attcollation;
  const bool equal = find_rank_functions(columns->partition_type, InvalidOid, &functions);
  return equal ? kFound : ColumnFinding{ColumnProblem::kNoEquality, side.partition_column};
}

bool may_select(const SideColumns& columns, AttrNumber attribute) {
  return attribute == InvalidAttrNumber ||
         pg_attribute_aclcheck(columns.relation, attribute, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

[[noreturn]] void raise_missing(Oid relation, const char* prefix = "") {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                  errmsg("relation with OID %u does not exist", relation),
                  errhint("Pass a table's name for %stbl.", prefix)));
  pg_unreachable();
}

/// What PostgreSQL calls such a relation where it denies a permission.
const char* kind_of(Oid relation) {
  switch (get_rel_relkind(relation)) {
    case RELKIND_VIEW:
      return "view";
    case RELKIND_MATVIEW:
      return "materialized view";
    case RELKIND_FOREIGN_TABLE:
      return "foreign table";
    default:
      return "table";
  }
}

[[noreturn]] void raise_no_privilege(Oid relation) {
  const char* const name = get_rel_name(relation);
  const char* const schema = get_namespace_name(get_rel_namespace(relation));
  if (name == nullptr || schema == nullptr) raise_missing(relation);
  ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                  errmsg("permission denied for %s %s", kind_of(relation), name),
                  errhint("Its owner allows it by GRANT SELECT ON %s TO %s.",
                          quote_qualified_identifier(schema, name),
                          quote_identifier(GetUserNameFromId(GetUserId(), false)))));
  pg_unreachable();
}

}  // namespace

AttrNumber find_attribute(Relation relation, const char* name) {
  const AttrNumber attribute = get_attnum(RelationGetRelid(relation), name);
  if (attribute != InvalidAttrNumber) return attribute > 0 ? attribute : InvalidAttrNumber;
  const char* const bare = without_quotes(name);
  return bare == nullptr ? InvalidAttrNumber : find_attribute(relation, bare);
}

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

void name_by_ctid(SideColumns* columns) {
  columns->id = SelfItemPointerAttributeNumber;
  columns->id_type = INT8OID;
  columns->unique_id = true;
}

bool take_value_columns(Relation relation, const List* attributes, const ValueType& type,
                        ValueForm form, SideColumns* columns) {
  const int count = list_length(attributes);
  *columns = {};
  columns->relation = RelationGetRelid(relation);
  columns->shape = Shape::kPoints;
  columns->form = form;
  name_by_ctid(columns);
  columns->count = count;
  columns->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * count));
  columns->types = static_cast<Oid*>(palloc(sizeof(Oid) * count));
  bool are_floats = true;
  for (int i = 0; i < count; ++i) {
    columns->attributes[i] = static_cast<AttrNumber>(list_nth_int(attributes, i));
    columns->types[i] = column_type(relation, columns->attributes[i]);
    are_floats = are_floats && (columns->types[i] == FLOAT4OID || columns->types[i] == FLOAT8OID);
  }
  if (count == 1 && is_type(type, columns->types[0])) {
    columns->value_type = &type;
    return true;
  }
  // Several columns can be coordinates, or a longitude and a latitude.
  const bool fit = form == ValueForm::kPoint || (form == ValueForm::kPlace && count == 2);
  return are_floats && fit && scalar_of(*columns) == scalar_of(type, form);
}

AttrNumber primary_key(Relation relation) {
  Oid constraint;
  const Bitmapset* const key =
      get_primary_key_attnos(RelationGetRelid(relation), true, &constraint);
  int member;
  if (!bms_get_singleton_member(key, &member)) return InvalidAttrNumber;
  const AttrNumber attribute = static_cast<AttrNumber>(member + FirstLowInvalidHeapAttributeNumber);
  return is_integer_type(column_type(relation, attribute)) ? attribute : InvalidAttrNumber;
}

bool is_unique(Relation relation, AttrNumber attribute) {
  // The index of a parent knows nothing of its children's rows, unless these are partitions.
  if (relation->rd_rel->relkind == RELKIND_RELATION && relation->rd_rel->relhassubclass)
    return false;
  bool unique = false;
  ListCell* cell;
  List* const indexes = RelationGetIndexList(relation);
  foreach (cell, indexes) {
    const Relation index = index_open(lfirst_oid(cell), AccessShareLock);
    const Form_pg_index form = index->rd_index;
    unique = unique || (form->indisunique && form->indisvalid && form->indimmediate &&
                        form->indnkeyatts == 1 && form->indkey.values[0] == attribute &&
                        heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr));
    index_close(index, AccessShareLock);
  }
  list_free(indexes);
  return unique;
}

Oid type_read(Oid type) {
  switch (type) {
    case NUMERICOID:
      return FLOAT8OID;
    case INT2ARRAYOID:
    case INT4ARRAYOID:
    case INT8ARRAYOID:
    case NUMERICARRAYOID:
      return FLOAT8ARRAYOID;
    default:
      return type;
  }
}

bool is_whole_type(const SideArguments& side, Oid type) {
  const ValueType* const known = find_value_type(type_read(type));
  if (known == nullptr) return false;
  if (side.is_searched && is_searched_type(*known)) return true;
  return is_argument(*known, form_of(side.shape), side.bits);
}

bool is_part_type(const SideArguments& side, Oid type) {
  if (side.bits) return false;
  return side.shape == Shape::kBoxes ? is_array_of_floats(type) : is_number_type(type);
}

bool is_score_candidate(Relation relation, const SideColumns& columns, AttrNumber attribute) {
  for (int i = 0; i < columns.count; ++i)
    if (columns.attributes[i] == attribute) return false;
  return attribute != columns.id && is_number_type(column_type(relation, attribute));
}

ScalarType scalar_of(const SideColumns& columns) {
  if (reads_as_box(columns)) return scalar_of(kBoxType, ValueForm::kBox);
  if (is_on_earth(columns.form)) return ScalarType::kFloat64;
  if (columns.value_type != nullptr) return scalar_of(*columns.value_type, columns.form);
  for (int i = 0; i < columns.count; ++i)
    if (columns.types[i] != FLOAT4OID && columns.types[i] != FLOAT4ARRAYOID)
      return ScalarType::kFloat64;
  return ScalarType::kFloat32;
}

bool same_columns(const SideColumns& a, const SideColumns& b) {
  if (a.relation != b.relation || a.id != b.id || a.score != b.score || a.count != b.count)
    return false;
  return std::equal(a.attributes, a.attributes + a.count, b.attributes);
}

bool may_select_some(Oid relation) {
  bool missing = false;
  return pg_class_aclcheck_ext(relation, GetUserId(), ACL_SELECT, &missing) == ACLCHECK_OK ||
         missing ||
         pg_attribute_aclcheck_all(relation, GetUserId(), ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
}

bool may_select(const SideColumns& columns) {
  if (pg_class_aclcheck(columns.relation, GetUserId(), ACL_SELECT) == ACLCHECK_OK) return true;
  for (int i = 0; i < columns.count; ++i)
    if (!may_select(columns, columns.attributes[i])) return false;
  return may_select(columns, columns.id) && may_select(columns, columns.score) &&
         may_select(columns, columns.partition);
}

ColumnFinding find_value_columns(Relation relation, const SideArguments& side,
                                 SideColumns* columns) {
  if (!is_readable_kind(relation->rd_rel->relkind)) return {ColumnProblem::kRelationKind, nullptr};
  const int most = side.column_count > 0 ? side.column_count : 1;
  *columns = {};
  columns->relation = RelationGetRelid(relation);
  columns->shape = side.shape;
  columns->attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * most));
  columns->types = static_cast<Oid*>(palloc(sizeof(Oid) * most));
  const ColumnFinding finding = side.column_count < 0
                                    ? find_default_columns(relation, side, columns)
                                    : find_named_columns(relation, side, columns);
  if (finding.problem != ColumnProblem::kNone) return finding;
  for (int i = 0; i < columns->count; ++i)
    columns->types[i] = column_type(relation, columns->attributes[i]);
  if (is_whole_type(side, columns->types[0]))
    columns->value_type = find_value_type(type_read(columns->types[0]));
  columns->form = side.on_earth ? ValueForm::kPlace : form_of(side.shape);
  const bool has_place = columns->value_type != nullptr
                             ? has_form(*columns->value_type, ValueForm::kPlace)
                             : columns->count == 2;
  if (side.on_earth && !has_place) return {ColumnProblem::kNoDegrees, nullptr};
  return kFound;
}

/// As find_columns() does. `find_others` finds what is wanted beside the vector or box.
template <class Find>
SideColumns find_columns(const JoinArguments& arguments, const SideArguments& side,
                         const Find& find_others) {
  // Whoever may read nothing of it learns nothing more about it, and locks nothing.
  if (is_readable_kind(get_rel_relkind(side.relation)) && !may_select_some(side.relation))
    raise_no_privilege(side.relation);
  const Relation relation = try_relation_open(side.relation, AccessShareLock);
  if (relation == nullptr) raise_missing(side.relation, side.prefix);
  SideColumns columns;
  ColumnFinding finding = find_value_columns(relation, side, &columns);
  if (finding.problem == ColumnProblem::kNone) finding = find_others(relation, &columns);
  if (finding.problem != ColumnProblem::kNone)
    raise_finding(relation, arguments, side, columns, finding);
  if (!may_select(columns)) raise_no_privilege(side.relation);
  relation_close(relation, NoLock);
  return columns;
}

SideColumns find_columns(const JoinArguments& arguments, const SideArguments& side) {
  return find_columns(arguments, side, [&](Relation relation, SideColumns* columns) {
    ColumnFinding finding = find_id(relation, side, columns);
    if (finding.problem == ColumnProblem::kNone) finding = find_score(relation, side, columns);
    if (finding.problem == ColumnProblem::kNone) finding = find_partition(relation, side, columns);
    return finding;
  });
}

SideColumns find_values(const JoinArguments& arguments, const SideArguments& side) {
  return find_columns(arguments, side, [](Relation, SideColumns*) { return kFound; });
}

}  // namespace gpujoin

// The errors of find_columns(): each states what is wrong and shows the argument that
// mends it.
#include "pg/reading/relation_hints.h"
#include "pg/reading/value_ranks.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// Names of the columns that pass `test`, separated by commas; *first is set to the first of them,
/// or to null.
template <class Test>
char* list_columns(Relation relation, const char** first, const Test& test) {
  StringInfoData list;
  initStringInfo(&list);
  *first = nullptr;
  for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation); ++a) {
    if (!test(a)) continue;
    const char* const name = NameStr(TupleDescAttr(RelationGetDescr(relation), a - 1)->attname);
    appendStringInfo(&list, "%s\"%s\"", *first == nullptr ? "" : ", ", name);
    if (*first == nullptr) *first = name;
  }
  return list.data;
}

/// Whether the column's values may be unique: of views and foreign tables it is not known.
bool may_identify(Relation relation, AttrNumber attribute) {
  const char kind = relation->rd_rel->relkind;
  return kind == RELKIND_VIEW || kind == RELKIND_FOREIGN_TABLE || is_unique(relation, attribute);
}

char* list_ids(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first,
                      [&](AttrNumber a) { return is_integer_type(column_type(o.relation, a)); });
}

char* list_unique_ids(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first, [&](AttrNumber a) {
    return is_integer_type(column_type(o.relation, a)) && may_identify(o.relation, a);
  });
}

char* list_scores(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first,
                      [&](AttrNumber a) { return is_score_candidate(o.relation, *o.columns, a); });
}

char* list_partitions(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first, [&](AttrNumber a) {
    RankFunctions functions;
    const Oid type = column_type(o.relation, a);
    return OidIsValid(type) && find_rank_functions(type, InvalidOid, &functions);
  });
}

/// Vectors, or boxes.
char* list_values(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first, [&](AttrNumber a) {
    return is_whole_type(*o.side, column_type(o.relation, a));
  });
}

/// What vectors, or boxes, can be made of.
char* list_parts(const Obstacle& o, const char** first) {
  return list_columns(o.relation, first, [&](AttrNumber a) {
    return is_part_type(*o.side, column_type(o.relation, a));
  });
}

/// The types of which one column is a vector, a box, or bits: `real[], point or cube`.
char* list_types(const SideArguments& side) {
  StringInfoData list;
  initStringInfo(&list);
  const char* last = nullptr;
  for (int i = 0; i < value_type_count(); ++i) {
    const ValueType& type = *value_types()[i];
    if (!is_argument(type, form_of(side.shape), side.bits)) continue;
    if (last != nullptr) appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "", last);
    last = type.name;
  }
  appendStringInfo(&list, " or %s", last);
  return list.data;
}

const char* types_of(const SideArguments& side) {
  return psprintf(side.bits ? "Bits are one column of type %s."
                  : side.shape == Shape::kBoxes
                      ? "A box is one column of type %s, or two columns of type real[] or double "
                        "precision[], its low corner and its high one."
                      : "A vector is one column of type %s, or several numeric columns.",
                  list_types(side));
}

/// An argument that names columns.
struct Role {
  const char* argument;
  const char* article_noun;  ///< what such a column is
  const char* types;
  char* candidates;
  const char* first = nullptr;  ///< first candidate, or null
  bool is_value = false;        ///< it names the vector or box
};

/// The argument that named the column at fault.
Role role_of(const Obstacle& o) {
  Role role = {};
  if (o.column == o.side->id_column) {
    role = {"id_column", "an id", "An id is of type smallint, integer or bigint.", nullptr};
    role.candidates = list_ids(o, &role.first);
  } else if (o.column == o.side->partition_column) {
    role = {
        "partition_column", "a partition",
        "Rows whose values are equal are a partition: name a column whose type has an equality, "
        "as jsonb has and json has not.",
        nullptr};
    role.candidates = list_partitions(o, &role.first);
  } else if (o.column == o.side->score_column) {
    role = {o.side->ranks ? "keep_column" : "score_column", o.side->ranks ? "a rank" : "a score",
            o.side->ranks ? "A rank is of a numeric type." : "A score is of a numeric type.",
            nullptr};
    role.candidates = list_scores(o, &role.first);
  } else {
    role = {columns_argument(o.shape()),
            o.shape() == Shape::kBoxes ? "a box" : "a vector",
            types_of(*o.side),
            nullptr,
            nullptr,
            true};
    role.candidates = list_values(o, &role.first);
    if (role.first == nullptr) role.candidates = list_parts(o, &role.first);
  }
  return role;
}

[[noreturn]] void raise_several_columns(const Obstacle& o) {
  const char* first;
  const char* const candidates = list_values(o, &first);
  ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                  errmsg("relation \"%s\" has several %s columns: %s", o.name(), noun(o.shape()),
                         candidates),
                  errhint("Pass one of them, for example %s%s => %s.", o.side->prefix,
                          columns_argument(o.shape()), list_literal(first))));
  pg_unreachable();
}

[[noreturn]] void raise_several_scores(const Obstacle& o) {
  const char* first;
  const char* const candidates = list_scores(o, &first);
  ereport(ERROR,
          (errcode(ERRCODE_AMBIGUOUS_COLUMN),
           errmsg("relation \"%s\" has several columns that could be the score: %s", o.name(),
                  candidates),
           score_hint(o) != nullptr ? errhint("%s", score_hint(o))
                                    : errhint("Pass one of them, for example %sscore_column => %s.",
                                              o.side->prefix, quote_literal_cstr(first))));
  pg_unreachable();
}

/// What names rows without an integer key.
const char* other_id(const Obstacle& o) {
  const char kind = o.relation->rd_rel->relkind;
  if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW)
    return "Give it a column of unique integers.";
  return psprintf("Pass %sid_column => 'ctid', and gpu_ctid() of an id is the ctid of its row.",
                  o.side->prefix);
}

[[noreturn]] void raise_no_id(const Obstacle& o) {
  const char* first;
  const char* const candidates = list_unique_ids(o, &first);
  const char* const query = first == nullptr ? plain_query(o) : nullptr;
  ereport(
      ERROR,
      (errcode(ERRCODE_UNDEFINED_COLUMN),
       errmsg("relation \"%s\" has no primary key of one integer column", o.name()),
       first == nullptr ? errdetail("It has no integer column that is known to be unique.")
                        : errdetail("Its integer columns that may be unique are: %s.", candidates),
       first != nullptr
           ? errhint("Name the column that identifies its rows, for example %sid_column => %s.",
                     o.side->prefix, quote_literal_cstr(first))
       : query == nullptr ? errhint("%s", other_id(o))
                          : errhint("%s Plain SQL takes any key: %s.", other_id(o), query)));
  pg_unreachable();
}

[[noreturn]] void raise_missing_column(const Obstacle& o) {
  const Role role = role_of(o);
  const char* const hint = role.is_value ? expression_hint(o) : nullptr;
  ereport(ERROR,
          (errcode(ERRCODE_UNDEFINED_COLUMN),
           errmsg("column \"%s\" of relation \"%s\" does not exist", o.column, o.name()),
           hint != nullptr         ? errhint("%s", hint)
           : role.first == nullptr ? errhint("Check %s%s.", o.side->prefix, role.argument)
                                   : errhint("Columns that %s%s may name are: %s.", o.side->prefix,
                                             role.argument, role.candidates)));
  pg_unreachable();
}

[[noreturn]] void raise_wrong_type(const Obstacle& o) {
  const Role role = role_of(o);
  const AttrNumber attribute = find_attribute(o.relation, o.column);
  const Form_pg_attribute form = TupleDescAttr(RelationGetDescr(o.relation), attribute - 1);
  const char* const hint = role.is_value ? named_value_hint(o) : nullptr;
  ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                  errmsg("column \"%s\" of relation \"%s\" has type %s, which cannot be %s",
                         o.column, o.name(), format_type_be(form->atttypid), role.article_noun),
                  errhint("%s", hint != nullptr ? hint : role.types)));
  pg_unreachable();
}

/// What is wrong with the list of columns itself.
[[noreturn]] void raise_bad_list(const Obstacle& o, ColumnProblem problem) {
  const char *const prefix = o.side->prefix, *const argument = columns_argument(o.shape());
  switch (problem) {
    case ColumnProblem::kNoColumnsNamed:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("%s%s names no column", prefix, argument),
                      errhint("Leave it out to use the only %s column of relation \"%s\".",
                              noun(o.shape()), o.name())));
      break;
    case ColumnProblem::kRepeatedColumn:
      ereport(ERROR, (errcode(ERRCODE_DUPLICATE_COLUMN),
                      errmsg("%s%s names column \"%s\" twice", prefix, argument, o.column),
                      errhint("Name each column once.")));
      break;
    case ColumnProblem::kCornerCount:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("%s%s must name two columns of corners, not %d", prefix, argument,
                             o.side->column_count),
                      errhint("%s", types_of(*o.side))));
      break;
    default:
      ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                      errmsg("column \"%s\" of relation \"%s\" is a %s by itself and cannot be "
                             "combined with other columns",
                             o.column, o.name(), noun(o.shape())),
                      errhint("%s", types_of(*o.side))));
  }
  pg_unreachable();
}

}  // namespace

void raise_finding(Relation relation, const JoinArguments& arguments, const SideArguments& side,
                   const SideColumns& columns, ColumnFinding finding) {
  const Obstacle o = {relation, &arguments, &side, &columns, finding.column};
  switch (finding.problem) {
    case ColumnProblem::kSeveralColumns:
      raise_several_columns(o);
    case ColumnProblem::kSeveralScores:
      raise_several_scores(o);
    case ColumnProblem::kNoId:
      raise_no_id(o);
    case ColumnProblem::kNoCtid:
      ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                      errmsg("rows of relation \"%s\" cannot be named by their ctids", o.name()),
                      errdetail("A ctid is the place of a row in one table, and this relation is a "
                                "view, a foreign table, or has partitions or children."),
                      errhint("Name a column of unique integers for %sid_column.", side.prefix)));
      break;
    case ColumnProblem::kMissingColumn:
      raise_missing_column(o);
    case ColumnProblem::kIdType:
    case ColumnProblem::kScoreType:
    case ColumnProblem::kNoEquality:
    case ColumnProblem::kColumnType:
      raise_wrong_type(o);
    case ColumnProblem::kRelationKind:
      ereport(ERROR,
              (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot join relation \"%s\"", o.name()),
               errdetail_relkind_not_supported(relation->rd_rel->relkind),
               errhint("Pass a table, a view, a materialized view or a foreign table.")));
      break;
    case ColumnProblem::kNoColumn: {
      const char* const hint = missing_value_hint(o);
      ereport(ERROR,
              (errcode(ERRCODE_UNDEFINED_COLUMN),
               errmsg("relation \"%s\" has no %s column", o.name(), noun(side.shape)),
               errdetail("%s", types_of(side)),
               hint != nullptr ? errhint("%s", hint)
                               : errhint("Join a relation that has one, for example a view.")));
      break;
    }
    case ColumnProblem::kNoScore:
      ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                      errmsg("relation \"%s\" has no column that could be the score", o.name()),
                      errdetail("A score is a numeric column that is neither the id nor a part of "
                                "the vector, unless it is named."),
                      errhint("Name a numeric column with %sscore_column, or pass score => "
                              "'distance'.",
                              side.prefix)));
      break;
    case ColumnProblem::kNoDegrees:
      ereport(ERROR,
              (errcode(ERRCODE_DATATYPE_MISMATCH),
               errmsg("the vector of relation \"%s\" is no longitude and latitude", o.name()),
               errhint("The metric haversine takes two numeric columns of degrees, for example "
                       "%svector_columns => 'lon,lat', or one of type real[], double precision[], "
                       "point, or geometry of points in degrees (SRID 4326).",
                       side.prefix)));
      break;
    case ColumnProblem::kNone:
      elog(ERROR, "no problem with the columns of relation \"%s\"", o.name());
    default:
      raise_bad_list(o, finding.problem);
  }
  pg_unreachable();
}

}  // namespace gpujoin

// Words for what find_columns() stumbles over: each says what is wrong and shows the argument that
// mends it.
#include "pg/relation.h"

extern "C" {
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

using TypeTest = bool (*)(Oid type);

/// Names of the columns whose type passes `test`, separated by commas; *first is set to the first
/// of them.
char* list_columns(Relation relation, TypeTest test, const char** first) {
  StringInfoData list;
  initStringInfo(&list);
  *first = nullptr;
  for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation); ++a) {
    if (!test(column_type(relation, a))) continue;
    const char* const name = NameStr(TupleDescAttr(RelationGetDescr(relation), a - 1)->attname);
    appendStringInfo(&list, "%s\"%s\"", *first == nullptr ? "" : ", ", name);
    if (*first == nullptr) *first = name;
  }
  return list.data;
}

/// `'{name}'`: an array literal that holds one name, quoted for SQL.
char* array_literal(const char* name) {
  StringInfoData literal;
  initStringInfo(&literal);
  appendStringInfo(&literal, "{%s}", quote_identifier(name));
  return quote_literal_cstr(literal.data);
}

constexpr const char* kVectorTypes =
    "A vector is one column of type real[], double precision[] or point, or several numeric "
    "columns.";

[[noreturn]] void raise_ambiguous_vector(Relation relation, const SideArguments& side) {
  const char* first;
  const char* const candidates = list_columns(relation, is_vector_type, &first);
  ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                  errmsg("relation \"%s\" has several vector columns: %s",
                         RelationGetRelationName(relation), candidates),
                  errhint("Pass one of them, for example %svector_columns => %s.", side.prefix,
                          array_literal(first))));
  pg_unreachable();
}

[[noreturn]] void raise_no_id(Relation relation, const SideArguments& side) {
  const char* first;
  const char* const candidates = list_columns(relation, is_id_type, &first);
  ereport(ERROR,
          (errcode(ERRCODE_UNDEFINED_COLUMN),
           errmsg("relation \"%s\" has no primary key of one integer column",
                  RelationGetRelationName(relation)),
           first == nullptr ? errdetail("It has no integer column.")
                            : errdetail("Its integer columns are: %s.", candidates),
           first == nullptr
               ? errhint("Rows are named by a column of type smallint, integer or bigint; a view "
                         "can add one.")
               : errhint("Name the column that identifies its rows, for example %sid_column => %s.",
                         side.prefix, quote_literal_cstr(first))));
  pg_unreachable();
}

[[noreturn]] void raise_missing_column(Relation relation, const SideArguments& side,
                                       const char* column) {
  const bool is_id = column == side.id_column;
  const char* first;
  const char* const candidates =
      list_columns(relation, is_id ? is_id_type : is_vector_type, &first);
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                  errmsg("column \"%s\" of relation \"%s\" does not exist", column,
                         RelationGetRelationName(relation)),
                  first == nullptr
                      ? errhint("Check %s%s.", side.prefix, is_id ? "id_column" : "vector_columns")
                      : errhint("Columns that %s%s may name are: %s.", side.prefix,
                                is_id ? "id_column" : "vector_columns", candidates)));
  pg_unreachable();
}

[[noreturn]] void raise_wrong_type(Relation relation, const char* column, bool is_id) {
  const AttrNumber attribute = get_attnum(RelationGetRelid(relation), column);
  const Form_pg_attribute form = TupleDescAttr(RelationGetDescr(relation), attribute - 1);
  ereport(ERROR,
          (errcode(ERRCODE_DATATYPE_MISMATCH),
           errmsg("column \"%s\" of relation \"%s\" has type %s, which cannot be %s", column,
                  RelationGetRelationName(relation), format_type_be(form->atttypid),
                  is_id ? "an id" : "a vector"),
           errhint("%s", is_id ? "An id is of type smallint, integer or bigint." : kVectorTypes)));
  pg_unreachable();
}

}  // namespace

void raise_finding(Relation relation, const SideArguments& side, ColumnFinding finding) {
  const char* const name = RelationGetRelationName(relation);
  switch (finding.problem) {
    case ColumnProblem::kSeveralVectorColumns:
      raise_ambiguous_vector(relation, side);
    case ColumnProblem::kNoId:
      raise_no_id(relation, side);
    case ColumnProblem::kMissingColumn:
      raise_missing_column(relation, side, finding.column);
    case ColumnProblem::kIdType:
    case ColumnProblem::kVectorType:
      raise_wrong_type(relation, finding.column, finding.problem == ColumnProblem::kIdType);
    case ColumnProblem::kRelationKind:
      ereport(ERROR,
              (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" holds no rows to join", name),
               errhint("Pass a table, a view, a materialized view or a foreign table.")));
      break;
    case ColumnProblem::kNoVectorColumn:
      ereport(
          ERROR,
          (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("relation \"%s\" has no vector column", name),
           errdetail("%s", kVectorTypes),
           errhint("Name the columns, for example %svector_columns => '{lon,lat}'.", side.prefix)));
      break;
    case ColumnProblem::kNoColumnsNamed:
      ereport(ERROR,
              (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
               errmsg("%svector_columns names no column", side.prefix),
               errhint("Leave it out to use the only vector column of relation \"%s\".", name)));
      break;
    case ColumnProblem::kRepeatedColumn:
      ereport(ERROR,
              (errcode(ERRCODE_DUPLICATE_COLUMN),
               errmsg("%svector_columns names column \"%s\" twice", side.prefix, finding.column),
               errhint("Name each column once.")));
      break;
    case ColumnProblem::kMixedVectors:
      ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                      errmsg("column \"%s\" of relation \"%s\" is a vector by itself and cannot be "
                             "combined with other columns",
                             finding.column, name),
                      errhint("%s", kVectorTypes)));
      break;
    default:
      elog(ERROR, "no problem with the columns of relation \"%s\"", name);
  }
  pg_unreachable();
}

}  // namespace gpujoin

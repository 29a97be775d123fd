#include "pg/reading/relation_hints.h"

#include "pg/types/number_datum.h"
#include "pg/types/value_types.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
}

namespace gpujoin {
namespace {

/// A value to compare: a column, or an expression over columns that makes a vector.
struct Operand {
  const ValueType* type;  ///< null: an array of numbers
  Oid read_as;
  char* left;  ///< in terms of row a, and of row b
  char* right;
};

char* qualified_name(Relation relation) {
  return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
                                    RelationGetRelationName(relation));
}

const char* column_name(Relation relation, AttrNumber attribute) {
  return NameStr(TupleDescAttr(RelationGetDescr(relation), attribute - 1)->attname);
}

const char* number_text(double number) {
  return DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(number)));
}

bool is_of(const ValueType* type, const char* extension) {
  return type != nullptr && type->extension != nullptr && strcmp(type->extension, extension) == 0;
}

// ---- Keys

/// Returns `a.x, a.y`: the columns of the primary key, maybe none. Sets *count.
char* key_columns(Relation relation, const char* row, int* count) {
  StringInfoData list;
  initStringInfo(&list);
  Oid constraint;
  const Bitmapset* const key =
      get_primary_key_attnos(RelationGetRelid(relation), true, &constraint);
  int member = -1;
  *count = 0;
  while ((member = bms_next_member(key, member)) >= 0)
    appendStringInfo(
        &list, "%s%s.%s", (*count)++ > 0 ? ", " : "", row,
        quote_identifier(column_name(
            relation, static_cast<AttrNumber>(member + FirstLowInvalidHeapAttributeNumber))));
  return list.data;
}

/// Returns the key's columns; all columns if the relation has no key.
char* shown_columns(Relation relation, const char* row) {
  int count;
  char* const key = key_columns(relation, row, &count);
  return count > 0 ? key : psprintf("%s.*", row);
}

/// ` AND a.id < b.id`, which leaves each pair of a relation's rows once; empty if its rows have
/// neither a key nor ctids.
const char* order_of_rows(Relation relation) {
  const char kind = relation->rd_rel->relkind;
  int count;
  char *const left = key_columns(relation, "a", &count), *const right =
                                                             key_columns(relation, "b", &count);
  if (count == 1) return psprintf(" AND %s < %s", left, right);
  if (count > 1) return psprintf(" AND (%s) < (%s)", left, right);
  if (kind == RELKIND_PARTITIONED_TABLE || relation->rd_rel->relhassubclass)
    return " AND (a.tableoid, a.ctid) < (b.tableoid, b.ctid)";
  return kind == RELKIND_RELATION || kind == RELKIND_MATVIEW ? " AND a.ctid < b.ctid" : "";
}

// ---- Conditions

/// `a.v`, or `ARRAY[a.x, a.y]::float8[]`.
char* value_of(const SideColumns& columns, const char* row) {
  StringInfoData value;
  initStringInfo(&value);
  for (int i = 0; i < columns.count; ++i)
    appendStringInfo(&value, "%s%s.%s", i > 0 ? ", " : "", row,
                     quote_identifier(get_attname(columns.relation, columns.attributes[i], false)));
  return columns.value_type != nullptr ? value.data : psprintf("ARRAY[%s]::float8[]", value.data);
}

Operand operand_of(const SideColumns& left, const SideColumns& right) {
  const Oid type = left.value_type != nullptr ? type_read(left.types[0]) : FLOAT8ARRAYOID;
  return {left.value_type, type, value_of(left, "a"), value_of(right, "b")};
}

const char* bits_condition(const Operand& value, Metric metric, const char* eps) {
  if (metric != Metric::kHamming || value.read_as == BYTEAOID) return nullptr;
  if (!is_number_type(value.read_as))
    return psprintf("bit_count(%s # %s) <= %s", value.left, value.right, eps);
  return psprintf("bit_count((%s # %s)::bit(%d)) <= %s", value.left, value.right,
                  value.read_as == INT8OID ? 64 : 32, eps);
}

const char* postgis_condition(const Operand& value, PointMetric metric, const char* eps) {
  if (metric.metric != Metric::kL2) return nullptr;
  const bool geography = value.type == &kGeographyType;
  if (!metric.on_earth || geography)
    return psprintf("ST_DWithin(%s, %s, %s)", value.left, value.right, eps);
  return psprintf("ST_DWithin(%s::geography, %s::geography, %s, false)", value.left, value.right,
                  eps);
}

/// Returns the metric's operator between values of the type, or null.
const char* operator_of(const ValueType* type, Metric metric) {
  const bool cube = is_of(type, "cube");
  switch (metric) {
    case Metric::kL2:
      return "<->";
    case Metric::kL1:
      return cube ? "<#>" : is_of(type, "vector") ? "<+>" : nullptr;
    case Metric::kLInf:
      return cube ? "<=>" : nullptr;
    case Metric::kCosine:
      return is_of(type, "vector") ? "<=>" : nullptr;
    default:
      return nullptr;
  }
}

/// Returns the condition that two values are within the radius of the call, or null.
const char* condition_of(const Obstacle& o, const Operand& value) {
  const PointMetric metric = o.arguments->metric;
  const double radius = o.arguments->radius;
  const char* const eps = number_text(radius);
  if (o.shape() == Shape::kBoxes)
    return value.type != nullptr && radius == 0 ? psprintf("%s && %s", value.left, value.right)
                                                : nullptr;
  if (o.side->bits) return bits_condition(value, metric.metric, eps);
  if (is_of(value.type, "postgis")) return postgis_condition(value, metric, eps);
  const char* const by = metric.on_earth ? nullptr : operator_of(value.type, metric.metric);
  if (by != nullptr) return psprintf("%s %s %s <= %s", value.left, by, value.right, eps);
  if (value.type != nullptr && value.type->extension != nullptr) return nullptr;
  return psprintf("gpu_distance(%s, %s, '%s') <= %s", value.left, value.right, to_string(metric),
                  eps);
}

// ---- Queries

bool lists_pairs(Output::Kind output) {
  switch (output) {
    case Output::kPairs:
    case Output::kPairsWithDistances:
    case Output::kCountPerRow:
    case Output::kTopPairs:
    case Output::kDuplicates:
      return true;
    default:
      return false;
  }
}

/// The pairs of rows of two relations, or of one.
const char* pairs_query(const Obstacle& o, Relation left, Relation right, const Operand& value) {
  const char* const condition = condition_of(o, value);
  if (condition == nullptr || !lists_pairs(o.arguments->function->output)) return nullptr;
  return psprintf("SELECT %s, %s FROM %s a JOIN %s b ON %s%s", shown_columns(left, "a"),
                  shown_columns(right, "b"), qualified_name(left), qualified_name(right), condition,
                  left == right ? order_of_rows(left) : "");
}

/// The clusters of a relation's rows, by a window function.
const char* clusters_query(const Obstacle& o, const Operand& value) {
  const char* const partition = o.side->partition_column;
  if (value.type == &kGeographyType || o.side->bits) return nullptr;
  return psprintf(
      "SELECT %s, gpu_cluster_dbscan(%s, %s, %llu, '%s') OVER (%s) FROM %s a",
      shown_columns(o.relation, "a"), value.left, number_text(o.arguments->radius),
      static_cast<unsigned long long>(o.arguments->min_points), to_string(o.arguments->metric),
      partition == nullptr ? "" : psprintf("PARTITION BY a.%s", quote_identifier(partition)),
      qualified_name(o.relation));
}

/// A query over the relation alone.
const char* one_table_query(const Obstacle& o, const Operand& value) {
  return o.arguments->function->output == Output::kClusters
             ? clusters_query(o, value)
             : pairs_query(o, o.relation, o.relation, value);
}

const SideArguments& other_side(const Obstacle& o) {
  return o.side == &o.arguments->left ? o.arguments->right : o.arguments->left;
}

/// Calls call(relation, columns) with the other side of a join of two tables, if its vectors or
/// boxes are found.
template <class Call>
void with_other_side(const Obstacle& o, const Call& call) {
  const SideArguments& side = other_side(o);
  if (!may_select_some(side.relation)) return;
  const Relation relation = try_relation_open(side.relation, AccessShareLock);
  if (relation == nullptr) return;
  SideColumns columns;
  if (find_value_columns(relation, side, &columns).problem == ColumnProblem::kNone)
    call(relation, columns);
  relation_close(relation, NoLock);
}

// ---- Columns of other types

enum class TextKind { kUnknown, kNone, kVector, kNumber };

bool is_text(Oid type) { return type == TEXTOID || type == VARCHAROID || type == BPCHAROID; }
bool is_json(Oid type) { return type == JSONOID || type == JSONBOID; }

bool may_look_at(Relation relation, AttrNumber attribute) {
  const Oid id = RelationGetRelid(relation);
  const char kind = relation->rd_rel->relkind;
  const bool stored = kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE ||
                      (kind == RELKIND_MATVIEW && RelationIsScannable(relation));
  return stored && check_enable_rls(id, InvalidOid, true) != RLS_ENABLED &&
         (pg_class_aclcheck(id, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
          pg_attribute_aclcheck(id, attribute, GetUserId(), ACL_SELECT) == ACLCHECK_OK);
}

/// Returns the beginning of the first value that is not NULL in a table's first hundred rows.
/// Returns null if all are NULL or the user may not look.
char* first_value(Relation relation, AttrNumber attribute) {
  if (!may_look_at(relation, attribute)) return nullptr;
  const char* const column = quote_identifier(column_name(relation, attribute));
  const char* const query = psprintf(
      "SELECT pg_catalog.left(pg_catalog.ltrim(%s::pg_catalog.text), 64) FROM (SELECT %s FROM %s "
      "LIMIT 100) s WHERE %s IS NOT NULL LIMIT 1",
      column, column, qualified_name(relation), column);
  const MemoryContext caller = CurrentMemoryContext;
  char* result = nullptr;
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  if (SPI_execute(query, true, 1) == SPI_OK_SELECT && SPI_processed > 0)
    result =
        MemoryContextStrdup(caller, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
  SPI_finish();
  return result;
}

/// Decides by a column's first value whether its text is a list of numbers, as gpu_vector() reads
/// it, or a number.
TextKind kind_of_text(Relation relation, AttrNumber attribute) {
  const Oid type = column_type(relation, attribute);
  if (!is_text(type) && !is_json(type)) return TextKind::kNone;
  const char* const value = first_value(relation, attribute);
  if (value == nullptr) return TextKind::kUnknown;
  if (value[0] == '[' || (value[0] == '{' && is_text(type))) {
    const char* const first = value + 1 + strspn(value + 1, " \t\n");
    return strchr("+-.0123456789nNiI", *first) != nullptr ? TextKind::kVector : TextKind::kNone;
  }
  char* end;
  strtod(value, &end);
  return is_text(type) && end != value && end[strspn(end, " ")] == '\0' ? TextKind::kNumber
                                                                        : TextKind::kNone;
}

/// The expression over a row that makes numbers of a column.
char* converted(Relation relation, AttrNumber attribute, TextKind kind, const char* row) {
  const char* const column = quote_identifier(column_name(relation, attribute));
  return psprintf(kind == TextKind::kVector ? "gpu_vector(%s%s)" : "%s%s::float8", row, column);
}

struct Attributes {
  int count;
  AttrNumber at[MaxHeapAttributeNumber];
};

/// The columns that pass a test, no more than `most`.
template <class Test>
Attributes* columns_where(Relation relation, int most, const Test& test) {
  auto* const found = static_cast<Attributes*>(palloc(sizeof(Attributes)));
  found->count = 0;
  for (AttrNumber a = 1; a <= RelationGetNumberOfAttributes(relation) && found->count < most; ++a)
    if (OidIsValid(column_type(relation, a)) && test(a)) found->at[found->count++] = a;
  return found;
}

/// The relation's integer column that names its rows, or null.
const char* known_id(const Obstacle& o) {
  const AttrNumber id = o.side->id_column != nullptr ? find_attribute(o.relation, o.side->id_column)
                                                     : primary_key(o.relation);
  return id == InvalidAttrNumber || !is_integer_type(column_type(o.relation, id))
             ? nullptr
             : column_name(o.relation, id);
}

char* join_texts(List* texts, const char* separator = ", ") {
  StringInfoData list;
  initStringInfo(&list);
  ListCell* cell;
  foreach (cell, texts)
    appendStringInfo(&list, "%s%s", list.len > 0 ? separator : "",
                     static_cast<char*>(lfirst(cell)));
  return list.data;
}

/// Returns `; then pass tbl => 'photos_vectors', ..`: the arguments for a relation, a literal, that
/// has the vector in these columns.
const char* arguments_to_pass(const Obstacle& o, const char* relation, const char* id,
                              List* names) {
  List* quoted = NIL;
  ListCell* cell;
  foreach (cell, names)
    quoted = lappend(quoted, pstrdup(quote_identifier(static_cast<char*>(lfirst(cell)))));
  const char* const prefix = o.side->prefix;
  return psprintf("; then pass %stbl => %s, %sid_column => %s, %s%s => %s.", prefix, relation,
                  prefix, quote_literal_cstr(id), prefix, columns_argument(o.shape()),
                  quote_literal_cstr(join_texts(quoted, ",")));
}

/// Fills the format, once for each column, with the expression and the name, or with these in the
/// other order.
List* named_expressions(const char* format, bool name_first, List* expressions, List* names) {
  List* result = NIL;
  for (int i = 0; i < list_length(names); ++i) {
    const char* const expression = static_cast<char*>(list_nth(expressions, i));
    const char* const name = quote_identifier(static_cast<char*>(list_nth(names, i)));
    result = lappend(result, name_first ? psprintf(format, name, expression)
                                        : psprintf(format, expression, name));
  }
  return result;
}

/// Returns the hint to make a view with further columns, which are the vector.
const char* view_hint(const Obstacle& o, const char* id, List* expressions, List* names) {
  const char* const view = makeObjectName(o.name(), nullptr, plural(o.shape()));
  return psprintf("Make a view: CREATE VIEW %s AS SELECT *, %s FROM %s%s", quote_identifier(view),
                  join_texts(named_expressions("%s AS %s", false, expressions, names)),
                  qualified_name(o.relation), arguments_to_pass(o, list_literal(view), id, names));
}

/// Returns the hint to add these columns to a table, whose ctids then name its rows.
const char* generated_hint(const Obstacle& o, const char* type, List* expressions, List* names) {
  const char* const format = psprintf("ADD COLUMN %%s %s GENERATED ALWAYS AS (%%s) STORED", type);
  return psprintf(
      "Add columns: ALTER TABLE %s %s%s", qualified_name(o.relation),
      join_texts(named_expressions(format, true, expressions, names)),
      arguments_to_pass(o, quote_literal_cstr(qualified_name(o.relation)), "ctid", names));
}

/// Returns the hint on how columns of text become the vector: by a view. If no column can be the
/// id, in plain SQL or by further columns.
const char* conversion_hint(const Obstacle& o, const Attributes& found, TextKind kind) {
  const char* const suffix = kind == TextKind::kVector ? "vector" : "number";
  List *expressions = NIL, *names = NIL, *left = NIL, *right = NIL;
  for (int i = 0; i < found.count; ++i) {
    const AttrNumber a = found.at[i];
    names = lappend(names, makeObjectName(column_name(o.relation, a), nullptr, suffix));
    expressions = lappend(expressions, converted(o.relation, a, kind, ""));
    left = lappend(left, converted(o.relation, a, kind, "a."));
    right = lappend(right, converted(o.relation, a, kind, "b."));
  }
  const char* const id = known_id(o);
  if (id != nullptr) return view_hint(o, id, expressions, names);
  const char* const form = kind == TextKind::kVector ? "%s" : "ARRAY[%s]";
  const Operand value = {nullptr, FLOAT8ARRAYOID, psprintf(form, join_texts(left)),
                         psprintf(form, join_texts(right))};
  const char* const query =
      o.arguments->function->takes_one_table() ? one_table_query(o, value) : nullptr;
  if (query != nullptr) return psprintf("Write it in plain SQL: %s.", query);
  const bool has_ctids =
      o.relation->rd_rel->relkind == RELKIND_RELATION && !o.relation->rd_rel->relhassubclass;
  if (has_ctids)
    return generated_hint(o, kind == TextKind::kVector ? "float8[]" : "float8", expressions, names);
  return psprintf("Make a view that has a column of unique integers and %s.",
                  join_texts(expressions));
}

/// Returns that hint for a column whose values are unknown.
const char* guessed_hint(const Obstacle& o, const Attributes& one) {
  return psprintf("If \"%s\" holds lists of numbers, as in [1, 2.5]: %s",
                  column_name(o.relation, one.at[0]), conversion_hint(o, one, TextKind::kVector));
}

bool is_key(const Obstacle& o, AttrNumber attribute) {
  return attribute == primary_key(o.relation) ||
         (o.side->id_column != nullptr &&
          attribute == find_attribute(o.relation, o.side->id_column));
}

/// `vector_columns => 'x,y'`, of columns that are numbers, or corners of a box. Columns that are
/// called as coordinates are come before others.
const char* parts_hint(const Obstacle& o) {
  static constexpr const char* kPairs[][2] = {
      {"lon", "lat"}, {"lng", "lat"}, {"longitude", "latitude"}, {"ra", "dec"}, {"x", "y"}};
  const auto is_part = [&](AttrNumber a) {
    const Oid type = column_type(o.relation, a);
    return !is_key(o, a) &&
           (o.side->bits ? is_whole_type(*o.side, type) : is_part_type(*o.side, type));
  };
  const Attributes* found = columns_where(o.relation, o.side->bits ? 1 : 2, is_part);
  if (o.shape() == Shape::kPoints && !o.side->bits)
    for (const auto& pair : kPairs) {
      const Attributes* const named = columns_where(o.relation, 2, [&](AttrNumber a) {
        const char* const name = column_name(o.relation, a);
        return is_part(a) &&
               (pg_strcasecmp(name, pair[0]) == 0 || pg_strcasecmp(name, pair[1]) == 0);
      });
      if (named->count < 2) continue;
      auto* const ordered = static_cast<Attributes*>(palloc(sizeof(Attributes)));
      const bool swapped = pg_strcasecmp(column_name(o.relation, named->at[0]), pair[0]) != 0;
      *ordered = *named;
      if (swapped) std::swap(ordered->at[0], ordered->at[1]);
      found = ordered;
      break;
    }
  // A lone integer is rather an id than a vector of one dimension.
  const bool fits_alone =
      found->count == 1 && o.shape() == Shape::kPoints &&
      (o.side->bits ||
       (!o.side->on_earth && !is_integer_type(column_type(o.relation, found->at[0]))));
  if (found->count < 2 && !fits_alone) return nullptr;
  List* names = NIL;
  for (int i = 0; i < found->count; ++i)
    names = lappend(names, pstrdup(quote_identifier(column_name(o.relation, found->at[i]))));
  return psprintf("Name the columns, for example %s%s => %s.", o.side->prefix,
                  columns_argument(o.shape()), quote_literal_cstr(join_texts(names, ",")));
}

/// Returns a hint if the column is geography, which functions do not take; else null.
const char* geography_hint(const Obstacle& o, AttrNumber attribute) {
  if (find_value_type(column_type(o.relation, attribute)) != &kGeographyType) return nullptr;
  const char* const column = quote_identifier(column_name(o.relation, attribute));
  const Operand value = {&kGeographyType, InvalidOid, psprintf("a.%s", column),
                         psprintf("b.%s", column)};
  const char* const query =
      o.arguments->function->takes_one_table() ? one_table_query(o, value) : nullptr;
  return query != nullptr ? psprintf("Write ST_DWithin() in SQL: %s.", query)
                          : "Write ST_DWithin() in SQL, or ORDER BY <-> LIMIT for nearest rows.";
}

bool may_be_bits(Oid type) { return type == BITOID || type == VARBITOID || type == BYTEAOID; }

constexpr char kBitsHint[] = "Bits have the metrics hamming and jaccard: pass metric => 'hamming'.";

}  // namespace

char* list_literal(const char* name) { return quote_literal_cstr(quote_identifier(name)); }

const char* plain_query(const Obstacle& o) {
  const Operand own = operand_of(*o.columns, *o.columns);
  if (o.arguments->function->takes_one_table()) return one_table_query(o, own);
  const char* query = nullptr;
  with_other_side(o, [&](Relation relation, const SideColumns& columns) {
    const bool is_left = o.side == &o.arguments->left;
    const Operand value =
        is_left ? operand_of(*o.columns, columns) : operand_of(columns, *o.columns);
    if (columns.value_type != o.columns->value_type) return;
    query = pairs_query(o, is_left ? o.relation : relation, is_left ? relation : o.relation, value);
  });
  return query;
}

const char* missing_value_hint(const Obstacle& o) {
  const bool points = o.shape() == Shape::kPoints && !o.side->bits;
  for (AttrNumber a = 1; points && a <= RelationGetNumberOfAttributes(o.relation); ++a)
    if (const char* const hint = geography_hint(o, a)) return hint;
  const auto holds = [&](TextKind kind) {
    return [&o, kind](AttrNumber a) { return kind_of_text(o.relation, a) == kind; };
  };
  if (points) {
    const Attributes* const vectors = columns_where(o.relation, 1, holds(TextKind::kVector));
    if (vectors->count > 0) return conversion_hint(o, *vectors, TextKind::kVector);
  }
  if (const char* const hint = parts_hint(o)) return hint;
  if (!points) return nullptr;
  const Attributes* const numbers = columns_where(o.relation, 2, holds(TextKind::kNumber));
  if (numbers->count == 2) return conversion_hint(o, *numbers, TextKind::kNumber);
  for (const bool json : {true, false}) {
    const Attributes* const unknown = columns_where(o.relation, 2, [&](AttrNumber a) {
      return is_json(column_type(o.relation, a)) == json && holds(TextKind::kUnknown)(a);
    });
    if (unknown->count == 1) return guessed_hint(o, *unknown);
  }
  const Attributes* const bits = columns_where(
      o.relation, 1, [&](AttrNumber a) { return may_be_bits(column_type(o.relation, a)); });
  return bits->count > 0 ? kBitsHint : nullptr;
}

const char* named_value_hint(const Obstacle& o) {
  if (o.shape() != Shape::kPoints || o.side->bits) return nullptr;
  const AttrNumber attribute = find_attribute(o.relation, o.column);
  if (may_be_bits(column_type(o.relation, attribute))) return kBitsHint;
  if (const char* const hint = geography_hint(o, attribute)) return hint;
  const TextKind kind = kind_of_text(o.relation, attribute);
  if (kind == TextKind::kNone) return nullptr;
  const Attributes one = {1, {attribute}};
  if (kind == TextKind::kUnknown) return guessed_hint(o, one);
  if (kind == TextKind::kVector) return conversion_hint(o, one, kind);
  Attributes named = {0, {}};
  for (int i = 0; i < o.side->column_count; ++i) {
    const AttrNumber a = find_attribute(o.relation, o.side->columns[i]);
    if (a != InvalidAttrNumber && named.count < MaxHeapAttributeNumber) named.at[named.count++] = a;
  }
  return conversion_hint(o, named, kind);
}

const char* expression_hint(const Obstacle& o) {
  List* names = NIL;
  for (int i = 0; i < o.side->column_count; ++i)
    names = lappend(names, pstrdup(o.side->columns[i]));
  char* const expression = join_texts(names);
  const char* const id = known_id(o);
  if (strpbrk(expression, "([:") == nullptr) return nullptr;
  if (id == nullptr)
    return "Name columns, not expressions: a view's, for example, or columns GENERATED ALWAYS AS.";
  return psprintf(
      "Name columns, not expressions. %s",
      view_hint(o, id, list_make1(expression), list_make1(const_cast<char*>(noun(o.shape())))));
}

const char* score_hint(const Obstacle& o) {
  const auto first_score = [](Relation relation, const SideColumns& columns) -> const char* {
    const Attributes* const found = columns_where(
        relation, 1, [&](AttrNumber a) { return is_score_candidate(relation, columns, a); });
    return found->count == 0 ? nullptr : pstrdup(column_name(relation, found->at[0]));
  };
  const char* const own = first_score(o.relation, *o.columns);
  const char* other = nullptr;
  with_other_side(o, [&](Relation relation, SideColumns columns) {
    columns.id = primary_key(relation);
    if (other_side(o).id_column != nullptr)
      columns.id = find_attribute(relation, other_side(o).id_column);
    other = first_score(relation, columns);
  });
  if (own == nullptr || other == nullptr) return nullptr;
  const bool is_left = o.side == &o.arguments->left;
  return psprintf(
      "Pass one for each side, for example left_score_column => %s, "
      "right_score_column => %s.",
      quote_literal_cstr(is_left ? own : other), quote_literal_cstr(is_left ? other : own));
}

}  // namespace gpujoin

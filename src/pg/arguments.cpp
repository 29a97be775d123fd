// SQL values -> JoinArguments. What the names mean in a table is found in relation.cpp.
#include "pg/arguments.h"

#include "engine/strategy.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

namespace gpujoin {
namespace {

constexpr ArgumentPositions kSelfJoinPositions = {{0, -1}, 1, {2, -1}, {3, -1}, 4, 5, 6};
constexpr ArgumentPositions kJoinPositions = {{0, 1}, 2, {3, 4}, {5, 6}, 7, -1, 8};

double read_eps(double eps) {
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("eps must be a finite number that is not negative, not %g", eps),
             errhint("Pass the largest distance that two rows may have; 0 finds duplicates.")));
  return eps;
}

Metric read_metric(const NullableDatum& value) {
  if (value.isnull) return Metric::kL2;
  const char* const name = TextDatumGetCString(value.value);
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf, Metric::kCosine})
    if (strcmp(name, to_string(metric)) == 0) return metric;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown metric \"%s\"", name),
                  errhint("Known metrics are \"l2\", \"l1\", \"linf\" and \"cosine\".")));
}

PairSelection read_pairs(const NullableDatum& value) {
  if (value.isnull) return PairSelection::kAll;
  const char* const name = TextDatumGetCString(value.value);
  for (const PairSelection pairs :
       {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered})
    if (strcmp(name, to_string(pairs)) == 0) return pairs;
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown value \"%s\" of pairs", name),
       errhint(
           "Known values are \"all\" (both orders, and each row with itself), \"distinct\" (no row "
           "with itself) and \"unordered\" (each pair once).")));
}

void read_vector_columns(const NullableDatum& value, SideArguments* side) {
  side->vector_column_count = -1;
  if (value.isnull) return;
  Datum* names;
  bool* nulls;
  deconstruct_array(DatumGetArrayTypeP(value.value), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
                    &names, &nulls, &side->vector_column_count);
  side->vector_columns =
      static_cast<const char**>(palloc(sizeof(char*) * (side->vector_column_count + 1)));
  for (int i = 0; i < side->vector_column_count; ++i) {
    if (nulls[i])
      ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                      errmsg("%svector_columns holds a NULL", side->prefix),
                      errhint("Name columns only, for example %svector_columns => '{lon,lat}'.",
                              side->prefix)));
    side->vector_columns[i] = pstrdup(NameStr(*DatumGetName(names[i])));
  }
}

SideArguments read_side(const ArgumentPositions& at, const NullableDatum* values, int side,
                        const char* prefix) {
  SideArguments result = {};
  result.relation = DatumGetObjectId(values[at.relation[side]].value);
  result.prefix = prefix;
  const NullableDatum& id = values[at.id_column[side]];
  if (!id.isnull) result.id_column = pstrdup(NameStr(*DatumGetName(id.value)));
  read_vector_columns(values[at.vector_columns[side]], &result);
  return result;
}

}  // namespace

const ArgumentPositions& argument_positions(const JoinFunction* function) {
  return function->self_join ? kSelfJoinPositions : kJoinPositions;
}

JoinArguments read_arguments(const JoinFunction* function, const NullableDatum* values) {
  const ArgumentPositions& at = argument_positions(function);
  JoinArguments result = {};
  result.function = function;
  result.no_rows = values[at.relation[0]].isnull || values[at.eps].isnull ||
                   (!function->self_join && values[at.relation[1]].isnull);
  result.metric = read_metric(values[at.metric]);
  result.pairs = function->self_join ? read_pairs(values[at.pairs]) : PairSelection::kAll;
  if (result.no_rows) return result;
  result.eps = read_eps(DatumGetFloat8(values[at.eps].value));
  result.left = read_side(at, values, 0, function->self_join ? "" : "left_");
  if (!function->self_join) result.right = read_side(at, values, 1, "right_");
  return result;
}

bool same_side(const SideArguments& a, const SideArguments& b) {
  if (a.relation != b.relation || a.vector_column_count != b.vector_column_count) return false;
  if ((a.id_column == nullptr) != (b.id_column == nullptr)) return false;
  if (a.id_column != nullptr && strcmp(a.id_column, b.id_column) != 0) return false;
  for (int i = 0; i < a.vector_column_count; ++i)
    if (strcmp(a.vector_columns[i], b.vector_columns[i]) != 0) return false;
  return true;
}

const char* to_string(PairSelection pairs) {
  switch (pairs) {
    case PairSelection::kDistinct:
      return "distinct";
    case PairSelection::kUnordered:
      return "unordered";
    default:
      return "all";
  }
}

}  // namespace gpujoin

// SQL values -> JoinArguments. What the names mean in a table is found in relation.cpp.
#include "pg/reading/arguments.h"

#include <cfloat>
#include <cmath>

#include "engine/request/request.h"
#include "pg/geometry/great_circle.h"
#include "pg/types/metric_name.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"
}

namespace gpujoin {
namespace {

enum class Best { kHighest, kLowest };

const char* to_string(Best best) { return best == Best::kHighest ? "highest" : "lowest"; }

/// The value of an argument; NULL where the function has none of the kind.
NullableDatum value_at(const NullableDatum* values, int position) {
  return position < 0 ? NullableDatum{0, true} : values[position];
}

char* copy_name(const NullableDatum& value) {
  return value.isnull ? nullptr : pstrdup(NameStr(*DatumGetName(value.value)));
}

double read_eps(const NullableDatum& value, const JoinFunction& function) {
  const bool any = function.default_eps == DefaultEps::kAny;
  if (value.isnull) return any ? DBL_MAX : 0;
  const double eps = DatumGetFloat8(value.value);
  if (any && !(eps >= 0))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("max_distance must not be negative: %g", eps),
                    errhint("Leave it out to have the nearest rows at any distance.")));
  return any ? fmin(eps, DBL_MAX) : check_eps(eps, function.shape);
}

std::uint64_t read_k(const NullableDatum& value, Output::Kind output) {
  const auto most =
      static_cast<std::int64_t>(output == Output::kNearest ? kMostNeighbors : kMostTopPairs);
  const std::int64_t k = DatumGetInt64(value.value);
  if (k < 1 || k > most)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("k must be from 1 to %lld, not %lld", static_cast<long long>(most),
                           static_cast<long long>(k)),
                    errhint("gpu_join_distance() returns all pairs.")));
  return static_cast<std::uint64_t>(k);
}

std::uint64_t read_min_cluster_size(const NullableDatum& value) {
  const std::int64_t size = value.isnull ? kDefaultMinPoints : DatumGetInt64(value.value);
  if (size < 2)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("min_cluster_size must be at least 2, not %lld", static_cast<long long>(size)),
             errhint("Smaller groups of rows are noise.")));
  return static_cast<std::uint64_t>(size);
}

/// Returns the text of an argument; null for NULL.
const char* name_at(const NullableDatum& value) {
  return value.isnull ? nullptr : TextDatumGetCString(value.value);
}

/// Returns the one of `choices` that has this name in any case; `otherwise` for null. The error for
/// another name says `unknown NOUN "name"SUFFIX`.
template <class E>
E read_choice(const char* name, E otherwise, std::initializer_list<E> choices, const char* noun,
              const char* suffix, const char* hint) {
  if (name == nullptr) return otherwise;
  for (const E choice : choices)
    if (pg_strcasecmp(name, to_string(choice)) == 0) return choice;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("unknown %s \"%s\"%s", noun, name, suffix), errhint("%s", hint)));
  pg_unreachable();
}

/// Bits have a metric where tables are joined, and no others have it: arrays are no bits.
PointMetric read_metric(const NullableDatum& value, Shape shape, bool bits) {
  constexpr PointMetric kL2 = {Metric::kL2, false}, kL1 = {Metric::kL1, false},
                        kLInf = {Metric::kLInf, false}, kCosine = {Metric::kCosine, false},
                        kHaversine = {Metric::kL2, true}, kHamming = {Metric::kHamming, false},
                        kJaccard = {Metric::kJaccard, false};
  const char* const name = value.isnull ? nullptr : metric_name(name_at(value));
  if (shape == Shape::kBoxes)
    return read_choice(name, kL2, {kL2, kL1, kLInf}, "metric", " of boxes",
                       "Known metrics of boxes are \"l2\", \"l1\" and \"linf\".");
  if (bits)
    return read_choice(name, kL2, {kL2, kL1, kLInf, kCosine, kHaversine, kHamming, kJaccard},
                       "metric", "",
                       "Known metrics are \"l2\", \"l1\", \"linf\", \"cosine\" and "
                       "\"haversine\", and of bits \"hamming\" and \"jaccard\".");
  return read_choice(name, kL2, {kL2, kL1, kLInf, kCosine, kHaversine}, "metric", "",
                     "Known metrics are \"l2\", \"l1\", \"linf\", \"cosine\" and \"haversine\".");
}

/// The stability of clusters adds up lengths, and an engine knows those of straight lines.
void check_output(PointMetric metric, const JoinFunction& function) {
  if (metric.on_earth && function.output == Output::kStableClusters)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s() does not support metric => 'haversine'", function.name),
                    errhint("gpu_dbscan() does.")));
}

PairSelection read_pairs(const NullableDatum& value, Output::Kind output) {
  return read_choice(
      name_at(value), output == Output::kNearest ? PairSelection::kDistinct : PairSelection::kAll,
      {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}, "value",
      " of pairs",
      "Known values are \"all\" (both orders, and each row with itself), \"distinct\" (no row "
      "with itself) and \"unordered\" (each pair once).");
}

ScoreFunction read_score_function(const NullableDatum& value) {
  return read_choice(name_at(value), ScoreFunction::kSum,
                     {ScoreFunction::kSum, ScoreFunction::kProduct, ScoreFunction::kMin,
                      ScoreFunction::kMax, ScoreFunction::kDistance},
                     "score", "",
                     "Known scores are \"sum\", \"product\", \"min\" and \"max\" of the two rows' "
                     "scores, and \"distance\".");
}

bool read_lowest_first(const NullableDatum& value, ScoreFunction function, Output::Kind output) {
  const Best otherwise = function == ScoreFunction::kDistance ? Best::kLowest : Best::kHighest;
  const char* const suffix = output == Output::kDuplicates ? " of keep" : " of best";
  return read_choice(name_at(value), otherwise, {Best::kHighest, Best::kLowest}, "value", suffix,
                     "Known values are \"highest\" and \"lowest\".") == Best::kLowest;
}

void read_weights(const NullableDatum& value, Scoring* scoring) {
  scoring->weights[0] = scoring->weights[1] = 1;
  if (value.isnull) return;
  if (scoring->function == ScoreFunction::kDistance)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("cannot specify weights when score is \"distance\""),
             errhint("Leave weights out, or weigh scores: pass \"sum\", \"product\", \"min\" "
                     "or \"max\" as score.")));
  Datum* weights;
  bool* nulls;
  int count;
  deconstruct_array(DatumGetArrayTypeP(value.value), FLOAT8OID, sizeof(double), true,
                    TYPALIGN_DOUBLE, &weights, &nulls, &count);
  bool valid = count == 2;
  for (int side = 0; side < 2 && valid; ++side) {
    scoring->weights[side] = nulls[side] ? NAN : DatumGetFloat8(weights[side]);
    valid = std::isfinite(scoring->weights[side]);
  }
  if (!valid)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("weights must be two finite numbers"),
             errhint("Pass one for the scores of each side, for example weights => '{1,0.5}'.")));
}

Scoring read_scoring(const JoinFunction& function, const NullableDatum* values) {
  const ArgumentPositions& at = function.at;
  Scoring scoring = {};
  scoring.function = read_score_function(value_at(values, at.score));
  scoring.lowest_first =
      read_lowest_first(value_at(values, at.best), scoring.function, function.output);
  read_weights(value_at(values, at.weights), &scoring);
  return scoring;
}

bool is_text(Oid type) {
  return type == TEXTOID || type == NAMEOID || type == VARCHAROID || type == BPCHAROID;
}

char* string_of(Oid type, Datum value) {
  return type == NAMEOID ? pstrdup(NameStr(*DatumGetName(value))) : TextDatumGetCString(value);
}

/// The elements of an array of text; null for NULL.
List* array_names(Datum array, Oid element) {
  std::int16_t bytes;
  bool by_value;
  char alignment;
  get_typlenbyvalalign(element, &bytes, &by_value, &alignment);
  Datum* elements;
  bool* nulls;
  int count;
  deconstruct_array(DatumGetArrayTypeP(array), element, bytes, by_value, alignment, &elements,
                    &nulls, &count);
  List* names = NIL;
  for (int i = 0; i < count; ++i)
    names = lappend(names, nulls[i] ? nullptr : string_of(element, elements[i]));
  return names;
}

/// The names in a list: of columns as text, 'v' or 'lon,lat', or as an array's literal.
List* listed_names(const char* list, const char* argument) {
  List* names = NIL;
  if (list[strspn(list, " ")] == '{')
    return array_names(OidFunctionCall3(F_ARRAY_IN, CStringGetDatum(list),
                                        ObjectIdGetDatum(NAMEOID), Int32GetDatum(-1)),
                       NAMEOID);
  if (!SplitGUCList(pstrdup(list), ',', &names))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s is no list of columns: \"%s\"", argument, list),
                    errhint("Name the columns, with commas between them, and a name that holds a "
                            "comma or a blank in double quotes.")));
  return names;
}

void read_columns(Oid type, const NullableDatum& value, SideArguments* side) {
  side->column_count = -1;
  if (value.isnull) return;
  const char* const argument = psprintf("%s%s", side->prefix, columns_argument(side->shape));
  const char* const example = columns_example(side->shape);
  const Oid element = get_element_type(type);
  if (!is_text(OidIsValid(element) ? element : type))
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("%s cannot be of type %s", argument, format_type_be(type)),
                    errhint("Name the columns, for example %s => %s.", argument, example)));
  List* const names = OidIsValid(element) ? array_names(value.value, element)
                                          : listed_names(string_of(type, value.value), argument);
  side->column_count = list_length(names);
  side->columns = static_cast<const char**>(palloc(sizeof(char*) * (side->column_count + 1)));
  int count = 0;
  ListCell* cell;
  foreach (cell, names) {
    if (lfirst(cell) == nullptr)
      ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s holds a NULL", argument),
                      errhint("Name columns only, for example %s => %s.", argument, example)));
    side->columns[count++] = static_cast<const char*>(lfirst(cell));
  }
}

SideArguments read_side(const JoinArguments& arguments, Node* call, const NullableDatum* values,
                        int side) {
  const JoinFunction& function = *arguments.function;
  SideArguments result = {};
  result.relation = DatumGetObjectId(values[function.at.relation[side]].value);
  result.shape = function.shape;
  result.on_earth = arguments.metric.on_earth;
  result.bits = is_of_bits(arguments.metric.metric);
  result.prefix = function.takes_one_table() ? "" : side == 0 ? "left_" : "right_";
  result.id_column = copy_name(values[function.at.id_column[side]]);
  const int columns = function.at.columns[side];
  read_columns(get_call_expr_argtype(call, columns), values[columns], &result);
  const NullableDatum score = value_at(values, function.at.score_column[side]);
  result.ranks = function.output == Output::kDuplicates;
  result.scored = result.ranks ? !score.isnull
                               : function.output == Output::kTopPairs &&
                                     arguments.top.scoring.function != ScoreFunction::kDistance;
  if (result.scored) result.score_column = copy_name(score);
  const NullableDatum partition = value_at(values, function.at.partition_column);
  if (!partition.isnull) result.partition_column = copy_name(partition);
  return result;
}

bool same_name(const char* a, const char* b) {
  return a == nullptr || b == nullptr ? a == b : strcmp(a, b) == 0;
}

}  // namespace

JoinArguments read_arguments(const JoinFunction* function, Node* call,
                             const NullableDatum* values) {
  const ArgumentPositions& at = function->at;
  const bool two_tables = !function->takes_one_table(), has_k = at.k >= 0;
  JoinArguments result = {};
  result.function = function;
  result.no_rows =
      values[at.relation[0]].isnull || (two_tables && values[at.relation[1]].isnull) ||
      (value_at(values, at.eps).isnull && function->default_eps == DefaultEps::kNone) ||
      (has_k && values[at.k].isnull);
  result.metric = read_metric(values[at.metric], function->shape, true);
  check_output(result.metric, *function);
  result.pairs = read_pairs(value_at(values, at.pairs), function->output);
  result.top.scoring = read_scoring(*function, values);
  if (result.no_rows) return result;
  result.radius = read_eps(value_at(values, at.eps), *function);
  result.eps = engine_radius(result.metric, result.radius);
  if (at.min_cluster_size >= 0)
    result.min_cluster_size = read_min_cluster_size(values[at.min_cluster_size]);
  const NullableDatum min_points = value_at(values, at.min_points);
  result.min_points = !min_points.isnull         ? check_min_points(DatumGetInt64(min_points.value))
                      : at.min_cluster_size >= 0 ? result.min_cluster_size
                      : at.min_points >= 0       ? kDefaultMinPoints
                                                 : 1;
  if (has_k) result.top.k = read_k(values[at.k], function->output);
  result.left = read_side(result, call, values, 0);
  if (two_tables) result.right = read_side(result, call, values, 1);
  return result;
}

double check_eps(double eps, Shape shape) {
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("eps must be a finite number that is not negative, not %g", eps),
                    errhint("Pass the largest distance that two rows may have; 0 finds %s.",
                            shape == Shape::kBoxes ? "boxes that intersect" : "duplicates")));
  return eps;
}

std::uint64_t check_min_points(std::int64_t min_points) {
  if (min_points < 1)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("min_points must be at least 1, not %lld", static_cast<long long>(min_points)),
             errhint("A row counts itself: with 1 each row is in a cluster.")));
  return static_cast<std::uint64_t>(min_points);
}

PointMetric read_metric(Datum name) { return read_metric({name, false}, Shape::kPoints, false); }

const char* to_string(PointMetric metric) {
  return metric.on_earth ? "haversine" : to_string(metric.metric);
}

double engine_radius(PointMetric metric, double radius) {
  return metric.on_earth ? chord_within(radius) : radius;
}

bool same_side(const SideArguments& a, const SideArguments& b) {
  if (a.relation != b.relation || a.column_count != b.column_count || a.scored != b.scored ||
      a.on_earth != b.on_earth || a.bits != b.bits || !same_name(a.id_column, b.id_column) ||
      !same_name(a.score_column, b.score_column) ||
      !same_name(a.partition_column, b.partition_column))
    return false;
  for (int i = 0; i < a.column_count; ++i)
    if (!same_name(a.columns[i], b.columns[i])) return false;
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

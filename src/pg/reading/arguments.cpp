// SQL values -> JoinArguments. What the names mean in a table is found in relation.cpp.
#include "pg/reading/arguments.h"

#include "engine/request/request.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
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

double read_eps(const NullableDatum& value, Shape shape) {
  const double eps = value.isnull ? 0 : DatumGetFloat8(value.value);
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("eps must be a finite number that is not negative, not %g", eps),
                    errhint("Pass the largest distance that two rows may have; 0 finds %s.",
                            shape == Shape::kBoxes ? "boxes that intersect" : "duplicates")));
  return eps;
}

std::uint64_t read_k(const NullableDatum& value) {
  constexpr auto kMost = static_cast<std::int64_t>(kMostTopPairs);
  const std::int64_t k = DatumGetInt64(value.value);
  if (k < 1 || k > kMost)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("k must be from 1 to %lld, not %lld", static_cast<long long>(kMost),
                           static_cast<long long>(k)),
                    errhint("Pass the number of pairs that are wanted.")));
  return static_cast<std::uint64_t>(k);
}

/// The one of `choices` that has this name; `otherwise` for NULL. The error for another name says
/// `unknown NOUN "name"SUFFIX`.
template <class E>
E read_choice(const NullableDatum& value, E otherwise, std::initializer_list<E> choices,
              const char* noun, const char* suffix, const char* hint) {
  if (value.isnull) return otherwise;
  const char* const name = TextDatumGetCString(value.value);
  for (const E choice : choices)
    if (strcmp(name, to_string(choice)) == 0) return choice;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("unknown %s \"%s\"%s", noun, name, suffix), errhint("%s", hint)));
  pg_unreachable();
}

Metric read_metric(const NullableDatum& value, Shape shape) {
  if (shape == Shape::kBoxes)
    return read_choice(value, Metric::kL2, {Metric::kL2, Metric::kL1, Metric::kLInf}, "metric",
                       " of boxes", "Known metrics of boxes are \"l2\", \"l1\" and \"linf\".");
  return read_choice(value, Metric::kL2, {Metric::kL2, Metric::kL1, Metric::kLInf, Metric::kCosine},
                     "metric", "", "Known metrics are \"l2\", \"l1\", \"linf\" and \"cosine\".");
}

PairSelection read_pairs(const NullableDatum& value) {
  return read_choice(
      value, PairSelection::kAll,
      {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}, "value",
      " of pairs",
      "Known values are \"all\" (both orders, and each row with itself), \"distinct\" (no row "
      "with itself) and \"unordered\" (each pair once).");
}

ScoreFunction read_score_function(const NullableDatum& value) {
  return read_choice(value, ScoreFunction::kSum,
                     {ScoreFunction::kSum, ScoreFunction::kProduct, ScoreFunction::kMin,
                      ScoreFunction::kMax, ScoreFunction::kDistance},
                     "score", "",
                     "Known scores are \"sum\", \"product\", \"min\" and \"max\" of the two rows' "
                     "scores, and \"distance\".");
}

bool read_lowest_first(const NullableDatum& value, ScoreFunction function) {
  const Best otherwise = function == ScoreFunction::kDistance ? Best::kLowest : Best::kHighest;
  return read_choice(value, otherwise, {Best::kHighest, Best::kLowest}, "value", " of best",
                     "Known values are \"highest\" and \"lowest\".") == Best::kLowest;
}

void read_weights(const NullableDatum& value, Scoring* scoring) {
  scoring->weights[0] = scoring->weights[1] = 1;
  if (value.isnull) return;
  if (scoring->function == ScoreFunction::kDistance)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("weights cannot be given where the score is the distance"),
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

Scoring read_scoring(const ArgumentPositions& at, const NullableDatum* values) {
  Scoring scoring = {};
  scoring.function = read_score_function(value_at(values, at.score));
  scoring.lowest_first = read_lowest_first(value_at(values, at.best), scoring.function);
  read_weights(value_at(values, at.weights), &scoring);
  return scoring;
}

void read_columns(const NullableDatum& value, SideArguments* side) {
  side->column_count = -1;
  if (value.isnull) return;
  Datum* names;
  bool* nulls;
  deconstruct_array(DatumGetArrayTypeP(value.value), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
                    &names, &nulls, &side->column_count);
  side->columns = static_cast<const char**>(palloc(sizeof(char*) * (side->column_count + 1)));
  const char* const argument = columns_argument(side->shape);
  for (int i = 0; i < side->column_count; ++i) {
    if (nulls[i])
      ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                      errmsg("%s%s holds a NULL", side->prefix, argument),
                      errhint("Name columns only, for example %s%s => '{%s}'.", side->prefix,
                              argument, side->shape == Shape::kBoxes ? "low,high" : "lon,lat")));
    side->columns[i] = pstrdup(NameStr(*DatumGetName(names[i])));
  }
}

SideArguments read_side(const JoinArguments& arguments, const NullableDatum* values, int side) {
  const JoinFunction& function = *arguments.function;
  SideArguments result = {};
  result.relation = DatumGetObjectId(values[function.at.relation[side]].value);
  result.shape = function.shape;
  result.prefix = function.takes_one_table() ? "" : side == 0 ? "left_" : "right_";
  result.id_column = copy_name(values[function.at.id_column[side]]);
  read_columns(values[function.at.columns[side]], &result);
  result.scored = function.output == Output::kTopPairs &&
                  arguments.top.scoring.function != ScoreFunction::kDistance;
  if (result.scored) result.score_column = copy_name(values[function.at.score_column[side]]);
  return result;
}

bool same_name(const char* a, const char* b) {
  return a == nullptr || b == nullptr ? a == b : strcmp(a, b) == 0;
}

}  // namespace

JoinArguments read_arguments(const JoinFunction* function, const NullableDatum* values) {
  const ArgumentPositions& at = function->at;
  const bool two_tables = !function->takes_one_table(), top = at.k >= 0;
  JoinArguments result = {};
  result.function = function;
  result.no_rows = values[at.relation[0]].isnull || (two_tables && values[at.relation[1]].isnull) ||
                   (values[at.eps].isnull && !function->default_eps) ||
                   (top && values[at.k].isnull);
  result.metric = read_metric(values[at.metric], function->shape);
  result.pairs = read_pairs(value_at(values, at.pairs));
  result.top.scoring = read_scoring(at, values);
  if (result.no_rows) return result;
  result.eps = read_eps(values[at.eps], function->shape);
  if (top) result.top.k = read_k(values[at.k]);
  result.left = read_side(result, values, 0);
  if (two_tables) result.right = read_side(result, values, 1);
  return result;
}

Metric read_metric(Datum name) { return read_metric({name, false}, Shape::kPoints); }

bool same_side(const SideArguments& a, const SideArguments& b) {
  if (a.relation != b.relation || a.column_count != b.column_count || a.scored != b.scored ||
      !same_name(a.id_column, b.id_column) || !same_name(a.score_column, b.score_column))
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

// Keys of a join: further conditions that the engine decides, or that leave it fewer pairs. Equal
// values become equal ranks; integers and times become whole numbers, whose differences are exact,
// so that the conditions need not be asked; reals become doubles, and where their arithmetic rounds
// otherwise than the engine's the band is a little wider, and the conditions decide. Intervals are
// in key_intervals.cpp.
#include "pg/executor/join_keys.h"

#include "pg/executor/key_columns.h"
#include "pg/executor/key_intervals.h"
#include "pg/executor/key_numbers.h"
#include "pg/reading/value_ranks.h"
#include "pg/settings.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr double kEndless = 1e300;  ///< for infinite times, which are equal to themselves alone

// ---- Equality

/// What numbers left values, and finds the right ones among them.
RankFunctions rank_functions(const KeyPlan& plan) {
  RankFunctions found = {};
  found.type = plan.types[0];
  found.collation = plan.collation;
  if (!get_op_hash_functions(plan.equality, &found.hash, &found.other_hash))
    elog(ERROR, "an equality of a similarity join cannot be hashed");
  found.other_equality = get_opcode(plan.equality);
  // Left values are compared with left ones, too.
  Oid same = plan.equality, other = InvalidOid;
  if (plan.types[0] != plan.types[1] &&
      !get_compatible_hash_operators(plan.equality, &same, &other))
    elog(ERROR, "an equality of a similarity join cannot be hashed");
  found.equality = get_opcode(same);
  return found;
}

/// Null, or why the key is none.
const char* rank_values(JoinNode* node, const JoinKey& key, std::uint32_t number) {
  KeyWork* const work = node->pairs.keys;
  const MemoryContext table =
      AllocSetContextCreate(work->context, "gpujoin ranks", ALLOCSET_DEFAULT_SIZES);
  const std::uint64_t limit = engine_resources(node->pairs.run).memory_limit / 4;
  ValueRanks ranks(table, rank_functions(key.plan));
  fill_column(node, key, 0, number, [&](Datum value, bool is_null) {
    return is_null || ranks.bytes() > limit ? NAN : ranks.rank_of(value);
  });
  if (ranks.bytes() > limit) return "the keys do not fit in memory";
  fill_column(node, key, 1, number,
              [&](Datum value, bool is_null) { return is_null ? NAN : ranks.find_other(value); });
  work->asked.reach[number] = 0;
  work->asked.most[number] = static_cast<double>(std::max<std::uint64_t>(ranks.count(), 1) - 1);
  MemoryContextDelete(table);
  return nullptr;
}

// ---- Bands

/// Whole numbers: x and y less a value of the left side. Where the band is not symmetric both are
/// doubled, so that its middle is a whole number as well. Null, or why the key is none.
const char* number_values(JoinNode* node, const JoinKey& key, const Band& band,
                          std::uint32_t number) {
  KeyWork* const work = node->pairs.keys;
  if (band.least > band.most) return "a band is empty";
  const bool symmetric = band.least == -band.most;
  const __int128 factor = symmetric ? 1 : 2, middle = symmetric ? 0 : band.least + band.most;
  const __int128 reach = symmetric ? band.most : band.most - band.least;
  if (reach > static_cast<__int128>(kLargestExact)) return "a band is too wide";
  bool based = false, ends = false, far = false;
  std::int64_t base = 0;
  const auto take = [&](int side, Datum value, bool is_null) -> double {
    if (is_null) return NAN;
    const Oid type = key.plan.types[side];
    if (const int end = end_of_time(type, value); end != 0) {
      ends = true;
      return end * kEndless;
    }
    const std::int64_t whole = integer_of(type, value);
    if (!based) base = whole;
    based = true;
    const __int128 at = factor * (static_cast<__int128>(whole) - base) + (side == 1 ? middle : 0);
    far = far || at > static_cast<__int128>(kLargestExact) ||
          at < -static_cast<__int128>(kLargestExact);
    return static_cast<double>(at);
  };
  for (int side = 0; side < 2; ++side)
    fill_column(node, key, side, number,
                [&](Datum value, bool is_null) { return take(side, value, is_null); });
  if (far) return "keys are too far from each other";
  // An infinite time plus an interval is itself.
  if (ends && (!band.summed || band.strict)) return "keys are infinite";
  // All whole numbers are exact, and so is their difference as far as it is within the reach. One
  // apart at least, unless they are equal, which a reach of 0 would take for ranks.
  work->asked.reach[number] = std::max(0.5, static_cast<double>(reach));
  work->decides = work->decides && band.exact;
  return nullptr;
}

const char* convert_values(JoinNode* node, const JoinKey& key, const Band& band,
                           std::uint32_t number) {
  KeyWork* const work = node->pairs.keys;
  const KeyPlan& plan = key.plan;
  if (!(band.real_least <= band.real_most)) return "a band is empty";
  bool special = false, beyond = false;
  double largest = std::max(std::fabs(band.real_least), std::fabs(band.real_most));
  const bool symmetric = band.real_least == -band.real_most;
  const double middle = symmetric ? 0 : (band.real_least + band.real_most) / 2;
  for (int side = 0; side < 2; ++side)
    fill_column(node, key, side, number, [&](Datum value, bool is_null) -> double {
      const double real = is_null ? NAN : number_of(plan.types[side], value);
      special = special || (!is_null && !std::isfinite(real));
      beyond = beyond || (plan.types[side] == NUMERICOID && std::isinf(real));  // of double alone
      if (!std::isfinite(real)) return NAN;  // no difference from it is within a band
      largest = std::max(largest, std::fabs(real));
      return side == 0 || symmetric ? real : real + middle;
    });
  if (special && band.summed) return "keys are infinite or NaN";
  if (beyond || largest > 1e300) return "keys are too far from each other";
  bool exact = symmetric && !band.summed;
  double rounding = 0;
  for (const Oid type : plan.types) {
    exact = exact && type == FLOAT8OID;
    rounding = std::max(rounding, rounding_of(type));
  }
  for (int i = 0; i < plan.bound_count; ++i) {
    exact = exact && plan.bounds[i].type == FLOAT8OID;
    rounding = std::max(rounding, rounding_of(plan.bounds[i].type));
  }
  const double reach = symmetric ? band.real_most : band.real_most - band.real_least;
  work->asked.reach[number] = std::max(DBL_MIN, exact       ? reach
                                                : symmetric ? reach + 16 * rounding * largest
                                                            : reach / 2 + 16 * rounding * largest);
  work->decides = work->decides && exact;
  return nullptr;
}

// ---- All keys

/// Whether the bounds of the key are known: without them it is none, and others may be some.
bool has_bounds(JoinNode* node, const JoinKey& key) {
  return key.plan.numbers == KeyNumbers::kRanks || find_band(node, key).known;
}

/// Computes both sides' columns of a key. Null, or why there are no keys.
const char* compute_key(JoinNode* node, const JoinKey& key, std::uint32_t number) {
  if (key.plan.numbers == KeyNumbers::kRanks) return rank_values(node, key, number);
  const Band band = find_band(node, key);
  if (key.plan.is_interval) {
    number_intervals(node, key, band, number);
    return nullptr;
  }
  return key.plan.numbers == KeyNumbers::kIntegers ? number_values(node, key, band, number)
                                                   : convert_values(node, key, band, number);
}

/// Whether the points are some that engines know keys of.
const char* problem_of_points(const JoinNode* node) {
  const Dataset &left = node->left.points, &right = node->right.points;
  if (node->inputs.form == ValueForm::kBox) return "values are boxes";
  if (node->top != nullptr) return "the first pairs are wanted";
  if (engine_preference() == EnginePreference::kCuda) return "keys are the CPU engine's";
  std::uint64_t rows = 0;  // in memory
  for (const Dataset* const points : {&left, &right})
    if (points->file == nullptr) rows += points->rows;
  const std::uint64_t bytes = rows * sizeof(double) * node->pairs.keys->column_count;
  if (4 * bytes > engine_resources(node->pairs.run).memory_limit)
    return "the keys do not fit in memory";
  return nullptr;
}

/// The column of the scan tuple that the expression is; -1: it is another one.
int column_of(const Expr* expression) {
  return IsA(expression, Var) ? reinterpret_cast<const Var*>(expression)->varattno - 1 : -1;
}

/// Room for the keys of a side's points, or for those of their sample and the places of the others.
void make_room(JoinNode* node, int side) {
  KeyWork* const work = node->pairs.keys;
  const Dataset& points = side == 0 ? node->left.points : node->right.points;
  const auto count = static_cast<std::uint32_t>(work->column_count);
  work->columns[side] = nullptr;
  work->places[side] = nullptr;
  if (points.file == nullptr)
    return resize_array(work->context, &work->columns[side], points.rows * count);
  resize_array(work->context, &work->places[side], chunk_count(points) * count);
  Dataset& sample = work->samples[side];
  sample = *points.sample;
  double* keys = nullptr;
  resize_array(work->context, &keys, sample.rows * count);
  sample.keys = keys;
  sample.key_columns = count;
}

/// Whether both sides, which have as many points, have the same keys.
bool have_same_keys(JoinNode* node) {
  const KeyWork& work = *node->pairs.keys;
  const Dataset &left = node->left.points, &right = node->right.points;
  if ((left.file == nullptr) != (right.file == nullptr)) return false;
  const auto count = static_cast<std::uint64_t>(work.column_count);
  if (left.file == nullptr)
    return std::memcmp(work.columns[0], work.columns[1], left.rows * count * sizeof(double)) == 0;
  if (left.chunk_bits != right.chunk_bits) return false;
  double* keys[2] = {};
  for (double*& column : keys) resize_array(work.context, &column, rows_of_chunk(left, 0));
  bool same = true;
  const std::uint64_t chunks = chunk_count(left);
  for (std::uint64_t i = 0; same && i < count * chunks; ++i) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t bytes = rows_of_chunk(left, i % chunks) * sizeof(double);
    for (int side = 0; side < 2; ++side)
      read_spill(&node->pairs.run->spill, work.places[side][i], keys[side], bytes);
    same = std::memcmp(keys[0], keys[1], bytes) == 0;
  }
  for (double* const column : keys) pfree(column);
  return same;
}

List* without_conditions(const List* conditions, const List* dropped) {
  return list_difference(conditions, dropped);
}

}  // namespace

void begin_keys(JoinNode* node) {
  PlanState* const parent = &node->css.ss.ps;
  KeyWork* const work = static_cast<KeyWork*>(palloc0(sizeof(KeyWork)));
  node->pairs.keys = work;
  work->count = node->data.key_count;
  work->keys = static_cast<JoinKey*>(palloc0(sizeof(JoinKey) * work->count));
  List* conditions = NIL;
  for (int k = 0; k < work->count; ++k) {
    JoinKey& key = work->keys[k];
    key.plan = node->data.keys[k];
    const KeyExpressions expressions = decode_key(list_nth_node(List, node->expressions.keys, k));
    conditions = list_concat(conditions, expressions.conditions);
    for (int i = 0; i < 2; ++i) {
      key.values[i] = ExecInitExpr(expressions.values[i], parent);
      key.columns[i] = column_of(expressions.values[i]);
      if (!key.plan.is_interval) continue;
      key.high_values[i] = ExecInitExpr(expressions.high_values[i], parent);
      key.high_columns[i] = column_of(expressions.high_values[i]);
    }
    for (int i = 0; i < key.plan.bound_count; ++i)
      key.offsets[i] = ExecInitExpr(static_cast<Expr*>(list_nth(expressions.offsets, i)), parent);
  }
  work->conditions = conditions;
  work->early = ExecInitQual(without_conditions(node->expressions.early, conditions), parent);
  work->late = ExecInitQual(without_conditions(node->expressions.late, conditions), parent);
}

void find_keys(JoinNode* node) {
  KeyWork* const work = node->pairs.keys;
  work->found = work->decides = work->same = false;
  work->asked = {};
  work->problem = nullptr;
  forget_keys(node);
  if (node->left.points.rows == 0 || node->right.points.rows == 0) return;
  work->column_count = 0;
  work->decides = true;
  for (int k = 0; k < work->count; ++k) {
    JoinKey& key = work->keys[k];
    key.is_used = has_bounds(node, key);
    work->decides = work->decides && key.is_used;
    work->column_count += key.is_used ? columns_of(key.plan) : 0;
  }
  work->problem = work->column_count == 0 ? "a band has no fixed width" : problem_of_points(node);
  if (work->problem != nullptr) return drop_keys(node, work->problem);
  work->context = AllocSetContextCreate(node->rows, "gpujoin keys", ALLOCSET_DEFAULT_SIZES);
  const std::uint64_t rows[2] = {node->left.points.rows, node->right.points.rows};
  for (int i = 0; i < 2; ++i) make_room(node, i);
  std::uint32_t column = 0;
  for (int k = 0; k < work->count; ++k) {
    if (!work->keys[k].is_used) continue;
    work->problem = compute_key(node, work->keys[k], column);
    if (work->problem != nullptr) return drop_keys(node, work->problem);
    column += columns_of(work->keys[k].plan);
  }
  work->asked.count = column;
  work->found = true;
  work->same = rows[0] == rows[1] && have_same_keys(node);
  work->bytes = MemoryContextMemAllocated(work->context, true);
  node->pairs.run->report.dataset_bytes += work->bytes;
}

void drop_keys(JoinNode* node, const char* problem) {
  KeyWork* const work = node->pairs.keys;
  forget_keys(node);
  work->found = work->decides = false;
  work->asked = {};
  work->problem = problem;
}

void forget_keys(JoinNode* node) {
  KeyWork* const work = node->pairs.keys;
  if (work->context == nullptr) return;
  node->pairs.run->report.dataset_bytes -= work->bytes;
  work->bytes = 0;
  MemoryContextDelete(work->context);
  work->context = nullptr;
}

Dataset with_keys(const JoinNode* node, bool left, Dataset points) {
  if (!has_keys(node)) return points;
  const KeyWork& work = *node->pairs.keys;
  const int side = left ? 0 : 1;
  points.key_columns = work.asked.count;
  if (points.file == nullptr) {
    points.keys = work.columns[side];
  } else {
    points.key_places = work.places[side];
    points.sample = &work.samples[side];
  }
  return points;
}

}  // namespace gpujoin

// Keys of a join: further conditions that the engine decides, or that leave it fewer pairs. Equal
// values become equal ranks; integers and times become whole numbers, whose differences are exact,
// so that the conditions need not be asked; reals become doubles, and where their arithmetic rounds
// otherwise than the engine's the band is a little wider, and the conditions decide.
#include "pg/executor/join_keys.h"

#include "pg/reading/value_ranks.h"
#include "pg/settings.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr double kLargestExact = 0x1p53;
constexpr double kEndless = 1e300;  ///< for infinite times, which are equal to themselves alone

/// A bound of x - y as the conditions have it; for reals a little outside of it.
struct Band {
  bool known;           ///< false: the condition's offset is NULL, or of no known length
  bool exact;           ///< the conditions hold if and only if the difference is within
  bool summed, strict;  ///< some condition is
  __int128 least, most;
  double real_least, real_most;
};

// ---- Values

/// Columns of the scan tuple that the expressions use are shown as far as they are kept.
class Values {
 public:
  Values(JoinNode* node, const Side& side, int column, ExprState* state)
      : node_(node), side_(side), state_(state) {
    for (const Columns* const columns : {&side.shown, &side.tested})
      for (int i = 0; i < columns->count; ++i)
        if (columns->targets[i] == column) {
          columns_ = columns;
          at_ = i;
        }
  }

  /// The value of a row, which is there until the next call.
  Datum of(std::uint64_t row, bool* is_null) const {
    if (columns_ != nullptr) {
      const bool* nulls;
      const Datum* const values = fetch_row(columns_->rows, row, &nulls);
      *is_null = nulls[at_];
      return values[at_];
    }
    TupleTableSlot* const slot = node_->css.ss.ss_ScanTupleSlot;
    show(slot, side_.shown, row);
    show_tested(node_, const_cast<Side*>(&side_), row);
    ExprContext* const expressions = node_->css.ss.ps.ps_ExprContext;
    ResetExprContext(expressions);
    expressions->ecxt_scantuple = ExecStoreVirtualTuple(ExecClearTuple(slot));
    return ExecEvalExprSwitchContext(state_, expressions, is_null);
  }

 private:
  JoinNode* node_;
  const Side& side_;
  ExprState* state_;
  const Columns* columns_ = nullptr;
  int at_ = 0;
};

/// A key of one side's points, on its way to where the engine finds it.
class Column {
 public:
  Column(JoinNode* node, int side, std::uint32_t number)
      : node_(node), work_(*node->keys), side_(side), number_(number) {
    Side& of = side == 0 ? node->left : node->right;
    points_ = &of.points;
    buffer_ = &of.buffer;
  }

  /// Sets the key of each point to key_of(value, is_null).
  template <class KeyOf>
  void fill(const Values& values, const KeyOf& key_of) {
    if (points_->file == nullptr) {
      double* const to = work_.columns[side_] + number_;
      const std::uint32_t step = static_cast<std::uint32_t>(work_.count);
      for (std::uint64_t i = 0; i < points_->rows; ++i)
        to[i * step] = take(values, points_->ids[i], key_of);
      return;
    }
    const std::uint64_t chunks = chunk_count(*points_);
    double* keys = nullptr;
    resize_array(work_.context, &keys, rows_of_chunk(*points_, 0));
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const Dataset& loaded = load_points(buffer_, chunk);
      const std::uint64_t first = chunk << points_->chunk_bits;
      for (std::uint64_t i = 0; i < loaded.rows; ++i) {
        keys[i] = take(values, loaded.ids[i], key_of);
        sample(first + i, keys[i]);
      }
      work_.places[side_][number_ * chunks + chunk] =
          write_spill(&node_->run->spill, keys, loaded.rows * sizeof(double));
    }
    pfree(keys);
  }

 private:
  template <class KeyOf>
  double take(const Values& values, std::int64_t row, const KeyOf& key_of) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node_->asked);  // types' functions leave copies of values there
    bool is_null;
    const Datum value = values.of(static_cast<std::uint64_t>(row), &is_null);
    const MemoryContext caller = MemoryContextSwitchTo(node_->asked);
    const double key = key_of(value, is_null);
    MemoryContextSwitchTo(caller);
    return key;
  }

  /// The sample of a file has every so many a point.
  void sample(std::uint64_t point, double key) {
    const Dataset& sample = work_.samples[side_];
    const std::uint64_t step = buffer_->sample.step, at = point / step;
    if (point % step == 0 && at < sample.rows)
      const_cast<double*>(sample.keys)[at * sample.key_columns + number_] = key;
  }

  JoinNode* node_;
  KeyWork& work_;
  int side_;
  std::uint32_t number_;
  const Dataset* points_;
  PointBuffer* buffer_;
};

/// Sets a key of one side's points to key_of(value, is_null).
template <class KeyOf>
void fill_column(JoinNode* node, const JoinKey& key, int side, std::uint32_t number,
                 const KeyOf& key_of) {
  const Side& of = side == 0 ? node->left : node->right;
  const Values values(node, of, key.columns[side], key.values[side]);
  Column(node, side, number).fill(values, key_of);
  node->left_shown = kNoRow;
}

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
  KeyWork* const work = node->keys;
  const MemoryContext table =
      AllocSetContextCreate(work->context, "gpujoin ranks", ALLOCSET_DEFAULT_SIZES);
  const std::uint64_t limit = engine_resources(node->run).memory_limit / 4;
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

std::int64_t integer_of_key(Oid type, Datum value) {
  switch (type) {
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    case DATEOID:
      return DatumGetDateADT(value);
    default:
      return DatumGetInt64(value);
  }
}

/// -1 or 1 for an infinite date or time, else 0.
int end_of_time(Oid type, Datum value) {
  if (type == DATEOID) {
    const DateADT date = DatumGetDateADT(value);
    return DATE_IS_NOBEGIN(date) ? -1 : DATE_IS_NOEND(date) ? 1 : 0;
  }
  if (type != TIMESTAMPOID && type != TIMESTAMPTZOID) return 0;
  const Timestamp time = DatumGetTimestamp(value);
  return TIMESTAMP_IS_NOBEGIN(time) ? -1 : TIMESTAMP_IS_NOEND(time) ? 1 : 0;
}

double real_of_key(Oid type, Datum value) {
  switch (type) {
    case FLOAT4OID:
      return DatumGetFloat4(value);
    case FLOAT8OID:
      return DatumGetFloat8(value);
    case NUMERICOID:
      return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
    default:
      return static_cast<double>(integer_of_key(type, value));
  }
}

/// What rounding may add to a number of this type, relative to it.
double rounding_of(Oid type) { return type == FLOAT4OID ? 0x1p-22 : 0x1p-50; }

/// The length of an interval that is added to times, or that differences are compared with. False:
/// it has months, which have no length, or days of a time zone, which may last longer or shorter;
/// then *slack is how much.
bool length_of(const ::Interval& interval, bool added, Oid of, __int128* length, __int128* slack) {
  constexpr std::int64_t kMostZones = 32 * USECS_PER_HOUR;  // between the offsets of two time zones
  if (added && interval.month != 0) return false;
  *slack = added && of == TIMESTAMPTZOID && interval.day != 0 ? kMostZones : 0;
  const __int128 days = static_cast<__int128>(interval.month) * DAYS_PER_MONTH + interval.day;
  *length = days * USECS_PER_DAY + interval.time;
  return true;
}

/// One bound of a band, with what the expression is now.
bool take_offset(const KeyPlan& plan, const KeyBound& bound, ExprState* state,
                 ExprContext* expressions, Band* band, __int128* whole, double* real) {
  *whole = 0;
  *real = 0;
  if (state == nullptr) return true;
  bool is_null;
  const Datum value = ExecEvalExprSwitchContext(state, expressions, &is_null);
  if (is_null) return false;
  if (bound.type == INTERVALOID) {
    __int128 slack = 0;
    if (!length_of(*reinterpret_cast<const ::Interval*>(DatumGetPointer(value)), bound.summed,
                   plan.types[0], whole, &slack))
      return false;
    if (slack > 0) band->exact = false;
    if (bound.negated) *whole = -*whole;
    *whole += bound.form == BoundForm::kLeast ? -slack : slack;
    return true;
  }
  if (plan.numbers == KeyNumbers::kIntegers) {
    *whole = integer_of_key(bound.type, value);
    if (bound.negated) *whole = -*whole;
    return true;
  }
  *real = real_of_key(bound.type, value);
  if (bound.negated) *real = -*real;
  return std::isfinite(*real);
}

Band find_band(JoinNode* node, const JoinKey& key) {
  const KeyPlan& plan = key.plan;
  Band band = {true,      true,    false, false, -(__int128{1} << 100), __int128{1} << 100,
               -HUGE_VAL, HUGE_VAL};
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  for (int i = 0; i < plan.bound_count; ++i) {
    const KeyBound& bound = plan.bounds[i];
    __int128 whole;
    double real;
    if (!take_offset(plan, bound, key.offsets[i], expressions, &band, &whole, &real)) {
      band.known = false;
      return band;
    }
    band.summed = band.summed || bound.summed;
    band.strict = band.strict || bound.strict;
    const bool at_most = bound.form != BoundForm::kLeast, at_least = bound.form != BoundForm::kMost;
    const bool apart = bound.form == BoundForm::kApart;
    if (at_most) {
      band.most = std::min<__int128>(band.most, whole - (bound.strict ? 1 : 0));
      band.real_most =
          std::min(band.real_most, bound.strict ? std::nextafter(real, -HUGE_VAL) : real);
    }
    if (at_least) {
      const __int128 least = apart ? -whole : whole;
      const double real_least = apart ? -real : real;
      band.least = std::max<__int128>(band.least, least + (bound.strict ? 1 : 0));
      band.real_least = std::max(band.real_least,
                                 bound.strict ? std::nextafter(real_least, HUGE_VAL) : real_least);
    }
  }
  return band;
}

/// Whole numbers: x and y less a value of the left side. Where the band is not symmetric both are
/// doubled, so that its middle is a whole number as well. Null, or why the key is none.
const char* number_values(JoinNode* node, const JoinKey& key, const Band& band,
                          std::uint32_t number) {
  KeyWork* const work = node->keys;
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
    const std::int64_t whole = integer_of_key(type, value);
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
  KeyWork* const work = node->keys;
  const KeyPlan& plan = key.plan;
  if (!(band.real_least <= band.real_most)) return "a band is empty";
  bool special = false, beyond = false;
  double largest = std::max(std::fabs(band.real_least), std::fabs(band.real_most));
  const bool symmetric = band.real_least == -band.real_most;
  const double middle = symmetric ? 0 : (band.real_least + band.real_most) / 2;
  for (int side = 0; side < 2; ++side)
    fill_column(node, key, side, number, [&](Datum value, bool is_null) -> double {
      const double real = is_null ? NAN : real_of_key(plan.types[side], value);
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

/// Computes both sides' column of a key. Null, or why the key is none.
const char* compute_key(JoinNode* node, const JoinKey& key, std::uint32_t number) {
  if (key.plan.numbers == KeyNumbers::kRanks) return rank_values(node, key, number);
  const Band band = find_band(node, key);
  if (!band.known) return "a band has no fixed width";
  return key.plan.numbers == KeyNumbers::kIntegers ? number_values(node, key, band, number)
                                                   : convert_values(node, key, band, number);
}

/// Whether the points are some that engines know keys of.
const char* problem_of_points(const JoinNode* node) {
  const Dataset &left = node->left.points, &right = node->right.points;
  if (node->form == ValueForm::kBox) return "values are boxes";
  if (node->data.top.k > 0) return "the first pairs are wanted";
  if (engine_preference() == EnginePreference::kCuda) return "keys are the CPU engine's";
  std::uint64_t rows = 0;  // in memory
  for (const Dataset* const points : {&left, &right})
    if (points->file == nullptr) rows += points->rows;
  const std::uint64_t bytes = rows * sizeof(double) * node->keys->count;
  if (4 * bytes > engine_resources(node->run).memory_limit) return "the keys do not fit in memory";
  return nullptr;
}

/// The column of the scan tuple that the expression is; -1: it is another one.
int column_of(const Expr* expression) {
  return IsA(expression, Var) ? reinterpret_cast<const Var*>(expression)->varattno - 1 : -1;
}

/// Room for the keys of a side's points, or for those of their sample and the places of the others.
void make_room(JoinNode* node, int side) {
  KeyWork* const work = node->keys;
  const Dataset& points = side == 0 ? node->left.points : node->right.points;
  const auto count = static_cast<std::uint32_t>(work->count);
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
  const KeyWork& work = *node->keys;
  const Dataset &left = node->left.points, &right = node->right.points;
  if ((left.file == nullptr) != (right.file == nullptr)) return false;
  const auto count = static_cast<std::uint64_t>(work.count);
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
      read_spill(&node->run->spill, work.places[side][i], keys[side], bytes);
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
  node->keys = work;
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
    }
    for (int i = 0; i < key.plan.bound_count; ++i)
      key.offsets[i] = ExecInitExpr(static_cast<Expr*>(list_nth(expressions.offsets, i)), parent);
  }
  work->conditions = conditions;
  work->early = ExecInitQual(without_conditions(node->expressions.early, conditions), parent);
  work->late = ExecInitQual(without_conditions(node->expressions.late, conditions), parent);
}

void find_keys(JoinNode* node) {
  KeyWork* const work = node->keys;
  work->found = work->decides = work->same = false;
  work->asked = {};
  work->problem = nullptr;
  forget_keys(node);
  if (node->left.points.rows == 0 || node->right.points.rows == 0) return;
  work->problem = problem_of_points(node);
  if (work->problem != nullptr) return;
  work->context = AllocSetContextCreate(node->rows, "gpujoin keys", ALLOCSET_DEFAULT_SIZES);
  const auto count = static_cast<std::uint32_t>(work->count);
  const std::uint64_t rows[2] = {node->left.points.rows, node->right.points.rows};
  for (int i = 0; i < 2; ++i) make_room(node, i);
  work->decides = true;
  for (std::uint32_t k = 0; k < count; ++k) {
    work->problem = compute_key(node, work->keys[k], k);
    if (work->problem != nullptr) return drop_keys(node, work->problem);
  }
  work->asked.count = count;
  work->found = true;
  work->same = rows[0] == rows[1] && have_same_keys(node);
  work->bytes = MemoryContextMemAllocated(work->context, true);
  node->run->report.dataset_bytes += work->bytes;
}

void drop_keys(JoinNode* node, const char* problem) {
  KeyWork* const work = node->keys;
  forget_keys(node);
  work->found = work->decides = false;
  work->asked = {};
  work->problem = problem;
}

void forget_keys(JoinNode* node) {
  KeyWork* const work = node->keys;
  if (work->context == nullptr) return;
  node->run->report.dataset_bytes -= work->bytes;
  work->bytes = 0;
  MemoryContextDelete(work->context);
  work->context = nullptr;
}

Dataset with_keys(const JoinNode* node, bool left, Dataset points) {
  if (!has_keys(node)) return points;
  const KeyWork& work = *node->keys;
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

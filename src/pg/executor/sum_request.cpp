// What the engine is told of an aggregate: columns of numbers of the points' rows, and what to do
// with them. Values that raise errors, or are special, are noted; pairs that meet them will be
// asked for.
#include "pg/errors.h"
#include "pg/executor/join_sums.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// A new column of integers, 0 so far, of so many right points; its number.
std::uint32_t add_integers_column(SumWork* work, std::uint64_t rows) {
  resize_array(work->context, &work->integers, work->asked.integer_columns + 1);
  work->integers[work->asked.integer_columns] = allocate_rows<std::int64_t>(work, rows);
  return work->asked.integer_columns++;
}

/// Asks for a measure; the place of its first word, or 0 where there is no room.
int ask(SumWork* work, Fold fold, std::uint32_t number) {
  PairSums& asked = work->asked;
  const std::uint32_t place = row_words(asked);
  if (asked.measures == kMostMeasures || place + words_of(fold) > kMostSumWords) {
    work->problem = "there are too many aggregates";
    return 0;
  }
  asked.measure[asked.measures++] = {fold, number};
  return static_cast<int>(place);
}

/// Asks for the sum of integers, which may be large, in parts: the lower 32 bits and the rest, as
/// less than 2^32 of them may be added up. The place of the first word.
int ask_sum(SumWork* work, std::uint64_t rows, const __int128* values, int* words) {
  constexpr std::int64_t kSmall = std::int64_t{1} << 31;
  const bool small = std::all_of(values, values + rows,
                                 [](__int128 value) { return value >= -kSmall && value < kSmall; });
  *words = small ? 1 : 2;
  const std::uint32_t first = add_integers_column(work, rows),
                      second = small ? 0 : add_integers_column(work, rows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto value = static_cast<std::int64_t>(values[i]);
    work->integers[first][i] = small ? value : value & 0xffffffff;
    if (!small) work->integers[second][i] = value >> 32;
  }
  const int place = ask(work, Fold::kSum, first);
  if (!small) ask(work, Fold::kSum, second);
  return place;
}

/// The values of an aggregate of the right side, by point.
struct RightValues {
  bool* there;       ///< false: NULL, filtered out, or not to be had
  __int128* values;  ///< integers, or orders
  double* reals;     ///< NaN where they are not there
};

/// Reads the right number of a combination likewise.
bool read_number(const Sum& sum, ExprContext* expressions, RightValues* into, std::uint64_t i) {
  into->there[i] = false;
  if (sum.plan.filter == SumOf::kRight && !passes_filter(sum, expressions)) return true;
  std::int64_t number = 0;
  bool is_null;
  const bool taken = take_leaf(sum, leaf_of(sum, false), expressions, &number, &is_null);
  into->there[i] = !is_null;
  into->values[i] = number;
  return taken;
}

/// Reads one row's value, which show_row() has shown. False: it is special.
bool read_value(const Sum& sum, ExprContext* expressions, RightValues* into, std::uint64_t i) {
  if (combines(sum)) return read_number(sum, expressions, into, i);
  Datum value = 0;
  into->there[i] = (sum.plan.filter != SumOf::kRight || passes_filter(sum, expressions)) &&
                   has_argument(sum, expressions, &value);
  if (!into->there[i]) return true;
  const SumArithmetic arithmetic = arithmetic_of(sum.plan.state);
  if (adds_integers(arithmetic)) {
    std::int64_t integer = 0;
    const bool taken = take_integer(sum.plan.type, sum.plan.scale, value, &integer);
    into->values[i] = integer;
    return taken;
  }
  if (arithmetic == SumArithmetic::kFloats) {
    into->reals[i] = take_float(sum.plan.type, value);
    return std::isfinite(into->reals[i]);
  }
  if (is_extreme(arithmetic)) into->values[i] = order_of_value(sum.plan, value);
  return true;
}

/// Reads a leaf of a program likewise.
bool read_leaf(const Sum& sum, int leaf, ExprContext* expressions, double* into) {
  *into = std::numeric_limits<double>::quiet_NaN();
  const SumOf side = sum.plan.leaf_is_left[leaf] ? SumOf::kLeft : SumOf::kRight;
  if (sum.plan.filter == side && !passes_filter(sum, expressions)) return true;
  bool is_null;
  const Datum value = ExecEvalExprSwitchContext(sum.leaves[leaf], expressions, &is_null);
  if (is_null) return true;
  const double number =
      take_float(exprType(static_cast<Node*>(list_nth(sum.expressions.leaves, leaf))), value);
  if (!std::isfinite(number)) return false;
  *into = number;
  return true;
}

/// Calls read(), which is false for special values. False, too, where it raises an error that is
/// about the row's values: whoever asks for the row's pairs will meet it.
template <class Read>
bool try_to_read(const Read& read) {
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  volatile bool taken = false;
  PG_TRY();
  { taken = read(); }
  PG_CATCH();
  {
    if (!is_about_value(geterrcode())) PG_RE_THROW();
    MemoryContextSwitchTo(caller);
    FlushErrorState();
  }
  PG_END_TRY();
  CurrentResourceOwner = owner;
  return taken;
}

/// A column of doubles of a side; its number.
std::uint32_t add_column(SumWork* work, bool left, const double* values) {
  std::uint32_t& count = left ? work->asked.left_columns : work->asked.right_columns;
  const double**& columns = work->columns[left];
  resize_array(work->context, &columns, count + 1);
  columns[count] = values;
  return count++;
}

/// Goes through the points of a side, whose rows are in the scan tuple when visit(i) is called.
template <class Visit>
void for_points(JoinNode* node, bool left, const Visit& visit) {
  const Dataset& points = left ? node->left.points : node->right.points;
  for (std::uint64_t i = 0; i < points.rows; ++i) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node->asked);
    show_row(node, left, static_cast<std::uint64_t>(points.ids[i]),
             node->sums->shows_values_to_engine[left]);
    visit(i, over_scan_tuple(node));
  }
}

/// What is read of both sides' points.
struct ReadValues {
  RightValues* of_sums;            ///< [count]
  double*** leaves;                ///< [count][leaf]
  bool *left_fails, *right_fails;  ///< by point
  bool any_left, any_right;
};

/// Whether the aggregate is told of by a column of right rows.
bool wants_right(const Sum& sum) { return is_of_right(sum) || combines(sum); }

/// Reads everything that the engine wants to know of one side's rows.
void read_side(JoinNode* node, bool left, ReadValues* values) {
  SumWork* const work = node->sums;
  bool* const fails = left ? values->left_fails : values->right_fails;
  bool any = false;
  for_points(node, left, [&](std::uint64_t i, ExprContext* expressions) {
    const bool taken = try_to_read([&] {
      bool all = true;
      for (int s = 0; s < work->count; ++s) {
        const Sum& sum = work->sums[s];
        if (!left && wants_right(sum))
          all = read_value(sum, expressions, &values->of_sums[s], i) && all;
        for (int l = 0; l < program_leaves(sum); ++l)
          if (sum.plan.leaf_is_left[l] == left)
            all = read_leaf(sum, l, expressions, &values->leaves[s][l][i]) && all;
      }
      return all;
    });
    fails[i] = !taken;
    any = any || !taken;
  });
  (left ? values->any_left : values->any_right) = any;
}

bool needs_side(const SumWork* work, bool left) {
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    if (!left && wants_right(sum)) return true;
    for (int l = 0; l < program_leaves(sum); ++l)
      if (sum.plan.leaf_is_left[l] == left) return true;
  }
  return false;
}

ReadValues read_values(JoinNode* node) {
  SumWork* const work = node->sums;
  const std::uint64_t left = node->left.points.rows, right = node->right.points.rows;
  ReadValues values = {};
  values.of_sums = allocate_rows<RightValues>(work, static_cast<std::uint64_t>(work->count));
  values.leaves = allocate_rows<double**>(work, static_cast<std::uint64_t>(work->count));
  values.left_fails = allocate_rows<bool>(work, left);
  values.right_fails = allocate_rows<bool>(work, right);
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    const SumArithmetic arithmetic = arithmetic_of(sum.plan.state);
    if (wants_right(sum)) {
      values.of_sums[s].there = allocate_rows<bool>(work, right);
      if (combines(sum))
        values.of_sums[s].values = allocate_rows<__int128>(work, right);
      else if (arithmetic == SumArithmetic::kFloats)
        values.of_sums[s].reals = allocate_rows<double>(work, right);
      else if (arithmetic != SumArithmetic::kNone)
        values.of_sums[s].values = allocate_rows<__int128>(work, right);
    }
    values.leaves[s] =
        allocate_rows<double*>(work, static_cast<std::uint64_t>(sum.plan.leaf_count));
    for (int l = 0; l < program_leaves(sum); ++l)
      values.leaves[s][l] = allocate_rows<double>(work, sum.plan.leaf_is_left[l] ? left : right);
  }
  for (const bool side : {true, false})
    if (needs_side(work, side)) read_side(node, side, &values);
  return values;
}

/// Asks for how many right rows with a value there are, unless all have one.
void ask_values(SumWork* work, Sum* sum, std::uint64_t rows, const bool* there) {
  if (std::all_of(there, there + rows, [](bool is) { return is; })) return;
  const std::uint32_t column = add_integers_column(work, rows);
  std::copy_n(there, rows, work->integers[column]);
  sum->places.values = ask(work, Fold::kSum, column);
}

/// A program that is to be asked for; its number.
std::uint32_t add_program(SumWork* work, const ValueProgram& program) {
  if (work->asked.programs == kMostPrograms) {
    work->problem = "there are too many aggregates";
    return 0;
  }
  work->asked.program[work->asked.programs] = program;
  return work->asked.programs++;
}

/// Asks for sums or extremes of a program's values.
void ask_program(SumWork* work, Sum* sum, const ValueProgram& program, bool has_nulls) {
  const std::uint32_t number = add_program(work, program);
  const SumState state = sum->plan.state;
  const SumArithmetic arithmetic = arithmetic_of(state);
  if (has_nulls) sum->places.values = ask(work, Fold::kCountOf, number);
  if (arithmetic == SumArithmetic::kFloats) sum->places.sum = ask(work, Fold::kSumOf, number);
  if (state == SumState::kFloatDeviation) sum->places.squares = ask(work, Fold::kSquaresOf, number);
  if (is_extreme(arithmetic))
    sum->places.sum =
        ask(work, arithmetic == SumArithmetic::kLeast ? Fold::kLeastOf : Fold::kMostOf, number);
}

/// Asks for the least or the greatest of integers; the place of the word.
int ask_extreme(SumWork* work, std::uint64_t rows, const RightValues& values, bool least) {
  const std::uint32_t column = add_integers_column(work, rows);
  for (std::uint64_t i = 0; i < rows; ++i)
    work->integers[column][i] = values.there[i] ? static_cast<std::int64_t>(values.values[i])
                                : least         ? INT64_MAX
                                                : INT64_MIN;
  return ask(work, least ? Fold::kLeast : Fold::kMost, column);
}

void ask_right(SumWork* work, Sum* sum, std::uint64_t rows, const RightValues& values) {
  const SumArithmetic arithmetic = arithmetic_of(sum->plan.state);
  if (arithmetic == SumArithmetic::kFloats) {
    bool has_nulls = false;
    for (std::uint64_t i = 0; i < rows; ++i) {
      if (values.there[i]) continue;
      values.reals[i] = std::numeric_limits<double>::quiet_NaN();
      has_nulls = true;
    }
    ValueProgram program = {};
    program.count = 1;
    program.steps[0] = ValueStep::kRight;
    program.columns[0] = add_column(work, false, values.reals);
    ask_program(work, sum, program, has_nulls);
    return;
  }
  ask_values(work, sum, rows, values.there);
  if (adds_integers(arithmetic))
    sum->places.sum = ask_sum(work, rows, values.values, &sum->places.sum_words);
  if (arithmetic == SumArithmetic::kSquaredIntegers) {
    for (std::uint64_t i = 0; i < rows; ++i) values.values[i] *= values.values[i];
    sum->places.squares = ask_sum(work, rows, values.values, &sum->places.square_words);
  }
  if (is_extreme(arithmetic))
    sum->places.sum = ask_extreme(work, rows, values, arithmetic == SumArithmetic::kLeast);
}

/// Asks for what the left row's number is combined with.
void ask_combined(SumWork* work, Sum* sum, std::uint64_t rows, const RightValues& values) {
  ask_values(work, sum, rows, values.there);
  sum->places.sum = ask_sum(work, rows, values.values, &sum->places.sum_words);
  sum->places.least = ask_extreme(work, rows, values, true);
  sum->places.most = ask_extreme(work, rows, values, false);
}

void ask_pair(SumWork* work, Sum* sum, const ReadValues& values, double** leaves,
              const std::uint64_t (&rows)[2]) {
  const SumPlan& plan = sum->plan;
  ValueProgram program = {};
  bool has_nulls = false;
  std::uint32_t columns[kMostValueSteps];
  for (int l = 0; l < plan.leaf_count; ++l) {
    columns[l] = add_column(work, plan.leaf_is_left[l], leaves[l]);
    has_nulls = has_nulls || std::any_of(leaves[l], leaves[l] + rows[plan.leaf_is_left[l]],
                                         [](double x) { return std::isnan(x); });
  }
  program.count = static_cast<std::uint32_t>(plan.step_count);
  for (int i = 0; i < plan.step_count; ++i) {
    program.steps[i] = plan.steps[i];
    const bool leaf = plan.steps[i] == ValueStep::kLeft || plan.steps[i] == ValueStep::kRight;
    program.columns[i] = leaf ? columns[plan.leaves[i]] : 0;
  }
  ask_program(work, sum, program, has_nulls || values.any_left || values.any_right);
}

}  // namespace

bool needs_measures(const JoinNode* node) {
  const SumWork* const work = node->sums;
  return std::any_of(work->sums, work->sums + work->count, [](const Sum& sum) {
    return sum.plan.of == SumOf::kPair || sum.plan.state == SumState::kRows || is_of_right(sum);
  });
}

void make_sum_request(JoinNode* node) {
  SumWork* const work = node->sums;
  const ReadValues values = read_values(node);
  const std::uint64_t rows[2] = {node->right.points.rows, node->left.points.rows};
  if (values.any_left) work->left_fails = values.left_fails;
  if (values.any_right) {
    const std::uint32_t column = add_integers_column(work, rows[0]);
    std::copy_n(values.right_fails, rows[0], work->integers[column]);
    work->failures_place = ask(work, Fold::kSum, column);
  }
  for (int s = 0; s < work->count; ++s) {
    Sum& sum = work->sums[s];
    if (is_of_right(sum)) ask_right(work, &sum, rows[0], values.of_sums[s]);
    if (combines(sum))
      ask_combined(work, &sum, rows[0], values.of_sums[s]);
    else if (sum.plan.of == SumOf::kPair)
      ask_pair(work, &sum, values, values.leaves[s], rows);
  }
  work->asked.left = work->columns[true];
  work->asked.right = work->columns[false];
  work->asked.integers = work->integers;
  work->told_bytes = MemoryContextMemAllocated(work->context, true);
  node->run->report.dataset_bytes += work->told_bytes;
}

void forget_sum_request(JoinNode* node) {
  SumWork* const work = node->sums;
  node->run->report.dataset_bytes -= work->told_bytes;
  work->told_bytes = 0;
  work->asked = {};
  work->columns[0] = work->columns[1] = nullptr;
  work->integers = nullptr;
  work->left_fails = nullptr;
  work->failures_place = 0;
  for (int s = 0; s < work->count; ++s) work->sums[s].places = {};
}

}  // namespace gpujoin

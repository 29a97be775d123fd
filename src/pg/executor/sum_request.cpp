// What the engine is told of an aggregate: columns of numbers of the points' rows, and what to do
// with them. Values that raise errors, or are special, are noted; pairs that meet them will be
// asked for.
#include "pg/executor/join_sums.h"
#include "pg/trap.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {

/// The values of an aggregate of the right side, by point, and what is known of all of them.
struct RightValues {
  bool* there;       ///< false: NULL, filtered out, or not to be had
  __int128* values;  ///< integers, or orders
  double* reals;     ///< NaN where there is none
  bool some_missing, some_large, some_large_squares;
};

/// What is read of the points of each side, or of a window of it.
struct SumValues {
  RightValues* of_sums;            ///< [count]
  double*** leaves;                ///< [count][leaf]
  bool** leaf_has_nulls;           ///< [count][leaf] of all windows
  bool *left_fails, *right_fails;  ///< by point of the window
  bool any_left, any_right;        ///< of all windows
  std::uint64_t room[2];           ///< of the arrays of the right side, of the left one
};

namespace {

/// A new column for the engine; its number.
std::uint32_t add_column(SumWork* work, ToldKind kind, const ToldColumn& column) {
  std::uint32_t& count = kind == ToldKind::kLeft    ? work->asked.left_columns
                         : kind == ToldKind::kRight ? work->asked.right_columns
                                                    : work->asked.integer_columns;
  ToldColumn*& columns = work->told[static_cast<int>(kind)];
  resize_array(work->context, &columns, count + 1);
  columns[count] = column;
  return count++;
}

std::uint32_t add_integers_column(SumWork* work, const ToldColumn& column) {
  return add_column(work, ToldKind::kIntegers, column);
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

/// Asks for the sum of integers, or of their squares, which may be large, in parts: the lower 32
/// bits and the rest, as less than 2^32 of them may be added up. The place of the first word.
int ask_sum(SumWork* work, int sum, bool squares, bool small, int* words) {
  *words = small ? 1 : 2;
  const auto column = [&](ColumnOf of) { return add_integers_column(work, {of, squares, sum, 0}); };
  const int place = ask(work, Fold::kSum, column(small ? ColumnOf::kWhole : ColumnOf::kLower));
  if (!small) ask(work, Fold::kSum, column(ColumnOf::kUpper));
  return place;
}

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
    into->reals[i] = machine_number(sum.plan.type, value);
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
      machine_number(exprType(static_cast<Node*>(list_nth(sum.expressions.leaves, leaf))), value);
  if (!std::isfinite(number)) return false;
  *into = number;
  return true;
}

/// Calls read(), which is false for special values. False, too, where it raises an error that is
/// about the row's values: whoever asks for the row's pairs will meet it.
template <class Read>
bool try_to_read(const Read& read) {
  bool taken = false;
  return try_run(is_about_value, [&] { taken = read(); }) && taken;
}

/// Some consecutive points of a side: all, or those of a chunk in a file.
struct Window {
  std::uint64_t number;  ///< of the chunk
  std::uint64_t rows;
  const std::int64_t* ids;
};

std::uint64_t most_window_rows(const Dataset& points) {
  return points.file == nullptr ? points.rows : rows_of_chunk(points, 0);
}

template <class Visit>
void for_windows(Side* side, const Visit& visit) {
  const Dataset& points = side->points;
  if (points.file == nullptr) return visit(Window{0, points.rows, points.ids});
  for (std::uint64_t number = 0; number < chunk_count(points); ++number) {
    const Dataset& chunk = load_points(&side->buffer, number);
    visit(Window{number, chunk.rows, chunk.ids});
  }
}

/// Whether the aggregate is told of by a column of right rows.
bool wants_right(const Sum& sum) { return is_of_right(sum) || combines(sum); }

/// Reads everything that the engine wants to know of one point, whose row show_row() has shown.
/// False: it is special.
bool read_point(JoinNode* node, bool left, SumValues* values, std::uint64_t i,
                ExprContext* expressions) {
  SumWork* const work = node->sums;
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
}

/// Calls visit(&array, nothing) for each array of a side, with the value that stands for none.
template <class Visit>
void for_arrays(const SumWork* work, bool left, const SumValues& values, const Visit& visit) {
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    if (!left && wants_right(sum)) {
      RightValues& right = values.of_sums[s];
      const SumArithmetic arithmetic = arithmetic_of(sum.plan.state);
      visit(&right.there, false);
      if (!combines(sum) && arithmetic == SumArithmetic::kFloats)
        visit(&right.reals, std::numeric_limits<double>::quiet_NaN());
      else if (combines(sum) || arithmetic != SumArithmetic::kNone)
        visit(&right.values, __int128{0});
    }
    for (int l = 0; l < program_leaves(sum); ++l)
      if (sum.plan.leaf_is_left[l] == left)
        visit(&values.leaves[s][l], std::numeric_limits<double>::quiet_NaN());
  }
}

/// Gives the arrays of a side room for so many points.
void make_room(const SumWork* work, bool left, const SumValues& values, std::uint64_t points) {
  for_arrays(work, left, values,
             [&](auto* array, auto) { resize_array(work->context, array, points); });
}

/// Forgets what was read of points `first` .. `end` - 1.
void clear_values(const SumWork* work, bool left, const SumValues& values, std::uint64_t first,
                  std::uint64_t end) {
  for_arrays(work, left, values,
             [&](auto* array, auto nothing) { std::fill(*array + first, *array + end, nothing); });
}

/// Reads everything that the engine wants to know of the points of a window.
void read_window(JoinNode* node, bool left, const Window& window, SumValues* values) {
  SumWork* const work = node->sums;
  bool* const fails = left ? values->left_fails : values->right_fails;
  clear_values(work, left, *values, 0, window.rows);
  for (std::uint64_t i = 0; i < window.rows; ++i) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node->asked);
    const auto row = static_cast<std::uint64_t>(window.ids[i]);
    show_row(node, left, row, work->shows_values_to_engine[left]);
    ExprContext* const expressions = over_scan_tuple(node);
    fails[i] = !try_to_read([&] { return read_point(node, left, values, i, expressions); });
    if (fails[i] && left) work->left_fails[row] = true;
    (left ? values->any_left : values->any_right) |= fails[i];
  }
}

/// Takes notice of what decides how a window's values are told.
void note_window(const SumWork* work, bool left, std::uint64_t rows, SumValues* values) {
  constexpr std::int64_t kSmall = std::int64_t{1} << 31;
  for (int s = 0; s < work->count; ++s) {
    RightValues& right = values->of_sums[s];
    for (std::uint64_t i = 0; !left && right.there != nullptr && i < rows; ++i)
      right.some_missing |= !right.there[i];
    for (std::uint64_t i = 0; !left && right.values != nullptr && i < rows; ++i) {
      const __int128 value = right.values[i];
      right.some_large |= value < -kSmall || value >= kSmall;
      right.some_large_squares |= value * value >= kSmall;
    }
    for (int l = 0; l < program_leaves(work->sums[s]); ++l)
      if (work->sums[s].plan.leaf_is_left[l] == left)
        values->leaf_has_nulls[s][l] |=
            std::any_of(values->leaves[s][l], values->leaves[s][l] + rows,
                        [](double x) { return std::isnan(x); });
  }
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

/// The arrays of values, without room.
SumValues no_values(SumWork* work) {
  const auto count = static_cast<std::uint64_t>(work->count);
  SumValues values = {};
  values.of_sums = allocate_rows<RightValues>(work, count);
  values.leaves = allocate_rows<double**>(work, count);
  values.leaf_has_nulls = allocate_rows<bool*>(work, count);
  for (int s = 0; s < work->count; ++s) {
    const auto leaves = static_cast<std::uint64_t>(work->sums[s].plan.leaf_count);
    values.leaves[s] = allocate_rows<double*>(work, leaves);
    values.leaf_has_nulls[s] = allocate_rows<bool>(work, leaves);
  }
  return values;
}

/// Reads both sides; of points in memory the values stay.
SumValues read_values(JoinNode* node) {
  SumWork* const work = node->sums;
  SumValues values = no_values(work);
  for (const bool left : {true, false}) {
    const std::uint64_t points = most_window_rows(left ? node->left.points : node->right.points);
    make_room(work, left, values, points);
    (left ? values.left_fails : values.right_fails) = allocate_rows<bool>(work, points);
  }
  work->left_fails = allocate_rows<bool>(work, row_count(node, node->left));
  for (const bool left : {true, false})
    if (needs_side(work, left))
      for_windows(left ? &node->left : &node->right, [&](const Window& window) {
        read_window(node, left, window, &values);
        note_window(work, left, window.rows, &values);
      });
  return values;
}

// ---- What is asked for

/// Asks for how many right rows with a value there are, unless all have one.
void ask_values(SumWork* work, int s, const RightValues& values) {
  if (!values.some_missing) return;
  work->sums[s].places.values =
      ask(work, Fold::kSum, add_integers_column(work, {ColumnOf::kThere, false, s, 0}));
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
int ask_extreme(SumWork* work, int s, bool least) {
  const ColumnOf of = least ? ColumnOf::kLeast : ColumnOf::kMost;
  return ask(work, least ? Fold::kLeast : Fold::kMost,
             add_integers_column(work, {of, false, s, 0}));
}

void ask_right(SumWork* work, int s, const RightValues& values) {
  Sum* const sum = &work->sums[s];
  const SumArithmetic arithmetic = arithmetic_of(sum->plan.state);
  if (arithmetic == SumArithmetic::kFloats) {
    ValueProgram program = {};
    program.count = 1;
    program.steps[0] = ValueStep::kRight;
    program.columns[0] = add_column(work, ToldKind::kRight, {ColumnOf::kReal, false, s, 0});
    ask_program(work, sum, program, values.some_missing);
    return;
  }
  ask_values(work, s, values);
  SumPlaces& places = sum->places;
  if (adds_integers(arithmetic))
    places.sum = ask_sum(work, s, false, !values.some_large, &places.sum_words);
  if (arithmetic == SumArithmetic::kSquaredIntegers)
    places.squares = ask_sum(work, s, true, !values.some_large_squares, &places.square_words);
  if (is_extreme(arithmetic))
    places.sum = ask_extreme(work, s, arithmetic == SumArithmetic::kLeast);
}

/// Asks for what the left row's number is combined with.
void ask_combined(SumWork* work, int s, const RightValues& values) {
  SumPlaces& places = work->sums[s].places;
  ask_values(work, s, values);
  places.sum = ask_sum(work, s, false, !values.some_large, &places.sum_words);
  places.least = ask_extreme(work, s, true);
  places.most = ask_extreme(work, s, false);
}

void ask_pair(SumWork* work, int s, const SumValues& values) {
  Sum* const sum = &work->sums[s];
  const SumPlan& plan = sum->plan;
  ValueProgram program = {};
  bool has_nulls = values.any_left || values.any_right;
  std::uint32_t columns[kMostValueSteps];
  for (int l = 0; l < plan.leaf_count; ++l) {
    columns[l] = add_column(work, plan.leaf_is_left[l] ? ToldKind::kLeft : ToldKind::kRight,
                            {ColumnOf::kLeaf, false, s, l});
    has_nulls = has_nulls || values.leaf_has_nulls[s][l];
  }
  program.count = static_cast<std::uint32_t>(plan.step_count);
  for (int i = 0; i < plan.step_count; ++i) {
    program.steps[i] = plan.steps[i];
    const bool leaf = plan.steps[i] == ValueStep::kLeft || plan.steps[i] == ValueStep::kRight;
    program.columns[i] = leaf ? columns[plan.leaves[i]] : 0;
  }
  ask_program(work, sum, program, has_nulls);
}

void ask_all(SumWork* work, const SumValues& values) {
  if (values.any_right)
    work->failures_place =
        ask(work, Fold::kSum, add_integers_column(work, {ColumnOf::kFailure, false, 0, 0}));
  for (int s = 0; s < work->count; ++s) {
    const Sum& sum = work->sums[s];
    if (is_of_right(sum)) ask_right(work, s, values.of_sums[s]);
    if (combines(sum))
      ask_combined(work, s, values.of_sums[s]);
    else if (sum.plan.of == SumOf::kPair)
      ask_pair(work, s, values);
  }
}

// ---- What is told

/// A point's number in a column.
FoldWord told_number(const ToldColumn& column, const SumValues& values, std::uint64_t i) {
  FoldWord word = {};
  if (column.of == ColumnOf::kFailure) {
    word.integer = values.right_fails[i];
    return word;
  }
  if (column.of == ColumnOf::kLeaf) {
    word.real = values.leaves[column.sum][column.leaf][i];
    return word;
  }
  const RightValues& of = values.of_sums[column.sum];
  if (column.of == ColumnOf::kThere) {
    word.integer = of.there[i];
    return word;
  }
  if (column.of == ColumnOf::kReal) {
    word.real = of.reals[i];
    return word;
  }
  const auto value =
      static_cast<std::int64_t>(column.squared ? of.values[i] * of.values[i] : of.values[i]);
  switch (column.of) {
    case ColumnOf::kLower:
      word.integer = value & 0xffffffff;
      break;
    case ColumnOf::kUpper:
      word.integer = value >> 32;
      break;
    case ColumnOf::kLeast:
      word.integer = of.there[i] ? value : INT64_MAX;
      break;
    case ColumnOf::kMost:
      word.integer = of.there[i] ? value : INT64_MIN;
      break;
    default:
      word.integer = value;
      break;
  }
  return word;
}

/// The columns of a side, in the order in which they are told.
std::uint32_t list_columns(const SumWork* work, bool left, ToldColumn* columns) {
  const PairSums& asked = work->asked;
  if (left) {
    std::copy_n(work->told[0], asked.left_columns, columns);
    return asked.left_columns;
  }
  std::copy_n(work->told[1], asked.right_columns, columns);
  std::copy_n(work->told[2], asked.integer_columns, columns + asked.right_columns);
  return asked.right_columns + asked.integer_columns;
}

/// What was read of all points and is a column as it stands, which it becomes; null: it is none.
FoldWord* take_as_read(const ToldColumn& column, const SumValues& values) {
  double** const read = column.of == ColumnOf::kReal   ? &values.of_sums[column.sum].reals
                        : column.of == ColumnOf::kLeaf ? &values.leaves[column.sum][column.leaf]
                                                       : nullptr;
  return read != nullptr ? reinterpret_cast<FoldWord*>(std::exchange(*read, nullptr)) : nullptr;
}

/// Makes the columns of a side: in memory, or chunk by chunk in the file where its points are.
void tell_side(JoinNode* node, bool left, SumValues* values) {
  SumWork* const work = node->sums;
  Side* const side = left ? &node->left : &node->right;
  const Dataset& points = side->points;
  ToldColumn* const columns = allocate_rows<ToldColumn>(
      work, work->asked.left_columns + work->asked.right_columns + work->asked.integer_columns);
  const std::uint32_t count = list_columns(work, left, columns);
  if (points.file == nullptr) {
    work->columns[left] = allocate_rows<FoldWord*>(work, count);
    for (std::uint32_t c = 0; c < count; ++c) {
      work->columns[left][c] = take_as_read(columns[c], *values);
      if (work->columns[left][c] != nullptr) continue;
      work->columns[left][c] = allocate_rows<FoldWord>(work, points.rows);
      for (std::uint64_t i = 0; i < points.rows; ++i)
        work->columns[left][c][i] = told_number(columns[c], *values, i);
    }
    return;
  }
  const std::uint64_t chunks = chunk_count(points);
  work->places[left] = allocate_rows<std::uint64_t>(work, count * chunks);
  FoldWord* const numbers = allocate_rows<FoldWord>(work, most_window_rows(points));
  for_windows(side, [&](const Window& window) {
    if (count > 0) read_window(node, left, window, values);
    for (std::uint32_t c = 0; c < count; ++c) {
      for (std::uint64_t i = 0; i < window.rows; ++i)
        numbers[i] = told_number(columns[c], *values, i);
      work->places[left][c * chunks + window.number] =
          write_spill(&node->pairs.run->spill, numbers, window.rows * sizeof(FoldWord));
    }
  });
  pfree(numbers);
}

/// Gives back what was read.
void free_values(const SumWork* work, const SumValues& values) {
  for (const bool left : {true, false})
    for_arrays(work, left, values, [](auto* array, auto) {
      if (*array != nullptr) pfree(*array);
    });
}

/// Describes to the engine what was read.
void tell(JoinNode* node, SumValues* values) {
  SumWork* const work = node->sums;
  ask_all(work, *values);
  for (const bool left : {true, false}) tell_side(node, left, values);
  free_values(work, *values);
  PairSums& asked = work->asked;
  const FoldWord* const* const right = work->columns[false];
  asked.left = reinterpret_cast<const double* const*>(work->columns[true]);
  asked.right = reinterpret_cast<const double* const*>(right);
  if (right != nullptr)
    asked.integers = reinterpret_cast<const std::int64_t* const*>(right + asked.right_columns);
  work->told_bytes = MemoryContextMemAllocated(work->context, true);
  node->pairs.run->report.dataset_bytes += work->told_bytes;
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
  SumValues values = read_values(node);
  if (!values.any_left) work->left_fails = nullptr;
  tell(node, &values);
}

SumValues* begin_sum_values(JoinNode* node) {
  SumValues* const values = allocate_rows<SumValues>(node->sums, 1);
  *values = no_values(node->sums);
  return values;
}

bool read_sum_values(JoinNode* node, SumValues* values, bool left, std::uint64_t point,
                     ExprContext* row) {
  constexpr std::uint64_t kFirstRoom = 1024;
  std::uint64_t& room = values->room[left];
  if (point >= room) {
    const std::uint64_t before = room;
    room = std::max({2 * room, kFirstRoom, point + 1});
    make_room(node->sums, left, *values, room);
    clear_values(node->sums, left, *values, before, room);
  }
  return try_to_read([&] { return read_point(node, left, values, point, row); });
}

void tell_sum_values(JoinNode* node, SumValues* values) {
  for (const bool left : {true, false})
    note_window(node->sums, left, (left ? node->left : node->right).points.rows, values);
  tell(node, values);
}

Dataset with_sums(JoinNode* node, bool left, bool both, Dataset points) {
  SumWork* const work = node->sums;
  if (points.file == nullptr || node->pairs.mode != Mode::kSums || work->asked.measures == 0)
    return points;
  points.sum_places = work->places[left];
  if (!both) return points;
  const std::uint64_t chunks = chunk_count(points), lefts = work->asked.left_columns * chunks,
                      rights = (work->asked.right_columns + work->asked.integer_columns) * chunks;
  std::uint64_t* const all = allocate_rows<std::uint64_t>(work, lefts + rights);
  std::copy_n(work->places[true], lefts, all);
  std::copy_n(work->places[false], rights, all + lefts);
  points.sum_places = all;
  return points;
}

void forget_sum_request(JoinNode* node) {
  SumWork* const work = node->sums;
  node->pairs.run->report.dataset_bytes -= work->told_bytes;
  work->told_bytes = 0;
  work->asked = {};
  work->columns[0] = work->columns[1] = nullptr;
  work->places[0] = work->places[1] = nullptr;
  work->told[0] = work->told[1] = work->told[2] = nullptr;
  work->left_fails = nullptr;
  work->failures_place = 0;
  for (int s = 0; s < work->count; ++s) work->sums[s].places = {};
}

}  // namespace gpujoin

// Values of pairs that aggregates add up: arithmetic over the distance and over numbers of either
// row, as PostgreSQL's on float8 is, and sums that round once. For host and device; no memory of
// its own.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/ordered_bits.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kMostValueSteps = 24;  ///< of a program
inline constexpr std::uint32_t kMostValueDepth = 6;   ///< numbers that wait for their operator

/// A step of a program: it puts a number on the stack, or an operator takes its operands off it.
enum class ValueStep : std::int32_t {
  kDistance,
  kLeft,   ///< a number of the left row
  kRight,  ///< likewise
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kSquare,
  kSquareRoot,
  kExponential,
};

/// Arithmetic in postfix order, whose result alone is left on the stack.
struct ValueProgram {
  std::uint32_t count;
  ValueStep steps[kMostValueSteps];
  std::uint32_t columns[kMostValueSteps];  ///< of kLeft and kRight
};

GPUJOIN_HD inline bool puts_number(ValueStep step) {
  return step == ValueStep::kDistance || step == ValueStep::kLeft || step == ValueStep::kRight;
}
GPUJOIN_HD inline bool takes_two(ValueStep step) {
  return step == ValueStep::kAdd || step == ValueStep::kSubtract || step == ValueStep::kMultiply ||
         step == ValueStep::kDivide;
}

/// Whether the program's stack neither overflows nor runs empty, and one number is left.
inline bool is_well_formed(const ValueProgram& program) {
  if (program.count == 0 || program.count > kMostValueSteps) return false;
  std::uint32_t depth = 0;
  for (std::uint32_t i = 0; i < program.count; ++i) {
    const ValueStep step = program.steps[i];
    if (puts_number(step)) {
      if (++depth > kMostValueDepth) return false;
    } else {
      const std::uint32_t operands = takes_two(step) ? 2 : 1;
      if (depth < operands) return false;
      depth -= operands - 1;
    }
  }
  return depth == 1;
}

/// Arguments between which exp() is far from both ends of the range. Beyond them libraries differ
/// in where it becomes 0 or infinite.
inline constexpr double kMinExponent = -708, kMaxExponent = 709;

/// The result of an operator, `b` unused by those of one operand; NaN, which stands for NULL, where
/// an operand is one. Sets *leaves where PostgreSQL raises an error, or may: the result is out of
/// range. exp() may differ between engines in its last bit.
GPUJOIN_HD inline double operate(ValueStep step, double a, double b, bool* leaves) {
  double result = 0;
  bool vanishes = false;  // it is 0, but only by underflow, or its argument is out of range
  switch (step) {
    case ValueStep::kAdd:
      result = add_rounded(a, b);
      break;
    case ValueStep::kSubtract:
      result = add_rounded(a, -b);
      break;
    case ValueStep::kMultiply:
      result = multiply_rounded(a, b);
      vanishes = result == 0 && a != 0 && b != 0;
      break;
    case ValueStep::kDivide:
      result = a / b;
      vanishes = b == 0 || (result == 0 && a != 0);
      break;
    case ValueStep::kNegate:
      result = -a;
      break;
    case ValueStep::kSquare:
      result = multiply_rounded(a, a);
      vanishes = result == 0 && a != 0;
      break;
    case ValueStep::kSquareRoot:
      result = sqrt(a);
      vanishes = a < 0;
      break;
    default:
      result = exp(a);
      vanishes = !(a > kMinExponent && a < kMaxExponent);
      break;
  }
  const bool known = a == a && b == b;
  *leaves = known && (vanishes || !(result - result == 0));
  return result;
}

/// The value of a program, NaN where it is NULL or out of range; counts the latter. `pair` has
/// number(step, column), what a step puts on the stack.
template <class Pair>
GPUJOIN_HD double compute_value(const ValueProgram& program, const Pair& pair,
                                std::uint64_t* out_of_range) {
  double stack[kMostValueDepth];
  std::uint32_t depth = 0;
  for (std::uint32_t i = 0; i < program.count; ++i) {
    const ValueStep step = program.steps[i];
    if (puts_number(step)) {
      stack[depth++] = pair.number(step, program.columns[i]);
      continue;
    }
    const bool two = takes_two(step);
    if (two) --depth;
    bool leaves;
    const double a = stack[depth - 1];
    const double result = operate(step, a, two ? stack[depth] : a, &leaves);
    *out_of_range += leaves;
    stack[depth - 1] = leaves ? static_cast<double>(NAN) : result;
  }
  return stack[0];
}

/// A sum of doubles as the sum of two, so that it is rounded once, at the end.
struct DoubleSum {
  double high;
  double low;

  /// `error` is what was left out of x.
  GPUJOIN_HD void add(double x, double error = 0) {
    const double sum = add_rounded(high, x);
    const double part = add_rounded(sum, -high);
    const double lost =
        add_rounded(add_rounded(high, -add_rounded(sum, -part)), add_rounded(x, -part));
    high = sum;
    low = add_rounded(low, add_rounded(lost, error));
  }
  /// x * y, whose rounding error is found by cutting both into halves of 26 bits (Dekker).
  GPUJOIN_HD void add_product(double x, double y) {
    const double product = multiply_rounded(x, y);
    const double a = upper_half(x), b = add_rounded(x, -a);
    const double c = upper_half(y), d = add_rounded(y, -c);
    const double error = add_rounded(
        add_rounded(
            add_rounded(add_rounded(multiply_rounded(a, c), -product), multiply_rounded(a, d)),
            multiply_rounded(b, c)),
        multiply_rounded(b, d));
    add(product, error);
  }
  /// Infinite or NaN where a term was, or where the sum leaves the range. The sum of nothing but
  /// negative zeros is one.
  GPUJOIN_HD double rounded() const {
    return high - high == 0 && low != 0 ? add_rounded(high, low) : high;
  }

 private:
  GPUJOIN_HD static double upper_half(double x) {
    const double cut = multiply_rounded(134217729.0, x);  // 2^27 + 1
    return add_rounded(cut, -add_rounded(cut, -x));
  }
};

/// The sum of nothing. Any term leaves a sum that begins with -0 as it would be alone.
GPUJOIN_HD inline DoubleSum no_sum() { return {-0.0, 0}; }

/// How the values of a left row's pairs become one.
enum class Fold : std::int32_t {
  kSum,        ///< of integers, modulo 2^64
  kLeast,      ///< of integers, signed; INT64_MAX where there are none
  kMost,       ///< INT64_MIN likewise
  kSumOf,      ///< of a program's values that are not NULL: a DoubleSum
  kSquaresOf,  ///< of their squares: likewise
  kLeastOf,    ///< of them, as signed_order()
  kMostOf,     ///< likewise
  kCountOf,    ///< how many they are
};

/// Whether the values are a program's.
GPUJOIN_HD inline bool computes(Fold fold) { return fold >= Fold::kSumOf; }

/// Words of 8 bytes that the result takes.
GPUJOIN_HD inline std::uint32_t words_of(Fold fold) {
  return fold == Fold::kSumOf || fold == Fold::kSquaresOf ? 2 : 1;
}

/// Doubles as signed integers in the same order.
GPUJOIN_HD inline std::int64_t signed_order(double x) {
  return static_cast<std::int64_t>(ordered_bits(x) ^ kSignBit);
}
GPUJOIN_HD inline double from_signed_order(std::int64_t ordered) {
  return from_ordered_bits(static_cast<std::uint64_t>(ordered) ^ kSignBit);
}

/// One word of a result, whatever it holds.
union FoldWord {
  std::int64_t integer;
  std::uint64_t number;
  double real;
};

GPUJOIN_HD inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
GPUJOIN_HD inline std::int64_t greater(std::int64_t a, std::int64_t b) { return b > a ? b : a; }

/// Sets the words to the result of no pairs.
GPUJOIN_HD inline void clear_fold(Fold fold, FoldWord* words) {
  words[0].number = 0;
  if (words_of(fold) == 2) {
    words[0].real = no_sum().high;
    words[1].real = no_sum().low;
  }
  if (fold == Fold::kLeast || fold == Fold::kLeastOf)
    words[0].number = ~kSignBit;
  else if (fold == Fold::kMost || fold == Fold::kMostOf)
    words[0].number = kSignBit;
}

/// Adds another result to one.
GPUJOIN_HD inline void merge_fold(Fold fold, FoldWord* words, const FoldWord* others) {
  switch (fold) {
    case Fold::kSum:
    case Fold::kCountOf:
      words[0].number += others[0].number;
      break;
    case Fold::kLeast:
    case Fold::kLeastOf:
      words[0].integer = lesser(words[0].integer, others[0].integer);
      break;
    case Fold::kMost:
    case Fold::kMostOf:
      words[0].integer = greater(words[0].integer, others[0].integer);
      break;
    case Fold::kSumOf:
    case Fold::kSquaresOf: {
      DoubleSum sum{words[0].real, words[1].real};
      sum.add(others[0].real, others[1].real);
      words[0].real = sum.high;
      words[1].real = sum.low;
      break;
    }
  }
}

/// Adds an integer.
GPUJOIN_HD inline void fold_integer(Fold fold, FoldWord* words, std::int64_t value) {
  FoldWord others[2] = {};  // as many as a fold of values would have
  others[0].integer = value;
  merge_fold(fold, words, others);
}

/// Adds a program's value, which is not NaN.
GPUJOIN_HD inline void fold_value(Fold fold, FoldWord* words, double value) {
  switch (fold) {
    case Fold::kSumOf:
    case Fold::kSquaresOf: {
      DoubleSum sum{words[0].real, words[1].real};
      if (fold == Fold::kSumOf)
        sum.add(value);
      else
        sum.add_product(value, value);
      words[0].real = sum.high;
      words[1].real = sum.low;
      break;
    }
    case Fold::kCountOf:
      ++words[0].number;
      break;
    default:
      fold_integer(fold, words, signed_order(value));
      break;
  }
}

/// Adds a pair to the words of its left row, of which the first one counts values out of range.
/// `asked` has the programs and measures; `pair` what compute_value() asks for, and
/// integer(number).
template <class Asked, class Pair>
GPUJOIN_HD void fold_pair(const Asked& asked, const Pair& pair, FoldWord* words) {
  std::uint64_t* const out_of_range = &words->number;
  std::uint32_t computed = ~0u;  // none; measures of one program follow each other
  double value = 0;
  ++words;
  for (std::uint32_t m = 0; m < asked.measures; ++m) {
    const auto measure = asked.measure[m];
    if (!computes(measure.fold)) {
      fold_integer(measure.fold, words, pair.integer(measure.number));
    } else {
      if (measure.number != computed)
        value = compute_value(asked.program[measure.number], pair, out_of_range);
      computed = measure.number;
      if (value == value) fold_value(measure.fold, words, value);
    }
    words += words_of(measure.fold);
  }
}

}  // namespace gpujoin

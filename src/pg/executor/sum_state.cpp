#include "pg/executor/sum_state.h"

#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

// ---- Numerics, by what numeric_send() writes: digits of base 10000 from the weight on

constexpr int kBase = 10000, kDigitsOfBase = 4;
constexpr int kNegative = 0x4000;

std::int64_t power_of_ten(int exponent) {
  std::int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

/// A numeric of up to 18 digits, times 10^scale. False: it is no number.
bool take_numeric(Datum value, int scale, std::int64_t* integer) {
  if (numeric_is_nan(DatumGetNumeric(value)) || numeric_is_inf(DatumGetNumeric(value)))
    return false;
  bytea* const sent = DatumGetByteaPP(DirectFunctionCall1(numeric_send, value));
  StringInfoData message = {VARDATA_ANY(sent), static_cast<int>(VARSIZE_ANY_EXHDR(sent)), 0, 0};
  const int digits = static_cast<std::int16_t>(pq_getmsgint(&message, 2));
  int weight = static_cast<std::int16_t>(pq_getmsgint(&message, 2));
  const bool negative = pq_getmsgint(&message, 2) == kNegative;
  pq_getmsgint(&message, 2);  // the scale that is displayed
  std::int64_t sum = 0;
  for (int i = 0; i < digits; ++i, --weight) {
    const int exponent = weight * kDigitsOfBase + scale;
    const auto digit = static_cast<std::int64_t>(pq_getmsgint(&message, 2));
    sum += exponent >= 0 ? digit * power_of_ten(exponent) : digit / power_of_ten(-exponent);
  }
  *integer = negative ? -sum : sum;
  return true;
}

/// Writes a number divided by 10^scale as PostgreSQL serialises the sums of its aggregates.
void send_numeric(StringInfo message, __int128 number, int scale) {
  const bool negative = number < 0;
  auto rest =
      negative ? -static_cast<unsigned __int128>(number) : static_cast<unsigned __int128>(number);
  std::int16_t digits[20];  // from the least one on
  int count = 0, fraction = 0;
  const int odd = scale % kDigitsOfBase;
  if (odd > 0) {
    const auto cut = static_cast<unsigned __int128>(power_of_ten(odd));
    digits[count++] = static_cast<std::int16_t>(rest % cut * power_of_ten(kDigitsOfBase - odd));
    rest /= cut;
    ++fraction;
  }
  for (fraction += scale / kDigitsOfBase; rest > 0; rest /= kBase)
    digits[count++] = static_cast<std::int16_t>(rest % kBase);
  while (count < fraction) digits[count++] = 0;
  int last = 0;
  while (last < count && digits[last] == 0) ++last;
  int first = count;
  while (first > last && digits[first - 1] == 0) --first;
  const int used = first - last;
  pq_sendint32(message, static_cast<std::uint32_t>(used));
  pq_sendint32(message, static_cast<std::uint32_t>(used > 0 ? first - 1 - fraction : 0));
  pq_sendint32(message, negative && used > 0 ? kNegative : 0);
  pq_sendint32(message, static_cast<std::uint32_t>(scale));
  for (int i = first; i > last; --i)
    pq_sendint16(message, static_cast<std::uint16_t>(digits[i - 1]));
}

// ---- States

void send_count(StringInfo message, std::int64_t count) {
  pq_sendint64(message, static_cast<std::uint64_t>(count));
}

/// As int8_avg_serialize(), numeric_poly_serialize() and numeric_avg_serialize() [PostgreSQL,
/// numeric.c].
Datum serialise(const SumPlan& sum, const Tally& tally) {
  StringInfoData message;
  pq_begintypsend(&message);
  const bool numeric = sum.state == SumState::kNumericSums;
  const std::int64_t numbers = tally.count - tally.specials;
  send_count(&message, numeric ? numbers : tally.count);
  send_numeric(&message, tally.integers.sum.value(), numeric ? sum.scale : 0);
  if (sum.state == SumState::kIntSquares) send_numeric(&message, tally.integers.squares.value(), 0);
  if (numeric) {
    pq_sendint32(&message, static_cast<std::uint32_t>(numbers > 0 ? sum.scale : 0));
    send_count(&message, numbers);         // of this scale
    send_count(&message, tally.specials);  // NaN
    send_count(&message, 0);               // infinities
    send_count(&message, 0);
  }
  return PointerGetDatum(pq_endtypsend(&message));
}

std::int64_t narrow(__int128 number) {
  const auto narrowed = static_cast<std::int64_t>(number);
  if (narrowed != number)
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
  return narrowed;
}

Datum int8_average(const Tally& tally) {
  Datum numbers[] = {Int64GetDatum(tally.count), Int64GetDatum(narrow(tally.integers.sum.value()))};
  return PointerGetDatum(
      construct_array(numbers, 2, INT8OID, sizeof(std::int64_t), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

double checked(const Tally& tally, double number) {
  if (std::isinf(number) && tally.specials == 0) float_overflow_error();
  return number;
}

Datum float_average(const Tally& tally) {
  const FloatSums& sums = tally.floats;
  // float8_accum() [PostgreSQL, float.c] begins with 0, which no negative zero changes.
  const double sum = 0.0 + checked(tally, sums.sum.rounded());
  const double numbers[] = {static_cast<double>(tally.count), sum, checked(tally, sums.deviations)};
  Datum values[3];
  for (int i = 0; i < 3; ++i) values[i] = Float8GetDatum(numbers[i]);
  return PointerGetDatum(
      construct_array(values, 3, FLOAT8OID, sizeof(double), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/// The value whose order_of_value() this is.
Datum value_in_order(Oid type, std::int64_t order) {
  switch (type) {
    case INT2OID:
      return Int16GetDatum(static_cast<std::int16_t>(order));
    case INT4OID:
      return Int32GetDatum(static_cast<std::int32_t>(order));
    case DATEOID:
      return DateADTGetDatum(static_cast<DateADT>(order));
    case BOOLOID:
      return BoolGetDatum(order != 0);
    case FLOAT4OID:
      return Float4GetDatum(order == INT64_MAX ? get_float4_nan()
                                               : static_cast<float>(from_signed_order(order)));
    case FLOAT8OID:
      return Float8GetDatum(order == INT64_MAX ? get_float8_nan() : from_signed_order(order));
    default:
      return Int64GetDatum(order);
  }
}

}  // namespace

SumArithmetic arithmetic_of(SumState state) {
  switch (state) {
    case SumState::kInt8:
    case SumState::kInt8Average:
    case SumState::kInt8Sums:
    case SumState::kNumericSums:
      return SumArithmetic::kIntegers;
    case SumState::kIntSquares:
      return SumArithmetic::kSquaredIntegers;
    case SumState::kFloat4:
    case SumState::kFloat8:
    case SumState::kFloatAverage:
    case SumState::kFloatDeviation:
      return SumArithmetic::kFloats;
    case SumState::kLeast:
    case SumState::kAnd:
      return SumArithmetic::kLeast;
    case SumState::kMost:
    case SumState::kOr:
      return SumArithmetic::kMost;
    default:
      return SumArithmetic::kNone;
  }
}

bool take_integer(Oid type, int scale, Datum value, std::int64_t* integer) {
  if (type == NUMERICOID) return take_numeric(value, scale, integer);
  *integer = integer_of(type, value);
  return true;
}

bool is_in_range(Oid type, __int128 integer) {
  switch (type) {
    case INT2OID:
      return integer >= INT16_MIN && integer <= INT16_MAX;
    case INT4OID:
      return integer >= INT32_MIN && integer <= INT32_MAX;
    default:
      return integer >= INT64_MIN && integer <= INT64_MAX;
  }
}

std::int64_t order_of_value(const SumPlan& sum, Datum value) {
  if (sum.type != FLOAT4OID && sum.type != FLOAT8OID) return integer_of(sum.type, value);
  const double number = machine_number(sum.type, value);
  return std::isnan(number) ? INT64_MAX : signed_order(number);
}

void clear_tally(const SumPlan& sum, Tally* tally) {
  *tally = {};
  const SumArithmetic arithmetic = arithmetic_of(sum.state);
  if (arithmetic == SumArithmetic::kFloats)
    tally->floats = {no_sum(), 0};
  else if (is_extreme(arithmetic))
    tally->extreme = arithmetic == SumArithmetic::kLeast ? INT64_MAX : INT64_MIN;
}

void add_value(const SumPlan& sum, Tally* tally, Datum value, std::int64_t times) {
  const SumArithmetic arithmetic = arithmetic_of(sum.state);
  if (adds_integers(arithmetic)) {
    std::int64_t number = 0;
    if (!take_integer(sum.type, sum.scale, value, &number)) tally->specials += times;
    const __int128 wide = number;
    add_integers(tally, times, wide * times,
                 arithmetic == SumArithmetic::kSquaredIntegers ? wide * wide * times : 0);
  } else if (arithmetic == SumArithmetic::kFloats) {
    const double number = machine_number(sum.type, value);
    DoubleSum all = no_sum();
    if (times == 1 || !std::isfinite(number))
      all.high = number;
    else
      all.add_product(number, static_cast<double>(times));
    const bool special = !std::isfinite(number);
    if (special) tally->specials += times;
    add_floats(sum, tally, times, all, special ? get_float8_nan() : 0);
  } else if (is_extreme(arithmetic)) {
    add_extreme(sum, tally, times, order_of_value(sum, value));
  } else {
    tally->count += times;
  }
}

void add_integers(Tally* tally, std::int64_t count, __int128 sum, __int128 squares) {
  tally->count += count;
  tally->integers.sum.add(sum);
  tally->integers.squares.add(squares);
}

/// As float8_combine() [PostgreSQL, float.c].
void add_floats(const SumPlan& sum, Tally* tally, std::int64_t count, const DoubleSum& values,
                double deviations) {
  if (count == 0) return;
  FloatSums& sums = tally->floats;
  if (sum.state == SumState::kFloatDeviation) {
    const auto ours = static_cast<double>(tally->count), others = static_cast<double>(count);
    sums.deviations += deviations;
    if (tally->count > 0) {
      const double apart = sums.sum.rounded() / ours - values.rounded() / others;
      sums.deviations += ours * others * apart * apart / (ours + others);
    }
  }
  tally->count += count;
  sums.sum.add(values.high, values.low);
}

void add_extreme(const SumPlan& sum, Tally* tally, std::int64_t count, std::int64_t extreme) {
  tally->count += count;
  tally->extreme = arithmetic_of(sum.state) == SumArithmetic::kLeast
                       ? lesser(tally->extreme, extreme)
                       : greater(tally->extreme, extreme);
}

double deviations_of(std::int64_t count, const DoubleSum& values, const DoubleSum& squares) {
  // Both sums have some 100 bits. What is left of their difference may have fewer.
  constexpr double kNoise = 1e-28;
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  const double mean = values.rounded() / n;
  // The squares of deviations from c, the sum S and the sum of squares Q: Q - 2 c S + n c^2.
  DoubleSum left{squares.high, squares.low};
  left.add_product(-2 * mean, values.high);
  left.add(-2 * mean * values.low);
  DoubleSum of_mean{};
  of_mean.add_product(mean, mean);
  left.add_product(n, of_mean.high);
  left.add(n * of_mean.low);
  const double deviations = left.rounded();
  return deviations > kNoise * squares.rounded() ? deviations : 0;
}

Datum state_of(const SumPlan& sum, const Tally& tally, bool* is_null) {
  *is_null = false;
  if (sum.state == SumState::kCount || sum.state == SumState::kRows)
    return Int64GetDatum(tally.count);
  *is_null = tally.count == 0;
  if (*is_null) return 0;
  switch (sum.state) {
    case SumState::kInt8:
      return Int64GetDatum(narrow(tally.integers.sum.value()));
    case SumState::kInt8Average:
      return int8_average(tally);
    case SumState::kFloat4: {
      const auto number = static_cast<float>(checked(tally, tally.floats.sum.rounded()));
      return Float4GetDatum(static_cast<float>(checked(tally, number)));
    }
    case SumState::kFloat8:
      return Float8GetDatum(checked(tally, tally.floats.sum.rounded()));
    case SumState::kFloatAverage:
    case SumState::kFloatDeviation:
      return float_average(tally);
    case SumState::kInt8Sums:
    case SumState::kNumericSums:
    case SumState::kIntSquares:
      return serialise(sum, tally);
    default:
      return value_in_order(sum.type, tally.extreme);
  }
}

}  // namespace gpujoin

#include "pg/executor/key_numbers.h"

extern "C" {
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/date.h"
}

namespace gpujoin {

int end_of_time(Oid type, Datum value) {
  if (type == DATEOID) {
    const DateADT date = DatumGetDateADT(value);
    return DATE_IS_NOBEGIN(date) ? -1 : DATE_IS_NOEND(date) ? 1 : 0;
  }
  if (type != TIMESTAMPOID && type != TIMESTAMPTZOID) return 0;
  const Timestamp time = DatumGetTimestamp(value);
  return TIMESTAMP_IS_NOBEGIN(time) ? -1 : TIMESTAMP_IS_NOEND(time) ? 1 : 0;
}

double rounding_of(Oid type) { return type == FLOAT4OID ? 0x1p-22 : 0x1p-50; }

namespace {

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
    *whole = integer_of(bound.type, value);
    if (bound.negated) *whole = -*whole;
    return true;
  }
  *real = number_of(bound.type, value);
  if (bound.negated) *real = -*real;
  return std::isfinite(*real);
}

}  // namespace

Band find_band(JoinNode* node, const JoinKey& key) {
  const KeyPlan& plan = key.plan;
  Band band = {true,      true,    false, false, -(__int128{1} << 100), __int128{1} << 100,
               -HUGE_VAL, HUGE_VAL};
  if (plan.bound_count == 0) band = {true, true, false, false, 0, 0, 0, 0};  // of ranges
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

}  // namespace gpujoin

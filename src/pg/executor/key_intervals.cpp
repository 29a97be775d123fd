// Ends of intervals as numbers: a left row's interval [x, x'] overlaps a right row's [y, y'] where
// x <= y' and y <= x', and that is what the engine compares. Numbers are in the order of the
// values. Integers and times are whole numbers, less one where a high end does not belong to the
// interval itself; reals are doubles, the nearest ones of numerics. Values far beyond the others,
// infinite ones, and ends that a range does not have share the numbers at both limits.
//
// The engine decides where no two values that one condition compares may share a number but equal
// ones; otherwise it finds a little more, and the conditions decide.
#include "pg/executor/key_intervals.h"

#include <cfloat>

#include "pg/executor/key_columns.h"

extern "C" {
#include "utils/rangetypes.h"
#include "utils/typcache.h"
}

namespace gpujoin {
namespace {

constexpr double kLargestReal = 1e300;

/// An end of a row's interval as its value has it.
struct End {
  bool exists;     ///< false: there is no interval, as of NULL and of empty ranges
  int limit;       ///< -1 or 1: before or after all values
  bool inclusive;  ///< the interval contains the value
  Datum value;
};

/// The end that a value is, or has where it is a range.
End end_of(TypeCacheEntry* range, Datum value, bool is_null, bool high) {
  if (is_null) return {};
  if (range == nullptr) return {true, 0, true, value};
  RangeBound lower, upper;
  bool empty;
  range_deserialize(range, DatumGetRangeTypeP(value), &lower, &upper, &empty);
  const RangeBound& bound = high ? upper : lower;
  if (empty) return {};
  return {true, !bound.infinite ? 0 : high ? 1 : -1, bound.inclusive, bound.val};
}

End end_of(const MadeRange& range, Datum value, bool is_null, bool high) {
  const int limit = !is_null ? 0 : high ? 1 : -1;
  return {true, limit, high ? range.has_high : range.has_low, value};
}

/// The numbers of all ends of a key.
class Numbers {
 public:
  Numbers(const KeyPlan& plan, const Band& band)
      : plan_(plan),
        band_(band),
        reals_(plan.numbers == KeyNumbers::kReals),
        limit_(reals_ ? kLargestReal : kLargestExact) {}

  /// The number of an end with values of a type, NaN where there is none.
  double of(Oid type, const End& end, int side, bool high) {
    if (!end.exists) return NAN;
    const double number = end.limit != 0 ? end.limit * limit_
                          : reals_       ? real_of(type, end, side, high)
                                         : whole_of(type, end, side, high);
    if (number < limit_ && number > -limit_) return number;
    shared_[high][number > 0] = true;
    return number > 0 ? limit_ : -limit_;
  }

  /// Whether an interval's ends are in order if and only if the conditions hold.
  bool are_exact() const {
    for (const bool above : {false, true})
      if (shared_[0][above] && shared_[1][above]) return false;
    return band_.exact && !widened_;
  }

 private:
  double whole_of(Oid type, const End& end, int side, bool high) {
    if (const int limit = end_of_time(type, end.value); limit != 0) return limit * limit_;
    const std::int64_t whole = integer_of(type, end.value);
    if (!based_ && std::fabs(static_cast<double>(whole)) > limit_) base_ = whole;
    based_ = true;
    // A low end that does not belong to the interval is compared as if it did.
    if (!high && !end.inclusive) widened_ = true;
    const __int128 offset = !high ? 0 : side == 0 ? -band_.least : band_.most;
    return static_cast<double>(static_cast<__int128>(whole) - base_ + offset -
                               (high && !end.inclusive ? 1 : 0));
  }

  double real_of(Oid type, const End& end, int side, bool high) {
    const double real = number_of(type, end.value);
    if (std::isnan(real)) return limit_;  // after all numbers
    const double offset = !high ? 0 : side == 0 ? -band_.real_least : band_.real_most;
    if (type == NUMERICOID || offset != 0) widened_ = true;
    if (offset == 0 || !(std::fabs(real) < limit_)) return real;
    double rounding = rounding_of(type);
    for (int i = 0; i < plan_.bound_count; ++i)
      rounding = std::max(rounding, rounding_of(plan_.bounds[i].type));
    return real + offset + 16 * rounding * (std::fabs(real) + std::fabs(offset));
  }

  const KeyPlan& plan_;
  const Band& band_;
  const bool reals_;
  const double limit_;
  bool based_ = false;
  std::int64_t base_ = 0;  ///< that whole numbers are less
  bool widened_ = false;
  bool shared_[2][2] = {};  ///< low, high; whether some are at the limit before and after all
};

/// The values of one side's low ends or high ones.
class Ends {
 public:
  Ends(JoinNode* node, const JoinKey& key, Numbers* numbers, int side, bool high)
      : values_(node, side == 0 ? node->left : node->right,
                high ? key.high_columns[side] : key.columns[side],
                high ? key.high_values[side] : key.values[side]),
        numbers_(numbers),
        made_(key.plan.ranges[side]),
        side_(side),
        high_(high) {
    const Oid type = high ? key.plan.high_types[side] : key.plan.types[side],
              element = element_of_range(type);
    type_ = OidIsValid(element) ? element : type;
    if (OidIsValid(element)) range_ = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
  }

  double number(std::uint64_t row) const {
    return values_.key(row, [&](Datum value, bool is_null) {
      const End end = made_.is_made ? end_of(made_, value, is_null, high_)
                                    : end_of(range_, value, is_null, high_);
      return numbers_->of(type_, end, side_, high_);
    });
  }

 private:
  KeyValues values_;
  Numbers* numbers_;
  MadeRange made_;
  int side_;
  bool high_;
  Oid type_;  ///< of the ends
  TypeCacheEntry* range_ = nullptr;
};

}  // namespace

void number_intervals(JoinNode* node, const JoinKey& key, const Band& band, std::uint32_t number) {
  KeyWork* const work = node->pairs.keys;
  Numbers numbers(key.plan, band);
  // Low ends of intervals that overlap differ by no more than one of both is long, and so do their
  // differences in double precision.
  double longest = key.plan.numbers == KeyNumbers::kReals ? DBL_MIN : 0.5;
  for (int side = 0; side < 2; ++side) {
    const Ends low(node, key, &numbers, side, false), high(node, key, &numbers, side, true);
    KeyColumn(node, side, number).fill([&](std::uint64_t row) { return low.number(row); });
    KeyColumn(node, side, number + 1).fill([&](std::uint64_t row) {
      const double end = high.number(row), length = end - low.number(row);
      // A range of such ends is empty, or an error.
      if (length < 0 && key.plan.ranges[side].is_made) return double{NAN};
      longest = std::fmax(longest, length);
      return end;
    });
    node->output.left_shown = kNoRow;
  }
  work->asked.intervals |= 1u << number;
  for (const std::uint32_t column : {number, number + 1}) work->asked.reach[column] = longest;
  work->decides = work->decides && numbers.are_exact();
}

}  // namespace gpujoin

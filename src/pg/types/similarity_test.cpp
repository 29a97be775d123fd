#include "pg/types/similarity_test.h"

#include "engine/request/request.h"
#include "pg/types/extension_object.h"
#include "pg/types/metric_name.h"

extern "C" {
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// Whether the function may be the one; what the name leaves open is settled when all else fits.
bool may_be(const TestFunction& known, Oid function, const char* name) {
  return known.extension == nullptr ? function == known.function : strcmp(known.name, name) == 0;
}

/// Whether it takes such arguments after the two values: a radius where it compares with one, and
/// the constant that it ends with.
bool takes(const TestFunction& known, int extra, const char* last) {
  const bool ends = known.last_argument != nullptr;
  return extra == (known.form == TestForm::kWithin) + ends &&
         (!ends || (last != nullptr && pg_strcasecmp(known.last_argument, metric_name(last)) == 0));
}

}  // namespace

bool find_test(Oid function, Oid type, int extra, const char* last, TestUse use,
               SimilarityTest* test) {
  const char* const name = get_func_name(function);
  if (name == nullptr) return false;
  for (int i = 0; i < value_type_count(); ++i) {
    const ValueType& known = *value_types()[i];
    for (int j = 0; j < known.test_count; ++j) {
      const TestFunction& by = known.tests[j];
      if (use_of(by.form) != use || !takes(by, extra, last) || !may_be(by, function, name) ||
          !is_type(known, type) ||
          (by.extension != nullptr && !is_compiled_function_of(function, by.extension)))
        continue;
      *test = {&known, &by, false, by.open};
      return true;
    }
  }
  return false;
}

int test_number(const SimilarityTest& test) {
  int number = static_cast<int>(test.by - test.type->tests);
  for (const ValueType* const* known = value_types(); *known != test.type; ++known)
    number += (*known)->test_count;
  return number;
}

SimilarityTest numbered_test(int number) {
  const ValueType* const* known = value_types();
  for (; number >= (*known)->test_count; ++known) number -= (*known)->test_count;
  return {*known, &(*known)->tests[number], false};
}

SimilarityTest distance_test(const SimilarityTest& test) {
  for (int i = 0; i < test.type->test_count; ++i) {
    const TestFunction& by = test.type->tests[i];
    if (by.form == TestForm::kDistance && by.compared == test.by->compared &&
        by.metric == test.by->metric && by.widen == test.by->widen)
      return {test.type, &by, false};
  }
  return {test.type, test.by, false};
}

ValueDemands demands_of(const SimilarityTest& test) {
  return {is_exact(test), test.of_nan || test.of_null || test.by->of_empty,
          test.of_nan && test.by->metric == Metric::kCosine};
}

EpsBand eps_band(const SimilarityTest& test, double eps, std::uint32_t dims) {
  eps += 0.0;  // of -0
  EpsBand band = {true, false, false, 0, 0};
  if (tests_boxes(test)) return band;
  // To PostgreSQL NaN is larger than any number. Where squares overflow every arithmetic goes its
  // own way.
  if (!(eps <= (is_exact(test) ? std::numeric_limits<double>::max() : 1e150))) {
    band.engine_serves = false;
    band.all = is_exact(test) && test.by->form == TestForm::kDistance &&
               test.by->metric != Metric::kCosine &&  // zero vectors have no angle
               (std::isnan(eps) || (std::isinf(eps) && !test.strict));
    return band;
  }
  if (eps < 0 || (test.strict && eps == 0)) {
    band.engine_serves = test.by->form == TestForm::kDistance;  // such a function raises an error
    band.none = true;
    return band;
  }
  if (test.by->widen == nullptr)
    band.accept = band.select = test.strict ? std::nextafter(eps, 0.0) : eps;
  else
    test.by->widen(eps, dims, &band);
  if (test.open) band.accept = -1;
  return band;
}

namespace {

/// A search for the least radius whose band accepts a distance. `low` does not accept it, `high`
/// does or is the largest radius.
struct RadiusSearch {
  double distance;
  double low, high;
  double select_low;         ///< EpsBand::select of `low`
  double last, last_accept;  ///< the radius tried before, and its EpsBand::accept

  /// Returns the radius to try after `radius`. A formula's distances are nearly a power of its
  /// radii, so a secant through their logarithms soon finds the radius. After some steps every
  /// second one halves the interval, which ends the search whatever the formula is.
  double next(int step, double radius, const EpsBand& band, double width) {
    constexpr int kSecants = 8;
    // Aim half a band beyond the distance, on the side that was not tried last.
    const double aim = distance + (radius == low ? width : -width) / 2;
    double exponent = 1;
    if (step > 0) exponent = std::log(band.accept / last_accept) / std::log(radius / last);
    const double ratio = aim / band.accept;
    const double guess = radius * (exponent == 1 ? ratio : std::pow(ratio, 1 / exponent));
    last = radius;
    last_accept = band.accept;
    const bool is_secant = guess > low && guess < high && (step < kSecants || step % 2 == 0);
    return is_secant ? guess : std::sqrt(low) * std::sqrt(high);
  }
};

}  // namespace

// Any radius whose band accepts `distance` will do: a pair at `distance` or nearer is within the
// radius, and a pair beyond EpsBand::select is not. The engine's unit need not be the function's: a
// radius may be a cosine, a square, degrees or miles. So the search assumes no more than that
// larger radii accept no less. It ends when the answer leaves at most kTimes as much beyond
// `distance` as the least radius would, or kTolerance of it.
double surely_beyond(const SimilarityTest& test, double distance, std::uint32_t dims) {
  constexpr double kRounding = 1e-12, kMargin = 1e-9;
  SimilarityTest closed = test;
  closed.open = false;
  constexpr double kTimes = 4, kTolerance = 1e-9;
  constexpr double kMinRadius = 1e-150, kMaxRadius = 1e150;  // squares are normal numbers
  const double tolerance = kTolerance * distance;
  RadiusSearch search = {distance, kMinRadius, kMaxRadius, 0, 0, 0};
  double beyond = INFINITY;
  double radius = std::fmax(distance, kMinRadius);
  for (int step = 0; step == 0 || (radius > search.low && radius < search.high); ++step) {
    const EpsBand band = eps_band(closed, radius, dims);
    if (!band.engine_serves || (!band.none && band.accept >= distance)) {
      search.high = radius;
      beyond = band.engine_serves ? band.select : INFINITY;
    } else {
      search.low = std::fmax(search.low, radius);
      search.select_low = std::fmax(search.select_low, band.select);
    }
    if (beyond - distance <= kTimes * std::fmax(search.select_low - distance, tolerance)) break;
    const double width = std::fmin(band.select - band.accept, distance) + tolerance;
    radius = search.next(step, radius, band, width);
  }
  if (!test.open) return beyond;
  const EpsBand wider = eps_band(closed, search.high * (1 + kRounding) + kMargin, dims);
  return wider.engine_serves ? wider.select : INFINITY;
}

}  // namespace gpujoin

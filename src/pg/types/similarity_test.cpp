#include "pg/types/similarity_test.h"

namespace gpujoin {

using enum PointKind;
using enum TestForm;

EpsBand eps_band(const SimilarityTest& test, double eps, std::uint32_t dims) {
  EpsBand band = {true, false, 0, 0};
  if (tests_boxes(test)) return band;
  // To PostgreSQL NaN is larger than any number. Where squares overflow every arithmetic goes its
  // own way.
  if (!(eps <= (is_exact(test) ? std::numeric_limits<double>::max() : 1e150))) {
    band.engine_serves = false;
    return band;
  }
  if (eps < 0 || (test.strict && eps == 0)) {
    band.engine_serves = test.form == kDistance;  // such a function raises an error
    band.none = true;
    return band;
  }
  if (is_exact(test)) {
    band.accept = band.select = test.strict ? std::nextafter(eps, 0.0) : eps;
    return band;
  }
  double relative = 0, absolute = 0;
  switch (test.kind) {
    case kVector:
    case kHalfvec:
      // Differences, squares and their sum in single precision.
      relative = (dims + 8) * 1.2e-7;
      absolute = std::sqrt(static_cast<double>(dims)) * 1e-18;
      if (eps > 1e18) band.engine_serves = false;
      break;
    case kVectorDirection:
    case kHalfvecDirection: {
      // Of unit vectors |a - b|^2 = 2 (1 - cos); the cosine is of sums in single precision.
      const double error = (dims + 16) * 5e-7;
      band.accept = std::sqrt(std::fmax(0, 2 * (eps - error)));
      band.select = std::sqrt(2 * (eps + error));
      if (eps < error) band.accept = -1;
      return band;
    }
    default:
      // A few roundings in double precision, whose squares may underflow.
      relative = 4 * (dims + 4) * 2.3e-16;
      absolute = std::sqrt(static_cast<double>(dims)) * 1e-153;
  }
  band.accept = eps * (1 - relative) - absolute;
  band.select = eps * (1 + relative) + absolute;
  return band;
}

}  // namespace gpujoin

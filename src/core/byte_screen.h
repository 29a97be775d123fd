// A screen of points in bytes, for one point against many. Each point A is stored as integers q of
// -127 .. 127 with a step: A' = step * q, and an error e with |A - A'| <= e. So a pair within a
// distance R has |A' - B'| <= s = R + eA + eB. Let a and b be the steps, D the dot product of the
// integers, NA and NB their squared norms. These are equivalent:
//
//   |A' - B'|^2 = a^2 NA + b^2 NB - 2 a b D <= s^2
//   D >= (a^2 NA - s^2) / (2 a b) + NB b / (2 a)
//
// D, NB and the right side are computed in single precision, with at most dims + 8 roundings. Each
// errs by at most 2^-24 m, where m = (a^2 NA + s^2) / (2 a b) + NB b / (2 a). No partial sum of D
// is larger than m: it is at most (NA a / b + NB b / a) / 2. The threshold is lowered by the sum of
// these errors.
#pragma once

#include <cmath>
#include <cstdint>

namespace gpujoin {

inline constexpr double kMaxByte = 127;

/// Minimum step. Coordinates and distances are up to 2^60 in the units of nearest_reach(), so the
/// quotient of two steps times a norm is a finite float.
inline constexpr double kMinByteStep = 0x1p-30;

/// A pair is possible only if D >= base + times * NB.
struct ByteThreshold {
  float base, times;
};

/// Returns the threshold for a left point of this step and squared norm, and right points of one
/// step. `reach` is s. Steps are above 0.
inline ByteThreshold byte_threshold(double step, double norm, double right_step, double reach,
                                    std::uint32_t dims) {
  const double rounding = (dims + 8) * 0x1p-24;
  const double left = step * step * norm, twice = 2 * step * right_step;
  const double base = (left - reach * reach) / twice;
  const double times = right_step / (2 * step);
  constexpr double kAllPass = -1e38;  // less than any D plus any times * NB
  const double lowered = base - rounding * (left + reach * reach) / twice;
  return {static_cast<float>(std::fmax(lowered, kAllPass)),
          static_cast<float>(times * (1 - rounding))};
}

}  // namespace gpujoin

// A value of the extension cube seen as two corners, without copying or aligning it. Detoasting is
// the caller's. Cube promises its layout to files on disk, so it does not change.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline constexpr std::uint32_t kMostCubeDimensions = 100;  // what cube allows

/// A word of flags, whose highest bit says that it is a point and whose others count the
/// dimensions; then the coordinates, of a box those of two opposite corners, whichever they are. To
/// cube a NaN lies within any interval, and its Chebyshev distance passes over a difference of
/// infinities.
struct CubeView {
  std::uint32_t dims;
  const char* corner;
  const char* opposite;  ///< the same for a point
  bool has_nan, is_finite;

  double at(const char* from, std::uint32_t d) const {
    return load<double>(from + d * sizeof(double));
  }
};

/// `data` is what follows the varlena header.
inline CubeView view_cube(const char* data) {
  constexpr std::uint32_t kIsPoint = std::uint32_t{1} << 31;
  const auto header = load<std::uint32_t>(data);
  CubeView cube = {header & ~kIsPoint, data + sizeof header, data + sizeof header, false, true};
  if ((header & kIsPoint) == 0) cube.opposite += cube.dims * sizeof(double);
  for (std::uint32_t d = 0; d < cube.dims; ++d) {
    const double one = cube.at(cube.corner, d), other = cube.at(cube.opposite, d);
    cube.has_nan = cube.has_nan || std::isnan(one) || std::isnan(other);
    cube.is_finite = cube.is_finite && std::isfinite(one) && std::isfinite(other);
  }
  return cube;
}

}  // namespace gpujoin

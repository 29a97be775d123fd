// Distances to reference points [COSS, section 4]: how one is computed, and by how much the
// distances of two points within eps may differ. Where reference points lie is
// engine/strategy/reference_points.h's.
#pragma once

#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"
#include "core/tile_screen.h"

namespace gpujoin {

/// Reference distances are distances of coordinates times `scale`, a power of two that keeps
/// squares far from overflow and underflow, and are cut to `most`: what lies further away, or so
/// far that its distance overflows, counts as that far.
struct ReferenceFrame {
  double scale;
  double most;  ///< below 2^100
};

/// What a raw distance of scaled coordinates counts as.
template <Metric M>
GPUJOIN_HD inline double reference_distance(double raw, const ReferenceFrame& frame) {
  const double distance = distance_from_raw(M, raw);
  return distance < frame.most ? distance : frame.most;
}

/// The distance of a finite point to a reference point, whose coordinates are scaled already.
template <Metric M, class T>
GPUJOIN_HD inline double reference_distance(const T* point, const double* reference,
                                            std::uint32_t dims, const ReferenceFrame& frame) {
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double x = multiply_rounded(static_cast<double>(point[d]), frame.scale);
    raw = add_coordinate<M>(raw, x, reference[d]);
  }
  return reference_distance<M>(raw, frame);
}

/// What Threshold::reach is for coordinates: if two points are within eps by the definition, then
/// for their distances x and y to one reference point fl(|x - y|) <= reference_reach(). `single`:
/// distances are stored in single precision.
///
/// Let D be the true distance of a scaled point to the reference point. By the triangle inequality,
/// which every metric has, the two D differ by at most the true distance of the scaled points. That
/// is at most true_reach() * scale, but for coordinates that scaling made subnormal: 2^-1075 each.
/// Cutting to `most` brings no two numbers further apart. A computed distance errs by a factor
/// within 1 +- distance_margin(), in whatever order it is summed, so after the cut by at most that
/// times `most`; where it overflows, D is beyond 2^500 and is cut as well. Squares below 2^-1074
/// change it by at most sqrt(dims) * 2^-537. Rounding to single precision changes at most a part of
/// 2^-24, or 2^-150 where that is subnormal. The last factor is for the additions here and for
/// fl(|x - y|). Where anything here overflows, the reach is infinite and prunes nothing.
GPUJOIN_HD inline double reference_reach(double eps, std::uint32_t dims,
                                         const ReferenceFrame& frame, bool single) {
  const double relative = 2 * distance_margin(dims) + (single ? 0x1p-23 : 0);
  const double underflow = single ? 0x1p-140 : 0x1p-500;
  return (true_reach(eps, dims) * frame.scale + relative * frame.most + underflow) * (1 + 0x1p-50);
}

}  // namespace gpujoin

// Where reference points lie [COSS, section 4.4], and the distances of rows to them. The proofs
// about these distances stand in core/reference_points.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/reference_points.h"
#include "engine/request/request.h"
#include "engine/request/strategy.h"
#include "engine/strategy/outliers.h"

namespace gpujoin {

/// An index takes the distances to them for columns dims .. dims + count - 1 of the data.
struct ReferencePoints {
  std::uint32_t count = 0;  ///< 0: none are used
  std::uint32_t dims = 0;
  Metric metric = Metric::kL2;
  ReferenceFrame frame{1, 0};
  std::vector<double> coordinates;  ///< [count][dims], times frame.scale

  const double* point(std::uint32_t number) const { return coordinates.data() + number * dims; }
};

/// Places `count` points by the extents and means of a sample's ordinary rows. Deterministic.
/// kOuter (or kAuto): the first point has the highest value of every column, each other point the
/// lowest values but for a share of the columns. kInner: the first point is the mean, the others
/// lie around it, in pairs ever further away. Throws std::bad_alloc.
ReferencePoints place_reference_points(Metric metric, const OrdinarySample& sample,
                                       std::uint32_t count, ReferencePlacement placement);

/// The reference points of a strategy that choose_strategy() chose for the request.
ReferencePoints place_reference_points(const JoinRequest& request, const Strategy& strategy);

/// How many reference points a plan by them has.
std::uint32_t reference_point_count(const Knobs& knobs);

/// How many choose_strategy() may come to use for the request.
std::uint32_t most_reference_points(const JoinRequest& request);

/// Writes the distances of rows first .. end - 1 to all reference points, those to each one
/// `stride` after those to the one before. The distances of rows that are not finite mean nothing.
void reference_distances(const ReferencePoints& references, const Dataset& data,
                         std::uint64_t first, std::uint64_t end, double* distances,
                         std::uint64_t stride);

}  // namespace gpujoin

// A join by cosine distance as indexes serve it: the L2 join of its points' directions, which finds
// every pair and some more. See core/cosine.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cosine.h"
#include "engine/request.h"

namespace gpujoin {

/// Writes the direction of a row, dims floats. Returns whether the row is faint.
bool write_direction(const Dataset& data, std::uint64_t row, float* direction);

/// The directions of some rows, stored in `directions`; `rows` become their places there.
Dataset sampled_directions(const Dataset& data, std::uint32_t dims,
                           std::vector<std::uint64_t>& rows, std::vector<float>& directions);

/// The join of the directions of both sides, `right` ignored by a self-join. Its radius holds as
/// long as no row is faint; where one is, the radius must be kAnyDirection.
JoinRequest join_of_directions(const JoinRequest& request, const Dataset& left,
                               const Dataset& right);

}  // namespace gpujoin

// A join by cosine distance as indexes serve it: the L2 join of its points' directions, which finds
// every pair and some more. See core/cosine.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cosine.h"
#include "engine/request/request.h"
#include "engine/strategy/sample.h"

namespace gpujoin {

/// Writes the direction of a row, dims floats. Returns whether the row is extreme.
bool write_direction(const Dataset& data, std::uint64_t row, float* direction);

/// Sampled rows of both sides as an index has them: points, or by cosine distance the directions of
/// points.
class IndexedSample {
 public:
  /// Samples at most `most_rows` rows of a side. The data outlives this. Throws std::bad_alloc.
  explicit IndexedSample(const JoinRequest& asked, std::uint64_t most_rows = kSampleRows);
  IndexedSample(const IndexedSample&) = delete;

  /// The join that the index serves, of data that the rows below are rows of. Directions are within
  /// its radius as long as no row is extreme; where one is, the radius must be kAnyDirection.
  JoinRequest request;
  std::vector<std::uint64_t> left, right;  ///< rows, as in Sample

 private:
  std::vector<float> left_directions_, right_directions_;
};

}  // namespace gpujoin

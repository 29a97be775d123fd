// The choice of how boxes find each other, from a sample of them, and why. Shared by the engines;
// choosing never changes the result.
#pragma once

#include <cstdint>

#include "core/layered_grid.h"
#include "engine/request/request.h"

namespace gpujoin {

struct BoxStrategy {
  BoxMethod method;  ///< never kAuto
  /// Which side kLayeredGrid and kNone index: the smaller one. A self-join has one side, the left
  /// one.
  bool left_indexed;
  std::uint32_t dimension;               ///< that kSortSweep sorts by
  BoxSpread spreads[kMaxBoxDimensions];  ///< of the indexed side
  double candidates;                     ///< pairs of boxes that will be compared
  double ms;                             ///< by the BoxCosts, on one of their processors
  double pairs;                          ///< ordered pairs expected
  char reason[160];

  const Dataset& indexed(const JoinRequest& request) const {
    return left_indexed ? request.left() : request.right();
  }
};

/// What the parts of a join of boxes cost an engine, in nanoseconds.
struct BoxCosts {
  double candidate;  ///< for each number of a box that is compared
  double distance;   ///< the same where eps is not 0
  double sort;       ///< of a row
  double search;     ///< of a row, finding where it stands on the other side of a sweep
  double probe;      ///< of a row, looking up or marking one of its cells in a layered grid
  double block;      ///< not a cost: how many neighbouring boxes such a part is narrowed down to
};

/// Words of the table of a layered grid at most, 64 MiB; less where memory is short.
inline constexpr std::uint64_t kMostTableWords = std::uint64_t{1} << 23;

/// Measured on one core of a current server processor.
inline constexpr BoxCosts kCoreBoxCosts{
    .candidate = 0.03, .distance = 0.08, .sort = 150, .search = 40, .probe = 25, .block = 16};

/// Chooses from a sample of the boxes; a method that the request asks for is taken. Deterministic
/// for the same request. Throws std::bad_alloc.
BoxStrategy choose_box_strategy(const JoinRequest& request, const BoxCosts& costs = kCoreBoxCosts);

const char* to_string(BoxMethod method);

}  // namespace gpujoin

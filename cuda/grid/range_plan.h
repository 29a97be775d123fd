// How the points of a range join are prepared on a device, the same for both sides and for all
// parts of them.
#pragma once

#include "engine/strategy/index_plan.h"
#include "engine/strategy/screen_frame.h"

namespace gpujoin::cuda {

struct RangePlan {
  IndexPlan index;
  ScreenFrame frame;  ///< IndexMethod::kTiles only

  // What the strategy expects, for each left point.
  double candidates;  ///< at least 1
  double pairs;
};

}  // namespace gpujoin::cuda

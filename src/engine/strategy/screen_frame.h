// How the points of a join are centred and scaled for the screens of core/tile_screen.h, and in
// which order their columns are summed: from a sample, without its outliers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request/request.h"

namespace gpujoin {

struct ScreenFrame {
  std::vector<std::uint32_t> order;  ///< [dims], the data column at each place
  std::vector<double> center;        ///< [dims] by data column, finite
  double scale = 1;                  ///< a power of two, see centred_scale()
};

/// The same for both sides; a join by cosine distance has the frame of its points' directions. With
/// `reorder`, columns of high variance come first. Throws std::bad_alloc.
ScreenFrame choose_screen_frame(const JoinRequest& request, bool reorder);

}  // namespace gpujoin

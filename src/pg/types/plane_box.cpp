#include "pg/types/plane_box.h"

namespace gpujoin {

void note_box(PlaneBoxes* side, std::uint64_t row, const PlaneBox& box) {
  while (side->count <= row) {
    reserve_next(side->context, &side->boxes, side->count, &side->room);
    side->boxes[side->count++] = kNoPlaneBox;
  }
  side->boxes[row] = box;
}

}  // namespace gpujoin

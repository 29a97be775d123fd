#include "pg/types/plane_box.h"

namespace gpujoin {

void note_box(PlaneBoxes* side, std::uint64_t row, const PlaneBox& box) {
  while (side->count <= row) {
    reserve_next(side->context, &side->boxes, side->count, &side->room);
    side->boxes[side->count++] = kNoPlaneBox;
  }
  side->boxes[row] = box;
}

double reach_of(const PlaneBox& box) {
  if (!is_box(box)) return 0;
  double sides[2];
  for (int d = 0; d < 2; ++d) {
    const double middle = middle_of(box, d);
    const double down = middle - static_cast<double>(box.low[d]);
    const double up = static_cast<double>(box.high[d]) - middle;
    sides[d] = down > up ? down : up;
  }
  return std::sqrt(sides[0] * sides[0] + sides[1] * sides[1]) * (1 + 1e-15);
}

}  // namespace gpujoin

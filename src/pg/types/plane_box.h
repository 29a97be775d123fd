// The boxes of the values of a side that are more than points. Where the nearest of them are looked
// for a value becomes the middle of its box (ValueForm::kMiddle).
#pragma once

#include "pg/geometry/plane_box.h"
#include "pg/store/huge_array.h"

namespace gpujoin {

/// The boxes of the rows of one side, by the number of the row. The creator sets the context and
/// zeroes the rest.
struct PlaneBoxes {
  MemoryContext context;
  PlaneBox* boxes;            ///< [room]
  std::uint64_t count, room;  ///< rows from `count` on are points
};

/// Sets the box of a row; rows come in any order.
void note_box(PlaneBoxes* side, std::uint64_t row, const PlaneBox& box);

inline PlaneBox box_of(const PlaneBoxes& side, std::uint64_t row) {
  return row < side.count ? side.boxes[row] : kNoPlaneBox;
}

}  // namespace gpujoin

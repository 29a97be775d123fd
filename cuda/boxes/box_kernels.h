// The kernels of joins of boxes, launched: count the partners of boxes, and write them out.
#pragma once

#include <cstdint>

#include "core/box_sweep.h"
#include "core/layered_grid.h"
#include "cuda/boxes/box_index.h"
#include "cuda/device/slice_source.h"

namespace gpujoin::cuda {

/// What the kernels of a slice have in common. Passed to kernels by value. Boxes of the probing
/// side search their partners on the indexed one.
struct BoxJoinView {
  BoxMethod method;
  ScalarType scalar;
  std::uint32_t dims;
  BoxTest test;
  bool self_join;    ///< just one of the two boxes of a pair finds the other
  bool with_itself;  ///< each box finds itself, too
  bool mirrored;     ///< a pair of two boxes counts twice
  BoxesView probing;
  BoxesView indexed;
  std::uint32_t first;   ///< place 0 of the slice is this position on the probing side
  std::uint32_t places;  ///< of the slice; places beyond the last box find nothing
  LayeredGrid grid;      ///< this and the next two: kLayeredGrid
  const unsigned long long* table;
  const void* blocks;           ///< LayeredTable::blocks
  std::uint32_t dimension;      ///< this and the next: kSortSweep
  const PositionRange* ranges;  ///< [places] each box's candidates
  const unsigned* stop;         ///< nonzero on the device: leave
};

struct BoxTotals {
  unsigned long long pairs;
  unsigned long long candidates;
};

/// Writes ranges[place] of a sweep, see boxes_above().
void launch_ranges(const BoxJoinView& join, bool first_side, PositionRange* ranges,
                   cudaStream_t stream);

/// Adds to *totals, and writes how many partners each box finds unless `counts` is null.
void launch_count_boxes(const BoxJoinView& join, std::uint32_t* counts, BoxTotals* totals,
                        cudaStream_t stream);

/// Writes the rows of partners. `stretch` and `range` number the boxes that have partners: number i
/// is at place chosen[i].
void launch_fill_boxes(const BoxJoinView& join, const std::uint32_t* chosen, const Stretch& stretch,
                       const FillRange& range, cudaStream_t stream);

}  // namespace gpujoin::cuda

// The search for a box's candidates. A group of threads searches parts of the layered grid or a
// range of a sweep; in the nested loop each thread compares its box with all. Geometry and tests
// are src/core's.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <cstddef>

#include "core/box.h"
#include "core/layered_grid.h"
#include "cuda/boxes/box_kernels.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

namespace cg = cooperative_groups;

template <BoxMethod M>
inline constexpr std::uint32_t kBoxGroup = threads_of_box(M);

template <std::uint32_t G>
using BoxGroup = cg::thread_block_tile<G>;

__device__ inline bool must_stop(const BoxJoinView& join) {
  return *static_cast<const volatile unsigned*>(join.stop) != 0;
}

/// D dimensions, or for D = 0 any number up to kMaxBoxDimensions. Aligned so that up to 16 bytes
/// are read at once.
template <class T, std::uint32_t D>
struct alignas(std::min<std::size_t>(16,
                                     (D > 0 ? (D & -D) : kMaxBoxDimensions) * 2 * sizeof(T))) Box {
  T bounds[2 * (D > 0 ? D : kMaxBoxDimensions)];
};

template <std::uint32_t D>
__device__ constexpr std::uint32_t dims_of(std::uint32_t dims) {
  return D > 0 ? D : dims;
}

/// The box at a position, of [2 * dims][rows] bounds.
template <class T, std::uint32_t D>
__device__ Box<T, D> load_box(const void* columns, std::uint32_t rows, std::uint32_t position,
                              std::uint32_t dims) {
  Box<T, D> box;
#pragma unroll
  for (std::uint32_t d = 0; d < 2 * dims_of<D>(dims); ++d)
    box.bounds[d] = static_cast<const T*>(columns)[std::uint64_t{d} * rows + position];
  return box;
}

template <class T, std::uint32_t D>
__device__ bool is_pair(const BoxJoinView& join, const Box<T, D>& a, const Box<T, D>& b) {
  return passes(join.test, a.bounds, b.bounds, dims_of<D>(join.dims));
}

/// Calls visit(position, is_candidate) on all threads of the group together, for begin .. end - 1;
/// threads beyond the end get is_candidate = false.
template <std::uint32_t G, class Visit>
__device__ void visit_range(const BoxGroup<G>& group, std::uint64_t begin, std::uint64_t end,
                            const Visit& visit) {
  for (std::uint64_t start = begin; start < end; start += G) {
    const std::uint64_t position = start + group.thread_rank();
    visit(static_cast<std::uint32_t>(position), position < end);
  }
}

/// One word of all records that a box probes: the records of its cells, and the one for every box.
/// The same on all threads.
template <std::uint32_t G>
__device__ unsigned long long gather_word(const BoxJoinView& join, const BoxGroup<G>& group,
                                          const CellRectangle& rectangle, std::uint32_t word) {
  const LayeredGrid& grid = join.grid;
  unsigned long long bits = 0;
  for (std::uint32_t i = group.thread_rank(); i <= rectangle.cells; i += G) {
    const std::uint64_t record =
        i < rectangle.cells ? cell_of_rectangle(grid, rectangle, i) : grid.cells;
    bits |= join.table[record * grid.record_words() + word];
  }
  return cg::reduce(group, bits, cg::bit_or<unsigned long long>());
}

/// Each thread has a block of boxes. Visits the boxes of each wanted block whose surrounding box
/// passes with the probing box, for passes() is monotone.
template <class T, std::uint32_t D, std::uint32_t G, class Visit>
__device__ void visit_blocks(const BoxJoinView& join, const BoxGroup<G>& group,
                             const Box<T, D>& box, std::uint32_t block, bool wanted,
                             const Visit& visit) {
  const std::uint64_t boxes = *join.indexed.boxes;
  const std::uint32_t blocks = block_count(join.indexed.rows);
  const bool met = wanted && block < blocks &&
                   is_pair(join, box, load_box<T, D>(join.blocks, blocks, block, join.dims));
  for (unsigned left = group.ballot(met); left != 0; left &= left - 1) {
    const std::uint32_t next = group.shfl(block, __ffs(static_cast<int>(left)) - 1);
    const std::uint64_t begin = std::uint64_t{next} * kBlockBoxes;
    visit_range(group, begin, min(begin + kBlockBoxes, boxes), visit);
  }
}

/// Visits the blocks of the parts whose bits are set, as many parts at a time as there are threads
/// for their blocks.
template <class T, std::uint32_t D, std::uint32_t G, class Visit>
__device__ void visit_parts(const BoxJoinView& join, const BoxGroup<G>& group, const Box<T, D>& box,
                            std::uint32_t first_part, unsigned long long bits, const Visit& visit) {
  const std::uint32_t part_blocks = join.grid.part_boxes / kBlockBoxes;
  const std::uint32_t together = part_blocks < G ? G / part_blocks : 1;
  const std::uint32_t turn = group.thread_rank() / part_blocks;  // which of these parts is its own
  const std::uint32_t own_block = group.thread_rank() - turn * part_blocks;
  while (bits != 0) {
    unsigned long long own = bits;
    for (std::uint32_t i = 0; i < together; ++i) {
      if (i < turn) own &= own - 1;
      bits &= bits - 1;
    }
    const bool has_part = turn < together && own != 0;
    const std::uint32_t part =
        first_part + (has_part ? __ffsll(static_cast<long long>(own)) - 1 : 0);
    for (std::uint32_t block = own_block; block < part_blocks + own_block; block += G)
      visit_blocks(join, group, box, part * part_blocks + block, has_part && block < part_blocks,
                   visit);
  }
}

/// [MLG-join] [thesis, section 4.2]: a box probes its cells for parts, and is compared with the
/// boxes of these parts.
///
/// The thesis turns the bits that all boxes find into lists, a list of boxes for each part, before
/// any boxes are compared. These lists fill the device's memory. Here each box goes through its
/// parts at once: parts are short, neighbouring boxes follow each other and read the same parts,
/// and a box finds its partners in an order of its own, so that they can be counted and numbered.
template <class T, std::uint32_t D, std::uint32_t G, class Visit>
__device__ void walk_parts(const BoxJoinView& join, const BoxGroup<G>& group, const Box<T, D>& box,
                           const Visit& visit) {
  const LayeredGrid& grid = join.grid;
  const Box<T, D> indexed_by_column = box;  // so that `box` itself may stay in registers
  const CellRectangle rectangle =
      cells_of_box(grid, indexed_by_column.bounds, dims_of<D>(join.dims), join.test.reach);
  const bool everywhere = rectangle.cells > kMostCellsOfBox;
  const unsigned long long words = everywhere ? ~0ull : gather_word(join, group, rectangle, 0);
  for (std::uint32_t word = 0; word < grid.words; ++word) {
    if ((words >> word & 1) == 0) continue;
    visit_parts(join, group, box, word * kWordBits,
                everywhere ? ~0ull : gather_word(join, group, rectangle, 1 + word), visit);
  }
}

/// Visits the candidates of box number `place` of a launch.
template <BoxMethod M, class T, std::uint32_t D, std::uint32_t G, class Visit>
__device__ void walk_box(const BoxJoinView& join, const BoxGroup<G>& group, std::uint32_t place,
                         const Box<T, D>& box, const Visit& visit) {
  if constexpr (M == BoxMethod::kLayeredGrid) {
    walk_parts(join, group, box, visit);
  } else {
    const PositionRange range = join.ranges[place];
    visit_range(group, range.begin, range.end, visit);
  }
}

/// Calls visit(box, position) on every thread of the thread block for all boxes of the indexed
/// side, which pass through shared memory. All threads take part; returns early where the join is
/// to stop.
template <class T, std::uint32_t D, class Visit>
__device__ void visit_all(const BoxJoinView& join, const Visit& visit) {
  __shared__ Box<T, D> tile[kTileBoxes];
  const std::uint32_t boxes = *join.indexed.boxes;
  for (std::uint32_t begin = 0; begin < boxes;) {
    // The barrier also ends all reading of the tile.
    if (__syncthreads_or(must_stop(join))) return;
    const std::uint32_t count = min(kTileBoxes, boxes - begin);
    for (std::uint32_t i = threadIdx.x; i < count; i += kNestedThreads)
      tile[i] = load_box<T, D>(join.indexed.columns, join.indexed.rows, begin + i, join.dims);
    __syncthreads();
    for (std::uint32_t i = 0; i < count; ++i) visit(tile[i], begin + i);
    begin += count;
  }
}

/// The low bound that a sweep sorts by.
template <class T>
__device__ T sweep_low(const BoxJoinView& join, const BoxesView& boxes, std::uint32_t position) {
  return static_cast<const T*>(
      boxes.columns)[std::uint64_t{join.dimension} * boxes.rows + position];
}

/// Whether a pair of positions that passes counts: in a self-join both orders pass.
template <BoxMethod M, class T>
__device__ bool is_wanted(const BoxJoinView& join, std::uint32_t position, std::uint32_t other) {
  if (!join.self_join) return true;
  const std::uint32_t row = join.probing.order[position], other_row = join.indexed.order[other];
  if constexpr (M == BoxMethod::kSortSweep)
    return takes_pair(sweep_low<T>(join, join.probing, position),
                      sweep_low<T>(join, join.indexed, other), row, other_row, join.with_itself);
  return row == other_row ? join.with_itself : row < other_row;
}

}  // namespace gpujoin::cuda

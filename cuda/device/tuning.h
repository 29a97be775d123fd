// Launch constants and thresholds. Changing them changes speed, never results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/joins/topk_join.h"
#include "engine/strategy/box_strategy.h"
#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/fill_threads.h"

namespace gpujoin::cuda {

inline constexpr unsigned kBlockThreads = 256;
/// Thread blocks at once on a multiprocessor that registers leave room for: of a walk that counts,
/// and of one that admits the best pairs with one thread for each point.
inline constexpr unsigned kCountingBlocks = 4;
inline constexpr unsigned kAdmittingBlocks = 4;
inline constexpr unsigned kBlocksPerMultiprocessor = 8;  ///< of kernels that loop over their work

/// Device memory that a join has freed and that is kept for the next one.
inline constexpr std::size_t kKeptDeviceBytes = std::size_t{256} << 20;

/// Rows on their way to the device: bytes that a thread is worth starting for; bytes that are
/// on the bus at a time; what a thread copies at a time; threads, of which twelve are as fast as
/// the bus; and bytes between two checks for an interrupt, some milliseconds of one thread.
inline constexpr std::size_t kFewestUploadBytes = std::size_t{2} << 20;
inline constexpr std::size_t kUploadBytes = std::size_t{16} << 20;
inline constexpr std::size_t kUploadPieceBytes = std::size_t{256} << 10;
inline constexpr std::uint32_t kMostUploadThreads = 12;
inline constexpr std::size_t kUploadTurnBytes = std::size_t{64} << 20;

/// Bounds of a slice: pairs of tiles that it compares, candidates that it keeps, 8 to 32 bytes
/// each, and rows of tiles.
inline constexpr std::uint64_t kMostTilePairs = std::uint64_t{1} << 23;
inline constexpr std::uint64_t kMostCandidates = std::uint64_t{1} << 23;
inline constexpr std::uint32_t kMostSliceRows = 1 << 13;

/// Dimensions up to which the coordinates of a query point are kept in registers.
inline constexpr std::uint32_t kMostUnrolledDimensions = 8;

/// Bits of a sort value in a sort code: two points within 2^-24 of the extent may share a step.
inline constexpr std::uint32_t kSortValueBits = 24;

/// Bounds of a batch, whatever its model finds. Powers of two. The model does not know that a small
/// batch leaves much of the device idle where few points have many neighbours.
inline constexpr std::uint64_t kFewestBatchPairs = 1 << 22;
inline constexpr std::uint64_t kMostBatchPairs = 1 << 24;
/// Rows whose sums come to the host at a time, while the caller takes those before them.
inline constexpr std::uint64_t kSummedBatchRows = 1 << 16;
inline constexpr std::uint32_t kStreams = 3;  ///< batches in flight, unless a knob sets them
inline constexpr std::uint32_t kMostStreams = 16;

/// Candidates that are counted in one launch, some 40 ms: what LIMIT may waste and an interrupt
/// waits.
inline constexpr double kCandidatesPerSlice = 2e10;

/// Several devices share a join of which there is so much left to do, beyond what it takes to have
/// its sides on one more: prepared from the host's rows, or copied from the first device, directly
/// or through the host. Of nearest neighbours a left point takes so long for each neighbour, or for
/// each number of a right point in tiles.
inline constexpr double kSharingMs = 10;
inline constexpr double kPreparedBytesPerMs = 2e7;
inline constexpr double kReadBytesPerMs = 1.5e8;
inline constexpr double kCopiedBytesPerMs = 3e7;
inline constexpr double kWalkedCandidatesPerMs = 5e8;
inline constexpr double kNeighborNs = 0.5;
inline constexpr double kTileNumberNs = 1e-5;

/// Room for the pairs that a top-k join admits before it sorts them, where k asks for less; and the
/// points that have heaps at once, where there is room.
inline constexpr std::uint64_t kFewestAdmittedPairs = 1 << 20;
inline constexpr double kPointsWithHeaps = 1 << 18;

/// Boxes of a part of the layered grid, or a multiple where there are very many, and of the blocks
/// that it is made of: 256 make a record of the grid a cache line where there are 100,000 boxes.
inline constexpr std::uint32_t kPartBoxes = 256;
inline constexpr std::uint32_t kBlockBoxes = 32;
static_assert(kPartBoxes % kBlockBoxes == 0);

/// Threads that share a box. Boxes in the grid have few candidates, so few threads each let many
/// boxes wait for memory at once; boxes in a sweep have long ranges of candidates, and a warp each.
constexpr std::uint32_t threads_of_box(BoxMethod method) {
  return method == BoxMethod::kLayeredGrid ? 8 : method == BoxMethod::kSortSweep ? 32 : 1;
}

/// The nested loop: threads of a thread block, and boxes that pass through its shared memory at a
/// time.
inline constexpr unsigned kNestedThreads = 128;
inline constexpr std::uint32_t kTileBoxes = 128;

/// Boxes of a slice of the probing side: at most, and at least where each has many candidates; and
/// candidates that are tested in one launch, some milliseconds.
inline constexpr std::uint64_t kMostSliceBoxes = 1 << 21;
inline constexpr std::uint64_t kFewestSliceBoxes = 1 << 14;
inline constexpr double kBoxCandidatesPerSlice = 8e9;
/// Slices of a large probing side where several devices share it.
inline constexpr std::uint64_t kSharedBoxSlices = 32;

/// Costs on the whole device, fitted to an H200.
inline constexpr BoxCosts kBoxCosts{
    .candidate = 0.0007, .distance = 0.0014, .sort = 0.5, .search = 0.1, .probe = 0.1, .block = 32};

/// Costs on the whole device, fitted to an H200: a window takes each point a binary search, which
/// costs as much as some tens of candidates.
inline constexpr WalkCosts kWalkCosts{.neighbor = 0.08,
                                      .window = 0,
                                      .lookup = 0,
                                      .candidate = 0.0005,
                                      .dimension = 0.00025,
                                      .tile_pair = 0.00038,
                                      .tile_dimension = 0.000002,
                                      .tile_boxes = 0.065,
                                      .tile_match = 0.13,
                                      .writing = 3};

/// Costs of a top-k join that does not check scores first: rows are copied and sorted.
inline constexpr PlainJoinCosts kPlainTopkCosts{
    .walk = kWalkCosts, .workers = 1, .step = 3e6, .row = 1.5, .pair = 0.01};

/// Candidates of a point from which on a whole warp counts them, as without an index.
inline constexpr double kCandidatesForWarp = 1e5;

/// Eight threads cost a fifth where one would do (uniform 6-D), and save nine tenths where one has
/// thousands of pairs to write (exponential 4-D).
inline constexpr FillThresholds kFillThresholds{
    .candidates_for_eight = 64, .pairs_for_eight = 32, .pairs_for_warp = 4096};

}  // namespace gpujoin::cuda

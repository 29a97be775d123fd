// In which coordinates a nearest-neighbour join by tiles screens its points: those of the data, or
// where a few directions hold most of how the points differ, those along the directions and the
// length of the rest. The proof is core/reduced_points.h's.
#pragma once

#include <cstdint>

#include "cpu/scan/row_scan.h"
#include "cpu/scan/tile_scan.h"
#include "engine/request/buffer.h"
#include "engine/request/request.h"
#include "engine/strategy/screen_frame.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// The same for both sides of a join.
struct NearestFrame {
  ScreenFrame screen;
  std::uint32_t dims = 0;        ///< of the data
  std::uint32_t columns = 0;     ///< of tiles
  std::uint32_t directions = 0;  ///< and the rest's length are the columns; 0: the data's are
  Buffer<double> basis;          ///< [dims][directions], the directions as columns
  double share = 0;              ///< reduction_share() of it
  Checkpoints checkpoints{};
  RowScan scan{};

  /// Writes the columns of a row, rounded to single precision, and a bound on how far rounding and
  /// cutting aside they are from the point; NaN for a row that is not finite. For kProductRows rows
  /// at a time: `work` has work_size() numbers, aligned to cache lines.
  void write_columns(const Dataset& data, const std::uint64_t* rows, std::uint32_t count,
                     double* work, float* columns, double* errors) const;
  std::size_t work_size() const {
    const std::size_t row = (dims + 7) & ~std::size_t{7};
    return kProductRows * (row + directions);
  }
};

/// `indexed` is what is to be in tiles: the request's points, or for cosine their directions. The
/// frame rests on a sample, which has some row that is finite. Throws MemoryLimitExceeded,
/// std::bad_alloc, Stopped.
NearestFrame choose_nearest_frame(WorkerPool& pool, MemoryBudget& budget,
                                  const JoinRequest& request, const Sides& indexed);

}  // namespace gpujoin::cpu

// What a join that adds its pairs up has on the device besides its sides: the numbers of rows in
// the order of the indexes, what is asked of them, and the sums of each left point.
#pragma once

#include <cstdint>

#include "cuda/device/memory.h"
#include "cuda/device/upload.h"
#include "cuda/grid/grid_index.h"
#include "engine/request/buffer.h"
#include "engine/request/pair_sums.h"

namespace gpujoin::cuda {

/// As kernels see it, in device memory. The pointers of `asked` are without meaning.
struct SumsView {
  PairSums asked;
  std::uint32_t width;  ///< row_words()
  std::uint64_t left_rows, right_rows;
  const double* left;  ///< [left_columns][left_rows] in index order
  const double* right;
  const std::int64_t* integers;
  FoldWord* words;  ///< [left points, in the order of work][width]
};

class DeviceSums {
 public:
  /// Uploads the columns. Works in the order of the stream; waits until columns have left the host.
  /// Throws CudaError or MemoryLimitExceeded.
  DeviceSums(const PairSums& asked, const DeviceIndex& left, const DeviceIndex& right,
             MemoryBudget& device, Uploader& uploader, cudaStream_t stream);

  /// On the device.
  const SumsView* view() const { return view_.data(); }
  /// The words of all points in the order of work. Waits for the device.
  Buffer<FoldWord> words(MemoryBudget& host) const;

 private:
  std::uint32_t width_;
  cudaStream_t stream_;
  DeviceBuffer<double> left_, right_;
  DeviceBuffer<std::int64_t> integers_;
  DeviceBuffer<FoldWord> words_;
  DeviceBuffer<SumsView> view_;
};

}  // namespace gpujoin::cuda

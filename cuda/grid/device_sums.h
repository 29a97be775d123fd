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
  FoldWord* words;  ///< [left rows, in index order][width]
};

/// The commonest sums, which kernels hold in registers: of distances, and of columns of right rows.
struct FewSums {
  static constexpr std::uint32_t kMost = 4;

  std::uint32_t count;         ///< measures; 0: others are asked for, too
  bool is_integer[kMost];      ///< Fold::kSum, else Fold::kSumOf
  const double* reals[kMost];  ///< [right_rows] in index order; null: the distance
  const std::int64_t* integers[kMost];
};

class DeviceSums {
 public:
  /// Uploads the columns. Works in the order of the stream; waits until columns have left the host.
  /// Throws CudaError or MemoryLimitExceeded.
  DeviceSums(const PairSums& asked, const DeviceIndex& left, const DeviceIndex& right,
             MemoryBudget& device, Uploader& uploader, cudaStream_t stream);

  /// On the device.
  const SumsView* view() const { return view_.data(); }
  const FewSums& few() const { return few_; }
  /// The words of so many rows, in index order, points first; those of no pairs where nobody wrote
  /// others. They stay until the next call. Waits for the device.
  const FoldWord* words(std::uint64_t first, std::uint64_t rows, HostBudget& host);

 private:
  FewSums few_sums(const PairSums& asked, std::uint64_t right_rows) const;

  std::uint32_t width_;
  FewSums few_{};
  cudaStream_t stream_;
  DeviceBuffer<double> left_, right_;
  DeviceBuffer<std::int64_t> integers_;
  DeviceBuffer<FoldWord> words_;  ///< of all rows
  PinnedBlock host_words_;
  std::uint64_t host_rows_ = 0;  ///< that there is room for
  DeviceBuffer<SumsView> view_;
};

}  // namespace gpujoin::cuda

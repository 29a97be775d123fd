// Which cluster each row of a join is in (core/cluster.h), on the device: links of union-find,
// which walks unite, and in the end the numbers of clusters. How to unite stands in labels.cuh.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "cuda/device/memory.h"
#include "engine/request/buffer.h"

namespace gpujoin::cuda {

/// By position, as kernels see them.
struct Labels {
  std::uint32_t rows;    ///< points, and rows that are not finite
  std::uint32_t* links;  ///< [rows] links lead to earlier points, those of border points to any
  ClusterRole* roles;    ///< [rows]
};

inline constexpr std::uint32_t kNoPoint = ~std::uint32_t{0};

/// The rows of a side, on the device by position.
struct LabelledRows {
  std::uint32_t count;
  const std::int64_t* ids;
  const std::uint32_t* order;  ///< position -> row
  bool has_ids;                ///< else rows are named by their numbers
};

/// Works in the order of a stream. Throws CudaError or MemoryLimitExceeded.
class ClusterLabels {
 public:
  /// Makes room; links and roles are the walk's to set.
  ClusterLabels(const LabelledRows& rows, MemoryBudget& budget, cudaStream_t stream);

  const Labels& labels() const { return labels_; }
  /// Numbers the clusters by their first rows, by (id, row). Asynchronous.
  void number();
  /// What pack_cluster() makes of each row, once they are numbered; before, nothing. Waits for the
  /// device.
  Buffer<std::uint64_t> words(HostBudget& budget) const;

 private:
  void order_rows(DeviceBuffer<std::uint32_t>& positions);

  const LabelledRows rows_;
  MemoryBudget& budget_;
  const cudaStream_t stream_;
  DeviceBuffer<std::uint32_t> links_;
  DeviceBuffer<ClusterRole> roles_;
  DeviceBuffer<std::uint64_t> words_;
  Labels labels_{};
};

}  // namespace gpujoin::cuda

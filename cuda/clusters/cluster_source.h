// A source of clusters: a slice is a part of the work that finds them, and there are no pairs to
// deliver.
#pragma once

#include <cstdint>

#include "cuda/clusters/cluster_labels.h"
#include "cuda/device/device_context.h"
#include "cuda/device/slice_source.h"
#include "cuda/grid/grid_index.h"

namespace gpujoin::cuda {

class ClusterSource : public SliceSource {
 public:
  CountedSlice slice() const final { return {}; }
  const std::uint32_t* sequence() const final { return nullptr; }
  void fill(const Stretch&, const FillRange&, cudaStream_t) final {}
  Buffer<std::uint32_t> counts() final { return {}; }
  Buffer<std::uint64_t> clusters() final { return labels_.words(resources_.host); }
  std::uint64_t pairs() const final { return 0; }

 protected:
  /// `ids` in index order. Throws CudaError or MemoryLimitExceeded.
  ClusterSource(const JoinRequest& request, const DeviceIndex& index, const std::int64_t* ids,
                JoinResources& resources)
      : resources_(resources),
        stream_(resources.stream),
        labels_({index.rows, ids, index.order.data(), request.left().ids != nullptr},
                resources.device, stream_) {}

  JoinResources& resources_;
  const cudaStream_t stream_;  ///< the resources'
  ClusterLabels labels_;
};

}  // namespace gpujoin::cuda

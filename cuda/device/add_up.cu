#include <cub/device/device_scan.cuh>

#include "cuda/device/add_up.h"

namespace gpujoin::cuda {

void add_up(MemoryBudget& budget, const std::uint32_t* counts, std::uint64_t* offsets,
            std::uint64_t items, cudaStream_t stream) {
  std::size_t bytes = 0;
  const auto scan = [&](void* scratch) {
    check(cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, offsets, ::cuda::std::plus<>{},
                                         std::uint64_t{0}, items, stream),
          "adding up counts");
  };
  scan(nullptr);
  DeviceBuffer<unsigned char> scratch(budget, bytes, stream);
  scan(scratch.data());
}

}  // namespace gpujoin::cuda

// What the walks of clusters on several devices give each other: what each has found of the points,
// by position, in pinned memory, which all devices read.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/device/device_context.h"

namespace gpujoin::cuda {

/// Stays as long as a walk may read it. Calls come from one thread.
class ClusterExchange {
 public:
  /// What is found is given on in this order.
  enum class Part { kNeighbors, kLinks };
  using Found = std::vector<PinnedBlock>;

  /// Counts memory on the host's budget of the resources, which it keeps.
  explicit ClusterExchange(const std::shared_ptr<JoinResources>& resources)
      : host_(std::shared_ptr<HostBudget>(resources, &resources->host)) {}

  /// Room for what a walk has found, [points]: to be filled before the walk leaves the sequence of
  /// places that the part belongs to (WorkShare), and to stay as it is from then on. Throws
  /// CudaError, MemoryLimitExceeded or std::bad_alloc.
  std::uint32_t* give(Part part, std::uint32_t points) {
    PinnedBlock block(host_, points * sizeof(std::uint32_t));
    found(part).push_back(std::move(block));
    return found(part).back().as<std::uint32_t>();
  }
  /// What all walks have given, once the sequence is over.
  const Found& given(Part part) const { return found_[static_cast<int>(part)]; }

 private:
  Found& found(Part part) { return found_[static_cast<int>(part)]; }

  HostBudget host_;
  Found found_[2];
};

}  // namespace gpujoin::cuda

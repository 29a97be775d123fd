// The union-find of clusters on the device, by all threads at once, without locks.
#pragma once

#include "cuda/clusters/cluster_labels.h"

namespace gpujoin::cuda {

__device__ inline std::uint32_t load_link(const Labels& labels, std::uint32_t point) {
  return *static_cast<volatile std::uint32_t*>(labels.links + point);
}

/// Links are shortened on the way, to some earlier point of the way: other threads may do so at the
/// same time, and the last one to write need not have seen the root. A root's link alone is changed
/// by compare-and-swap.
__device__ inline std::uint32_t find_root(const Labels& labels, std::uint32_t point) {
  std::uint32_t next = load_link(labels, point);
  while (next != point) {
    const std::uint32_t beyond = load_link(labels, next);
    if (beyond != next) *static_cast<volatile std::uint32_t*>(labels.links + point) = beyond;
    point = next;
    next = beyond;
  }
  return point;
}

/// Whether they were not one before.
__device__ inline bool unite(const Labels& labels, std::uint32_t a, std::uint32_t b) {
  for (;;) {
    a = find_root(labels, a);
    b = find_root(labels, b);
    if (a == b) return false;
    if (a < b) {
      const std::uint32_t c = a;
      a = b;
      b = c;
    }
    if (atomicCAS(labels.links + a, a, b) == a) return true;  // still a root
  }
}

}  // namespace gpujoin::cuda

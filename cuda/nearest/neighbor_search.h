// What finds the nearest neighbours of some left points on the device: box_search in a tree,
// screened_search among all.
#pragma once

#include <cstdint>

#include "engine/request/result.h"

namespace gpujoin::cuda {

/// What a search counts, from its beginning on.
struct SearchReport {
  unsigned long long candidates;
  unsigned long long rechecked;
  unsigned long long short_rows;  ///< left points with fewer than k neighbours
};

/// Left points at positions first .. first + count - 1, and where their neighbours go, on the
/// device.
struct NeighborSlice {
  std::uint32_t first, count;
  std::uint32_t* rows;       ///< [count] rows of the points
  std::uint32_t* counts;     ///< [count] neighbours of each
  std::uint32_t* neighbors;  ///< [count][k] their rows, the nearest first
  double* distances;         ///< [count][k]
};

/// Works in the order of the join's stream. All methods but describe() throw CudaError,
/// MemoryLimitExceeded or std::bad_alloc.
class NeighborSearch {
 public:
  virtual ~NeighborSearch() = default;

  /// Left points that may have neighbours: positions 0 .. points() - 1.
  virtual std::uint32_t points() const = 0;
  /// Points of a slice at most.
  virtual std::uint32_t most_slice_points() const = 0;
  /// Begins a slice. True: all of its work is in the stream. False: proceed() is to be called when
  /// the device has done what is there.
  virtual bool start(const NeighborSlice& slice) = 0;
  virtual bool proceed() = 0;
  /// A SearchReport on the device.
  virtual const SearchReport* report() const = 0;
  /// Sets what concerns the search, but for the report.
  virtual void describe(JoinStats* stats) const = 0;
};

/// What is asked of a search.
struct NeighborQuestion {
  Metric metric;
  std::uint32_t dims;
  std::uint32_t k;                ///< neighbours of a point at most, no more than there are rows
  double most_raw;                ///< Threshold::raw of eps
  bool without_itself;            ///< the point itself is no neighbour: both sides are one
  const std::int64_t* right_ids;  ///< by row, on the device; null: rows are ids
  const unsigned* stop;           ///< nonzero on the device: leave
};

}  // namespace gpujoin::cuda

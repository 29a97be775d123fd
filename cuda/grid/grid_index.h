// The CUDA engine's index of one dataset: points sorted by cell and sort value, coordinates column
// by column.
#pragma once

#include <cstdint>
#include <memory>

#include "core/sort_code.h"
#include "cuda/device/memory.h"
#include "engine/request/dataset.h"
#include "engine/strategy/reference_points.h"

namespace gpujoin::cuda {

/// A dataset on the device, as the caller has it: row-major. Columns from `dims` on are distances
/// to reference points.
struct DevicePoints {
  std::shared_ptr<const DeviceBuffer<unsigned char>> coordinates;  ///< null: no points
  DeviceBuffer<unsigned char> distances;  ///< [reference_points][rows] of the type `scalar`
  std::uint32_t reference_points = 0;
  std::uint64_t rows = 0;
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;

  const void* data() const { return coordinates ? coordinates->data() : nullptr; }
};

/// Points are named by position: finite ones first, sorted by code; then points with a NaN or
/// infinite coordinate.
struct DeviceIndex {
  std::uint32_t rows = 0;
  std::uint32_t points = 0;             ///< finite ones
  DeviceBuffer<std::uint64_t> codes;    ///< [rows] ascending; kNotFinite at the end
  DeviceBuffer<std::uint32_t> order;    ///< [rows] position -> row
  DeviceBuffer<unsigned char> columns;  ///< [dims + reference points][rows], once ordered
};

/// Adds the distances to reference points, unless there are none. Asynchronous.
void add_reference_distances(MemoryBudget& budget, DevicePoints& points,
                             const ReferencePoints& references, cudaStream_t stream);

/// Sorts the points; asynchronous but for `points`, which follows from *finite_points (points in
/// cell order, non-empty cells only [GPU-SJ, section 3.2]).
DeviceIndex sort_points(MemoryBudget& budget, const DevicePoints& points, const SortLayout& layout,
                        unsigned* device_finite_points, cudaStream_t stream);

/// Sets index.columns.
void order_columns(MemoryBudget& budget, const DevicePoints& points, DeviceIndex& index,
                   cudaStream_t stream);

/// ids[i] = source[order[i]], or order[i] where there is no source.
void gather_ids(const DeviceIndex& index, const std::int64_t* device_source,
                std::int64_t* device_ids, cudaStream_t stream);

/// scores[i] = source[order[i]].
void gather_scores(const DeviceIndex& index, const double* device_source, double* device_scores,
                   cudaStream_t stream);

}  // namespace gpujoin::cuda

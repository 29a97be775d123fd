// Points on the device in the order of a space-filling curve, and the boxes of a tree over them
// (core/box_tree.h).
#pragma once

#include <cstdint>

#include "core/box_tree.h"
#include "core/curve_order.h"
#include "cuda/grid/grid_index.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// Points are named by position: finite ones first, in the order of the curve.
struct CurvePoints {
  std::uint32_t rows = 0;
  DeviceBuffer<std::uint32_t> order;  ///< [rows] position -> row
  DeviceBuffer<double> coordinates;   ///< [points][stride], zeros from the data's columns on
};

/// A frame over the ordinary values of samples of both sides; of directions, where these are
/// indexed. Throws std::bad_alloc.
CurveFrame choose_curve_frame(const JoinRequest& request);

/// Sets `order`, and adds the number of finite points to *finite_points, on the device.
/// Asynchronous. Throws CudaError or MemoryLimitExceeded.
CurvePoints sort_by_curve(MemoryBudget& budget, const DevicePoints& points, const CurveFrame& frame,
                          unsigned* finite_points, cudaStream_t stream);

/// Sets the coordinates of so many points. As sort_by_curve().
void order_coordinates(MemoryBudget& budget, const DevicePoints& data, std::uint32_t points,
                       std::uint32_t stride, CurvePoints& ordered, cudaStream_t stream);

/// The boxes of a tree over points in order: BoxTree::boxes. As sort_by_curve().
DeviceBuffer<float> find_boxes(MemoryBudget& budget, const BoxTree& tree, cudaStream_t stream);

}  // namespace gpujoin::cuda

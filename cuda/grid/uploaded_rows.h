// The rows of a side, as the caller has them: on their way to the device, and there.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cuda/device/device_context.h"
#include "cuda/device/upload.h"
#include "cuda/grid/grid_index.h"
#include "engine/joins/prepared_side.h"
#include "engine/request/dataset.h"

namespace gpujoin::cuda {

/// What a side's memory is counted on, whose stream it is freed in: a share of a join's resources,
/// which stay as long.
struct SideResources {
  explicit SideResources(const std::shared_ptr<JoinResources>& resources)
      : join(resources),
        host(std::shared_ptr<HostBudget>(resources, &resources->host)),
        device(std::shared_ptr<MemoryBudget>(resources, &resources->device)) {}

  SideBytes bytes() const { return {host.used(), device.used()}; }

  std::shared_ptr<JoinResources> join;
  HostBudget host;
  MemoryBudget device;
};

/// Rows that are on the device; joins on any stream may use them.
class UploadedRows final : public gpujoin::PreparedSide {
 public:
  /// Makes room. Throws CudaError, MemoryLimitExceeded or std::bad_alloc.
  UploadedRows(const Dataset& data, const std::shared_ptr<JoinResources>& resources);

  const void* plan() const override { return nullptr; }
  SideBytes bytes() const override { return resources_.bytes(); }

  /// Copies rows for some milliseconds. True: all are copied, and it is not to be called again.
  bool copy_piece(const Dataset& data, Uploader& uploader);
  std::uint64_t bytes_left(const Dataset& data) const {
    return (data.rows - uploaded_rows_) * point_bytes(data);
  }
  /// What is put into the stream from now on finds the rows.
  void hold(cudaStream_t stream) const { uploaded_.hold(stream); }
  const DeviceBuffer<unsigned char>& coordinates() const { return coordinates_; }

 private:
  SideResources resources_;
  cudaStream_t stream_;  ///< the resources'
  DeviceBuffer<unsigned char> coordinates_;
  std::uint64_t uploaded_rows_ = 0;
  Event uploaded_;
};

/// The rows of a join's side, which the join copies unless another one has left them in a slot.
class ArrivingRows {
 public:
  /// Makes room, unless the rows are in the slot, which may be null. The rows stay where they are
  /// until all are copied. Throws CudaError, MemoryLimitExceeded or std::bad_alloc.
  ArrivingRows(const Dataset& data, const std::shared_ptr<JoinResources>& resources,
               std::shared_ptr<SideSlot> slot);

  /// Whether another join has copied them.
  bool were_there() const { return were_there_; }
  /// Whether they are left in a slot.
  bool are_kept() const { return slot_ != nullptr; }
  /// What is still to be copied.
  std::uint64_t bytes_left() const { return are_there_ ? 0 : rows_->bytes_left(data_); }
  /// Copies rows for some milliseconds. True: what is put into the resources' stream from now on
  /// finds all of them. Throws CudaError.
  bool copy_piece(Uploader& uploader);
  const std::shared_ptr<UploadedRows>& rows() const { return rows_; }
  /// The same, as points.
  DevicePoints points() const;

 private:
  Dataset data_;
  cudaStream_t stream_;  ///< the resources'
  std::shared_ptr<SideSlot> slot_;
  std::shared_ptr<UploadedRows> rows_;
  bool were_there_;
  bool are_there_;
};

}  // namespace gpujoin::cuda

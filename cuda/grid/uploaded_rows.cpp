#include "cuda/grid/uploaded_rows.h"

#include <algorithm>
#include <utility>

#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

UploadedRows::UploadedRows(const Dataset& data, const std::shared_ptr<JoinResources>& resources)
    : resources_(resources),
      stream_(resources->stream),
      coordinates_(resources_.device, data.rows * point_bytes(data), stream_) {}

bool UploadedRows::copy_piece(const Dataset& data, Uploader& uploader) {
  const std::uint64_t bytes = point_bytes(data);
  const std::uint64_t rows =
      std::min(data.rows - uploaded_rows_, std::max<std::uint64_t>(1, kUploadTurnBytes / bytes));
  uploader.copy_rows(coordinates_.data() + uploaded_rows_ * bytes, data, uploaded_rows_, rows,
                     stream_);
  uploaded_rows_ += rows;
  if (uploaded_rows_ < data.rows) return false;
  uploaded_.record(stream_);
  return true;
}

ArrivingRows::ArrivingRows(const Dataset& data, const std::shared_ptr<JoinResources>& resources,
                           std::shared_ptr<SideSlot> slot)
    : data_(data),
      stream_(resources->stream),
      slot_(std::move(slot)),
      rows_(slot_ ? std::static_pointer_cast<UploadedRows>(slot_->find(nullptr)) : nullptr),
      were_there_(rows_ != nullptr),
      are_there_(were_there_) {
  if (!rows_) rows_ = std::make_shared<UploadedRows>(data, resources);
}

bool ArrivingRows::copy_piece(Uploader& uploader) {
  if (!are_there_) {
    if (!rows_->copy_piece(data_, uploader)) return false;
    if (slot_) slot_->put(rows_);
    are_there_ = true;
  }
  rows_->hold(stream_);
  return true;
}

DevicePoints ArrivingRows::points() const {
  DevicePoints points;
  points.coordinates =
      std::shared_ptr<const DeviceBuffer<unsigned char>>(rows_, &rows_->coordinates());
  points.rows = data_.rows;
  points.dims = data_.dims;
  points.scalar = data_.scalar;
  return points;
}

}  // namespace gpujoin::cuda

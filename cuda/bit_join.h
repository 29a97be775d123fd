// The join of bits of the CUDA engine: rows on their way to the device, and the walk that compares
// them all.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/sliced_join.h"
#include "cuda/device/upload.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// `request` is one by Metric::kHamming, of rows in memory, for pairs or counts; else as
/// SlicedJoin. Throws Unable where the device has no room for the rows.
class BitJoin final : public SlicedJoin {
 public:
  BitJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources);
  ~BitJoin() override { halt(); }
  void stats(JoinStats* stats) const override;

 private:
  void prepare() override;

  bool upload_piece();

  Uploader uploader_;
  Stopwatch since_open_;
  DeviceBuffer<std::uint64_t> rows_[2];  ///< of a self-join the first alone
  DeviceBuffer<std::int64_t> device_ids_;
  std::uint64_t uploaded_[2] = {};
  Buffer<std::int64_t> left_numbers_, right_numbers_;  ///< where rows have no ids
};

}  // namespace gpujoin::cuda

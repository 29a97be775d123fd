// Pairs of bits by comparing all rows, a rectangle of them at a time: where pairs are wanted, one
// whose pairs fit in a list. A self-join compares the upper triangle.
#pragma once

#include <cstdint>

#include "cuda/bits/bit_kernels.h"
#include "cuda/device/device_context.h"
#include "cuda/device/slice_source.h"

namespace gpujoin::cuda {

/// Bytes of device memory that a row of either side takes besides what a slice does.
std::uint64_t bit_row_bytes(const JoinRequest& request);

class BitWalk final : public SliceSource {
 public:
  /// Makes room. `rows` are those of the sides on the device, row-major; of a self-join the left
  /// ones alone. `stop` is a word on the device that makes kernels leave when it is not 0.
  BitWalk(const JoinRequest& request, const DeviceBuffer<std::uint64_t> (&rows)[2],
          const std::int64_t* device_ids, JoinResources& resources, const unsigned* stop,
          cudaStream_t stream);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return next_.row >= view_.left_rows; }
  CountedSlice slice() const override;
  const std::uint32_t* sequence() const override { return host_sequence_.as<std::uint32_t>(); }
  void fill(const Stretch&, const FillRange&, cudaStream_t) override {}
  Buffer<std::uint32_t> counts() override;
  std::uint64_t pairs() const override;
  void describe(JoinStats* stats) const override {
    stats->candidates = stats->work_done = compared_;
    stats->work = std::uint64_t{view_.left_rows} * view_.right_rows;
  }

 private:
  void make_room();
  void list_pairs();
  bool wants_list() const { return wants_pairs(request_.output()); }
  std::uint32_t slice_rows() const { return rectangle_.end_row - rectangle_.first_row; }

  const JoinRequest& request_;
  JoinResources& resources_;
  const AccessPattern pattern_;
  const int multiprocessors_;
  cudaStream_t stream_;
  DeviceBuffer<std::uint64_t> left_columns_;  ///< of rows of several words
  BitView view_{};
  BitList list_{};
  TileCounts count_{};

  PairRectangle rectangle_{};  ///< of the slice
  PairPlace next_{};
  std::uint64_t most_pairs_ = 0;  ///< that a slice compares
  std::uint64_t found_ = 0, themselves_ = 0, compared_ = 0;

  DeviceBuffer<BitTotals> totals_;
  PinnedBlock host_totals_;
  DeviceBuffer<BitEntry> entries_;
  DeviceBuffer<std::uint32_t> counts_;
  DeviceBuffer<std::uint64_t> offsets_;
  DeviceBuffer<std::uint32_t> neighbors_;
  DeviceBuffer<double> distances_;
  PinnedBlock host_offsets_, host_sequence_;
};

}  // namespace gpujoin::cuda

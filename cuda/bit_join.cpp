#include "cuda/bit_join.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cuda/bits/bit_walk.h"
#include "cuda/device/tuning.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cuda {

/// Makes room for the rows, so that a lack of memory shows at once.
BitJoin::BitJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources)
    : SlicedJoin(request, std::move(resources)),
      uploader_(resources_->host, request.resources.threads) {
  if (wants_counts(request.output()) || wants_pairs(request.output())) {
    left_ids_ = ids_of_rows(request.left(), left_numbers_);
    right_ids_ = request.self_join() ? left_ids_ : ids_of_rows(request.right(), right_numbers_);
  }
  stats_.strategy.index = IndexMethod::kTiles;
  stats_.strategy.sort_column = kNoColumn;
  stats_.strategy.access_pattern = pattern_of(request_, IndexMethod::kTiles);
  std::snprintf(stats_.strategy.reason, sizeof stats_.strategy.reason, "every pair");
  if (!request.sides.has_pairs()) {
    start_without_pairs();
    return;
  }
  if (request.left().dims > kMostBitWords)
    throw Unable{"the device compares no bits of more than 512 words"};
  const std::uint64_t room =
      resources_->context.available_bytes(request.resources.device_memory_limit);
  if (request.sides.rows() > room / 2 / bit_row_bytes(request))
    throw Unable{"the device has no room for so many rows of bits"};
  for (int side = 0; side < (request.self_join() ? 1 : 2); ++side) {
    const Dataset& data = side == 0 ? request.left() : request.right();
    rows_[side] = DeviceBuffer<std::uint64_t>(resources_->device, data.rows * data.dims, stream_);
  }
  if (request.output() == Output::kCountPerRow && request.pairs() == PairSelection::kUnordered)
    device_ids_ = DeviceBuffer<std::int64_t>(resources_->device, request.left().rows, stream_);
}

/// Sends some rows on their way; false when all are.
bool BitJoin::upload_piece() {
  for (int side = 0; side < (request_.self_join() ? 1 : 2); ++side) {
    const Dataset& data = side == 0 ? request_.left() : request_.right();
    if (uploaded_[side] == data.rows) continue;
    const std::uint64_t rows =
        std::min(data.rows - uploaded_[side],
                 std::max<std::uint64_t>(1, kUploadTurnBytes / point_bytes(data)));
    uploader_.copy_rows(rows_[side].data() + uploaded_[side] * data.dims, data, uploaded_[side],
                        rows, stream_);
    uploaded_[side] += rows;
    return true;
  }
  return false;
}

void BitJoin::prepare() {
  if (upload_piece()) return;
  if (device_ids_.size() > 0)
    uploader_.copy(device_ids_.data(), left_ids_, device_ids_.bytes(), stream_);
  stop_.emplace(*resources_, stream_);
  stats_.index_ms = since_open_.milliseconds();
  stats_.indexed_sides = request_.self_join() ? 1 : 2;
  start(std::make_unique<BitWalk>(request_, rows_, device_ids_.data(), *resources_, stop_->get(),
                                  stream_),
        is_mirrored(stats_.strategy.access_pattern, request_.pairs()));
}

void BitJoin::stats(JoinStats* stats) const {
  SlicedJoin::stats(stats);
  stats->threads = uploader_.threads();
}

}  // namespace gpujoin::cuda

#include "cuda/device/device_join.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "engine/stopwatch.h"

namespace gpujoin::cuda {

DeviceJoin::DeviceJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources)
    : request_(request), resources_(std::move(resources)), stream_(resources_->stream) {
  stats_.left_rows = request.left().rows;
  stats_.right_rows = request.right().rows;
  const cudaDeviceProp& device = resources_->context.properties();
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "sm_%d%d", device.major,
                device.minor);
}

const std::int64_t* DeviceJoin::ids_of_rows(const Dataset& data, Buffer<std::int64_t>& numbers) {
  if (data.ids != nullptr) return data.ids;
  numbers = Buffer<std::int64_t>(resources_->host, data.rows);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers.data();
}

Progress DeviceJoin::advance(ResultBatch* batch) {
  const Progress progress = move_on(batch);
  if (progress != Progress::kBatch) return progress;
  if (request_.output() != Output::kTotal) name(batch);
  if (request_.resources.soft_limits) resources_->enforce_limits(false);
  ++stats_.batches;
  stats_.pairs += batch->pair_count;
  return progress;
}

Status DeviceJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  const Status status =
      wait_for_batch(request_.resources.interrupt, [&] { return advance(batch); });
  if (status.code != StatusCode::kInterrupted) spent_ms_ += watch.milliseconds();
  return status;
}

void DeviceJoin::stats(JoinStats* stats) const {
  stats->join_ms = std::max(0.0, spent_ms_ - stats->index_ms);
  stats->memory_peak = resources_->host.peak();
  stats->device_memory_peak = resources_->device.peak();
}

}  // namespace gpujoin::cuda

#include <algorithm>
#include <utility>

#include "cuda/pair_batches.h"
#include "cuda/tuning.h"

namespace gpujoin::cuda {

PairBatches::PairBatches(const JoinRequest& request, MemoryBudget& device_budget,
                         MemoryBudget& host_budget, SliceSource& source, bool mirrored)
    : request_(request),
      device_budget_(device_budget),
      host_budget_(host_budget),
      source_(source),
      mirrored_(mirrored) {}

PairBatches::~PairBatches() {
  for (Slot& slot : slots_) cudaStreamSynchronize(slot.stream);
}

void PairBatches::allocate_slots() {
  model_ = &measured_batch_model();
  const Knobs& knobs = request_.knobs;
  const bool distances = wants_distances(request_.output);
  const std::uint32_t pair_bytes = sizeof(std::uint32_t) + (distances ? sizeof(double) : 0);
  const std::uint64_t entries = slice_.entries();
  std::uint64_t streams = std::min(knobs.streams > 0 ? knobs.streams : kStreams, kMostStreams);
  batch_entries_ = knobs.batch_pairs > 0
                       ? std::min<std::uint64_t>(knobs.batch_pairs, kMostBatchPairs)
                       : model_->best_batch(entries, streams, pair_bytes);
  if (slice_.last) batch_entries_ = std::min(batch_entries_, entries);
  if (request_.device_memory_limit > 0)
    batch_entries_ = std::clamp<std::uint64_t>(
        request_.device_memory_limit / 8 / streams / pair_bytes, 1, batch_entries_);
  if (slice_.last) streams = std::min(streams, (entries + batch_entries_ - 1) / batch_entries_);
  for (std::uint64_t i = 0; i < streams; ++i) {
    Slot& slot = slots_.emplace_back();
    slot.host_neighbors = PinnedBlock(host_budget_, batch_entries_ * sizeof(std::uint32_t));
    if (distances) slot.host_distances = PinnedBlock(host_budget_, batch_entries_ * sizeof(double));
    if (slice_.neighbors != nullptr) continue;
    slot.queue = DeviceBuffer<unsigned>(device_budget_, 1, slot.stream);
    slot.neighbors = DeviceBuffer<std::uint32_t>(device_budget_, batch_entries_, slot.stream);
    if (distances)
      slot.distances = DeviceBuffer<double>(device_budget_, batch_entries_, slot.stream);
  }
}

void PairBatches::start() {
  slice_ = source_.slice();
  launched_ = delivered_ = 0;
  if (slice_.entries() == 0) return;
  if (slots_.empty()) allocate_slots();
  for (Slot& slot : slots_) launch(slot);
}

/// Sends the slice's next batch on its way, if there is one: fill on the device, then copy.
void PairBatches::launch(Slot& slot) {
  const std::uint64_t first = launched_ * batch_entries_;
  if (first >= slice_.entries()) return;
  ++launched_;
  const std::uint64_t end = std::min(slice_.entries(), first + batch_entries_);
  const std::uint64_t* const last = slice_.offsets + (slice_.end - slice_.first);
  const std::size_t from = std::upper_bound(slice_.offsets, last, first) - slice_.offsets - 1;
  const std::size_t to = std::lower_bound(slice_.offsets, last, end) - slice_.offsets;
  const Stretch stretch{static_cast<std::uint32_t>(slice_.first + from),
                        static_cast<std::uint32_t>(slice_.first + to), slice_.first,
                        slot.queue.data()};
  const std::uint32_t* neighbors = slot.neighbors.data();
  const double* distances = slot.distances.data();
  if (slice_.neighbors != nullptr) {
    neighbors = slice_.neighbors + first;
    if (slice_.distances != nullptr) distances = slice_.distances + first;
  } else {
    source_.fill(stretch,
                 {slice_.device_offsets, first, end, slot.neighbors.data(), slot.distances.data()},
                 slot.stream);
  }
  copy_to_host(slot.host_neighbors.as<std::uint32_t>(), neighbors, end - first, slot.stream);
  if (slot.host_distances.as<double>() != nullptr)
    copy_to_host(slot.host_distances.as<double>(), distances, end - first, slot.stream);
  slot.arrived.record(slot.stream);
  slot.first_place = stretch.first;
  slot.offsets.resize(to - from + 1);
  for (std::size_t i = 0; i < slot.offsets.size(); ++i)
    slot.offsets[i] = std::clamp(slice_.offsets[from + i], first, end) - first;
  slot.begins_inside = slice_.offsets[from] < first;
}

/// How many points of a batch are their own neighbours in it: such a pair has one order.
std::uint64_t PairBatches::themselves_in(const Slot& slot, const ResultBatch& batch) const {
  if (slice_.themselves == Themselves::kNone) return 0;
  // Each row that begins here.
  if (slice_.themselves == Themselves::kAll) return batch.row_count - (slot.begins_inside ? 1 : 0);
  std::uint64_t found = 0;
  for (std::uint64_t row = 0; row < batch.row_count; ++row)
    found += static_cast<std::uint64_t>(std::count(batch.neighbors + batch.offsets[row],
                                                   batch.neighbors + batch.offsets[row + 1],
                                                   batch.rows[row]));
  return found;
}

ResultBatch PairBatches::deliver() {
  Slot& slot = slots_[delivered_++ % slots_.size()];
  lent_ = &slot;
  ResultBatch batch{};
  batch.row_count = slot.offsets.size() - 1;
  batch.rows = source_.sequence() + slot.first_place;
  batch.offsets = slot.offsets.data();
  batch.neighbors = slot.host_neighbors.as<std::uint32_t>();
  batch.distances = slot.host_distances.as<double>();
  batch.mirrored = mirrored_;
  batch.pair_count = slot.offsets.back();
  if (mirrored_) batch.pair_count = 2 * batch.pair_count - themselves_in(slot, batch);
  return batch;
}

void PairBatches::recycle() {
  if (lent_ != nullptr) launch(*std::exchange(lent_, nullptr));
}

void PairBatches::describe(JoinStats* stats) const {
  stats->streams = static_cast<std::uint32_t>(slots_.size());
  stats->batch_pairs = batch_entries_;
  if (model_ == nullptr) return;
  stats->pin_ms_per_mb = model_->pin_ms_per_mb;
  stats->batch_ms = model_->batch_ms;
}

}  // namespace gpujoin::cuda

#include "cuda/device/pair_batches.h"

#include <algorithm>
#include <utility>

#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

PairBatches::PairBatches(const JoinRequest& request, JoinResources& resources, SliceSource& source,
                         bool mirrored)
    : request_(request), resources_(resources), source_(source), mirrored_(mirrored) {}

PairBatches::~PairBatches() {
  for (Slot& slot : slots_) cudaStreamSynchronize(slot.stream);
}

void PairBatches::allocate_slots() {
  model_ = &resources_.context.batch_model();
  const Knobs& knobs = request_.knobs;
  const bool distances = wants_distances(request_.output());
  const std::uint32_t pair_bytes = sizeof(std::uint32_t) + (distances ? sizeof(double) : 0);
  const std::uint64_t entries = slice_.entries();
  std::uint64_t streams = std::min(knobs.streams > 0 ? knobs.streams : kStreams, kMostStreams);
  batch_entries_ = knobs.batch_pairs > 0
                       ? std::min<std::uint64_t>(knobs.batch_pairs, kMostBatchPairs)
                       : model_->best_batch(entries, streams, pair_bytes);
  if (slice_.last) batch_entries_ = std::min(batch_entries_, entries);
  if (request_.resources.device_memory_limit > 0)
    batch_entries_ = std::clamp<std::uint64_t>(
        request_.resources.device_memory_limit / 8 / streams / pair_bytes, 1, batch_entries_);
  if (slice_.last) streams = std::min(streams, (entries + batch_entries_ - 1) / batch_entries_);
  while (slots_.size() < streams && add_slot(distances)) {
  }
}

/// False: there is no memory for one more. Batches become smaller where there is none for any.
bool PairBatches::add_slot(bool distances) {
  constexpr std::uint64_t kFewestEntries = 1 << 16;
  try {
    Slot& slot = slots_.emplace_back();
    slot.host_neighbors = PinnedBlock(resources_.host, batch_entries_ * sizeof(std::uint32_t));
    if (distances)
      slot.host_distances = PinnedBlock(resources_.host, batch_entries_ * sizeof(double));
    if (slice_.neighbors != nullptr) return true;
    slot.queue = DeviceBuffer<unsigned>(resources_.device, 1, slot.stream);
    slot.neighbors = DeviceBuffer<std::uint32_t>(resources_.device, batch_entries_, slot.stream);
    if (distances)
      slot.distances = DeviceBuffer<double>(resources_.device, batch_entries_, slot.stream);
    return true;
  } catch (const MemoryLimitExceeded&) {
    slots_.pop_back();
    if (!slots_.empty()) return false;
    if (batch_entries_ <= kFewestEntries) throw;
    batch_entries_ /= 2;
    return true;
  }
}

void PairBatches::start() {
  slice_ = source_.slice();
  next_pair_ = launched_ = delivered_ = 0;
  if (slice_.entries() == 0) return;
  if (slots_.empty()) allocate_slots();
  for (Slot& slot : slots_) launch(slot);
}

/// Cuts the slice's next batch: as many whole rows as there is room for, or as much of one.
FillRange PairBatches::cut(Slot& slot) {
  const std::uint64_t* const offsets = slice_.offsets;
  const std::uint64_t* const end = offsets + (slice_.end - slice_.first) + 1;
  const std::uint64_t first = next_pair_;
  const std::uint64_t most = std::min(slice_.entries(), first + batch_entries_);
  const std::uint64_t* const from = std::upper_bound(offsets, end, first) - 1;
  const std::uint64_t* const to = std::upper_bound(from, end, most) - 1;
  slot.first_place = slice_.first + static_cast<std::uint32_t>(from - offsets);
  slot.begins_inside = *from < first;
  if (slot.begins_inside || from == to) {
    slot.part_of_row[0] = first;
    slot.part_of_row[1] = std::min(most, from[1]);
    slot.offsets = slot.part_of_row;
    slot.rows = 1;
  } else {
    slot.offsets = from;
    slot.rows = static_cast<std::uint64_t>(to - from);
  }
  next_pair_ = slot.offsets[slot.rows];
  return {slice_.device_offsets, first, next_pair_, slot.neighbors.data(), slot.distances.data()};
}

/// Sends the slice's next batch on its way, if there is one: fill on the device, then copy.
void PairBatches::launch(Slot& slot) {
  if (next_pair_ == slice_.entries()) return;
  ++launched_;
  const FillRange range = cut(slot);
  const std::uint32_t* neighbors = slot.neighbors.data();
  const double* distances = slot.distances.data();
  if (slice_.neighbors != nullptr) {
    neighbors = slice_.neighbors + range.first_pair;
    if (slice_.distances != nullptr) distances = slice_.distances + range.first_pair;
  } else {
    const auto rows = static_cast<std::uint32_t>(slot.rows);
    source_.fill({slot.first_place, slot.first_place + rows, slice_.first, slot.queue.data()},
                 range, slot.stream);
  }
  const std::uint64_t pairs = range.end_pair - range.first_pair;
  copy_to_host(slot.host_neighbors.as<std::uint32_t>(), neighbors, pairs, slot.stream);
  if (slot.host_distances.as<double>() != nullptr)
    copy_to_host(slot.host_distances.as<double>(), distances, pairs, slot.stream);
  slot.arrived.record(slot.stream);
}

/// The number of self-pairs in a batch: a self-pair has one order.
std::uint64_t PairBatches::themselves_in(const Slot& slot, const ResultBatch& batch) const {
  if (slice_.themselves == Themselves::kNone) return 0;
  // Each row that begins here has one.
  if (slice_.themselves == Themselves::kAll) return batch.row_count - (slot.begins_inside ? 1 : 0);
  const bool whole_rows = slot.offsets != slot.part_of_row;
  if (slice_.themselves == Themselves::kEach && whole_rows) return batch.row_count;
  std::uint64_t found = 0;
  for (std::uint64_t row = 0; row < batch.row_count; ++row)
    found += static_cast<std::uint64_t>(std::count(batch.neighbors + batch.entry(row),
                                                   batch.neighbors + batch.entry(row + 1),
                                                   batch.rows[row]));
  return found;
}

ResultBatch PairBatches::deliver() {
  Slot& slot = slots_[delivered_++ % slots_.size()];
  lent_ = &slot;
  ResultBatch batch{};
  batch.row_count = slot.rows;
  batch.rows = source_.sequence() + slot.first_place;
  batch.offsets = slot.offsets;
  batch.neighbors = slot.host_neighbors.as<std::uint32_t>();
  batch.distances = slot.host_distances.as<double>();
  batch.mirrored = mirrored_;
  batch.transposed = slice_.transposed;
  batch.pair_count = batch.entry(batch.row_count);
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

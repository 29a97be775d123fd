#include "service/result_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/failure.h"
#include "service/protocol/channel.h"

namespace gpujoin::service {
namespace {

constexpr std::uint64_t kSlotBytes = 2 << 20;  // two of them stay in a processor's cache
constexpr std::uint64_t kLine = 64;            // arrays begin at multiples of it
constexpr std::uint64_t kMostArrays = 6;

std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

/// Copies an array to the end of what lies in a slot; *place is what the client finds it by.
template <class T>
void put(unsigned char* results, std::uint64_t* end, const T* from, std::uint64_t count,
         const T** place) {
  if (from == nullptr) return;
  std::memcpy(results + *end, from, count * sizeof(T));
  *place = reinterpret_cast<const T*>(*end);
  *end += whole_lines(count * sizeof(T));
}

Region copy_ids(const std::int64_t* ids, std::uint64_t count) {
  Region copy("gpujoin ids", count * sizeof *ids);
  if (count > 0) std::memcpy(copy.data(), ids, count * sizeof *ids);
  return copy;
}

}  // namespace

ResultSender::ResultSender(const JoinRequest& request)
    : has_entries_(wants_pairs(request.output())),
      sum_words_(request.output() == Output::kSums ? row_words(*request.sums()) : 0) {}

std::uint64_t ResultSender::id_bytes(const JoinRequest& request) {
  return request.output() == Output::kTotal ? 0 : request.sides.rows() * sizeof(std::int64_t);
}

void ResultSender::begin(const ResultBatch& batch) {
  batch_ = batch;
  row_ = entry_ = 0;
  done_ = false;
  names_pairs_ = may_name_pairs();
  if (names_pairs_) named_ += batch.row_count + batch.entry(batch.row_count);
}

/// Whether the batch is to come with the ids of its own pairs: as long as all of these have been
/// fewer than half of the ids of all rows, which are sent then. Pairs that stand for their reverses
/// are told from points with themselves by positions.
bool ResultSender::may_name_pairs() const {
  if (!has_entries_ || batch_.row_count == 0 || batch_.mirrored || batch_.left_ids == nullptr ||
      batch_.right_ids == nullptr || generation_ == batch_.ids_generation)
    return false;
  const std::uint64_t ids = batch_.row_count + batch_.entry(batch_.row_count);
  return named_ + ids <= (batch_.left_id_count + batch_.right_id_count) / 2;
}

std::uint64_t ResultSender::row_bytes() const {
  return sizeof(std::uint32_t) + sizeof(std::uint64_t) + sum_words_ * sizeof(FoldWord) +
         (names_pairs_ ? sizeof(std::int64_t) : 0);
}

std::uint64_t ResultSender::entry_bytes() const {
  return sizeof(std::uint32_t) + (batch_.distances != nullptr ? sizeof(double) : 0) +
         (names_pairs_ ? sizeof(std::int64_t) : 0);
}

/// As many rows as a slot has room for, or as many entries of one row.
ResultSender::Part ResultSender::next_part() const {
  const std::uint64_t row_bytes = this->row_bytes(), entry_bytes = this->entry_bytes();
  const std::uint64_t room = kSlotBytes - (kMostArrays + 1) * kLine;
  if (!has_entries_) return {row_, std::min(room / row_bytes, batch_.row_count - row_), 0, 0};
  std::uint64_t low = row_, high = std::min(batch_.row_count, row_ + room / row_bytes);
  while (low < high) {  // rows up to `low` fit
    const std::uint64_t middle = high - (high - low) / 2;
    const std::uint64_t bytes =
        (middle - row_) * row_bytes + (batch_.entry(middle) - entry_) * entry_bytes;
    if (bytes <= room)
      low = middle;
    else
      high = middle - 1;
  }
  if (low > row_) return {row_, low - row_, entry_, batch_.entry(low) - entry_};
  return {row_, 1, entry_, (room - row_bytes) / entry_bytes};
}

/// With what arrays lose to alignment, and offsets have one more.
std::uint64_t ResultSender::bytes_of(const Part& part) const {
  const std::uint64_t bytes = part.rows * row_bytes() + part.entries * entry_bytes();
  return whole_lines(bytes + kMostArrays * kLine + sizeof(std::uint64_t));
}

/// As ResultBatch::pair_count has it.
std::uint64_t ResultSender::pairs_of(const Part& part) const {
  if (part.rows == batch_.row_count && part.entries == batch_.entry(batch_.row_count))
    return batch_.pair_count;
  std::uint64_t pairs = part.entries;
  if (!batch_.mirrored) return pairs;
  pairs *= 2;
  if (batch_.left_ids != batch_.right_ids) return pairs;
  const std::uint64_t end = part.first_entry + part.entries;
  for (std::uint64_t i = part.first_row; i < part.first_row + part.rows; ++i)
    for (std::uint64_t at = std::max(batch_.entry(i), part.first_entry);
         at < std::min(batch_.entry(i + 1), end); ++at)
      pairs -= batch_.neighbors[at] == batch_.rows[i];  // a point with itself
  return pairs;
}

/// Sets slot_ to the other slot, of memory that has room enough.
void ResultSender::find_slot(std::uint64_t bytes, Packet* packet) {
  if (bytes > slot_bytes_) {
    slot_bytes_ = std::min(std::max(bytes, 2 * slot_bytes_), std::max(bytes, kSlotBytes));
    results_ = Region("gpujoin results", kLine + kBatchesAhead * slot_bytes_);
    packet->message.new_results = true;
    packet->files[packet->count++] = results_.file();
  }
  packet->message.results_bytes = kLine + kBatchesAhead * slot_bytes_;
  slot_ = (slot_ + 1) % kBatchesAhead;
}

void ResultSender::send_ids(Packet* packet) {
  Batch& message = packet->message;
  const bool are_one = batch_.right_ids == nullptr || batch_.left_ids == batch_.right_ids;
  message.ids_are_one = are_one;
  message.left_ids_bytes = batch_.left_id_count * sizeof(std::int64_t);
  message.right_ids_bytes =
      are_one ? message.left_ids_bytes : batch_.right_id_count * sizeof(std::int64_t);
  if (batch_.left_ids == nullptr || generation_ == batch_.ids_generation) return;
  left_ids_ = copy_ids(batch_.left_ids, batch_.left_id_count);
  right_ids_ = are_one ? Region() : copy_ids(batch_.right_ids, batch_.right_id_count);
  message.new_ids = true;
  packet->files[packet->count++] = left_ids_.file();
  if (!are_one) packet->files[packet->count++] = right_ids_.file();
  generation_ = batch_.ids_generation;
}

/// Puts the ids of a part's pairs into the slot. Positions, which name them, are the places of
/// their own rows and entries.
void ResultSender::name_pairs(const Part& part, std::uint64_t* end, ResultBatch* copy) {
  unsigned char* const results = results_.data();
  const auto name = [&](const std::uint32_t** positions, std::uint64_t count,
                        const std::int64_t* ids, const std::int64_t** place) {
    auto* const named =
        reinterpret_cast<std::uint32_t*>(results + reinterpret_cast<std::uintptr_t>(*positions));
    auto* const names = reinterpret_cast<std::int64_t*>(results + *end);
    for (std::uint64_t i = 0; i < count; ++i) {
      names[i] = ids[named[i]];
      named[i] = static_cast<std::uint32_t>(i);
    }
    *place = reinterpret_cast<const std::int64_t*>(*end);
    *end += whole_lines(count * sizeof *names);
  };
  ResultBatch names = batch_;
  if (batch_.transposed) std::swap(names.left_ids, names.right_ids);
  name(&copy->rows, part.rows, names.left_ids, &copy->left_ids);
  name(&copy->neighbors, part.entries, names.right_ids, &copy->right_ids);
  copy->left_id_count = part.rows;
  copy->right_id_count = part.entries;
  if (batch_.transposed) {
    std::swap(copy->left_ids, copy->right_ids);
    std::swap(copy->left_id_count, copy->right_id_count);
  }
  constexpr std::uint64_t kOfParts = std::uint64_t{1} << 63;  // no generation of an engine's
  copy->ids_generation = kOfParts + ++named_parts_;
}

void ResultSender::copy_next(Packet* packet) {
  start_message(&packet->message);
  packet->count = 0;
  ResultBatch& copy = packet->message.batch;
  copy = batch_;
  copy.rows = nullptr;
  copy.offsets = copy.counts = nullptr;
  copy.neighbors = nullptr;
  copy.distances = nullptr;
  copy.sums = nullptr;
  copy.left_ids = copy.right_ids = nullptr;
  done_ = batch_.row_count == 0;
  if (done_) return;

  const Part part = next_part();
  find_slot(bytes_of(part), packet);
  if (!names_pairs_) send_ids(packet);
  unsigned char* const results = results_.data();
  std::uint64_t end = kLine + slot_ * slot_bytes_;
  put(results, &end, batch_.rows + part.first_row, part.rows, &copy.rows);
  copy.row_count = part.rows;
  if (has_entries_) {
    auto* const offsets = reinterpret_cast<std::uint64_t*>(results + end);
    put(results, &end, batch_.offsets + part.first_row, part.rows + 1, &copy.offsets);
    offsets[0] = batch_.offsets[0] + part.first_entry;
    offsets[part.rows] = offsets[0] + part.entries;
    put(results, &end, batch_.neighbors + part.first_entry, part.entries, &copy.neighbors);
    if (batch_.distances != nullptr)
      put(results, &end, batch_.distances + part.first_entry, part.entries, &copy.distances);
    copy.pair_count = pairs_of(part);
    if (names_pairs_) name_pairs(part, &end, &copy);
  } else {
    put(results, &end, batch_.counts + part.first_row, part.rows, &copy.counts);
    if (sum_words_ > 0)
      put(results, &end, batch_.sums + part.first_row * sum_words_, part.rows * sum_words_,
          &copy.sums);
    if (part.rows < batch_.row_count && batch_.pair_count > 0) {
      copy.pair_count = 0;
      for (std::uint64_t i = 0; i < part.rows; ++i)
        copy.pair_count += batch_.counts[part.first_row + i];
    }
  }
  entry_ = part.first_entry + part.entries;
  row_ = part.first_row + part.rows;
  if (has_entries_ && entry_ < batch_.entry(row_)) --row_;  // the rest of a row that was cut
  done_ = row_ == batch_.row_count;
}

}  // namespace gpujoin::service

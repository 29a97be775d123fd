// The result on its way to the client: batches of the engine, copied in parts of moderate size into
// memory that both have mapped. So the engine can go on, and the memory stays in caches.
#pragma once

#include <cstdint>

#include "engine/engine.h"
#include "service/protocol/messages.h"
#include "service/region.h"

namespace gpujoin::service {

/// Members throw Failure.
class ResultSender {
 public:
  explicit ResultSender(const JoinRequest& request);

  /// Bytes of the ids that are sent with the results of a request: those of all its rows.
  static std::uint64_t id_bytes(const JoinRequest& request);

  /// Begins with a batch of the engine, which stays as it is until done().
  void begin(const ResultBatch& batch);
  bool done() const { return done_; }

  /// A message with its descriptors, which stay this object's.
  struct Packet {
    Batch message;
    int files[3];
    int count;
  };

  /// Copies the next part of the batch into the slot that was used least recently, and sets what
  /// the packet says of it.
  void copy_next(Packet* packet);

 private:
  /// The batch's rows from one place to another; a row may be cut.
  struct Part {
    std::uint64_t first_row, rows;
    std::uint64_t first_entry, entries;
  };
  bool may_name_pairs() const;
  std::uint64_t row_bytes() const;
  std::uint64_t entry_bytes() const;
  Part next_part() const;
  std::uint64_t bytes_of(const Part& part) const;
  std::uint64_t pairs_of(const Part& part) const;
  void find_slot(std::uint64_t bytes, Packet* packet);
  void send_ids(Packet* packet);
  void name_pairs(const Part& part, std::uint64_t* end, ResultBatch* copy);

  const bool has_entries_;         ///< rows have neighbours, not numbers of them
  const std::uint64_t sum_words_;  ///< of each row
  ResultBatch batch_{};
  bool done_ = true;
  std::uint64_t row_ = 0, entry_ = 0;  ///< where the next part begins
  Region results_;
  std::uint64_t slot_bytes_ = 0;
  std::uint32_t slot_ = 0;  ///< the one that was used last
  Region left_ids_, right_ids_;
  std::uint64_t generation_ = 0;  ///< of the ids that were sent; 0: none were
  bool names_pairs_ = false;      ///< the batch comes with the ids of its own pairs
  std::uint64_t named_ = 0;       ///< ids that came with batches so far
  std::uint64_t named_parts_ = 0;
};

}  // namespace gpujoin::service

// Coordinates of the rows of a table, in chunks that versions of the table share until one of them
// changes a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request/dataset.h"
#include "service/region.h"

namespace gpujoin::service {

/// A copy has the same chunks; what is written then goes into copies of them. Other threads release
/// copies under a lock that the writer takes later. Members throw std::bad_alloc.
class RowChunks {
 public:
  RowChunks() = default;
  /// No rows yet.
  explicit RowChunks(std::uint64_t row_bytes);
  /// The first `rows` rows lie in the region, which is never written.
  RowChunks(Region region, std::uint64_t rows, std::uint64_t row_bytes);

  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Size of all chunks, shared or not.
  std::uint64_t bytes() const;
  /// Size of the chunks that two versions do not share if `rows` rows differ, at most.
  std::uint64_t bytes_of_changes(std::uint64_t rows) const {
    return std::min<std::uint64_t>(rows, chunks_.size()) * (row_bytes_ << bits_);
  }
  const unsigned char* row(std::uint64_t number) const {
    return chunks_[number >> bits_].get() + place_of(number);
  }
  /// Returns the row for writing. No other thread reads it at the same time.
  unsigned char* change(std::uint64_t number);
  /// Makes room for `rows` rows. New rows have unknown values until they are written.
  void reserve(std::uint64_t rows);
  /// Sets where the rows of a dataset lie; valid until the next change.
  void place(Dataset* data) const;

 private:
  std::uint64_t place_of(std::uint64_t number) const {
    return (number & ((std::uint64_t{1} << bits_) - 1)) * row_bytes_;
  }
  std::shared_ptr<unsigned char> make_chunk() const;
  void append(std::shared_ptr<unsigned char> chunk);

  std::uint64_t row_bytes_ = 0;
  std::uint32_t bits_ = 0;  ///< a chunk has 2^bits_ rows
  std::shared_ptr<const Region> first_;
  std::uint64_t first_rows_ = 0;  ///< of the region
  std::vector<std::shared_ptr<unsigned char>> chunks_;
  std::vector<const void*> places_;  ///< of chunks
};

}  // namespace gpujoin::service

// Points as a caller may hold them: in several chunks of memory, or in a file.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "points.h"

namespace gpujoin::test {

/// A RowFile in memory, which fails from a call on.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(const MemoryFile&) = delete;

  const RowFile* functions() const { return &functions_; }
  void fail_after(std::uint64_t calls) { calls_ = calls; }
  std::uint64_t bytes_read() const { return bytes_read_; }

  std::uint64_t append(const void* bytes, std::uint64_t count) {
    const std::uint64_t place = bytes_.size();
    const auto* const begin = static_cast<const unsigned char*>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + count);
    return place;
  }

 private:
  Status call() { return {calls_-- == 0 ? StatusCode::kCallerFailed : StatusCode::kOk}; }
  static Status write(void* context, const void* bytes, std::uint64_t count, std::uint64_t* place) {
    MemoryFile* const file = static_cast<MemoryFile*>(context);
    *place = file->append(bytes, count);
    return file->call();
  }
  static Status read(void* context, std::uint64_t place, void* bytes, std::uint64_t count) {
    MemoryFile* const file = static_cast<MemoryFile*>(context);
    EXPECT_LE(place + count, file->bytes_.size());
    std::memcpy(bytes, file->bytes_.data() + place, count);
    file->bytes_read_ += count;
    return file->call();
  }

  std::vector<unsigned char> bytes_;
  std::uint64_t calls_ = ~std::uint64_t{0};
  std::uint64_t bytes_read_ = 0;
  RowFile functions_{this, write, read};
};

/// The same points in chunks of 2^chunk_bits rows. Each chunk has memory of its own, so that a
/// sanitizer sees any read beyond it.
class StoredPoints {
 public:
  StoredPoints(const Points& points, std::uint32_t chunk_bits)
      : StoredPoints(points.view(), chunk_bits) {}
  /// Of one chunk.
  StoredPoints(const Dataset& points, std::uint32_t chunk_bits) : in_memory_(points) {
    const Dataset whole = in_memory_;
    in_memory_.chunk_bits = chunk_bits;
    for (std::uint64_t number = 0; number < chunk_count(in_memory_); ++number) {
      const auto* const begin =
          static_cast<const unsigned char*>(point(whole, number << chunk_bits));
      chunks_.emplace_back(begin, begin + rows_of_chunk(in_memory_, number) * point_bytes(whole));
    }
    for (const auto& chunk : chunks_) pointers_.push_back(chunk.data());
    if (pointers_.empty()) return;
    in_memory_.first_chunk = pointers_[0];
    in_memory_.more_chunks = pointers_.data() + 1;
  }
  StoredPoints(const StoredPoints&) = delete;

  const Dataset& in_chunks() const { return in_memory_; }

  /// In a file, as long as this and the file live; half of the rows are the sample.
  Dataset in_file(MemoryFile& file) {
    Dataset data = in_memory_;
    places_.clear();
    for (std::uint64_t number = 0; number < chunks_.size(); ++number) {
      std::vector<std::int64_t> ids;
      for (std::uint64_t i = 0; i < rows_of_chunk(data, number); ++i)
        ids.push_back(id_of(data, (number << data.chunk_bits) + i));
      places_.push_back(file.append(ids.data(), ids.size() * sizeof(std::int64_t)));
      file.append(chunks_[number].data(), chunks_[number].size());
      if (data.scores != nullptr)
        file.append(data.scores + (number << data.chunk_bits), ids.size() * sizeof(double));
    }
    key_places_.clear();
    for (std::uint32_t k = 0; k < data.key_columns; ++k)
      for (std::uint64_t number = 0; number < chunks_.size(); ++number) {
        std::vector<double> keys;
        for (std::uint64_t i = 0; i < rows_of_chunk(data, number); ++i)
          keys.push_back(key_of(data, (number << data.chunk_bits) + i, k));
        key_places_.push_back(file.append(keys.data(), keys.size() * sizeof(double)));
      }
    sample_ = in_memory_;
    sample_.rows = (data.rows + 1) / 2;
    sample_.ids = nullptr;
    sample_.scores = nullptr;
    data.scores_in_file = data.scores != nullptr;
    data.scores = nullptr;
    data.first_chunk = nullptr;
    data.more_chunks = nullptr;
    data.ids = nullptr;
    data.keys = nullptr;
    data.key_places = key_places_.data();
    data.sum_places = nullptr;
    data.file = file.functions();
    data.places = places_.data();
    data.sample = &sample_;
    return data;
  }

  /// Puts columns of 8 bytes a row beside the points in the file.
  void add_columns(MemoryFile& file, const std::vector<const void*>& columns, Dataset* data) {
    sum_places_.clear();
    for (const void* const column : columns)
      for (std::uint64_t number = 0; number < chunks_.size(); ++number)
        sum_places_.push_back(
            file.append(static_cast<const std::uint64_t*>(column) + (number << data->chunk_bits),
                        rows_of_chunk(*data, number) * sizeof(std::uint64_t)));
    data->sum_places = sum_places_.data();
  }

 private:
  Dataset in_memory_, sample_{};
  std::vector<std::vector<unsigned char>> chunks_;
  std::vector<const void*> pointers_;
  std::vector<std::uint64_t> places_, key_places_, sum_places_;
};

}  // namespace gpujoin::test

#include "service/tables/row_chunks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace gpujoin::service {
namespace {

/// A change copies a whole chunk, so chunks are small; but not so small that there are too many.
std::uint32_t bits_of(std::uint64_t row_bytes) {
  constexpr std::uint64_t kChunkBytes = 1 << 14, kFewestRows = 4;
  const std::uint64_t rows =
      std::max(kFewestRows, kChunkBytes / std::max<std::uint64_t>(row_bytes, 1));
  return static_cast<std::uint32_t>(std::bit_width(rows) - 1);
}

}  // namespace

RowChunks::RowChunks(std::uint64_t row_bytes) : row_bytes_(row_bytes), bits_(bits_of(row_bytes)) {}

RowChunks::RowChunks(Region region, std::uint64_t rows, std::uint64_t row_bytes)
    : RowChunks(row_bytes) {
  first_ = std::make_shared<const Region>(std::move(region));
  first_rows_ = rows;
  for (std::uint64_t row = 0; row < rows; row += std::uint64_t{1} << bits_)
    append({first_, const_cast<unsigned char*>(first_->data()) + row * row_bytes_});
}

std::uint64_t RowChunks::bytes() const {
  const std::uint64_t all = (chunks_.size() << bits_) * row_bytes_;
  return all + chunks_.size() * sizeof(void*) * 3;
}

/// Its bytes are unknown.
std::shared_ptr<unsigned char> RowChunks::make_chunk() const {
  const std::size_t words = ((row_bytes_ << bits_) + 7) / 8;
  const std::shared_ptr<std::uint64_t[]> owner(new std::uint64_t[words]);
  return {owner, reinterpret_cast<unsigned char*>(owner.get())};
}

void RowChunks::append(std::shared_ptr<unsigned char> chunk) {
  places_.push_back(chunk.get());
  chunks_.push_back(std::move(chunk));
}

unsigned char* RowChunks::change(std::uint64_t number) {
  const std::uint64_t first = number >> bits_ << bits_;
  std::shared_ptr<unsigned char>& chunk = chunks_[number >> bits_];
  const bool is_of_region =
      first < first_rows_ && chunk.get() == first_->data() + first * row_bytes_;
  if (is_of_region || chunk.use_count() > 1) {
    const std::uint64_t all = std::uint64_t{1} << bits_;
    const std::uint64_t rows = is_of_region ? std::min(all, first_rows_ - first) : all;
    std::shared_ptr<unsigned char> own = make_chunk();
    std::memcpy(own.get(), chunk.get(), rows * row_bytes_);
    chunk = std::move(own);
    places_[number >> bits_] = chunk.get();
  }
  return chunk.get() + place_of(number);
}

void RowChunks::reserve(std::uint64_t rows) {
  while (chunks_.size() << bits_ < rows) append(make_chunk());
}

void RowChunks::place(Dataset* data) const {
  data->first_chunk = places_.empty() ? nullptr : places_.front();
  data->chunk_bits = bits_;
  data->more_chunks = places_.size() > 1 ? places_.data() + 1 : nullptr;
}

}  // namespace gpujoin::service

#include "service/tables/table_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

constexpr const char* kName = "gpujoin table";

Region copy_of(const Region& region, std::uint64_t bytes) {
  Region copy(kName, bytes);
  if (bytes > 0) std::memcpy(copy.data(), region.data(), bytes);
  return copy;
}

}  // namespace

TableRows::TableRows(const TableRows& other)
    : coordinates_(copy_of(other.coordinates_, other.end_ * other.row_bytes())),
      ids_(copy_of(other.ids_, other.end_ * sizeof(std::int64_t))),
      dims_(other.dims_),
      scalar_(other.scalar_),
      end_(other.end_),
      live_(other.live_),
      blocks_(other.blocks_) {}

std::uint64_t TableRows::bytes() const {
  return coordinates_.bytes() + ids_.bytes() + blocks_.size() * sizeof(Slots);
}

Dataset TableRows::view(const DatasetKey& key) const {
  Dataset data = {coordinates_.data(), ids_.as<std::int64_t>(), end_, dims_, scalar_};
  data.key = key;
  return data;
}

bool TableRows::lacks_blocks(const TablePatch& patch) const {
  const auto beyond =
      std::find_if(patch.blocks.begin(), patch.blocks.end(),
                   [&](const auto& block) { return block.block >= blocks_.size(); });
  const std::uint64_t known = std::min<std::uint64_t>(blocks_.size(), patch.table_blocks);
  return known + static_cast<std::uint64_t>(patch.blocks.end() - beyond) != patch.table_blocks;
}

bool TableRows::has_same_rows(const TablePatch& patch, const TablePatch::Block& block) const {
  if (block.block >= blocks_.size()) return block.proof.rows == 0;
  const Slots& slots = blocks_[block.block];
  const ClientRows& rows = patch.rows;
  if (slots.rows != block.proof.rows) return false;
  if (slots.rows == 0) return true;
  if (rows.dims != dims_ || rows.scalar != scalar_) return false;
  return std::memcmp(ids_.as<std::int64_t>() + slots.first,
                     rows.ids.as<std::int64_t>() + block.first_row,
                     slots.rows * sizeof(std::int64_t)) == 0 &&
         std::memcmp(coordinates_.data() + slots.first * row_bytes(),
                     rows.coordinates.data() + block.first_row * row_bytes(),
                     slots.rows * row_bytes()) == 0;
}

bool TableRows::is_changed_by(const TablePatch& patch, bool lasting) const {
  if (patch.table_blocks != blocks_.size()) return true;
  return std::any_of(patch.blocks.begin(), patch.blocks.end(), [&](const auto& block) {
    return regards(block, lasting) && !has_same_rows(patch, block);
  });
}

/// Rows of the blocks that stay as they are.
std::uint64_t TableRows::rows_left_by(const TablePatch& patch, bool lasting) const {
  std::uint64_t rows = live_;
  for (const auto& block : patch.blocks)
    if (block.block < blocks_.size() && regards(block, lasting)) rows -= blocks_[block.block].rows;
  for (std::uint64_t block = patch.table_blocks; block < blocks_.size(); ++block)
    rows -= blocks_[block].rows;
  return rows;
}

/// Makes the patch's rows the only ones, in their memory.
void TableRows::adopt(TablePatch& patch, bool lasting) {
  std::vector<Slots> blocks(patch.table_blocks);
  std::uint64_t live = 0;
  for (const auto& block : patch.blocks) {
    if (!regards(block, lasting)) continue;
    blocks[block.block] = {block.first_row, block.proof.rows, block.proof.rows};
    live += block.proof.rows;
  }
  blocks_ = std::move(blocks);
  live_ = live;
  end_ = patch.rows.rows;
  coordinates_ = std::move(patch.rows.coordinates);
  ids_ = std::move(patch.rows.ids);
  dims_ = patch.rows.dims;
  scalar_ = patch.rows.scalar;
}

void TableRows::clear(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t numbers = count * dims_;
  if (scalar_ == ScalarType::kFloat32)
    std::fill_n(coordinates_.as<float>() + first * dims_, numbers,
                std::numeric_limits<float>::quiet_NaN());
  else
    std::fill_n(coordinates_.as<double>() + first * dims_, numbers,
                std::numeric_limits<double>::quiet_NaN());
  std::fill_n(ids_.as<std::int64_t>() + first, count, 0);
}

void TableRows::reserve(std::uint64_t slots) {
  coordinates_.grow(slots * row_bytes());
  ids_.grow(slots * sizeof(std::int64_t));
}

/// Where the block's slots do not suffice it gets others at the end; those there become longer.
void TableRows::put(const TablePatch& patch, const TablePatch::Block& block) {
  Slots& slots = blocks_[block.block];
  const std::uint32_t rows = block.proof.rows;
  if (rows > slots.count) {
    const bool is_last = slots.count > 0 && slots.first + slots.count == end_;
    if (!is_last) {
      clear(slots.first, slots.count);
      slots.first = end_;
    }
    end_ = slots.first + rows;
    slots.count = rows;
  }
  if (rows > 0) {
    std::memcpy(coordinates_.data() + slots.first * row_bytes(),
                patch.rows.coordinates.data() + block.first_row * row_bytes(), rows * row_bytes());
    std::memcpy(ids_.as<std::int64_t>() + slots.first,
                patch.rows.ids.as<std::int64_t>() + block.first_row, rows * sizeof(std::int64_t));
  }
  clear(slots.first + rows, slots.count - rows);
  live_ = live_ - slots.rows + rows;
  slots.rows = rows;
}

void TableRows::apply(TablePatch& patch, bool lasting) {
  std::vector<const TablePatch::Block*> changed;
  for (const auto& block : patch.blocks)
    if (regards(block, lasting)) changed.push_back(&block);
  if (rows_left_by(patch, lasting) == 0) {
    if (changed.size() == patch.blocks.size()) return adopt(patch, lasting);
    start_anew(patch.rows);
  }
  require(patch.rows.rows == 0 || (patch.rows.dims == dims_ && patch.rows.scalar == scalar_),
          "the vectors of a table have different numbers of dimensions");
  std::uint64_t more_slots = 0;
  for (const auto* const block : changed)
    if (block->block >= blocks_.size() || block->proof.rows > blocks_[block->block].count)
      more_slots += block->proof.rows;
  reserve(end_ + more_slots);
  for (std::uint64_t block = patch.table_blocks; block < blocks_.size(); ++block) {
    clear(blocks_[block].first, blocks_[block].count);
    live_ -= blocks_[block].rows;
  }
  blocks_.resize(patch.table_blocks);
  for (const TablePatch::Block* const block : changed) put(patch, *block);
}

/// Forgets all slots, for rows that may have other dimensions.
void TableRows::start_anew(const ClientRows& rows) {
  coordinates_ = Region(kName, 0);
  ids_ = Region(kName, 0);
  std::fill(blocks_.begin(), blocks_.end(), Slots{});
  end_ = live_ = 0;
  dims_ = rows.dims;
  scalar_ = rows.scalar;
}

void TableRows::pack() {
  Region coordinates(kName, live_ * row_bytes()), ids(kName, live_ * sizeof(std::int64_t));
  std::vector<Slots> blocks = blocks_;
  std::uint64_t end = 0;
  for (Slots& slots : blocks) {
    if (slots.rows > 0) {
      std::memcpy(coordinates.data() + end * row_bytes(),
                  coordinates_.data() + slots.first * row_bytes(), slots.rows * row_bytes());
      std::memcpy(ids.as<std::int64_t>() + end, ids_.as<std::int64_t>() + slots.first,
                  slots.rows * sizeof(std::int64_t));
    }
    slots = {end, slots.rows, slots.rows};
    end += slots.rows;
  }
  coordinates_ = std::move(coordinates);
  ids_ = std::move(ids);
  blocks_ = std::move(blocks);
  end_ = end;
}

}  // namespace gpujoin::service

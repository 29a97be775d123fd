// What a backend has read of a table: whole blocks, in the place of those that are there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "service/open_join.h"

namespace gpujoin::service {

struct TablePatch {
  /// A block. Rows that come to it lie together in `rows` from `first_row` on, and in `moved` from
  /// `first_moved` on.
  struct Block : BlockPatch {
    std::uint64_t first_row, first_moved;
    std::uint32_t new_rows, moved_rows;

    std::uint32_t coming_rows() const { return new_rows + moved_rows; }
  };

  /// The id, the point and the score of a row that comes to a block, the new rows first. The score
  /// is 0 if rows are not scored.
  std::int64_t id(const Block& block, std::uint32_t row) const {
    return row < block.new_rows ? rows.ids.as<std::int64_t>()[block.first_row + row]
                                : moved[block.first_moved + row - block.new_rows].ctid;
  }
  const unsigned char* point(const Block& block, std::uint32_t row, std::uint64_t bytes) const {
    return row < block.new_rows
               ? rows.coordinates.data() + (block.first_row + row) * bytes
               : moved_points.get() + (block.first_moved + row - block.new_rows) * bytes;
  }

  double score(const Block& block, std::uint32_t row) const {
    return rows.scored() && row < block.new_rows ? rows.scores.as<double>()[block.first_row + row]
                                                 : 0;
  }

  std::vector<Block> blocks;  ///< ascending
  std::vector<MovedRow> moved;
  std::unique_ptr<unsigned char[]> moved_points;  ///< of `moved`, by TableRows::find_moved()
  std::vector<std::uint64_t> map_lsns;
  bool has_map = false;            ///< map_lsns are new
  std::uint64_t table_blocks = 0;  ///< that the table has now
  TableTraits traits{};
  ClientRows rows;
};

/// Checks that blocks and rows fit each other. Throws Failure.
TablePatch read_patch(const SideMessage& side, ClientRows rows);

}  // namespace gpujoin::service

// What a backend has read of a table: whole blocks, in the place of those that are there.
#pragma once

#include <cstdint>
#include <vector>

#include "service/open_join.h"

namespace gpujoin::service {

struct TablePatch {
  /// A block. Rows that do not stay as they are lie together in `rows` from `first_row` on.
  struct Block : BlockPatch {
    std::uint64_t first_row;
    std::uint32_t new_rows;
  };

  std::vector<Block> blocks;  ///< ascending
  std::vector<std::uint64_t> map_lsns;
  bool has_map = false;            ///< map_lsns are new
  std::uint64_t table_blocks = 0;  ///< that the table has now
  TableTraits traits{};
  ClientRows rows;
};

/// Checks that blocks and rows fit each other. Throws Failure.
TablePatch read_patch(const SideMessage& side, ClientRows rows);

}  // namespace gpujoin::service

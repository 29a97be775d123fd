#include "service/tables/table_patch.h"

#include <cstring>

#include "service/failure.h"

namespace gpujoin::service {

TablePatch read_patch(const SideMessage& side, ClientRows rows) {
  constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 32;
  require(side.blocks <= kMostBlocks, "a table has no such blocks");
  TablePatch patch;
  patch.table_blocks = side.blocks;
  patch.traits = side.traits;
  patch.rows = std::move(rows);
  std::uint64_t next_row = 0, next_moved = 0;
  if (side.has_patches) {
    patch.has_map = true;
    const auto* const lsns = patch.rows.patches.as<std::uint64_t>();
    patch.map_lsns.assign(lsns, lsns + side.map_pages);
    const auto* const blocks = reinterpret_cast<const BlockPatch*>(lsns + side.map_pages);
    const auto* const moved = reinterpret_cast<const MovedRow*>(blocks + side.patches);
    patch.moved.assign(moved, moved + side.moved);
    patch.blocks.reserve(side.patches);
    for (std::uint64_t i = 0; i < side.patches; ++i) {
      const BlockPatch block = blocks[i];
      require(block.block < side.blocks &&
                  (patch.blocks.empty() || patch.blocks.back().block < block.block) &&
                  static_cast<std::uint32_t>(block.proof.state) <=
                      static_cast<std::uint32_t>(BlockState::kCommitted) &&
                  is_bool(block.lasts) && block.same.count() <= block.proof.rows,
              "the blocks of a table are not in order");
      std::uint64_t end_moved = next_moved;
      while (end_moved < side.moved && patch.moved[end_moved].ctid >> 16 == block.block)
        ++end_moved;
      const auto moved_rows = static_cast<std::uint32_t>(end_moved - next_moved);
      const std::uint32_t others = block.proof.rows - block.same.count();
      require(moved_rows <= others, "a block of a table has more rows than it has");
      patch.blocks.push_back({block, next_row, next_moved, others - moved_rows, moved_rows});
      next_row += others - moved_rows;
      next_moved = end_moved;
    }
  }
  require(next_row == side.rows && next_moved == patch.moved.size(),
          "the blocks of a table do not have as many rows as came with them");
  patch.rows.patches = Region();
  return patch;
}

}  // namespace gpujoin::service

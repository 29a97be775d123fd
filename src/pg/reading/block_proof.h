// What is kept of a table, and which of its blocks have to be looked at, by the visibility map.
#pragma once

#include "pg/reading/heap_blocks.h"

namespace gpujoin {

/// The proofs of what is kept of a table, as the service keeps them.
struct KeptBlocks {
  const std::uint64_t* map_lsns;  ///< [map_pages]
  std::uint64_t map_pages;
  const service::BlockProof* blocks;  ///< [count]
  std::uint64_t count;
  int file;  ///< a descriptor of the memory that begins with map_lsns
};

/// The visibility map as it was read: to be kept with the blocks that are visited after that.
struct MapReading {
  std::uint64_t* lsns;  ///< [pages], 0: never a proof
  std::uint64_t pages;
  std::uint64_t* words;  ///< [word_count] of the map, 0 where it proves nothing
  std::uint64_t word_count;
  std::uint64_t known;  ///< blocks that are kept and that the words tell of
};

/// The shape of FoundTable's memory.
inline KeptBlocks kept_blocks(const void* proof, std::uint64_t map_pages, std::uint64_t blocks,
                              int file = -1) {
  const auto* const lsns = static_cast<const std::uint64_t*>(proof);
  return {lsns, map_pages, reinterpret_cast<const service::BlockProof*>(lsns + map_pages), blocks,
          file};
}

inline std::uint64_t proof_bytes(std::uint64_t map_pages, std::uint64_t blocks) {
  return map_pages * sizeof(std::uint64_t) + blocks * sizeof(service::BlockProof);
}

/// Reads the map of a table in the current memory context: bytes for every four blocks, and no
/// other pages. Before the blocks: see block_proof.cpp.
MapReading read_map(const HeapBlocks& heap, const KeptBlocks& kept);

/// Returns the first block of block .. end - 1 for whose rows the map does not vouch, or `end`.
BlockNumber next_unproven(const MapReading& map, BlockNumber block, BlockNumber end);

/// Whether what is kept of a block serves no snapshot any more that finds the block's LSN to be
/// that of `now`: rows that were read in its place may replace it.
inline bool replaces(const service::BlockProof& now, const service::BlockProof* kept) {
  return kept == nullptr || kept->lsn != now.lsn || kept->state == service::BlockState::kUnproven;
}

}  // namespace gpujoin

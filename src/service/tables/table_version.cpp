#include "service/tables/table_version.h"

#include <algorithm>

namespace gpujoin::service {

TableVersion::TableVersion(std::uint64_t number, const TableVersion* before,
                           const TablePatch& patch, std::shared_ptr<TableRows> rows, DatasetKey key)
    : number_(number),
      rows_(std::move(rows)),
      key_(key),
      traits_(before != nullptr && before->key_ == key ? before->traits_ : patch.traits),
      blocks_(patch.table_blocks),
      map_pages_(patch.has_map || before == nullptr ? patch.map_lsns.size() : before->map_pages_),
      proof_("gpujoin proof", map_pages_ * sizeof(std::uint64_t) + blocks_ * sizeof(BlockProof)) {
  auto* const lsns = proof_.as<std::uint64_t>();
  std::copy_n(patch.has_map || before == nullptr ? patch.map_lsns.data() : before->map_lsns(),
              map_pages_, lsns);
  auto* const proofs = reinterpret_cast<BlockProof*>(lsns + map_pages_);
  const std::uint64_t known = before == nullptr ? 0 : std::min(blocks_, before->blocks_);
  if (known > 0) std::copy_n(before->block_proofs(), known, proofs);
  for (const auto& block : patch.blocks)
    if (block.lasts || block.block >= known) proofs[block.block] = block.proof;
  all_visible_ = std::all_of(proofs, proofs + blocks_, [](const BlockProof& proof) {
    return proof.state == BlockState::kAllVisible;
  });
}

}  // namespace gpujoin::service

// A version of a table: its rows, and what proves that they are still those of the table. It does
// not change, but for its rows where nobody else uses them.
#pragma once

#include <cstdint>
#include <memory>

#include "service/tables/table_patch.h"
#include "service/tables/table_rows.h"

namespace gpujoin::service {

class TableVersion {
 public:
  /// The version after a patch that lasts, with the proof that it has of the blocks, and with the
  /// rows that come of it; `before` may be null. If these are the rows of `before`, as the key
  /// says, so are the traits. Throws Failure.
  TableVersion(std::uint64_t number, const TableVersion* before, const TablePatch& patch,
               std::shared_ptr<TableRows> rows, DatasetKey key);

  std::uint64_t number() const { return number_; }
  const std::shared_ptr<TableRows>& rows() const { return rows_; }
  const DatasetKey& key() const { return key_; }
  const TableTraits& traits() const { return traits_; }
  bool all_visible() const { return all_visible_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t map_pages() const { return map_pages_; }
  /// As FoundTable has it; a descriptor of its own for reading. Throws Failure.
  int open_proof() const { return proof_.open_for_reading(); }
  std::uint64_t bytes() const { return proof_.bytes() + rows_->bytes(); }

 private:
  const std::uint64_t* map_lsns() const { return proof_.as<std::uint64_t>(); }
  const BlockProof* block_proofs() const {
    return reinterpret_cast<const BlockProof*>(map_lsns() + map_pages_);
  }

  std::uint64_t number_;
  std::shared_ptr<TableRows> rows_;
  DatasetKey key_;
  TableTraits traits_;
  std::uint64_t blocks_, map_pages_;
  bool all_visible_;
  Region proof_;
};

}  // namespace gpujoin::service

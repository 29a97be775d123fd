// The rows of a version of a table, points or boxes. A block has slots in arrays; slots without a
// row have NaN for coordinates, so that they match nothing, and the score of a row that was there.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "engine/request/dataset.h"
#include "service/region.h"
#include "service/tables/row_chunks.h"
#include "service/tables/shared_array.h"
#include "service/tables/table_patch.h"

namespace gpujoin::service {

/// The rows of a version that engines have indexed. Later versions share most of its memory.
struct TableBase {
  RowChunks points;
  SharedArray<std::int64_t> ids;  ///< by slot
  std::uint64_t rows;             ///< in these slots
};

/// How rows differ from an earlier version: some of its slots have changed, and there are slots
/// after its last one.
struct TableChanges {
  std::uint64_t version = 0;              ///< the earlier version; 0: unknown
  std::shared_ptr<const TableBase> base;  ///< its rows; null: nothing has changed
  std::vector<std::uint64_t> changed;     ///< slots
  std::vector<bool> is_changed;           ///< by slot of the earlier version
  std::unordered_set<std::int64_t> ids;   ///< of rows that the earlier version had there
};

/// Members throw Failure and std::bad_alloc.
class TableRows {
 public:
  TableRows() = default;  ///< of a table without blocks
  TableRows(const TableRows& other);
  TableRows& operator=(const TableRows&) = delete;

  std::uint64_t live_rows() const { return live_; }
  std::uint64_t slots() const { return end_; }
  std::uint64_t holes() const { return end_ - live_; }
  std::uint64_t bytes() const;
  std::uint64_t block_count() const { return blocks_.size(); }
  std::uint32_t dims() const { return dims_; }
  ScalarType scalar() const { return scalar_; }
  /// All slots.
  Dataset view(const DatasetKey& key) const;

  const TableChanges& changes() const { return changes_; }
  /// Whether so much has changed that a new index is worth it.
  bool has_many_changes() const;
  /// Counts changes from now on; these rows are those of `version`.
  void begin_changes(std::uint64_t version) {
    changes_ = {};
    changes_.version = version;
  }
  void forget_changes() { changes_ = {}; }
  /// The rows of the earlier version, if something has changed.
  Dataset base_view(const DatasetKey& key) const;

  /// Whether the patch leaves out blocks that are not here. `lasting`: here and below, only what
  /// lasts of the patch is regarded, and all that is beyond these blocks.
  bool lacks_blocks(const TablePatch& patch) const;
  /// Whether the rows, or the number of blocks, would be others.
  bool is_changed_by(const TablePatch& patch, bool lasting) const;
  /// Sets TablePatch::moved_points from these rows, which the patch is of.
  void find_moved(TablePatch* patch) const;
  /// Changes the rows. May take the memory of the patch's rows if no others are left. After an
  /// exception the rows are in an unknown state.
  void apply(TablePatch& patch, bool lasting);
  /// Leaves no slot without a row. Slots are others afterwards.
  void pack();

  /// Who uses it; the store's lock guards it.
  int holds = 0;

 private:
  /// A block's slots lie together, but for some that it got later.
  struct Slots {
    std::uint64_t first = 0, more_first = 0;
    std::uint32_t count = 0, more_count = 0;
    std::uint32_t rows = 0;  ///< in the first places

    std::uint32_t places() const { return count + more_count; }
    std::uint64_t slot(std::uint32_t place) const {
      return place < count ? first + place : more_first + (place - count);
    }
  };
  bool regards(const TablePatch::Block& block, bool lasting) const {
    return !lasting || block.lasts || block.block >= blocks_.size();
  }
  bool has_form_of(const ClientRows& rows) const;
  bool has_same_row(std::uint64_t slot, const TablePatch& patch, const TablePatch::Block& block,
                    std::uint32_t row) const;
  std::uint32_t rows_that_stay(const TablePatch::Block& block) const;
  bool has_same_rows(const TablePatch& patch, const TablePatch::Block& block) const;
  std::vector<std::uint32_t> places_of(const TablePatch& patch,
                                       const TablePatch::Block& block) const;
  bool leaves_rows(const TablePatch& patch, bool lasting) const;
  void adopt(TablePatch& patch, bool lasting);
  void take_form_of(const ClientRows& rows);
  void start_anew(const ClientRows& rows);
  void clear(std::uint64_t first, std::uint64_t count);
  void keep_base();
  void note_change(std::uint64_t slot);
  void set_row(std::uint64_t slot, const unsigned char* point, std::int64_t id, double score);
  void move_row(std::uint64_t from, std::uint64_t to);
  double score_at(std::uint64_t slot) const { return scored_ ? scores_[slot] : 0; }
  std::int64_t id_at(std::uint64_t slot) const { return ids_[slot]; }
  std::uint32_t slots_for(const TablePatch::Block& block) const;
  void add_slots(const TablePatch::Block& block);
  void put(const TablePatch& patch, const TablePatch::Block& block);
  void reserve(std::uint64_t slots);

  RowChunks points_;
  SharedArray<std::int64_t> ids_;
  SharedArray<double> scores_;
  std::uint32_t dims_ = 0;
  ScalarType scalar_ = ScalarType::kFloat64;
  bool scored_ = false;
  std::uint64_t end_ = 0;   ///< slots in use by blocks, or left by them
  std::uint64_t live_ = 0;  ///< rows
  std::vector<Slots> blocks_;
  TableChanges changes_;
};

}  // namespace gpujoin::service

// The tables that stay. Each has a version that conversations find and hold; what they read of it
// anew makes the next one. What somebody holds stays as it is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service/engines.h"
#include "service/tables/table_version.h"

namespace gpujoin::service {

class TableStore;

/// What a conversation has found, or made, of a table; nobody changes it before this goes.
class TableHold {
 public:
  TableHold() = default;
  TableHold(TableHold&& other) noexcept { swap(other); }
  TableHold& operator=(TableHold&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TableHold();

  /// Whether there are rows: they were found, or patched.
  bool is_there() const { return own_ != nullptr || version_ != nullptr; }
  /// Null: nothing was found.
  const TableVersion* version() const { return version_.get(); }
  /// The rows for a join, once they were patched.
  Dataset rows() const { return own_ != nullptr ? own_->view({}) : version_->rows()->view(key_); }
  /// The rows of the version that changes() are counted from, by the name that they have for
  /// engines even if others have changed the table since; rows(), if that version is unknown.
  Dataset indexed_rows() const;
  const TableChanges& changes() const { return table_rows().changes(); }
  std::uint64_t live_rows() const {
    return own_ != nullptr ? own_->live_rows() : version_->rows()->live_rows();
  }

 private:
  friend class TableStore;
  void swap(TableHold& other) noexcept;
  const TableRows& table_rows() const { return own_ != nullptr ? *own_ : *version_->rows(); }

  TableStore* store_ = nullptr;
  std::uint32_t database_ = 0;
  TableKey table_{};
  std::string path_;  ///< the first file of its rows
  std::shared_ptr<const TableVersion> version_;
  DatasetKey key_;                  ///< of the version, where its rows are the current ones
  std::unique_ptr<TableRows> own_;  ///< in the place of the version's
};

/// For all threads. Members throw Failure and std::bad_alloc.
class TableStore {
 public:
  explicit TableStore(Engines& engines) : engines_(engines) {}

  /// Bytes that tables may take; those used least recently go.
  void configure(std::uint64_t bytes);
  bool may_stay(std::uint64_t bytes) const;

  /// Holds the current version of a table of this database.
  TableHold find(std::uint32_t database, const TableKey& key, const char* path);

  /// Says what there is of a table, without its proof, to a client that asks only.
  void describe(std::uint32_t database, const TableKey& key, FoundTable* answer) const;

  /// Sets the rows of what is held: those of its version with the patch. What of the patch lasts
  /// makes the next version, unless another conversation has made one. `packed`: no slot may be
  /// without a row.
  void patch(TableHold& hold, TablePatch& patch, bool packed);

  std::vector<ListedTable> list(std::uint32_t database);
  /// Drops what there is of a relation, in one database or in all, and returns how many tables that
  /// were. `relation` 0: of all relations.
  std::uint64_t evict(std::optional<std::uint32_t> database, std::uint32_t relation);
  /// Drops tables whose files are gone: they were dropped or rewritten, or their database was.
  /// PostgreSQL cuts such a file to nothing before it removes it, but VACUUM may do so, too: then
  /// a table goes that was not used for so long.
  void drop_removed(std::chrono::milliseconds patience = std::chrono::seconds(2));

 private:
  friend class TableHold;
  using Clock = std::chrono::steady_clock;
  struct Table {
    std::uint32_t database;
    TableKey key;
    std::string path;
    std::shared_ptr<const TableVersion> version;
    bool changing = false;      ///< its rows are, for one who holds them alone
    std::uint64_t bytes, rows;  ///< of the version
    std::uint64_t hits = 0, blocks_read = 0;
    std::uint64_t last_use = 0;
    std::uint64_t empty_use = 0;    ///< the last use when its file was seen empty
    Clock::time_point empty_since;  ///< when that was first seen after this use
    bool is_gone = false;           ///< its file is, so that the table goes
  };
  using Tables = std::map<std::string, Table>;  ///< by database and key
  using Lock = std::unique_lock<std::mutex>;

  bool is_current(const TableHold& hold) const;
  bool has_current_rows(const TableHold& hold) const;
  bool begin_change(TableHold& hold, bool changes, bool* alone);
  std::shared_ptr<TableRows> make_rows(const TableHold& hold, TablePatch& patch, bool packed,
                                       bool alone);
  void publish(TableHold& hold, const TablePatch& patch, std::shared_ptr<TableRows> rows,
               bool changes);
  void abandon(TableHold& hold);
  void attach(TableHold& hold, std::shared_ptr<const TableVersion> version, const DatasetKey& key);
  void detach(TableHold& hold);
  template <class Goes>
  std::uint64_t drop(const Goes& goes);
  void drop_rewritten(const Table& by);
  void shrink();
  void forget_dropped();

  Engines& engines_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  Tables tables_;
  std::uint64_t budget_ = 0;
  std::uint64_t last_number_ = 0;       ///< of versions and identities
  std::uint64_t clock_ = 0;             ///< uses so far
  std::vector<std::uint64_t> dropped_;  ///< identities that engines are to forget
};

}  // namespace gpujoin::service

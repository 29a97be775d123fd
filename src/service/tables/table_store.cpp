#include "service/tables/table_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/failure.h"
#include "service/files.h"

namespace gpujoin::service {
namespace {

/// What tables are known by; those of one relation that differ in their file are neighbours.
std::string name_of(std::uint32_t database, const TableKey& key) {
  std::string name;
  const auto add = [&name](const void* bytes, std::size_t count) {
    name.append(static_cast<const char*>(bytes), count);
  };
  add(&database, sizeof database);
  add(&key.relation, sizeof key.relation);
  add(key.columns, key.columns_bytes);
  add(&key.tablespace, sizeof key.tablespace);
  add(&key.file, sizeof key.file);
  return name;
}

/// Whether the keys name the same columns of one relation.
bool is_same_relation(const TableKey& a, const TableKey& b) {
  return a.relation == b.relation && a.columns_bytes == b.columns_bytes &&
         std::memcmp(a.columns, b.columns, a.columns_bytes) == 0;
}

/// Returns true if more than a quarter of the slots are empty. Then the rows are packed.
bool is_sparse(const TableRows& rows) { return rows.holes() > rows.slots() / 4; }

/// Whether slots without rows have to go. No bits mark such a slot, but a search does not look at
/// them as long as it uses an earlier version.
bool needs_packing(const TableRows& rows, bool packed) {
  const bool are_searched = rows.scalar() == ScalarType::kBits && rows.has_many_changes();
  return rows.holes() > 0 && (packed || are_searched);
}

/// Whether a part of the patch does not last, so that others must not see it.
bool has_own_part(const TablePatch& patch, const TableRows& rows) {
  return std::any_of(patch.blocks.begin(), patch.blocks.end(), [&](const auto& block) {
    return !block.lasts && block.block < rows.block_count();
  });
}

}  // namespace

void TableHold::swap(TableHold& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(database_, other.database_);
  std::swap(table_, other.table_);
  std::swap(path_, other.path_);
  std::swap(version_, other.version_);
  std::swap(key_, other.key_);
  std::swap(own_, other.own_);
}

Dataset TableHold::indexed_rows() const {
  const std::uint64_t version = changes().version;
  if (version == 0) return rows();
  const DatasetKey key = {version_->key().identity, version, version};
  return changes().base ? table_rows().base_view(key) : table_rows().view(key);
}

TableHold::~TableHold() {
  if (store_ == nullptr) return;
  own_.reset();  // before the lock: a later owner of the lock may write chunks that these rows
                 // shared
  const std::lock_guard lock(store_->mutex_);
  store_->detach(*this);
}

void TableStore::attach(TableHold& hold, std::shared_ptr<const TableVersion> version,
                        const DatasetKey& key) {
  detach(hold);
  hold.version_ = std::move(version);
  hold.key_ = key;
  if (hold.version_ != nullptr) ++hold.version_->rows()->holds;
}

void TableStore::detach(TableHold& hold) {
  if (hold.version_ != nullptr) --hold.version_->rows()->holds;
  hold.version_.reset();
}

void TableStore::configure(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    budget_ = bytes;
    shrink();
  }
  forget_dropped();
}

bool TableStore::may_stay(std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return budget_ > 0 && bytes <= budget_;
}

TableHold TableStore::find(std::uint32_t database, const TableKey& key, const char* path) {
  require(key.columns_bytes <= kMostKeyBytes, "a table has no such key");
  TableHold hold;
  hold.store_ = this;
  hold.database_ = database;
  hold.table_ = key;
  hold.path_ = path;
  const std::string name = name_of(database, key);
  std::unique_lock lock(mutex_);
  for (;; changed_.wait(lock)) {
    const auto found = tables_.find(name);
    if (found == tables_.end()) return hold;
    Table& table = found->second;
    if (table.changing) continue;
    ++table.hits;
    table.last_use = ++clock_;
    attach(hold, table.version, table.version->key());
    return hold;
  }
}

void TableStore::describe(std::uint32_t database, const TableKey& key, FoundTable* answer) const {
  require(key.columns_bytes <= kMostKeyBytes, "a table has no such key");
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(name_of(database, key));
  if (found == tables_.end()) return;
  answer->version = found->second.version->number();
  answer->rows = found->second.rows;
}

/// Whether nobody has made another version of what is held.
bool TableStore::is_current(const TableHold& hold) const {
  const auto found = tables_.find(name_of(hold.database_, hold.table_));
  return (found == tables_.end() ? nullptr : found->second.version) == hold.version_;
}

/// Whether the current version has the rows of what is held: others have renewed its proof alone.
bool TableStore::has_current_rows(const TableHold& hold) const {
  const auto found = tables_.find(name_of(hold.database_, hold.table_));
  return found != tables_.end() && hold.version_ != nullptr &&
         found->second.version->key() == hold.version_->key();
}

/// Whether the next version may be made; then `alone` is whether in place.
bool TableStore::begin_change(TableHold& hold, bool changes, bool* alone) {
  const std::lock_guard lock(mutex_);
  if (!is_current(hold)) {
    if (!has_current_rows(hold)) hold.key_ = {};
    return false;
  }
  *alone = changes && hold.version_ != nullptr && hold.version_->rows()->holds == 1;
  if (*alone) tables_.find(name_of(hold.database_, hold.table_))->second.changing = true;
  return true;
}

std::shared_ptr<TableRows> TableStore::make_rows(const TableHold& hold, TablePatch& patch,
                                                 bool packed, bool alone) {
  std::shared_ptr<TableRows> rows;
  if (hold.version_ == nullptr)
    rows = std::make_shared<TableRows>();
  else if (alone)
    rows = hold.version_->rows();
  else
    rows = std::make_shared<TableRows>(*hold.version_->rows());
  rows->apply(patch, true);
  if (needs_packing(*rows, packed) || is_sparse(*rows)) rows->pack();
  return rows;
}

void TableStore::patch(TableHold& hold, TablePatch& patch, bool packed) {
  const TableRows none;
  const std::shared_ptr<const TableVersion> base = hold.version_;
  const TableRows& rows = base != nullptr ? *base->rows() : none;
  require(!rows.lacks_blocks(patch), "a table lacks blocks");
  rows.find_moved(&patch);
  const bool packs = packed && rows.holes() > 0;
  const bool changes = base == nullptr || packs || rows.is_changed_by(patch, true);
  const bool renews = changes || patch.has_map;
  bool has_more = has_own_part(patch, rows);
  bool alone = false;
  if (!begin_change(hold, changes, &alone)) {
    has_more = true;
  } else if (renews) {
    try {
      publish(hold, patch, changes ? make_rows(hold, patch, packed, alone) : base->rows(), changes);
    } catch (...) {
      abandon(hold);
      throw;
    }
  }
  if (!has_more) return;
  const TableRows& held = hold.version_ != nullptr ? *hold.version_->rows() : none;
  const bool differs = hold.version_ == nullptr || held.is_changed_by(patch, false);
  if (!differs && !(packed && held.holes() > 0)) return;
  hold.own_ = std::make_unique<TableRows>(held);
  hold.own_->apply(patch, false);
  if (needs_packing(*hold.own_, packed)) hold.own_->pack();
  if (hold.own_->has_many_changes()) hold.own_->forget_changes();
}

/// Makes the next version and holds it. Others find it, unless the table was dropped or changed
/// meanwhile.
void TableStore::publish(TableHold& hold, const TablePatch& patch, std::shared_ptr<TableRows> rows,
                         bool changes) {
  const std::string name = name_of(hold.database_, hold.table_);
  DatasetKey key = hold.version_ != nullptr ? hold.version_->key() : DatasetKey{};
  std::uint64_t number;
  {
    const std::lock_guard lock(mutex_);
    number = ++last_number_;
  }
  if (key.identity == 0) key.identity = number;
  if (changes) {
    key.version = number;
    if (rows->has_many_changes()) rows->begin_changes(number);
    key.base = rows->changes().version;
  }
  auto next =
      std::make_shared<const TableVersion>(number, hold.version(), patch, std::move(rows), key);
  {
    const std::lock_guard lock(mutex_);
    if (is_current(hold)) {
      Table& table = tables_[name];
      table.database = hold.database_;
      table.key = hold.table_;
      table.path = hold.path_;
      table.version = next;
      table.changing = false;
      table.bytes = next->bytes();
      table.rows = next->rows()->live_rows();
      table.blocks_read += patch.blocks.size();
      table.last_use = ++clock_;
      attach(hold, std::move(next), key);
      drop_rewritten(table);
      shrink();
    } else {
      if (hold.version() == nullptr) next->rows()->forget_changes();  // nobody drops its index
      attach(hold, std::move(next), !changes && has_current_rows(hold) ? key : DatasetKey{});
    }
    changed_.notify_all();
  }
  forget_dropped();
}

/// What was to be the next version is none: nobody knows what its rows are.
void TableStore::abandon(TableHold& hold) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = tables_.find(name_of(hold.database_, hold.table_));
    if (found != tables_.end() && found->second.version == hold.version_ &&
        found->second.changing) {
      dropped_.push_back(hold.version_->key().identity);
      tables_.erase(found);
    }
    detach(hold);
    changed_.notify_all();
  }
  forget_dropped();
}

/// Drops tables for which goes(table), and returns how many. Under the lock; then comes
/// forget_dropped() without the lock.
template <class Goes>
std::uint64_t TableStore::drop(const Goes& goes) {
  return std::erase_if(tables_, [&](const auto& entry) {
    if (!goes(entry.second)) return false;
    dropped_.push_back(entry.second.version->key().identity);
    return true;
  });
}

/// Drops what there is of a relation from before it was rewritten.
void TableStore::drop_rewritten(const Table& by) {
  drop([&](const Table& other) {
    return &other != &by && other.database == by.database && is_same_relation(other.key, by.key);
  });
}

/// Drops what was used least recently until the rest is within the budget.
void TableStore::shrink() {
  std::uint64_t bytes = 0;
  for (const auto& [name, table] : tables_) bytes += table.bytes;
  while (bytes > budget_) {
    const auto oldest = std::min_element(
        tables_.begin(), tables_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    bytes -= oldest->second.bytes;
    dropped_.push_back(oldest->second.version->key().identity);
    tables_.erase(oldest);
  }
}

/// Makes the engines forget what was dropped, without the lock, for they may keep it waiting.
void TableStore::forget_dropped() {
  std::vector<std::uint64_t> identities;
  {
    const std::lock_guard lock(mutex_);
    identities.swap(dropped_);
  }
  for (const std::uint64_t identity : identities) engines_.forget(identity);
}

std::vector<ListedTable> TableStore::list(std::uint32_t database) {
  std::vector<ListedTable> listed;
  std::vector<std::uint64_t> identities;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, table] : tables_) {
      if (table.database != database) continue;
      identities.push_back(table.version->key().identity);
      listed.push_back({.key = table.key,
                        .traits = table.version->traits(),
                        .rows = table.rows,
                        .host_bytes = table.bytes,
                        .device_bytes = 0,
                        .hits = table.hits,
                        .blocks_read = table.blocks_read});
    }
  }
  for (std::size_t i = 0; i < listed.size(); ++i)
    engines_.kept(identities[i], &listed[i].host_bytes, &listed[i].device_bytes);
  return listed;
}

std::uint64_t TableStore::evict(std::optional<std::uint32_t> database, std::uint32_t relation) {
  std::uint64_t count;
  {
    const std::lock_guard lock(mutex_);
    count = drop([&](const Table& table) {
      return (!database || table.database == *database) &&
             (relation == 0 || table.key.relation == relation);
    });
  }
  forget_dropped();
  return count;
}

void TableStore::drop_removed(std::chrono::milliseconds patience) {
  const Clock::time_point now = Clock::now();
  struct File {
    std::string path;
    FileState state;
  };
  std::vector<File> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, table] : tables_) files.push_back({table.path, FileState::kHasBytes});
  }
  for (File& file : files) file.state = state_of(file.path.c_str());
  std::erase_if(files, [](const File& file) { return file.state == FileState::kHasBytes; });
  if (files.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, table] : tables_) {
      const auto file = std::find_if(files.begin(), files.end(),
                                     [&](const File& one) { return one.path == table.path; });
      if (file == files.end()) continue;
      if (std::exchange(table.empty_use, table.last_use) != table.last_use) table.empty_since = now;
      const bool stays_empty = table.version->blocks() > 0 && now - table.empty_since >= patience;
      table.is_gone = file->state == FileState::kGone || stays_empty;
    }
    drop([](const Table& table) { return table.is_gone; });
  }
  forget_dropped();
}

}  // namespace gpujoin::service

#include "service/join_counts.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "service/clock.h"
#include "service/files.h"
#include "service/log.h"

namespace gpujoin::service {
namespace {

/// What the file begins with. One of another build is as good as none.
struct FileHeader {
  char mark[8] = {'g', 'p', 'u', 'j', 'o', 'i', 'n', '1'};
  std::uint64_t item_bytes = sizeof(DatabaseCounts);
  std::uint64_t items = 0;
};

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// What the file has; nothing where there is none that is whole.
std::vector<DatabaseCounts> read_counts(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"));
  FileHeader header, expected;
  if (!file || std::fread(&header, sizeof header, 1, file.get()) != 1) return {};
  expected.items = header.items;
  constexpr std::uint64_t kMostDatabases = 1 << 20;
  if (std::memcmp(&header, &expected, sizeof header) != 0 || header.items > kMostDatabases)
    return {};
  std::vector<DatabaseCounts> counts(header.items);
  if (std::fread(counts.data(), sizeof counts[0], counts.size(), file.get()) != counts.size())
    return {};
  return counts;
}

/// Writes another file and puts it in the place of the last one.
bool write_counts(const std::string& path, const std::vector<DatabaseCounts>& counts) {
  const std::string made = path + ".tmp";
  File file(std::fopen(made.c_str(), "wbe"));
  if (!file) return false;
  FileHeader header;
  header.items = counts.size();
  bool whole =
      std::fwrite(&header, sizeof header, 1, file.get()) == 1 &&
      std::fwrite(counts.data(), sizeof counts[0], counts.size(), file.get()) == counts.size();
  whole = std::fclose(file.release()) == 0 && whole;
  return whole && std::rename(made.c_str(), path.c_str()) == 0;
}

}  // namespace

CountStore::CountStore() : begun_us_(now_us()) {}

void CountStore::keep_in(std::string path) {
  const std::lock_guard lock(mutex_);
  for (DatabaseCounts& counts : read_counts(path)) {
    counts.folder[sizeof counts.folder - 1] = '\0';
    databases_[counts.database] = counts;
  }
  path_ = std::move(path);
}

void CountStore::save() {
  {
    const std::lock_guard lock(mutex_);
    if (path_.empty() || !std::exchange(changed_, false)) return;
  }
  if (write_counts(path_, list()) || std::exchange(failed_, true)) return;
  log_line("cannot keep the counts of joins in %s: %s", path_.c_str(), std::strerror(errno));
}

/// The counts of the sender's database, which may have moved. Under the lock.
DatabaseCounts& CountStore::counts_of(const Hello& sender) {
  DatabaseCounts& counts =
      databases_.try_emplace(sender.database, DatabaseCounts{sender.database, {}, begun_us_, {}})
          .first->second;
  std::snprintf(counts.folder, sizeof counts.folder, "%.*s",
                static_cast<int>(sizeof counts.folder - 1), sender.folder);
  changed_ = true;
  return counts;
}

void CountStore::add(const Hello& sender, const JoinCounts& counts) {
  const std::lock_guard lock(mutex_);
  add_counts(counts, &counts_of(sender).counts);
}

void CountStore::reset(const Hello& sender) {
  const std::lock_guard lock(mutex_);
  DatabaseCounts& counts = counts_of(sender);
  counts.since_us = now_us();
  counts.counts = {};
}

void CountStore::drop_removed() {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(databases_, [](const auto& entry) {
        return state_of(entry.second.folder) == FileState::kGone;
      }) > 0)
    changed_ = true;
}

std::vector<DatabaseCounts> CountStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<DatabaseCounts> listed;
  for (const auto& [database, counts] : databases_) listed.push_back(counts);
  return listed;
}

}  // namespace gpujoin::service

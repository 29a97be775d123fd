// What the joins of each database did since the first service began, or since somebody reset it.
// Joins that ran in sessions are counted, too, when their sessions report them. A file carries the
// counts from one service to the next, and over the server's restarts.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "service/protocol/messages.h"

namespace gpujoin::service {

class CountStore {
 public:
  CountStore();

  /// Takes over what the file has, and keeps the counts there from now on. Before there are other
  /// threads.
  void keep_in(std::string path);
  /// Writes what was counted since the last time, if anything. For one thread.
  void save();

  /// Adds to the counts of the sender's database.
  void add(const Hello& sender, const JoinCounts& counts);
  void reset(const Hello& sender);
  /// Forgets databases whose folders are gone.
  void drop_removed();
  std::vector<DatabaseCounts> list() const;

 private:
  DatabaseCounts& counts_of(const Hello& sender);

  const std::int64_t begun_us_;
  std::string path_;
  bool failed_ = false;  ///< to write, which the log has
  mutable std::mutex mutex_;
  bool changed_ = false;  ///< since the file was written
  std::map<std::uint32_t, DatabaseCounts> databases_;
};

}  // namespace gpujoin::service

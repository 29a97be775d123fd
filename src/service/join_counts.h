// What the joins of each database did since the service began, or since somebody reset it. Joins
// that ran in sessions are counted, too, when their sessions report them.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "service/protocol/messages.h"

namespace gpujoin::service {

class CountStore {
 public:
  CountStore();

  void add(std::uint32_t database, const JoinCounts& counts);
  void reset(std::uint32_t database);
  std::vector<DatabaseCounts> list() const;

 private:
  const std::int64_t begun_us_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, DatabaseCounts> databases_;
};

}  // namespace gpujoin::service

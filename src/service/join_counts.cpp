#include "service/join_counts.h"

#include "service/clock.h"

namespace gpujoin::service {

CountStore::CountStore() : begun_us_(now_us()) {}

void CountStore::add(std::uint32_t database, const JoinCounts& counts) {
  const std::lock_guard lock(mutex_);
  const auto place =
      databases_.try_emplace(database, DatabaseCounts{database, begun_us_, {}}).first;
  add_counts(counts, &place->second.counts);
}

void CountStore::reset(std::uint32_t database) {
  const std::lock_guard lock(mutex_);
  databases_[database] = {database, now_us(), {}};
}

std::vector<DatabaseCounts> CountStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<DatabaseCounts> listed;
  for (const auto& [database, counts] : databases_) listed.push_back(counts);
  return listed;
}

}  // namespace gpujoin::service

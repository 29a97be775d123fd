#include "service/join_board.h"

#include <cstdio>

#include "service/clock.h"

namespace gpujoin::service {

void JoinBoard::Entry::hide() {
  if (!shown_) return;
  const std::lock_guard lock(board_.mutex_);
  board_.entries_.erase(place_);
  shown_ = false;
}

void JoinBoard::Entry::show(std::int32_t pid, std::uint32_t database) {
  if (shown_) return;
  client_.pid = pid;
  client_.database = database;
  client_.since_us = now_us();
  const std::lock_guard lock(board_.mutex_);
  place_ = board_.entries_.insert(board_.entries_.end(), this);
  shown_ = true;
}

void JoinBoard::Entry::show(const RunningJoin* join) {
  const std::lock_guard lock(board_.mutex_);
  join_ = join;
}

std::vector<ListedJoin> JoinBoard::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ListedJoin> listed;
  for (const Entry* const entry : entries_) {
    ListedJoin& join = listed.emplace_back(entry->client_);
    if (entry->join_ == nullptr) continue;
    JoinStats stats;
    const char* engine;
    join.phase = entry->join_->watch(&stats, &engine);
    std::snprintf(join.engine, sizeof join.engine, "%s", engine);
    join.left_rows = stats.left_rows;
    join.right_rows = stats.right_rows;
    join.candidates = stats.candidates;
    join.pairs = stats.pairs;
    join.work = stats.work;
    join.work_done = stats.work_done;
  }
  return listed;
}

}  // namespace gpujoin::service

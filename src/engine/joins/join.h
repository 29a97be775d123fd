// An open join inside an engine. The functions of an EngineTable call its methods, and so do joins
// that are made of other joins.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "engine/request/result.h"
#include "engine/request/status.h"

namespace gpujoin {

/// Methods are for one thread. Destruction stops the work wherever it is and waits until its
/// threads have ended.
struct Join {
  virtual ~Join() = default;
  /// See EngineTable::next_batch. May throw what the engine's table turns into a Status.
  virtual Status next_batch(ResultBatch* batch) = 0;
  /// Throws nothing.
  virtual void stats(JoinStats* stats) const = 0;
};

/// Opens a join of an engine. Throws what the engine's table turns into a Status.
using OpenJoin = std::function<std::unique_ptr<Join>(const JoinRequest&)>;

/// Adds what devices did for one of several joins to what they did for others.
inline void add_shares(JoinStats& sum, const JoinStats& part) {
  for (std::uint32_t i = 0; i < part.devices; ++i) {
    const DeviceShare& share = part.shares[i];
    DeviceShare* const end = sum.shares + sum.devices;
    DeviceShare* const known = std::find_if(
        sum.shares, end, [&](const DeviceShare& one) { return one.device == share.device; });
    if (known != end)
      known->candidates += share.candidates;
    else if (sum.devices < kMostDevices)
      sum.shares[sum.devices++] = share;
  }
}

/// Adds the statistics of one of several joins to their sum; rows, batches, pairs and
/// parts stay the sum's own. Devices are those of joins that were shared.
inline void add_stats(JoinStats& sum, const JoinStats& part) {
  const JoinStats before = sum;
  sum = part;
  sum.left_rows = before.left_rows;
  sum.right_rows = before.right_rows;
  sum.batches = before.batches;
  sum.pairs = before.pairs;
  sum.parts = before.parts;
  sum.candidates += before.candidates;
  sum.rechecked += before.rechecked;
  add_shares(sum, before);
  sum.index_ms += before.index_ms;
  sum.indexed_sides += before.indexed_sides;
  sum.reused_sides += before.reused_sides;
  sum.join_ms += before.join_ms;
  sum.memory_peak = std::max(sum.memory_peak, before.memory_peak);
  sum.device_memory_peak = std::max(sum.device_memory_peak, before.device_memory_peak);
}

/// The statistics of joins that have ended, `done`, and of the one at hand, if there is one, beside
/// which so many bytes are held on the host.
inline JoinStats stats_with(const JoinStats& done, const Join* join, std::uint64_t held = 0) {
  JoinStats sum = done;
  if (join == nullptr) return sum;
  JoinStats current{};
  join->stats(&current);
  current.memory_peak += held;
  add_stats(sum, current);
  return sum;
}

}  // namespace gpujoin

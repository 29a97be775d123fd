#include "engine/joins/side_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace gpujoin {
namespace {

/// Plans without sides take little, but not nothing.
constexpr std::size_t kMostEntries = 256;

/// Up to so many dimensions the choice of an index does not depend on what is asked of its pairs.
constexpr std::uint32_t kDimsOfOneChoice = 2;

SideKey key_of_side(const Dataset& data) {
  return {data.key, data.ids != nullptr, data.rows, data.dims, data.scalar};
}

Knobs knobs_of_plan(const Knobs& knobs) {
  Knobs plan;
  plan.index = knobs.index;
  plan.indexed_dimensions = knobs.indexed_dimensions;
  plan.reference_points = knobs.reference_points;
  plan.reference_placement = knobs.reference_placement;
  plan.reorder_dimensions = knobs.reorder_dimensions;
  plan.sort_unindexed = knobs.sort_unindexed;
  plan.short_circuit = knobs.short_circuit;
  plan.access_pattern = knobs.access_pattern;
  plan.cell_order = knobs.cell_order;
  return plan;
}

bool is_of(const SideKey& side, std::uint64_t identity) { return side.data.identity == identity; }

bool is_of(const JoinKey& key, std::uint64_t identity) {
  return is_of(key.left, identity) || is_of(key.right, identity);
}

/// Whether a kept version of some rows is of no use any more once the side's version is used. A
/// request for the base does not tell which later versions are in use.
bool is_outdated(const SideKey& kept, const SideKey& side) {
  const auto& [identity, version, base] = side.data;
  const std::uint64_t kept_version = kept.data.version;
  return is_of(kept, identity) &&
         (kept_version < base ||
          (base < version && kept_version != version && kept_version != base));
}

/// Whether a side is an outdated version of one of the key's.
bool is_outdated(const JoinKey& kept, const JoinKey& key) {
  return is_outdated(kept.left, key.left) || is_outdated(kept.left, key.right) ||
         is_outdated(kept.right, key.left) || is_outdated(kept.right, key.right);
}

/// Whether what is kept for one key serves another.
bool serves(const JoinKey& kept, JoinKey key) {
  if (!(key.eps <= kept.eps && kept.eps <= key.widest_eps)) return false;
  key.eps = kept.eps;
  key.widest_eps = kept.widest_eps;
  return kept == key;
}

/// Sides, and what they rest on, each counted once.
struct CountedSides {
  void add(const KeptJoin& join) {
    add(*join.left);
    add(*join.right);
  }
  void add(const SideSlot& slot) {
    slot.look_at_side([this](const PreparedSide* side) {
      for (; side != nullptr; side = side->rests_on()) {
        if (std::find(seen.begin(), seen.end(), side) != seen.end()) return;
        seen.push_back(side);
        bytes += side->bytes();
      }
    });
  }

  std::vector<const PreparedSide*> seen;
  SideBytes bytes;
};

bool exceeds(const SideBytes& bytes, const SideBytes& limit) {
  return bytes.host > limit.host || bytes.device > limit.device;
}

}  // namespace

JoinKey key_of_join(const JoinRequest& request) {
  JoinKey key{.left = key_of_side(request.left()),
              .right = key_of_side(request.right()),
              .self_join = request.self_join(),
              .metric = request.metric(),
              .eps = request.eps(),
              .widest_eps = request.eps(),
              .knobs = knobs_of_plan(request.knobs),
              .question = 0};
  const bool only_by_grid = request.output() == Output::kTopPairs ||
                            request.output() == Output::kSums ||
                            request.output() == Output::kClusters;
  if (only_by_grid || request.left().dims > kDimsOfOneChoice)
    key.question = 1 + static_cast<int>(request.output()) * 4 + static_cast<int>(request.pairs());
  return key;
}

JoinKey key_of_neighbors(const JoinRequest& request, int index) {
  JoinKey key;
  key.left = key.right = key_of_side(request.right());
  // Points are indexed alike for all metrics but that of their directions.
  key.metric = request.metric() == Metric::kCosine ? Metric::kCosine : Metric::kL2;
  key.eps = key.widest_eps = 0;
  key.knobs = knobs_of_plan(request.knobs);
  key.question = -1 - index;
  return key;
}

JoinKey key_of_rows(const Dataset& data) {
  JoinKey key;
  key.left = key.right = key_of_side(data);
  key.left.named = key.right.named = false;
  return key;
}

void SideCache::keep(const SideBytes& limit) {
  {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
  }
  trim();
}

bool SideCache::keeps() const {
  const std::lock_guard lock(mutex_);
  return limit_.host + limit_.device > 0;
}

/// Moves entries for which wanted(entry) holds.
template <class Wanted>
void SideCache::take_out(const Wanted& wanted, Entries* out) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (wanted(*entry)) out->splice(out->end(), entries_, entry);
    entry = next;
  }
}

void SideCache::forget(std::uint64_t identity) {
  Entries dropped;
  const std::lock_guard lock(mutex_);
  take_out([&](const Entry& entry) { return is_of(entry.key, identity); }, &dropped);
}

SideBytes SideCache::kept(std::uint64_t identity) const {
  const std::lock_guard lock(mutex_);
  CountedSides sides;
  for (const Entry& entry : entries_) {
    if (is_of(entry.key.left, identity)) sides.add(*entry.join->left);
    if (is_of(entry.key.right, identity)) sides.add(*entry.join->right);
  }
  return sides.bytes;
}

SideBytes SideCache::kept() const {
  const std::lock_guard lock(mutex_);
  CountedSides sides;
  for (const Entry& entry : entries_) sides.add(*entry.join);
  return sides.bytes;
}

SideCache::Entries::iterator SideCache::find_entry(const JoinKey& key) {
  auto best = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (serves(entry->key, key) && (best == entries_.end() || entry->key.eps < best->key.eps))
      best = entry;
  return best;
}

std::shared_ptr<KeptJoin> SideCache::find(const JoinKey& key,
                                          const std::function<std::shared_ptr<KeptJoin>()>& make) {
  if (key.left.data.identity == 0 || key.right.data.identity == 0) return nullptr;
  Entries dropped;
  const std::lock_guard lock(mutex_);
  if (limit_.host + limit_.device == 0) return nullptr;
  take_out([&](const Entry& entry) { return is_outdated(entry.key, key); }, &dropped);
  if (const auto entry = find_entry(key); entry != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->join;
  }
  entries_.push_front({key, make()});
  if (key.left != key.right) entries_.front().join->right = std::make_shared<SideSlot>();
  return entries_.front().join;
}

void SideCache::trim() {
  Entries dropped;
  const std::lock_guard lock(mutex_);
  CountedSides kept;
  std::size_t entries = 0;
  take_out(
      [&](const Entry& entry) {
        CountedSides with = kept;
        with.add(*entry.join);
        if (entries == kMostEntries || exceeds(with.bytes, limit_)) return true;
        kept = std::move(with);
        ++entries;
        return false;
      },
      &dropped);
}

bool SideCache::drop_one() {
  Entries dropped;
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return false;
  dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
  return true;
}

}  // namespace gpujoin

// Sets of positions that become one: union-find. For the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace gpujoin {

/// A forest of links to earlier positions, as in union-find with links by index; links are
/// shortened on the way, without locks. So the root of a set is its first position, once all pairs
/// are united. Threads may share the links.
class DisjointSets {
 public:
  /// `links`, the caller's, are each position's own to begin with.
  explicit DisjointSets(std::uint32_t* links) : links_(links) {}

  /// The same for all positions of a set, while none are united.
  std::uint32_t root(std::uint32_t position) const {
    std::uint32_t next = link(position).load(kRelaxed);
    while (next != position) {
      const std::uint32_t beyond = link(next).load(kRelaxed);
      if (beyond != next) link(position).store(beyond, kRelaxed);  // links lead to earlier ones
      position = next;
      next = beyond;
    }
    return position;
  }

  /// Returns the root of what became one, as far as other threads did not unite it meanwhile.
  std::uint32_t unite(std::uint32_t a, std::uint32_t b) const {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return b;
      if (a < b) std::swap(a, b);
      std::uint32_t expected = a;  // still a root
      if (link(a).compare_exchange_strong(expected, b, kRelaxed)) return b;
    }
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  std::atomic_ref<std::uint32_t> link(std::uint32_t position) const {
    return std::atomic_ref(links_[position]);
  }

  std::uint32_t* links_;
};

}  // namespace gpujoin

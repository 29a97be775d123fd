#include "cpu/walk/pair_sinks.h"

#include <bit>

namespace gpujoin::cpu {
namespace {

void add_to(std::uint64_t& count, std::uint64_t pairs) {
  if (pairs > 0) std::atomic_ref(count).fetch_add(pairs, std::memory_order_relaxed);
}

}  // namespace

void SharedCountSink::take(std::uint32_t left, std::uint32_t right, double) {
  const bool at_left = !half_ || !once_ || counts_at_left(ids_, left, right);
  if (at_left) add_to(counts_[left], 1);
  if (half_ && (once_ ? !at_left : left != right)) add_to(counts_[right], 1);
}

void SharedCountSink::take_block(std::uint32_t first_left, std::uint32_t first_right,
                                 const std::uint32_t (&rights)[kGroupPoints]) {
  std::uint32_t right_counts[kGroupPoints] = {};
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    if (rights[i] == 0) continue;
    const std::uint32_t left = first_left + i;
    std::uint64_t left_count = static_cast<std::uint64_t>(std::popcount(rights[i]));
    if (half_) {
      for_bits(rights[i], [&](std::uint32_t j) {
        const std::uint32_t right = first_right + j;
        const bool at_right = once_ ? !counts_at_left(ids_, left, right) : right != left;
        right_counts[j] += at_right;
        left_count -= once_ && at_right;
      });
    }
    add_to(counts_[left], left_count);
  }
  for (std::uint32_t j = 0; j < kGroupPoints; ++j)
    add_to(counts_[first_right + j], right_counts[j]);
}

/// Whether all points, as far as pairs count at them, have a pair that suffices.
bool SharedCountSink::can_skip(Window left, Window right) const {
  return one_suffices_ && is_done(left) && (!half_ || is_done(right));
}

bool SharedCountSink::is_done(Window points) const {
  return std::all_of(counts_ + points.begin, counts_ + points.end, [](std::uint64_t& pairs) {
    return std::atomic_ref(pairs).load(std::memory_order_relaxed) > 0;
  });
}

}  // namespace gpujoin::cpu

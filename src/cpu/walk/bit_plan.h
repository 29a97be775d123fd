// A join of bits as its walks see it: what every worker reads and none writes.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/index/bit_index.h"
#include "cpu/walk/join_plan.h"
#include "engine/strategy/bit_strategy.h"

namespace gpujoin::cpu {

struct BitPlan {
  const BitIndex* left;
  const BitIndex* right;                   ///< the same as left in a self-join
  std::uint32_t most;                      ///< most_differing_bits()
  std::vector<std::int64_t> most_of_ones;  ///< of kJaccard most_differing(), by the ones of both
  BitScan scan;
  BitSegments segments;
  std::vector<std::uint64_t> passes;  ///< the segments that each compares, a bit each
  std::uint32_t slices = 1;           ///< of a pass, one after the other
  std::uint32_t bucket_bits = 0;
  unsigned walkers = 1;  ///< workers that have memory for buckets

  std::uint32_t words() const { return left->words; }
};

/// By the ones of both, up to as many as two of the plan's rows have.
std::vector<std::int64_t> most_of_all_ones(const BitPlan& plan, double eps);

/// Whether the keys of two rows are near each other, as JoinPlan::keys ask.
bool are_keys_near(const JoinPlan& join, std::uint32_t left, std::uint32_t right);

/// As GroupScreen finds them: which pairs of two groups are within the radius, and keys near.
bool screen_bit_groups(const JoinPlan& join, const BitPlan& plan, std::uint32_t left_group,
                       std::uint32_t right_group, GroupPairs* pairs);

/// Plans passes over the segments, if there are any, with memory for buckets of so many bytes, 0 =
/// any: without memory for one worker's every pair is compared.
void plan_passes(BitPlan* plan, unsigned workers, std::uint64_t memory);

}  // namespace gpujoin::cpu

#include "cpu/walk/bit_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gpujoin::cpu {
namespace {

/// Leaves out what fills the last groups up.
void leave_rows(std::uint32_t left_rows, std::uint32_t right_rows, GroupPairs* pairs) {
  const std::uint32_t rights = ~std::uint32_t{0} >> (kGroupPoints - right_rows);
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) pairs->possible[i] &= i < left_rows ? rights : 0;
}

std::uint32_t rows_of_group(const BitIndex& index, std::uint32_t group) {
  return std::min(kGroupPoints, index.rows() - group * kGroupPoints);
}

/// The bits that rows of two groups may differ in at most, as all of theirs do that are as many
/// ones apart; negative where no pair is within the radius.
std::int64_t most_of_groups(const BitPlan& plan, std::uint32_t left_group,
                            std::uint32_t right_group) {
  const auto ends = [](const BitIndex& index, std::uint32_t group) {
    const std::uint32_t first = group * kGroupPoints;
    return std::pair<std::int64_t, std::int64_t>{
        index.ones[first], index.ones[first + rows_of_group(index, group) - 1]};
  };
  const auto left = ends(*plan.left, left_group), right = ends(*plan.right, right_group);
  const std::int64_t apart = std::max(left.first - right.second, right.first - left.second);
  std::int64_t most = -1;
  for (std::int64_t ones = left.first + right.first; ones <= left.second + right.second; ++ones)
    most = std::max(most, plan.most_of_ones[static_cast<std::size_t>(ones)]);
  return most < apart ? -1 : most;
}

/// Leaves out pairs that differ in more bits than their own ones allow.
void leave_unlike_rows(const BitPlan& plan, std::uint32_t left_group, std::uint32_t right_group,
                       std::int64_t most, GroupPairs* pairs) {
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::uint32_t left = left_group * kGroupPoints + i;
    std::uint32_t near = pairs->possible[i];
    for_bits(pairs->possible[i], [&](std::uint32_t j) {
      const std::uint32_t right = right_group * kGroupPoints + j;
      const std::int64_t own = plan.most_of_ones[plan.left->ones[left] + plan.right->ones[right]];
      if (own < most && hamming_distance(plan.left->row(left), kGroupPoints, plan.right->row(right),
                                         kGroupPoints, plan.words()) > own)
        near &= ~(1u << j);
    });
    pairs->possible[i] = near;
  }
}

}  // namespace

std::vector<std::int64_t> most_of_all_ones(const BitPlan& plan, double eps) {
  if (plan.left->rows() == 0 || plan.right->rows() == 0) return {};
  const std::uint32_t ones =
      plan.left->ones[plan.left->rows() - 1] + plan.right->ones[plan.right->rows() - 1];
  std::vector<std::int64_t> most(ones + std::size_t{1});
  for (std::uint32_t i = 0; i <= ones; ++i) most[i] = most_differing(i, eps);
  return most;
}

bool are_keys_near(const JoinPlan& join, std::uint32_t left, std::uint32_t right) {
  return gpujoin::are_keys_near(join.keys, *join.left_points, left, *join.right_points, right);
}

bool screen_bit_groups(const JoinPlan& join, const BitPlan& plan, std::uint32_t left_group,
                       std::uint32_t right_group, GroupPairs* pairs) {
  const std::int64_t most =
      plan.most_of_ones.empty() ? plan.most : most_of_groups(plan, left_group, right_group);
  if (most < 0 || !plan.scan.groups(plan.left->group(left_group), plan.right->group(right_group),
                                    plan.words(), static_cast<std::uint32_t>(most), pairs))
    return false;
  leave_rows(rows_of_group(*plan.left, left_group), rows_of_group(*plan.right, right_group), pairs);
  if (!plan.most_of_ones.empty()) leave_unlike_rows(plan, left_group, right_group, most, pairs);
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    std::uint32_t near = pairs->possible[i];
    if (join.keys.count > 0)
      for_bits(pairs->possible[i], [&](std::uint32_t j) {
        if (!are_keys_near(join, join.left->rows[left_group * kGroupPoints + i],
                           join.right->rows[right_group * kGroupPoints + j]))
          near &= ~(1u << j);
      });
    pairs->possible[i] = pairs->sure[i] = near;
  }
  return true;
}

void plan_passes(BitPlan* plan, unsigned workers, std::uint64_t memory) {
  constexpr std::uint32_t kRowsOfBucket = 8, kMostSlices = 16, kMostBucketBits = 24;
  BitSegments& segments = plan->segments;
  plan->walkers = workers;
  if (segments.count == 0) return;
  const std::uint64_t rows = std::max(plan->left->rows(), plan->right->rows());
  const std::uint64_t all =
      plan->left == plan->right ? rows : std::uint64_t{plan->left->rows()} + plan->right->rows();
  // Workers have slices of passes, whose rows together are about those of two passes.
  plan->slices = std::clamp((workers + 1) / 2, 1u, kMostSlices);
  const std::uint64_t bytes = all * bucket_row_bytes(plan->words());
  if (memory > 0) {
    // Rows that agree lie in one slice, which then is larger: as large as all of them, at worst.
    if (bytes > memory) {
      segments = {};
      return;
    }
    plan->walkers = static_cast<unsigned>(
        std::min<std::uint64_t>(workers, memory / std::max<std::uint64_t>(bytes, 1)));
  }
  const std::uint64_t of_slice = rows / plan->slices / kRowsOfBucket;
  plan->bucket_bits = std::min<std::uint32_t>(kMostBucketBits,
                                              static_cast<std::uint32_t>(std::bit_width(of_slice)));
  const std::uint64_t passes = segments.passes();
  plan->passes.reserve(passes);
  std::uint64_t set = (std::uint64_t{1} << segments.equal) - 1;
  for (std::uint64_t pass = 0; pass < passes; ++pass, set = next_set(set))
    plan->passes.push_back(set);
}

}  // namespace gpujoin::cpu

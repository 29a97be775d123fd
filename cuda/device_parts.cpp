#include "cuda/device_parts.h"

#include <algorithm>
#include <utility>

#include "cuda/boxes/box_join.h"
#include "cuda/clusters/cluster_walk.h"
#include "cuda/device/signals.h"
#include "cuda/device/tuning.h"
#include "cuda/nearest_join.h"
#include "cuda/range_join.h"
#include "cuda/spanning_join.h"
#include "engine/joins/partitioned_clusters.h"
#include "engine/joins/partitioned_join.h"
#include "engine/joins/partitioned_nearest.h"
#include "engine/joins/topk_scan.h"
#include "engine/strategy/reference_points.h"

namespace gpujoin::cuda {
namespace {

/// Below so many rows in all a join on the device is not worth its memory.
constexpr std::uint64_t kFewestRows = 64;

/// The most that a join of `rows` points in all holds on the device besides its batches: the points
/// as they came and in order, both with their distances to reference points, codes and order three
/// times while sorting, ids twice, scores twice, columns and sums, counts and offsets; and the
/// reference points themselves.
std::uint64_t device_bytes(const JoinRequest& request, std::uint64_t rows) {
  const std::uint64_t references = most_reference_points(request);
  const std::uint64_t columns = request.left().dims + references;
  const std::uint64_t directions =
      request.metric() == Metric::kCosine ? request.left().dims * sizeof(float) : 0;
  const std::uint64_t scores = request.output() == Output::kTopPairs ? 2 * sizeof(double) : 0;
  const std::uint64_t sums =
      request.output() == Output::kSums
          ? 8 * (request.sums()->left_columns + request.sums()->right_columns +
                 request.sums()->integer_columns + 1 + row_words(*request.sums()))
          : 0;
  const std::uint64_t clusters = request.output() == Output::kClusters ? kClusterRowBytes : 0;
  const std::uint64_t ids = request.output() == Output::kTotal ? 0 : 2 * sizeof(std::int64_t);
  return rows * (2 * columns * scalar_bytes(request.left().scalar) + directions + scores + sums +
                 clusters + 3 * (8 + 4) + ids + 4 + 8) +
         references * request.left().dims * sizeof(double) + (std::uint64_t{1} << 20);
}

/// The same on the host, of a row of either side: the row itself with its id and score, its id in
/// pinned memory, of which up to half is not used, and its place, count and offset.
std::uint64_t host_row_bytes(const JoinRequest& request) {
  constexpr std::uint64_t kRow = 8 + 8, kPinned = 2 * (8 + 4 + 8), kCount = 8;
  return point_bytes(request.left()) + kRow + kPinned + kCount + sum_row_bytes(request);
}

/// Half of the memory is for batches and for what a walk needs.
std::uint64_t memory_of_points(const JoinRequest& request, const DeviceContext& context,
                               std::uint64_t more_bytes = 0) {
  return context.available_bytes(request.resources.device_memory_limit, more_bytes) / 2;
}

/// How many rows a part may have, two of which are on the device, where rows take so many bytes,
/// and a join by itself; they have one of so many `shares` of the memory. Throws
/// MemoryLimitExceeded where that is too little for any.
std::uint64_t rows_of_parts(const JoinRequest& request, const DeviceContext& context,
                            std::uint64_t one_row, std::uint64_t fixed, std::uint64_t shares = 2) {
  const std::uint64_t bytes =
      context.available_bytes(request.resources.device_memory_limit) / shares;
  if (bytes < fixed + kFewestRows * one_row)
    throw MemoryLimitExceeded{shares * (fixed + kFewestRows * one_row), shares * bytes};
  return (bytes - fixed) / one_row / 2;
}

std::uint64_t rows_of_points(const JoinRequest& request, const DeviceContext& context,
                             std::uint64_t shares = 2) {
  const std::uint64_t fixed = device_bytes(request, 0);
  return rows_of_parts(request, context, device_bytes(request, 1) - fixed, fixed, shares);
}

/// The same for joins of nearest rows.
std::uint64_t rows_of_nearest(const JoinRequest& request, const DeviceContext& context) {
  const std::uint64_t rows = request.sides.rows();
  return rows_of_parts(request, context,
                       (nearest_device_bytes(request, request.sides.rows()) + rows - 1) / rows, 0);
}

class DeviceParts final : public PartJoins {
 public:
  DeviceParts(const JoinRequest& request, std::shared_ptr<JoinResources> resources)
      : request_(request), resources_(std::move(resources)) {
    if (request.shape() == Shape::kPoints && request.left().rows > 0 &&
        request.output() != Output::kNearest)
      plan_ = plan_range_join(request, *resources_);
  }

  Cut cut() override {
    if (request_.output() == Output::kNearest) return choose_nearest_cut(request_);
    return choose_cut(request_, plan_->index.strategy, kWalkCosts);
  }

  std::uint64_t part_rows() override { return std::min(rows_on_device(), rows_on_host()); }

  bool loads_ahead() const override {
    return request_.resources.threads > 1 && !request_.sides.in_file();
  }

  std::unique_ptr<Join> open(const JoinRequest& part, std::shared_ptr<SideSlot> left,
                             std::shared_ptr<SideSlot> right) override {
    if (part.shape() == Shape::kBoxes) return std::make_unique<BoxJoin>(part, resources_);
    if (part.output() == Output::kNearest)
      return std::make_unique<NearestJoin>(part, resources_, NearestShares{});
    const OpenJoin range_join = [=, this](const JoinRequest& join) {
      RangeShares shares;
      shares.plan = plan_;
      shares.left = left;
      shares.right = right;
      return std::make_unique<RangeJoin>(join, resources_, std::move(shares));
    };
    // Directions need tiles, and tiles do not know scores.
    const bool top = part.output() == Output::kTopPairs && part.metric() == Metric::kCosine;
    if (top) return std::make_unique<TopkScan>(part, range_join);
    return range_join(part);
  }

  void enforce_limits(bool enforced) override { resources_->enforce_limits(enforced); }

 private:
  /// Joins of boxes have their own way with what does not fit on the device.
  std::uint64_t rows_on_device() const {
    if (request_.shape() == Shape::kBoxes) return kMaxRows;
    if (request_.output() == Output::kNearest)
      return rows_of_nearest(request_, resources_->context);
    return rows_of_points(request_, resources_->context, only_counts() ? 1 : 2);
  }

  /// Whether a walk has no batches, and needs nothing else but the points.
  bool only_counts() const {
    return request_.output() == Output::kTotal &&
           plan_->index.strategy.index != IndexMethod::kTiles &&
           request_.knobs.work_order != WorkOrder::kSorted;
  }

  std::uint64_t rows_on_host() const {
    const std::uint64_t there = resources_->host.left();
    if (there == MemoryBudget::kUnlimited) return kMaxRows;
    const std::uint64_t listed =
        sizeof(std::uint32_t) *
        ((request_.left().file == nullptr ? request_.left().rows : 0) +
         (request_.self_join() || request_.right().file != nullptr ? 0 : request_.right().rows));
    const std::uint64_t left = there - std::min(there, listed);
    const std::uint64_t ahead = loads_ahead() ? part_row_bytes(request_) : 0;
    return std::max(kFewestRows, left / 2 / (2 * host_row_bytes(request_) + ahead));
  }

  const JoinRequest request_;
  const std::shared_ptr<JoinResources> resources_;
  std::shared_ptr<const RangePlan> plan_;  ///< of points
};

}  // namespace

bool needs_parts(const JoinRequest& request, DeviceContext& context) {
  if (request.sides.in_file()) return true;
  if (!request.sides.has_pairs()) return false;
  const std::uint64_t bytes = device_bytes(request, request.sides.rows());
  if (bytes <= memory_of_points(request, context)) return false;
  if (bytes > memory_of_points(request, context, context.kept.kept().device)) return true;
  while (bytes > memory_of_points(request, context))
    if (!context.kept.drop_one()) return true;
  return false;
}

std::unique_ptr<Join> open_in_parts(const JoinRequest& request,
                                    std::shared_ptr<JoinResources> resources) {
  auto parts = std::make_unique<DeviceParts>(request, resources);
  const std::shared_ptr<MemoryBudget> budget(resources, &resources->host);
  return std::make_unique<PartitionedJoin>(request, budget, std::move(parts));
}

std::unique_ptr<Join> open_nearest_in_parts(const JoinRequest& request,
                                            std::shared_ptr<JoinResources> resources) {
  auto parts = std::make_unique<DeviceParts>(request, resources);
  const std::shared_ptr<MemoryBudget> budget(resources, &resources->host);
  return std::make_unique<PartitionedNearest>(request, budget, std::move(parts));
}

std::unique_ptr<Join> open_clusters_in_parts(const JoinRequest& request,
                                             const DeviceContext& context, OpenJoin joins) {
  const PartSize size{host_row_bytes(request), rows_of_points(request, context)};
  return std::make_unique<PartitionedClusters>(request, choose_cluster_cut(request, kWalkCosts),
                                               size, std::move(joins));
}

}  // namespace gpujoin::cuda

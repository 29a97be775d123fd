// The CPU engine's table: checks requests, keeps exceptions inside.
#include "engine/engine.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "core/cluster.h"
#include "cpu/bit_join.h"
#include "cpu/box_join.h"
#include "cpu/nearest_join.h"
#include "cpu/range_join.h"
#include "cpu/scan/scan.h"
#include "cpu/small_clusters.h"
#include "cpu/spanning_join.h"
#include "engine/joins/compose.h"
#include "engine/joins/partitioned_clusters.h"
#include "engine/joins/partitioned_join.h"
#include "engine/joins/partitioned_nearest.h"
#include "engine/joins/side_cache.h"
#include "engine/joins/topk_scan.h"
#include "engine/strategy/cluster_requests.h"

namespace gpujoin {
namespace {

/// Runs body() and turns what it throws into a Status.
template <class Body>
Status guarded(const Body& body) {
  try {
    return body();
  } catch (const MemoryLimitExceeded& e) {
    return make_status(StatusCode::kMemoryLimit,
                       "Raise gpujoin.host_memory_limit or join fewer rows.",
                       "the join needs at least %llu kB of memory beside its data, and "
                       "gpujoin.host_memory_limit leaves it %llu kB",
                       static_cast<unsigned long long>((e.needed_bytes >> 10) + 1),
                       static_cast<unsigned long long>(e.limit_bytes >> 10));
  } catch (const std::bad_alloc&) {
    return make_status(StatusCode::kOutOfMemory,
                       "Lower gpujoin.host_memory_limit, or join fewer rows at a time.",
                       "out of memory in the CPU engine");
  } catch (const std::system_error& e) {
    return make_status(StatusCode::kOutOfMemory,
                       "Lower gpujoin.cpu_threads, or raise the system's limit on threads.",
                       "could not start a worker thread: %s", e.what());
  } catch (const std::exception& e) {
    return make_status(StatusCode::kInternal, nullptr, "the CPU engine failed: %s", e.what());
  } catch (...) {
    return make_status(StatusCode::kInternal, nullptr, "the CPU engine failed");
  }
}

/// What joins with one key share, or one join has for itself.
struct SharedPlans final : KeptJoin {
  explicit SharedPlans(double eps) : plans(std::make_shared<cpu::RangePlans>(eps)) {}
  const std::shared_ptr<cpu::RangePlans> plans;
};

/// A radius a little larger, of 8 bits, so that those next to it, as `<` and `<=` are, have one.
double rounded_up(double eps) {
  constexpr std::uint64_t kRest = (std::uint64_t{1} << 45) - 1;
  const double up = std::bit_cast<double>((std::bit_cast<std::uint64_t>(eps) + kRest) & ~kRest);
  return std::isfinite(up) ? up : eps;
}

/// The key of joins that one index serves: where that is a grid, whose cells are as wide as the
/// radius at least, those of radii down to a half, whose points are compared with up to twice as
/// many. Tiles and the directions of joins by cosine distance are prepared for one radius.
JoinKey key_of_index(const JoinRequest& request) {
  constexpr double kWidest = 2;
  constexpr std::uint32_t kGridDims = 2;  // where `auto` has no tiles
  JoinKey key = key_of_join(request);
  if (request.metric() == Metric::kCosine || request.left().dims > kGridDims ||
      request.knobs.index == IndexMethod::kTiles || request.output() == Output::kClusters)
    return key;
  key.eps = rounded_up(key.eps);
  key.widest_eps = kWidest * key.eps;
  return key;
}

/// What all joins of the process share; there until it ends.
SideCache& cache() {
  alignas(SideCache) static unsigned char room[sizeof(SideCache)];
  static auto& made = *new (room) SideCache;
  return made;
}

/// Plans and slots for the request's join of points; without slots where nothing is kept.
struct Shares {
  explicit Shares(const JoinRequest& request) {
    std::shared_ptr<KeptJoin> kept;
    if (cache().keeps() && request.shape() == Shape::kPoints && !request.sides.in_file() &&
        request.keys.count == 0) {
      const JoinKey key = key_of_index(request);
      kept = cache().find(key, [&] { return std::make_shared<SharedPlans>(key.eps); });
    }
    if (!kept) {
      plans = std::make_shared<cpu::RangePlans>();
      return;
    }
    plans = static_cast<const SharedPlans&>(*kept).plans;
    left = kept->left;
    right = kept->right;
  }

  /// Whether both sides are there.
  bool are_prepared() const {
    for (const bool any_direction : {false, true})
      if (const auto plan = plans->known_plan(any_direction);
          plan && left && left->find(plan.get()) && right->find(plan.get()))
        return true;
    return false;
  }

  std::shared_ptr<cpu::RangePlans> plans;
  std::shared_ptr<SideSlot> left, right;
};

std::unique_ptr<Join> open_range_join(const JoinRequest& request, const Shares& shares) {
  return std::make_unique<cpu::RangeJoin>(
      request, shares.plans, std::make_shared<MemoryBudget>(request.resources.memory_limit),
      shares.left, shares.right);
}

/// Joins of parts, as many rows at a time as memory allows. By the lengths of intervals, parts have
/// plans of their own.
class CpuParts final : public PartJoins {
 public:
  CpuParts(const JoinRequest& request, std::shared_ptr<cpu::RangePlans> plans,
           std::shared_ptr<MemoryBudget> budget, LengthClasses classes = {})
      : request_(request),
        budget_(std::move(budget)),
        plans_(std::move(plans)),
        classes_(std::move(classes)) {}

  Cut cut() override {
    if (by_length()) return cut_by_length(request_, classes_);
    if (is_of_bits(request_.metric())) return choose_cut(request_, {}, kCoreWalkCosts);
    if (request_.output() == Output::kNearest) return choose_nearest_cut(request_);
    return choose_cut(request_, plans_->plan(request_)->index.strategy, kCoreWalkCosts);
  }

  std::uint64_t part_rows() override {
    const std::uint64_t left = budget_->left();
    if (left == MemoryBudget::kUnlimited) return kMaxRows;
    const std::uint64_t index_bytes =
        request_.shape() == Shape::kBoxes       ? cpu::box_index_row_bytes(request_)
        : request_.output() == Output::kNearest ? cpu::nearest_row_bytes(request_)
        : is_of_bits(request_.metric())         ? cpu::bit_row_bytes(request_)
        : by_length()                           ? cpu::most_prepared_row_bytes(request_)
                      : cpu::prepared_row_bytes(request_, *plans_->plan(request_));
    const std::uint64_t copied =
        point_bytes(request_.left()) + sizeof(std::int64_t) + sizeof(double) * request_.keys.count;
    const std::uint64_t row_bytes = 2 * (copied + index_bytes) + sum_row_bytes(request_);
    return std::max<std::uint64_t>(1, (left - left / 4) / row_bytes);
  }

  std::unique_ptr<Join> open(const JoinRequest& part, std::shared_ptr<SideSlot> left,
                             std::shared_ptr<SideSlot> right) override {
    if (part.shape() == Shape::kBoxes) return std::make_unique<cpu::BoxJoin>(part, budget_);
    if (part.output() == Output::kNearest)
      return std::make_unique<cpu::NearestJoin>(part, budget_, nullptr);
    const OpenJoin range_join = [=, this](const JoinRequest& join) -> std::unique_ptr<Join> {
      if (is_of_bits(join.metric())) return std::make_unique<cpu::BitJoin>(join, budget_);
      if (by_length())
        return std::make_unique<cpu::RangeJoin>(join, std::make_shared<cpu::RangePlans>(), budget_,
                                                nullptr, nullptr);
      return std::make_unique<cpu::RangeJoin>(join, plans_, budget_, left, right);
    };
    if (part.output() == Output::kTopPairs) return std::make_unique<TopkScan>(part, range_join);
    return range_join(part);
  }

  void enforce_limits(bool enforced) override { budget_->enforce(enforced); }

 private:
  bool by_length() const { return !classes_.bounds.empty(); }

  const JoinRequest request_;
  std::shared_ptr<MemoryBudget> budget_;
  const std::shared_ptr<cpu::RangePlans> plans_;
  const LengthClasses classes_;
};

/// Whether the data, or its indexes, are too large for memory.
bool needs_parts(const JoinRequest& request, cpu::RangePlans& plans) {
  if (request.sides.in_file()) return true;
  if (!request.sides.has_pairs()) return false;
  if (request.resources.memory_limit == 0) return false;
  const std::uint64_t rows = request.sides.rows();
  const std::uint64_t affordable =
      request.resources.memory_limit - request.resources.memory_limit / 4;
  if (request.shape() == Shape::kBoxes)
    return rows > affordable / cpu::box_index_row_bytes(request);
  if (request.output() == Output::kNearest)
    return rows > affordable / cpu::nearest_row_bytes(request);
  const std::uint64_t sums =
      sum_row_bytes(request) * std::max(request.left().rows, request.right().rows);
  if (sums > affordable) return true;
  const std::uint64_t left = affordable - sums;
  if (is_of_bits(request.metric())) return rows > left / cpu::bit_row_bytes(request);
  if (rows <= left / cpu::most_prepared_row_bytes(request)) return false;
  return rows > left / cpu::prepared_row_bytes(request, *plans.plan(request));
}

std::unique_ptr<Join> open_in_parts(const JoinRequest& request,
                                    std::shared_ptr<cpu::RangePlans> plans) {
  auto budget = std::make_shared<MemoryBudget>(request.resources.memory_limit);
  auto parts = std::make_unique<CpuParts>(request, std::move(plans), budget);
  return std::make_unique<PartitionedJoin>(request, std::move(budget), std::move(parts));
}

std::unique_ptr<Join> open_join(const JoinRequest& request);

/// Clusters in parts, whose rows take at most so many bytes of an index.
std::unique_ptr<Join> open_clusters_in_parts(const JoinRequest& request,
                                             std::uint64_t index_bytes) {
  constexpr std::uint64_t kTableBytes = 16;
  return std::make_unique<PartitionedClusters>(request, choose_cluster_cut(request, kCoreWalkCosts),
                                               PartSize{index_bytes + kTableBytes, kMaxRows},
                                               open_join);
}

/// A join of bits, whole or in parts.
std::unique_ptr<Join> open_bit_join(const JoinRequest& request) {
  auto no_plans = std::make_shared<cpu::RangePlans>();
  if (needs_parts(request, *no_plans)) {
    if (request.output() == Output::kClusters)
      return open_clusters_in_parts(request, cpu::bit_row_bytes(request));
    return open_in_parts(request, std::move(no_plans));
  }
  return std::make_unique<cpu::BitJoin>(
      request, std::make_shared<MemoryBudget>(request.resources.memory_limit));
}

/// By classes of intervals, whose rows are copied; null: memory has no room for that, or there is
/// one class.
std::unique_ptr<Join> open_by_length(const JoinRequest& request) {
  LengthClasses classes = choose_length_classes(request, kCoreWalkCosts);
  if (classes.bounds.empty()) return nullptr;
  auto budget = std::make_shared<MemoryBudget>(request.resources.memory_limit);
  auto parts = std::make_unique<CpuParts>(request, nullptr, budget, std::move(classes));
  if (parts->part_rows() < std::max(request.left().rows, request.right().rows)) return nullptr;
  return std::make_unique<PartitionedJoin>(request, std::move(budget), std::move(parts));
}

/// A join of points or bits, whole or in parts.
std::unique_ptr<Join> open_points_join(const JoinRequest& request) {
  if (is_of_bits(request.metric())) return open_bit_join(request);
  const Shares shares(request);
  if (!shares.are_prepared() && needs_parts(request, *shares.plans))
    return open_in_parts(request, shares.plans);
  if (std::unique_ptr<Join> join = open_by_length(request)) return join;
  return open_range_join(request, shares);
}

/// Finds all pairs. Scores that lie in a file come with their parts.
std::unique_ptr<Join> open_plain_topk_join(const JoinRequest& request) {
  if (request.sides.in_file()) return open_points_join(request);
  return std::make_unique<TopkScan>(request, open_points_join);
}

std::unique_ptr<Join> open_box_join(const JoinRequest& request) {
  auto no_plans = std::make_shared<cpu::RangePlans>();
  if (needs_parts(request, *no_plans)) return open_in_parts(request, std::move(no_plans));
  return std::make_unique<cpu::BoxJoin>(request);
}

/// What is kept of the right side for its nearest rows; null: nothing is.
std::shared_ptr<KeptJoin> kept_neighbors(const JoinRequest& request) {
  if (!cache().keeps() || request.sides.in_file()) return nullptr;
  const auto index = static_cast<int>(cpu::choose_nearest_index(request));
  return cache().find(key_of_neighbors(request, index),
                      [] { return std::make_shared<KeptJoin>(); });
}

/// Threads that looking for some points in a tree is worth.
unsigned search_threads(const JoinRequest& request) {
  constexpr std::uint64_t kPointsPerThread = 64;
  const std::uint64_t points = request.left().rows / kPointsPerThread + 1;
  return static_cast<unsigned>(std::min<std::uint64_t>(request.resources.threads, points));
}

std::unique_ptr<Join> open_nearest_join(const JoinRequest& asked) {
  JoinRequest request = asked;
  const std::shared_ptr<KeptJoin> kept = kept_neighbors(request);
  const bool prepared = kept && kept->right->find(kept.get());
  auto no_plans = std::make_shared<cpu::RangePlans>();
  auto budget = std::make_shared<MemoryBudget>(request.resources.memory_limit);
  if (!prepared && needs_parts(request, *no_plans)) {
    auto parts = std::make_unique<CpuParts>(request, std::move(no_plans), budget);
    return std::make_unique<PartitionedNearest>(request, std::move(budget), std::move(parts));
  }
  if (prepared &&
      (request.left().rows == 1 || cpu::choose_nearest_index(request) == cpu::NearestIndex::kTree))
    request.resources.threads = search_threads(request);
  return std::make_unique<cpu::NearestJoin>(request, std::move(budget), kept);
}

/// Trees of rows that fit in memory, with what is held for each.
std::unique_ptr<Join> open_spanning_join(const JoinRequest& request) {
  const std::uint64_t limit = request.resources.memory_limit,
                      bytes = request.left().rows * cpu::spanning_row_bytes(request);
  if (limit > 0 && bytes > limit) throw MemoryLimitExceeded{bytes, limit};
  return std::make_unique<cpu::SpanningJoin>(request);
}

/// Cells where there are few columns, or screens that are none of L2; else tiles. Few rows
/// take less time than further threads to start.
std::unique_ptr<Join> open_clusters_join(const JoinRequest& request) {
  if (is_of_bits(request.metric())) return open_bit_join(cluster_bits_request(request));
  if (std::unique_ptr<Join> join = cpu::open_small_clusters(request)) return join;
  constexpr std::uint64_t kFewRows = 4096;
  const bool by_tiles = request.metric() == Metric::kCosine ||
                        (request.metric() == Metric::kL2 && request.left().dims > kMaxClusterGrid);
  JoinRequest made = by_tiles ? cluster_tiles_request(request) : cluster_cells_request(request);
  if (made.left().rows * made.left().dims < kFewRows) made.resources.threads = 1;
  const Shares shares(made);
  if (shares.are_prepared() || !needs_parts(made, *shares.plans))
    return open_range_join(made, shares);
  return open_clusters_in_parts(request, cpu::most_prepared_row_bytes(made));
}

/// Throws what guarded() catches.
std::unique_ptr<Join> open_join(const JoinRequest& request) {
  const double threads = request.resources.threads;
  return compose(request, {.pairs = open_points_join,
                           .top_pairs = open_plain_topk_join,
                           .nearest = open_nearest_join,
                           .clusters = open_clusters_join,
                           .trees = open_spanning_join,
                           .boxes = open_box_join,
                           .top_costs = {kCoreWalkCosts, threads, 100e3, kCoreIndexNs / threads, 8},
                           .rounds_of_files = true});
}

std::atomic<int> open_joins = 0;

Status probe(DeviceInfo* devices, std::uint32_t capacity, std::uint32_t* count) {
  *count = 1;
  if (capacity == 0) return {};
  DeviceInfo& device = devices[0];
  device = {};
  std::snprintf(device.name, sizeof device.name, "host processor");
  device.parallelism = std::thread::hardware_concurrency();
  device.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::snprintf(device.detail, sizeof device.detail, "%s", cpu::instruction_set());
  return {};
}

Status open(const JoinRequest* request, Join** join) {
  *join = nullptr;
  if (Status status = check_request(*request); !status.ok()) return status;
  return guarded([&]() -> Status {
    *join = open_join(*request).release();
    ++open_joins;
    return {};
  });
}

Status next_batch(Join* join, ResultBatch* batch) {
  return guarded([&] { return join->next_batch(batch); });
}

void stats(const Join* join, JoinStats* stats) {
  guarded([&]() -> Status {
    join->stats(stats);
    return {};
  });
}

/// Memory that was freed in pieces stays with the allocator. After a large join a session gives it
/// back; where sides are kept another join will want it soon, and giving back stops all threads
/// that allocate.
void close(Join* join) {
  constexpr std::uint64_t kLarge = 16 << 20;
  JoinStats figures{};
  stats(join, &figures);
  delete join;
  --open_joins;
  cache().trim();
#if defined(__GLIBC__)
  if (figures.memory_peak > kLarge && open_joins == 0 && !cache().keeps()) malloc_trim(0);
#endif
}

void keep(std::uint64_t host_bytes, std::uint64_t) { cache().keep({host_bytes, 0}); }

void forget(std::uint64_t identity) { cache().forget(identity); }

void kept(std::uint64_t identity, std::uint64_t* host_bytes, std::uint64_t*) {
  *host_bytes += cache().kept(identity).host;
}

constexpr EngineTable kTable{.name = "cpu",
                             .probe = probe,
                             .open = open,
                             .next_batch = next_batch,
                             .stats = stats,
                             .close = close,
                             .keep = keep,
                             .forget = forget,
                             .kept = kept};

}  // namespace

const EngineTable* cpu_engine() { return &kTable; }

}  // namespace gpujoin

/// What gpujoin_cpu.so exports.
extern "C" __attribute__((visibility("default"))) const gpujoin::EngineTable* gpujoin_engine() {
  return gpujoin::cpu_engine();
}

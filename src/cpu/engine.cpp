// The CPU engine's table: checks requests, keeps exceptions inside.
#include "engine/engine.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "cpu/box_join.h"
#include "cpu/range_join.h"
#include "cpu/scan.h"
#include "engine/topk_join.h"
#include "engine/topk_scan.h"

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
                       "the join needs more than its memory limit: at least %llu MB beyond the "
                       "data, of %llu MB left",
                       static_cast<unsigned long long>((e.needed_bytes >> 20) + 1),
                       static_cast<unsigned long long>(e.limit_bytes >> 20));
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

std::unique_ptr<Join> open_range_join(const JoinRequest& request) {
  return std::make_unique<cpu::RangeJoin>(request);
}

std::unique_ptr<Join> open_plain_topk_join(const JoinRequest& request) {
  return std::make_unique<TopkScan>(request, open_range_join);
}

/// Throws what guarded() catches.
std::unique_ptr<Join> open_join(const JoinRequest& request) {
  if (request.output == Output::kTopPairs)
    return open_topk_join(request, open_plain_topk_join,
                          {kCoreWalkCosts, static_cast<double>(request.threads), 100e3,
                           kCoreIndexNs / request.threads, 8});
  if (request.shape == Shape::kBoxes) return std::make_unique<cpu::BoxJoin>(request);
  return open_range_join(request);
}

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

/// Memory that was freed in pieces stays with the allocator; after a large join the session gives
/// it back.
void close(Join* join) {
  constexpr std::uint64_t kLarge = 16 << 20;
  JoinStats figures{};
  stats(join, &figures);
  delete join;
#if defined(__GLIBC__)
  if (figures.memory_peak > kLarge) malloc_trim(0);
#endif
}

constexpr EngineTable kTable{.name = "cpu",
                             .probe = probe,
                             .open = open,
                             .next_batch = next_batch,
                             .stats = stats,
                             .close = close};

}  // namespace

const EngineTable* cpu_engine() { return &kTable; }

}  // namespace gpujoin

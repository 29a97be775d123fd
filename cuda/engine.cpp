// The CUDA engine's table: devices, error codes, and the one symbol that the shared object exports.
#include "engine/engine.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "cuda/bit_join.h"
#include "cuda/boxes/box_join.h"
#include "cuda/clusters/cluster_kernels.h"
#include "cuda/device/cuda_error.h"
#include "cuda/device/device_context.h"
#include "cuda/device/device_guard.h"
#include "cuda/device/signals.h"
#include "cuda/device/tuning.h"
#include "cuda/device_parts.h"
#include "cuda/nearest_join.h"
#include "cuda/range_join.h"
#include "cuda/shared_join.h"
#include "cuda/spanning_join.h"
#include "engine/joins/compose.h"
#include "engine/joins/topk_scan.h"
#include "engine/strategy/cluster_requests.h"

namespace gpujoin {
namespace {

Status status_of(const cuda::CudaError& error) {
  cudaGetLastError();
  if (error.code == cudaErrorMemoryAllocation)
    return make_status(StatusCode::kOutOfMemory,
                       "Lower gpujoin.device_memory_limit, or set gpujoin.engine to \"cpu\".",
                       "out of memory while %s", error.action);
  // After some errors every later call of the process fails as well.
  const char* const hint =
      cudaDeviceSynchronize() == cudaSuccess
          ? "The session can go on; set gpujoin.engine to cpu to do without the device."
          : "The session cannot use the device any more: reconnect, or set gpujoin.engine to cpu.";
  return make_status(StatusCode::kDeviceFailure, hint, "CUDA failed while %s: %s", error.action,
                     cudaGetErrorString(error.code));
}

Status status_of(const cuda::MemoryExhausted& error) {
  const auto needed = static_cast<unsigned long long>((error.needed_bytes >> 10) + 1);
  const auto there = static_cast<unsigned long long>(error.limit_bytes >> 10);
  if (error.on_device)
    return make_status(
        StatusCode::kOutOfMemory,
        "Join fewer rows, end other programs that use the device, or set "
        "gpujoin.engine to \"cpu\".",
        "the device is out of memory: the join needs %llu kB, %llu kB are free for it", needed,
        there);
  return make_status(StatusCode::kOutOfMemory,
                     "Lower gpujoin.host_memory_limit, or set gpujoin.engine to \"cpu\".",
                     "the host has no memory to pin: the join needs %llu kB and has %llu kB",
                     needed, there);
}

/// Runs body() and turns what it throws into a Status.
template <class Body>
Status caught(const Body& body) {
  try {
    return body();
  } catch (const cuda::CudaError& error) {
    return status_of(error);
  } catch (const cuda::Unable& error) {
    return make_status(StatusCode::kUnavailable,
                       "Set gpujoin.engine to \"auto\" or \"cpu\" to use the CPU.", "%s",
                       error.reason);
  } catch (const cuda::MemoryExhausted& error) {
    return status_of(error);
  } catch (const MemoryLimitExceeded& error) {
    return make_status(
        StatusCode::kMemoryLimit,
        "Raise gpujoin.device_memory_limit or gpujoin.host_memory_limit, or join fewer rows.",
        "the join needs more than its memory limit: at least %llu kB of %llu kB",
        static_cast<unsigned long long>((error.needed_bytes >> 10) + 1),
        static_cast<unsigned long long>(error.limit_bytes >> 10));
  } catch (const std::bad_alloc&) {
    return make_status(StatusCode::kOutOfMemory, nullptr, "out of host memory in the CUDA engine");
  } catch (const std::system_error& error) {
    return make_status(StatusCode::kOutOfMemory, "Raise the system's limit on threads.",
                       "could not start a worker thread: %s", error.what());
  } catch (const std::exception& error) {
    return make_status(StatusCode::kInternal, nullptr, "the CUDA engine failed: %s", error.what());
  } catch (...) {
    return make_status(StatusCode::kInternal, nullptr, "the CUDA engine failed");
  }
}

/// Runs body() with the device current, and keeps it current while an error is examined.
template <class Body>
Status on_device(int device, const Body& body) {
  const cuda::SignalsBlocked blocked;
  return caught([&] {
    const cuda::DeviceGuard guard(device);
    return caught(body);
  });
}

int count_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    return 0;
  }
  cuda::check(code, "looking for devices");
  return count;
}

/// The oldest architecture that there is code for. Later ones run that of their own, or compile the
/// PTX of the oldest.
constexpr int oldest_architecture() {
  constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};  // 800, 860, ..
  return *std::min_element(std::begin(kArchitectures), std::end(kArchitectures));
}

/// Sets `unusable` to why joins cannot run on a device; "" if they can. Makes no context, which
/// takes half a GB of the device. Throws CudaError.
void look_for_code(int device, DeviceInfo* info) {
  constexpr const char* kAction = "looking at a device";
  constexpr int kOldest = oldest_architecture();
  int major = 0, minor = 0;
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), kAction);
  cuda::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), kAction);
  std::snprintf(info->detail, sizeof info->detail, "compute capability %d.%d", major, minor);
  info->unusable[0] = '\0';
  if (100 * major + 10 * minor < kOldest)
    std::snprintf(info->unusable, sizeof info->unusable,
                  "no code for this device: its compute capability is %d.%d, joins need %d.%d",
                  major, minor, kOldest / 100, kOldest / 10 % 10);
}

Status no_code(int device, const DeviceInfo& info) {
  return make_status(StatusCode::kUnavailable, "gpu_devices() lists the devices.", "device %d: %s",
                     device, info.unusable);
}

Status probe(DeviceInfo* devices, std::uint32_t capacity, std::uint32_t* count) {
  *count = 0;
  const cuda::SignalsBlocked blocked;
  return caught([&]() -> Status {
    const int found = count_devices();
    if (found == 0)
      return make_status(StatusCode::kUnavailable,
                         "Set gpujoin.engine to \"auto\" or \"cpu\" to use the CPU.",
                         "no NVIDIA GPU or no driver for it");
    DeviceInfo first{};
    bool has_usable = false;
    for (int number = 0; number < found; ++number) {
      DeviceInfo device{};
      look_for_code(number, &device);
      if (number == 0) first = device;
      has_usable = has_usable || device.unusable[0] == '\0';
      if (static_cast<std::uint32_t>(number) >= capacity) continue;
      cudaDeviceProp properties;
      cuda::check(cudaGetDeviceProperties(&properties, number), "looking at a device");
      std::snprintf(device.name, sizeof device.name, "%.95s", properties.name);
      device.parallelism = static_cast<std::uint32_t>(properties.multiProcessorCount);
      device.memory_bytes = properties.totalGlobalMem;
      devices[number] = device;
    }
    if (!has_usable) return no_code(0, first);
    *count = std::min(static_cast<std::uint32_t>(found), capacity);
    return {};
  });
}

/// What joins with one key share.
struct SharedPlan final : KeptJoin {
  std::shared_ptr<const cuda::RangePlan> plan;
};

/// Whether sides may be kept: scores are no part of a key.
bool may_be_kept(const JoinRequest& request) {
  return request.sides.has_pairs() && !request.sides.in_file() &&
         !(request.output() == Output::kTopPairs && request.left().scores != nullptr);
}

/// The slot of rows as they came.
std::shared_ptr<SideSlot> slot_of_rows(const Dataset& data, cuda::DeviceContext& context) {
  const auto kept =
      context.kept.find(key_of_rows(data), [] { return std::make_shared<KeptJoin>(); });
  return kept ? kept->left : nullptr;
}

/// What joins of the request's points share on a device.
struct FoundShares {
  cuda::RangeShares shares;
  std::shared_ptr<SharedPlan> kept;  ///< whose plan it is, or will be; null: nothing is kept
};

/// `plan` is that of another device that shares the join, or null.
FoundShares find_shares(const JoinRequest& request, cuda::DeviceContext& context,
                        std::shared_ptr<const cuda::RangePlan> plan = nullptr) {
  FoundShares alone;
  alone.shares.plan = plan;
  if (!context.kept.keeps() || !may_be_kept(request)) return alone;
  const auto find = [&] {
    return std::static_pointer_cast<SharedPlan>(
        context.kept.find(key_of_join(request), [] { return std::make_shared<SharedPlan>(); }));
  };
  const auto serves = [&](const SharedPlan* kept) {
    return kept != nullptr && (!plan || !kept->plan || kept->plan == plan);
  };
  FoundShares found;
  found.kept = find();
  if (!serves(found.kept.get())) return alone;
  found.shares.plan = found.kept->plan;
  found.shares.left = found.kept->left;
  found.shares.right = found.kept->right;
  if (found.shares.are_prepared()) return found;
  // Rows go before sides: they are found first.
  found.shares.left_rows = slot_of_rows(request.left(), context);
  found.shares.right_rows = slot_of_rows(request.right(), context);
  found.kept = find();
  if (!serves(found.kept.get())) return alone;
  if (!found.kept->plan) found.kept->plan = std::move(plan);
  found.shares.plan = found.kept->plan;
  return found;
}

/// The devices that a join may use. There is one at least, which is current, and serves what
/// several cannot share.
using Devices = std::vector<cuda::DeviceContext*>;

/// The estimate has decided.
constexpr Sharing kAlways{.always = true};

/// Opens a join of points by one plan on all devices, or as many as it turns out to be worth.
/// Clusters are those by tiles. The first device has begun with its resources and shares.
std::unique_ptr<Join> open_shared_range_join(const JoinRequest& request,
                                             std::shared_ptr<cuda::JoinResources> resources,
                                             cuda::RangeShares begun, const Devices& devices) {
  const auto first = std::make_shared<cuda::FirstSides>();
  // The first device begins an exchange whenever the join begins, and has it until the others end.
  const auto exchange = std::make_shared<std::weak_ptr<cuda::ClusterExchange>>();
  return std::make_unique<cuda::SharedJoin>(
      request, devices, cuda::sharing_of(request, devices),
      [=, plan = begun.plan, upload = std::move(begun.upload)](
          std::shared_ptr<cuda::JoinResources> own, const WorkShare& work) mutable {
        cuda::RangeShares shares = find_shares(request, own->context, plan).shares;
        shares.upload = std::exchange(upload, {});
        shares.work = work;
        shares.first = first;
        if (request.output() == Output::kClusters) {
          shares.exchange =
              work.is_first() ? std::make_shared<cuda::ClusterExchange>(own) : exchange->lock();
          *exchange = shares.exchange;
        }
        return std::make_unique<cuda::RangeJoin>(request, std::move(own), std::move(shares));
      },
      std::move(resources));
}

/// Opens a join of points that fit on each device. Throws what caught() catches.
std::unique_ptr<Join> open_whole_range_join(const JoinRequest& request,
                                            std::shared_ptr<cuda::JoinResources> resources,
                                            const FoundShares& found, const Devices& devices) {
  cuda::RangeShares shares = found.shares;
  if (!shares.plan && request.sides.has_pairs()) {
    shares.upload = cuda::EarlyUpload(request, resources, shares.left_rows, shares.right_rows);
    shares.plan = cuda::plan_range_join(request, *resources, shares.upload);
    if (found.kept) found.kept->plan = shares.plan;
  }
  if (devices.size() > 1 && request.sides.has_pairs() &&
      cuda::may_be_worth_sharing(request, *shares.plan))
    return open_shared_range_join(request, std::move(resources), std::move(shares), devices);
  return std::make_unique<cuda::RangeJoin>(request, std::move(resources), std::move(shares));
}

/// Opens a join of points, whole or in parts. Throws what caught() catches.
std::unique_ptr<Join> open_range_join(const JoinRequest& request, const Devices& devices) {
  cuda::DeviceContext& context = *devices.front();
  const FoundShares found = find_shares(request, context);
  auto resources = std::make_shared<cuda::JoinResources>(context, request);
  if (!found.shares.are_prepared() && cuda::needs_parts(request, context))
    return cuda::open_in_parts(request, std::move(resources));
  return open_whole_range_join(request, std::move(resources), found, devices);
}

/// Opens a device's join for nearest neighbours, whose rows are on the device as a whole. What is
/// kept for other joins goes where that makes room.
std::unique_ptr<cuda::NearestJoin> open_nearest_share(
    const JoinRequest& request, std::shared_ptr<cuda::JoinResources> resources,
    const WorkShare& work) {
  cuda::DeviceContext& context = resources->context;
  cuda::NearestShares shares;
  shares.work = work;
  std::uint64_t rows = request.sides.rows();
  std::shared_ptr<PreparedSide> right;  // stays while others go
  if (context.kept.keeps() && request.sides.has_pairs()) {
    shares.left_rows = slot_of_rows(request.left(), context);
    shares.right_rows = slot_of_rows(request.right(), context);
    shares.kept = context.kept.find(cuda::key_of_nearest(request),
                                    [] { return std::make_shared<KeptJoin>(); });
    if (shares.kept) right = shares.kept->right->find(shares.kept.get());
    if (right) rows -= request.right().rows;
  }
  const std::uint64_t bytes = cuda::nearest_device_bytes(request, rows);
  while (bytes > context.available_bytes(request.resources.device_memory_limit) &&
         context.kept.drop_one()) {
  }
  return std::make_unique<cuda::NearestJoin>(request, std::move(resources), shares);
}

/// Throws what caught() catches.
std::unique_ptr<Join> open_nearest_join(const JoinRequest& request, const Devices& devices) {
  if (request.sides.in_file())
    return cuda::open_nearest_in_parts(
        request, std::make_shared<cuda::JoinResources>(*devices.front(), request));
  if (devices.size() > 1 && cuda::is_worth_sharing(request))
    return std::make_unique<cuda::SharedJoin>(
        request, devices, kAlways,
        [request](std::shared_ptr<cuda::JoinResources> own, const WorkShare& work) {
          return open_nearest_share(request, std::move(own), work);
        });
  return open_nearest_share(request,
                            std::make_shared<cuda::JoinResources>(*devices.front(), request), {});
}

std::unique_ptr<Join> open_join(const JoinRequest& request, const Devices& devices);

/// Opens clusters of rows without keys, whole or in parts. Few columns go by small cells on the
/// first device, unless L2 distances are found much faster by tiles. Many columns go by tiles.
std::unique_ptr<Join> open_clusters_join(const JoinRequest& request, const Devices& devices) {
  const bool few_columns =
      request.left().rows == 0 || request.left().dims <= cuda::kMostClusterDimensions;
  const bool by_tiles = request.metric() == Metric::kCosine ||
                        (request.metric() == Metric::kL2 &&
                         (!few_columns || are_tiles_worth_for_clusters(request, cuda::kWalkCosts)));
  if (!by_tiles && !few_columns)
    throw cuda::Unable{
        "the device finds no clusters of points with more than 8 dimensions by L1 or Linf "
        "distance"};
  cuda::DeviceContext& context = *devices.front();
  const JoinRequest made =
      by_tiles ? cluster_tiles_request(request) : cluster_cells_request(request);
  auto resources = std::make_shared<cuda::JoinResources>(context, made);
  const FoundShares found = find_shares(made, context);
  if (found.shares.are_prepared() || !cuda::needs_parts(made, context))
    return open_whole_range_join(made, std::move(resources), found,
                                 by_tiles ? devices : Devices{&context});
  return cuda::open_clusters_in_parts(
      request, context, [devices](const JoinRequest& part) { return open_join(part, devices); });
}

/// Whether the device has room for so many bytes. What is kept for other joins goes where that
/// makes room.
bool makes_room(const JoinRequest& request, cuda::DeviceContext& context, std::uint64_t bytes) {
  while (bytes > context.available_bytes(request.resources.device_memory_limit))
    if (!context.kept.drop_one()) return false;
  return true;
}

/// Trees of rows in memory. Throws what caught() catches.
std::unique_ptr<Join> open_spanning_join(const JoinRequest& request, const Devices& devices) {
  cuda::DeviceContext& context = *devices.front();
  if (const char* const objection = cuda::objection_to_spanning(request))
    throw cuda::Unable{objection};
  if (!makes_room(request, context, cuda::spanning_device_bytes(request)))
    throw cuda::Unable{"the device has no room for spanning trees of so many rows"};
  std::shared_ptr<SideSlot> rows;
  if (context.kept.keeps() && request.sides.has_pairs())
    rows = slot_of_rows(request.left(), context);
  return std::make_unique<cuda::SpanningJoin>(
      request, std::make_shared<cuda::JoinResources>(context, request), std::move(rows));
}

/// Throws what caught() catches.
std::unique_ptr<Join> open_box_join(const JoinRequest& request, const Devices& devices) {
  if (request.sides.in_file()) return open_range_join(request, devices);  // in parts
  if (devices.size() > 1 && cuda::is_worth_sharing(request))
    return std::make_unique<cuda::SharedJoin>(
        request, devices, kAlways,
        [request](std::shared_ptr<cuda::JoinResources> own, const WorkShare& work) {
          return std::make_unique<cuda::BoxJoin>(request, std::move(own), work);
        });
  return std::make_unique<cuda::BoxJoin>(
      request, std::make_shared<cuda::JoinResources>(*devices.front(), request));
}

/// Opens a join of bits for pairs or counts. Throws what caught() catches.
std::unique_ptr<Join> open_bit_join(const JoinRequest& request, cuda::DeviceContext& context) {
  if (request.sides.in_file()) throw cuda::Unable{"the device compares bits in memory alone"};
  return std::make_unique<cuda::BitJoin>(request,
                                         std::make_shared<cuda::JoinResources>(context, request));
}

/// Returns why the device cannot serve the request; null if it can.
const char* objection_to(const JoinRequest& request) {
  if (request.metric() == Metric::kJaccard) return "the device knows no Jaccard distance";
  if (request.metric() != Metric::kHamming) return nullptr;
  switch (request.output()) {
    case Output::kNearest:
      return "the device finds no nearest rows of bits";
    case Output::kClusters:
      return "the device finds no clusters of bits";
    case Output::kSums:
      return "the device adds up no pairs of bits";
    default:
      return nullptr;
  }
}

/// Throws what caught() catches.
std::unique_ptr<Join> open_join(const JoinRequest& asked, const Devices& devices) {
  if (const char* const objection = objection_to(asked)) throw cuda::Unable{objection};
  const OpenJoin pairs = [devices](const JoinRequest& request) {
    return is_of_bits(request.metric()) ? open_bit_join(request, *devices.front())
                                        : open_range_join(request, devices);
  };
  const auto on_devices = [devices](auto open) -> OpenJoin {
    return [=](const JoinRequest& request) { return open(request, devices); };
  };
  return compose(asked, {.pairs = pairs,
                         .top_pairs = [pairs](const JoinRequest& request) -> std::unique_ptr<Join> {
                           // Joins by directions need tiles, and tiles do not know scores.
                           const bool scans =
                               is_of_bits(request.metric()) || request.metric() == Metric::kCosine;
                           if (!scans || request.sides.in_file()) return pairs(request);
                           return std::make_unique<TopkScan>(request, pairs);
                         },
                         .nearest = on_devices(open_nearest_join),
                         .clusters = on_devices(open_clusters_join),
                         .trees = on_devices(open_spanning_join),
                         .boxes = on_devices(open_box_join),
                         .top_costs = cuda::kPlainTopkCosts,
                         .rounds_of_files = false});
}

/// Calls call(device) for each device, with it current and signals blocked. Ignores errors: this is
/// called after a failure or at the end of a join.
template <class Call>
void on_each(const Devices& devices, const Call& call) {
  for (cuda::DeviceContext* const device : devices)
    caught([&]() -> Status {
      const cuda::DeviceGuard guard(device->number());
      call(*device);
      return {};
    });
}

/// Gives back the memory of devices that joins have freed, but what is kept for further ones.
void trim(const Devices& devices) {
  on_each(devices, [](cuda::DeviceContext& device) {
    device.kept.trim();
    device.give_back_unused();
  });
}

/// The same after a failure, when a device may not be done yet with what was freed.
void wait_and_trim(const Devices& devices) {
  on_each(devices, [](cuda::DeviceContext&) { cudaDeviceSynchronize(); });
  trim(devices);
}

/// Holds a join and its devices, for the table. The first device is current during its calls. A
/// join that finds less memory than its limits allow begins again within half of what it got, until
/// the caller has a batch.
class OpenedJoin final : public Join {
 public:
  OpenedJoin(const JoinRequest& request, Devices on) : devices(std::move(on)), request_(request) {
    request_.resources.let_signals_in = [] { cuda::SignalsBlocked::let_in(0); };
    with_less_memory([&] { join_ = open_join(request_, devices); });
  }
  Status next_batch(ResultBatch* batch) override {
    Status status;
    with_less_memory([&] {
      if (!join_) join_ = open_join(request_, devices);
      status = join_->next_batch(batch);
    });
    delivered_ = delivered_ || status.ok();
    return status;
  }
  void stats(JoinStats* stats) const override {
    if (join_)
      join_->stats(stats);
    else
      *stats = {};
  }
  /// Frees everything, also where the device cannot be reached any more.
  void end() { join_.reset(); }

  const Devices devices;

 private:
  template <class Work>
  void with_less_memory(const Work& work) {
    for (;;) {
      try {
        return work();
      } catch (const cuda::MemoryExhausted& error) {
        if (delivered_ || !error.on_device || error.limit_bytes < 2) throw;
        shortage_ = error;
      } catch (const MemoryLimitExceeded&) {
        // A share of what the join got is too little: it lacks memory, not a higher limit.
        if (shortage_ && !delivered_) throw *shortage_;
        throw;
      }
      begin_again();
    }
  }

  void begin_again() {
    end();
    on_each(devices, [](cuda::DeviceContext& device) {
      while (device.kept.drop_one()) {
      }
    });
    wait_and_trim(devices);
    std::uint64_t& limit = request_.resources.device_memory_limit;
    limit = std::min(limit == 0 ? shortage_->limit_bytes : limit, shortage_->limit_bytes) / 2;
  }

  JoinRequest request_;
  std::unique_ptr<Join> join_;
  std::optional<cuda::MemoryExhausted> shortage_;  ///< the last one
  bool delivered_ = false;                         ///< the caller has a batch
};

/// The contexts of devices, made when a join first uses one and kept until the process ends: by
/// then the driver may have gone. The engine keeps nothing else between joins, but for each
/// thread's signal mask during a call (cuda/device/signals.h).
struct Contexts {
  std::mutex mutex;  ///< only kept() and memory() come while another thread calls
  std::map<int, cuda::DeviceContext> of_device;
  SideBytes limit;  ///< of what each keeps
};

Contexts& contexts() {
  static auto& made = *new Contexts;
  return made;
}

/// That of the current device, which is number `device`.
cuda::DeviceContext& context_of(int device) {
  const std::lock_guard lock(contexts().mutex);
  const auto [context, made] = contexts().of_device.try_emplace(device, device);
  if (made) context->second.kept.keep(contexts().limit);
  return context->second;
}

/// Sets *numbers to the devices that the request names, or to all that have code if it names none.
/// Returns kUnavailable if a named device is missing or has no code.
Status find_devices(const DeviceNumbers& asked, std::vector<int>* numbers) {
  const cuda::SignalsBlocked blocked;
  return caught([&]() -> Status {
    const int there = count_devices();
    for (std::uint32_t i = 0; i < asked.count; ++i) {
      if (asked.number[i] < 0 || asked.number[i] >= there)
        return make_status(StatusCode::kUnavailable, "gpu_devices() lists the devices.",
                           "there is no device %d", asked.number[i]);
      DeviceInfo device{};
      look_for_code(asked.number[i], &device);
      if (device.unusable[0] != '\0') return no_code(asked.number[i], device);
      numbers->push_back(asked.number[i]);
    }
    if (there == 0)
      return make_status(StatusCode::kUnavailable, "gpu_devices() lists the devices.",
                         "there is no device");
    const int most = std::min(there, static_cast<int>(kMostDevices));
    DeviceInfo device{};
    for (int number = 0; asked.count == 0 && number < most; ++number) {
      look_for_code(number, &device);
      if (device.unusable[0] == '\0') numbers->push_back(number);
    }
    return numbers->empty() ? no_code(most - 1, device) : Status{};
  });
}

/// The contexts of devices; of several without those that cannot be used.
Devices contexts_of(const std::vector<int>& numbers) {
  Devices devices;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    try {
      const cuda::DeviceGuard guard(numbers[i]);
      devices.push_back(&context_of(numbers[i]));
    } catch (const cuda::CudaError&) {
      if (devices.empty() && i + 1 == numbers.size()) throw;
      cudaGetLastError();  // which the next launch would report
    } catch (const cuda::Unable&) {
      if (devices.empty() && i + 1 == numbers.size()) throw;
    }
  }
  return devices;
}

Status open(const JoinRequest* request, Join** join) {
  *join = nullptr;
  if (Status status = check_request(*request); !status.ok()) return status;
  if (request->keys.count > 0 && request->output() != Output::kClusters)
    return make_status(StatusCode::kUnavailable,
                       "Set gpujoin.engine to \"auto\" or \"cpu\" to use the CPU.",
                       "the CUDA engine has no joins with keys");
  std::vector<int> numbers;
  if (Status status = find_devices(request->resources.devices, &numbers); !status.ok())
    return status;
  Devices devices;
  Status status = on_device(numbers.front(), [&]() -> Status {
    devices = contexts_of(numbers);
    return {};
  });
  while (!devices.empty()) {
    status = on_device(devices.front()->number(), [&] {
      const Status opened = caught([&]() -> Status {
        *join = new OpenedJoin(*request, devices);
        return {};
      });
      if (!opened.ok()) wait_and_trim(devices);
      return opened;
    });
    const bool is_of_device =
        status.code == StatusCode::kDeviceFailure || status.code == StatusCode::kOutOfMemory;
    if (!is_of_device || devices.size() == 1) break;
    devices.erase(devices.begin());  // it leaves the join to the others
  }
  return status;
}

Status next_batch(Join* join, ResultBatch* batch) {
  return on_device(static_cast<OpenedJoin*>(join)->devices.front()->number(),
                   [&] { return join->next_batch(batch); });
}

/// Reports figures that are on the host, without a call to the device.
void stats(const Join* join, JoinStats* stats) {
  caught([&]() -> Status {
    join->stats(stats);
    return {};
  });
}

void close(Join* join) {
  const std::unique_ptr<OpenedJoin> closed(static_cast<OpenedJoin*>(join));
  on_device(closed->devices.front()->number(), [&]() -> Status {
    closed->end();
    trim(closed->devices);
    return {};
  });
}

/// Calls change(context) for each device that was used, with the device current.
template <class Change>
void change_kept(const Change& change) {
  const std::lock_guard lock(contexts().mutex);
  for (auto& [number, context] : contexts().of_device)
    on_device(number, [&context = context, &change]() -> Status {
      change(context);
      context.give_back_unused();
      return {};
    });
}

void keep(std::uint64_t host_bytes, std::uint64_t device_bytes) {
  const SideBytes limit{host_bytes, device_bytes};
  {
    const std::lock_guard lock(contexts().mutex);
    contexts().limit = limit;
  }
  change_kept([&](cuda::DeviceContext& context) { context.kept.keep(limit); });
}

void forget(std::uint64_t identity) {
  change_kept([&](cuda::DeviceContext& context) { context.kept.forget(identity); });
}

void kept(std::uint64_t identity, std::uint64_t* host_bytes, std::uint64_t* device_bytes) {
  const std::lock_guard lock(contexts().mutex);
  for (const auto& [number, context] : contexts().of_device) {
    const SideBytes bytes = context.kept.kept(identity);
    *host_bytes += bytes.host;
    *device_bytes += bytes.device;
  }
}

/// A device that cannot be reached has none in use.
void memory(DeviceMemory* devices, std::uint32_t capacity) {
  std::fill_n(devices, capacity, DeviceMemory{});
  const std::lock_guard lock(contexts().mutex);
  for (const auto& [number, context] : contexts().of_device) {
    if (static_cast<std::uint32_t>(number) >= capacity) continue;
    on_device(number, [&context = context, device = &devices[number]]() -> Status {
      *device = context.memory();
      return {};
    });
  }
}

constexpr EngineTable kTable{.name = "cuda",
                             .probe = probe,
                             .open = open,
                             .next_batch = next_batch,
                             .stats = stats,
                             .close = close,
                             .keep = keep,
                             .forget = forget,
                             .kept = kept,
                             .memory = memory};

}  // namespace
}  // namespace gpujoin

extern "C" __attribute__((visibility("default"))) const gpujoin::EngineTable* gpujoin_engine() {
  return &gpujoin::kTable;
}

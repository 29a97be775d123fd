// The CUDA engine's table: devices, error codes, and the one symbol that the shared object exports.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

#include "cuda/blocked_join.h"
#include "cuda/box_join.h"
#include "cuda/cuda_error.h"
#include "cuda/memory.h"
#include "cuda/signals.h"
#include "cuda/tuning.h"
#include "engine/engine.h"
#include "engine/topk_join.h"
#include "engine/topk_scan.h"

namespace gpujoin {
namespace {

Status status_of(const cuda::CudaError& error) {
  cudaGetLastError();
  if (error.code == cudaErrorMemoryAllocation)
    return make_status(
        StatusCode::kOutOfMemory,
        "Join fewer rows, lower gpujoin.device_memory_limit, or set gpujoin.engine to cpu.",
        "the device is out of memory while %s", error.action);
  // After some errors every later call of the process fails as well.
  const char* const hint =
      cudaDeviceSynchronize() == cudaSuccess
          ? "The session can go on; set gpujoin.engine to cpu to do without the device."
          : "The session cannot use the device any more: reconnect, or set gpujoin.engine to cpu.";
  return make_status(StatusCode::kDeviceFailure, hint, "CUDA failed while %s: %s", error.action,
                     cudaGetErrorString(error.code));
}

/// Runs body() and turns what it throws into a Status.
template <class Body>
Status guarded(const Body& body) {
  const cuda::SignalsBlocked blocked;
  try {
    return body();
  } catch (const cuda::CudaError& error) {
    return status_of(error);
  } catch (const MemoryLimitExceeded& error) {
    return make_status(
        StatusCode::kMemoryLimit,
        "Raise gpujoin.device_memory_limit or gpujoin.host_memory_limit, or join fewer rows.",
        "the join needs more than its memory limit: at least %llu MB of %llu MB",
        static_cast<unsigned long long>((error.needed_bytes >> 20) + 1),
        static_cast<unsigned long long>(error.limit_bytes >> 20));
  } catch (const cuda::Interrupted&) {
    return {StatusCode::kInterrupted};
  } catch (const std::bad_alloc&) {
    return make_status(StatusCode::kOutOfMemory, nullptr, "out of host memory in the CUDA engine");
  }
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

Status probe(DeviceInfo* devices, std::uint32_t capacity, std::uint32_t* count) {
  *count = 0;
  return guarded([&]() -> Status {
    const int found = count_devices();
    if (found == 0)
      return make_status(StatusCode::kUnavailable,
                         "Set gpujoin.engine to \"auto\" or \"cpu\" to use the CPU.",
                         "no NVIDIA GPU or no driver for it");
    *count = std::min(static_cast<std::uint32_t>(found), capacity);
    for (std::uint32_t i = 0; i < *count; ++i) {
      cudaDeviceProp properties;
      cuda::check(cudaGetDeviceProperties(&properties, static_cast<int>(i)), "looking at a device");
      DeviceInfo& device = devices[i];
      device = {};
      std::snprintf(device.name, sizeof device.name, "%.95s", properties.name);
      device.parallelism = static_cast<std::uint32_t>(properties.multiProcessorCount);
      device.memory_bytes = properties.totalGlobalMem;
      std::snprintf(device.detail, sizeof device.detail, "compute capability %d.%d",
                    properties.major, properties.minor);
    }
    return {};
  });
}

/// Throws what guarded() knows.
std::unique_ptr<Join> open_join(const JoinRequest& request, const cudaDeviceProp& device) {
  if (request.shape == Shape::kBoxes) return std::make_unique<cuda::BoxJoin>(request, device);
  const OpenJoin blocked_join = [device](const JoinRequest& part) {
    return std::make_unique<cuda::BlockedJoin>(part, device);
  };
  if (request.output != Output::kTopPairs) return blocked_join(request);
  // Tiles, which alone know directions, find pairs whatever their scores.
  const OpenJoin scan = [blocked_join](const JoinRequest& part) {
    return std::make_unique<TopkScan>(part, blocked_join);
  };
  const bool cosine = request.metric == Metric::kCosine;
  return open_topk_join(request, cosine ? scan : blocked_join, cuda::kPlainTopkCosts);
}

Status open(const JoinRequest* request, Join** join) {
  *join = nullptr;
  if (Status status = check_request(*request); !status.ok()) return status;
  return guarded([&]() -> Status {
    const int devices = count_devices();
    if (request->device < 0 || request->device >= devices)
      return make_status(StatusCode::kUnavailable, "gpu_devices() lists the devices.",
                         "there is no device %d", request->device);
    cuda::check(cudaSetDevice(request->device), "choosing a device");
    cudaDeviceProp device;
    cuda::check(cudaGetDeviceProperties(&device, request->device), "looking at a device");
    // Memory that a join frees is kept for its next allocation, until close() gives it back.
    cudaMemPool_t pool;
    cuda::check(cudaDeviceGetDefaultMemPool(&pool, request->device), "looking at device memory");
    std::uint64_t keep = ~std::uint64_t{0};
    cuda::check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
                "setting up device memory");
    *join = open_join(*request, device).release();
    return {};
  });
}

Status next_batch(Join* join, ResultBatch* batch) {
  return guarded([&] { return join->next_batch(batch); });
}

void stats(const Join* join, JoinStats* stats) { join->stats(stats); }

/// What a session keeps of the device's memory between joins.
constexpr std::size_t kKeptDeviceBytes = std::size_t{256} << 20;

void close(Join* join) {
  const cuda::SignalsBlocked blocked;
  delete join;
  int device = 0;
  cudaMemPool_t pool;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess)
    cudaMemPoolTrimTo(pool, kKeptDeviceBytes);
}

constexpr EngineTable kTable{kEngineAbiVersion, "cuda", probe, open, next_batch, stats, close};

}  // namespace
}  // namespace gpujoin

extern "C" __attribute__((visibility("default"))) const gpujoin::EngineTable* gpujoin_engine() {
  return &gpujoin::kTable;
}

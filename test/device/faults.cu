// Makes calls of the CUDA runtime fail. Linked, with --wrap for each of them, into a CUDA engine of
// its own, build/cuda/gpujoin_cuda_faults.so, which exports what stands at the end.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <map>

extern "C" void gpujoin_break_device();

namespace {

/// GPUJOIN_BREAK_DEVICE=N: the device breaks with call number N of the process, for programs that
/// nobody can call.
std::int64_t calls_to_break() {
  const char* const calls = std::getenv("GPUJOIN_BREAK_DEVICE");
  return calls != nullptr ? std::atoll(calls) : -1;
}

std::int64_t until_failure = -1;
std::int64_t until_broken = calls_to_break();
bool has_failed = false;
std::int64_t live = 0;

bool fails_now() {
  if (until_broken >= 0 && until_broken-- == 0) gpujoin_break_device();
  if (until_failure < 0 || until_failure-- > 0) return false;
  has_failed = true;
  return true;
}

cudaError_t count_made(cudaError_t code) {
  if (code == cudaSuccess) ++live;
  return code;
}

cudaError_t count_gone(cudaError_t code) {
  if (code == cudaSuccess) --live;
  return code;
}

__global__ void fault_kernel() { asm("trap;"); }

}  // namespace

#define GPUJOIN_WRAP(name, parameters, arguments, error, count)  \
  extern "C" cudaError_t __real_##name parameters;               \
  extern "C" cudaError_t __wrap_##name parameters {              \
    return fails_now() ? error : count(__real_##name arguments); \
  }
#define GPUJOIN_WRAP_FREE(name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;     \
  extern "C" cudaError_t __wrap_##name parameters { return count_gone(__real_##name arguments); }

namespace {
std::int64_t memory_limit = 0;  // of all blocks; 0: the device's
std::map<void*, std::size_t> blocks;

std::int64_t live_bytes() {
  std::int64_t sum = 0;
  for (const auto& [data, bytes] : blocks) sum += static_cast<std::int64_t>(bytes);
  return sum;
}

bool is_too_much(std::size_t bytes) {
  if (memory_limit == 0 || live_bytes() + static_cast<std::int64_t>(bytes) <= memory_limit)
    return false;
  has_failed = true;
  return true;
}
}  // namespace

extern "C" cudaError_t __real_cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  if (fails_now() || is_too_much(bytes)) return cudaErrorMemoryAllocation;
  const cudaError_t code = count_made(__real_cudaMallocAsync(data, bytes, stream));
  if (code == cudaSuccess) blocks[*data] = bytes;
  return code;
}

extern "C" cudaError_t __real_cudaFreeAsync(void* data, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaFreeAsync(void* data, cudaStream_t stream) {
  blocks.erase(data);
  return count_gone(__real_cudaFreeAsync(data, stream));
}

/// As if the device had no more than so many bytes for this process, although it says that more are
/// free; 0: all that it has. An allocation that this refuses counts as a call made to fail.
extern "C" void gpujoin_limit_device_memory(std::int64_t bytes) {
  memory_limit = bytes;
  has_failed = false;
}

/// Bytes that this process keeps of the current device's memory, used or not.
extern "C" std::uint64_t gpujoin_reserved_device_bytes() {
  int device = 0;
  cudaMemPool_t pool = nullptr;
  std::uint64_t bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes) != cudaSuccess)
    return ~std::uint64_t{0};
  return bytes;
}

GPUJOIN_WRAP(cudaHostAlloc, (void** data, std::size_t bytes, unsigned flags), (data, bytes, flags),
             cudaErrorMemoryAllocation, )
GPUJOIN_WRAP(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags),
             cudaErrorUnknown, count_made)
GPUJOIN_WRAP_FREE(cudaStreamDestroy, (cudaStream_t stream), (stream))
GPUJOIN_WRAP(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags),
             cudaErrorUnknown, count_made)
GPUJOIN_WRAP_FREE(cudaEventDestroy, (cudaEvent_t event), (event))
GPUJOIN_WRAP(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream),
             cudaErrorUnknown, )
GPUJOIN_WRAP(cudaMemcpyAsync,
             (void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
              cudaStream_t stream),
             (to, from, bytes, kind, stream), cudaErrorUnknown, )
GPUJOIN_WRAP(cudaMemcpyPeerAsync,
             (void* to, int to_device, const void* from, int from_device, std::size_t bytes,
              cudaStream_t stream),
             (to, to_device, from, from_device, bytes, stream), cudaErrorUnknown, )
GPUJOIN_WRAP(cudaMemPoolSetAccess,
             (cudaMemPool_t pool, const cudaMemAccessDesc* readers, std::size_t count),
             (pool, readers, count), cudaErrorUnknown, )
GPUJOIN_WRAP(cudaMemsetAsync, (void* data, int value, std::size_t bytes, cudaStream_t stream),
             (data, value, bytes, stream), cudaErrorUnknown, )

// How often an event is asked for before it is there is chance, and no call to be made to fail.
extern "C" cudaError_t __real_cudaEventQuery(cudaEvent_t event);
extern "C" cudaError_t __wrap_cudaEventQuery(cudaEvent_t event) {
  const cudaError_t code = __real_cudaEventQuery(event);
  return code != cudaErrorNotReady && fails_now() ? cudaErrorUnknown : code;
}

// Whoever frees memory after it relies on its having waited.
extern "C" cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t code = __real_cudaStreamSynchronize(stream);
  return fails_now() ? cudaErrorUnknown : code;
}

extern "C" cudaError_t __real_cudaEventSynchronize(cudaEvent_t event);
extern "C" cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t event) {
  const cudaError_t code = __real_cudaEventSynchronize(event);
  return fails_now() ? cudaErrorUnknown : code;
}

namespace {
bool devices_are_apart = false;
}

extern "C" cudaError_t __real_cudaDeviceCanAccessPeer(int* can, int reader, int device);
extern "C" cudaError_t __wrap_cudaDeviceCanAccessPeer(int* can, int reader, int device) {
  if (fails_now()) return cudaErrorUnknown;
  const cudaError_t code = __real_cudaDeviceCanAccessPeer(can, reader, device);
  if (devices_are_apart) *can = 0;
  return code;
}

/// As if no bus connected devices: what one copies from another goes through the host.
extern "C" void gpujoin_part_devices(bool part) { devices_are_apart = part; }

namespace {
int shared_kb = 0;   // of a thread block; 0: what the device has
int capability = 0;  // as 75 for 7.5; 0: the device's
}  // namespace

extern "C" cudaError_t __real_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                                     int device);
extern "C" cudaError_t __wrap_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                                     int device) {
  const cudaError_t code = __real_cudaDeviceGetAttribute(value, attribute, device);
  if (capability != 0) {
    if (attribute == cudaDevAttrComputeCapabilityMajor) *value = capability / 10;
    if (attribute == cudaDevAttrComputeCapabilityMinor) *value = capability % 10;
  }
  if (shared_kb == 0) return code;
  if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = shared_kb << 10;
  if (attribute == cudaDevAttrMaxSharedMemoryPerMultiprocessor) *value = (shared_kb + 1) << 10;
  return code;
}

/// As if the device lent so many KB of shared memory to a thread block, and had 1 KB more on each
/// multiprocessor; 0: what it really lends.
extern "C" void gpujoin_limit_shared_memory(int kb) { shared_kb = kb; }

/// As if all devices had this compute capability, as 75 for 7.5; 0: their own.
extern "C" void gpujoin_pretend_capability(int number) { capability = number; }

/// Call number `nth` from now fails: allocations for want of memory, others for reasons unknown.
/// -1: none does.
extern "C" void gpujoin_fail_cuda_call(std::int64_t nth) {
  until_failure = nth;
  has_failed = false;
}

/// Whether a call was made to fail since then.
extern "C" bool gpujoin_cuda_call_failed() { return has_failed; }

/// Device memory blocks, streams and events that live.
extern "C" std::int64_t gpujoin_live_cuda_objects() { return live; }

namespace {
bool tensor_sums_are_off = false;
}

/// What the engine asks before its own test of tensor cores.
extern "C" bool gpujoin_tensor_sums_are_off() { return tensor_sums_are_off; }
extern "C" void gpujoin_spoil_tensor_sums(bool spoil) { tensor_sums_are_off = spoil; }

/// What the driver has for the current context of this thread; null where there is none.
extern "C" void* gpujoin_current_context() {
  CUresult (*get)(CUcontext*) = nullptr;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", reinterpret_cast<void**>(&get), 4000,
                                       cudaEnableDefault, &result) != cudaSuccess ||
      get == nullptr)
    return nullptr;
  CUcontext context = nullptr;
  return get(&context) == CUDA_SUCCESS ? context : nullptr;
}

/// Runs a kernel that faults, after which the process cannot use the device any more.
extern "C" void gpujoin_break_device() {
  fault_kernel<<<1, 1>>>();
  cudaDeviceSynchronize();
}

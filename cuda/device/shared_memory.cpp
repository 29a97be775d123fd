#include "cuda/device/shared_memory.h"

namespace gpujoin::cuda {

SharedMemory shared_memory() {
  constexpr const char* kAction = "asking for shared memory";
  int device = 0;
  check(cudaGetDevice(&device), kAction);
  const auto ask = [&](cudaDeviceAttr attribute) {
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, attribute, device), kAction);
    return static_cast<std::uint32_t>(bytes);
  };
  return {ask(cudaDevAttrMaxSharedMemoryPerBlockOptin),
          ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
          ask(cudaDevAttrReservedSharedMemoryPerBlock)};
}

}  // namespace gpujoin::cuda

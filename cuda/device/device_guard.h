// The device that calls of CUDA are meant for.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "cuda/device/cuda_error.h"

namespace gpujoin::cuda {

/// Makes a device the current one while it lives; then this thread's current device, or its lack of
/// one, is restored. Setting the device that was current before would not do: that makes a context,
/// half a GB, on a device that nobody may have asked for.
class DeviceGuard {
 public:
  /// Throws CudaError. There is a driver, and the device.
  explicit DeviceGuard(int device) {
    if (driver().get(&before_) != CUDA_SUCCESS) before_ = nullptr;  // it is not in use yet
    check(cudaSetDevice(device), "choosing a device");
  }
  ~DeviceGuard() { driver().set(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  /// The driver is not linked: the object has to load on machines without one.
  struct Driver {
    Driver() {
      find(get, "cuCtxGetCurrent");
      find(set, "cuCtxSetCurrent");
    }

    template <class Function>
    static void find(Function& function, const char* name) {
      void* address = nullptr;
      cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
      constexpr unsigned kSince = 4000;  // the version of both functions
      check(cudaGetDriverEntryPointByVersion(name, &address, kSince, cudaEnableDefault, &result),
            "looking for the driver");
#else
      check(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &result),
            "looking for the driver");
#endif
      if (address == nullptr) throw CudaError{cudaErrorNotSupported, "looking for the driver"};
      function = reinterpret_cast<Function>(address);
    }

    CUresult (*get)(CUcontext*) = nullptr;
    CUresult (*set)(CUcontext) = nullptr;
  };

  /// Found once. Throws CudaError.
  static const Driver& driver() {
    static const Driver found;
    return found;
  }

  CUcontext before_ = nullptr;
};

}  // namespace gpujoin::cuda

// What lets one header serve the host compiler and nvcc: the function qualifier, and arithmetic
// that no compiler may contract into fused multiply-adds. Nothing else belongs here.
#pragma once

#if defined(__CUDACC__)
#define GPUJOIN_HD __host__ __device__
#else
#define GPUJOIN_HD
#endif

namespace gpujoin {

/// a + b, rounded once to nearest.
GPUJOIN_HD inline double add_rounded(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;  // the host is compiled with -ffp-contract=off
#endif
}

/// a * b, rounded once to nearest.
GPUJOIN_HD inline double multiply_rounded(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

}  // namespace gpujoin

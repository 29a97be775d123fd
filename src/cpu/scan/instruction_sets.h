// The instruction sets that the scans are compiled for, of which the best that a machine has is
// chosen at run time. To be included before Highway. On x86 they are what every machine has, SSE4
// (virtual machines often show no more), AVX2 and AVX-512: a scan takes 0.4 to 1 times as long as
// with the set before. Processors that end at SSSE3 are of 2007; the later kinds of AVX-512
// (Highway's bits below HWY_AVX3) have no instruction that a scan uses, but for one that counts
// bits: a file that needs it defines GPUJOIN_COUNTS_BITS before. Vectors of unknown length
// (SVE, RVV) cannot be kept in arrays, as queries and sums are.
#pragma once

#if defined(GPUJOIN_COUNTS_BITS)
#define HWY_WANT_AVX3_DL
#define GPUJOIN_LAST_TARGET HWY_AVX3_DL
#else
#define GPUJOIN_LAST_TARGET HWY_AVX3
#endif

#define HWY_DISABLED_TARGETS                                               \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | \
   (GPUJOIN_LAST_TARGET - 1) | GPUJOIN_OTHER_TARGETS)

// Tests under a sanitizer run only the best of their machine, and look at what threads share
// rather than at lanes under ThreadSanitizer: each set takes long to compile.
#if defined(__SANITIZE_ADDRESS__)
#define GPUJOIN_OTHER_TARGETS HWY_SSE4
#elif defined(__SANITIZE_THREAD__)
#define GPUJOIN_OTHER_TARGETS (HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define GPUJOIN_OTHER_TARGETS 0
#endif

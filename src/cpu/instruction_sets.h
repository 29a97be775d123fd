#pragma once

// The instruction sets that the scans are compiled for, chosen at run time; to be included before
// Highway. Each x86 machine has the first of Highway's list. The others are measured with
// gpujoin_measure: SSE4, for the virtual machines that show no more, takes 0.7 times as long in a
// grid and in tiles; AVX2, with twice the lanes and fused multiply-adds, half as long as SSE4 in
// tiles; AVX-512, with twice the registers, 0.7 times as long as AVX2. SSSE3 gains nothing, nor do
// later AVX-512 (Highway's bits below HWY_AVX3), whose new instructions a scan does not use.
// Vectors of unknown length (SVE, RVV) cannot be kept in arrays, as queries and sums are.
#define HWY_DISABLED_TARGETS                                                                \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | (HWY_AVX3 - 1) | \
   GPUJOIN_OTHER_TARGETS)

// Compiling takes a minute for each set under a sanitizer, where only the best of the machine is
// ever run.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GPUJOIN_OTHER_TARGETS HWY_SSE4
#else
#define GPUJOIN_OTHER_TARGETS 0
#endif

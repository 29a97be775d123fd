// The one instruction of tensor cores that the engine uses.
#pragma once

namespace gpujoin::cuda {

/// sum = a * b + start, of 16 x 16 by 16 x 8 halves.
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1, const float (&start)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]), "f"(start[1]),
        "f"(start[2]), "f"(start[3]));
}

}  // namespace gpujoin::cuda

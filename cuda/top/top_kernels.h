// The kernels of top-k joins, launched: they walk the grid as range_kernels do and write the pairs
// that may be among the best, with the keys of their scores.
#pragma once

#include <cstdint>

#include "core/pair_rank.h"
#include "core/score.h"
#include "cuda/grid/range_kernels.h"

namespace gpujoin::cuda {

/// Points of the right index whose lowest and highest score are known together.
inline constexpr std::uint32_t kScoreBlock = 32;

/// Where admitted pairs are written: entry i is keys[i] and pairs[i], the left position above the
/// right one.
struct AdmittedPairs {
  std::uint64_t* keys;
  std::uint64_t* pairs;
  unsigned long long* count;  ///< pairs admitted, also beyond the capacity
  std::uint64_t capacity;
};

/// What launches of a top-k join have in common, beside a JoinView that has ids.
struct TopView {
  Scoring scoring;
  bool smaller_first;            ///< JoinRequest::orders_pairs()
  const double* left_scores;     ///< [left points] by position; null: scores are distances
  const double* right_scores;    ///< likewise
  const Interval* right_blocks;  ///< [blocks] of kScoreBlock scores
  const Interval* right_all;     ///< of all of them
  const PairRank* least;         ///< pairs behind it are not admitted
  AdmittedPairs admitted;
};

/// blocks[b] = the interval of scores[kScoreBlock * b ..]; all[0] = the interval of all scores.
void find_score_blocks(const double* scores, std::uint32_t points, Interval* blocks, Interval* all,
                       cudaStream_t stream);

/// Admits every pair of the stretch that is not behind *least. Adds to *candidates.
void launch_admit(const KernelChoice& choice, const JoinView& join, const TopView& top,
                  const Stretch& stretch, unsigned long long* candidates, cudaStream_t stream);

/// Returns the bytes of device memory for the heaps of `points` points; 0 if shared memory holds
/// them. Throws CudaError.
std::uint64_t heap_scratch_bytes(std::uint64_t k, std::uint64_t points);

/// Admits the k best pairs of each point of the stretch, from a heap of its own (algorithm 6 of
/// [thesis, section 5.8]). `scratch` has heap_scratch_bytes(). Adds to *candidates.
void launch_heaps(const KernelChoice& choice, const JoinView& join, const TopView& top,
                  const Stretch& stretch, std::uint64_t k, unsigned char* scratch,
                  unsigned long long* candidates, cudaStream_t stream);

}  // namespace gpujoin::cuda

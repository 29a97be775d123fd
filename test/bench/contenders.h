// The programs that the benchmark compares. Each finds the ordered pairs of one set of points
// within eps, each point paired with itself, and starts from the coordinates in host memory:
// building its index, and freeing everything, is part of the call. The caller takes the time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/request/dataset.h"

namespace gpujoin::bench {

struct Outcome {
  std::uint64_t pairs = 0;
  double index_ms = 0;  ///< of the call, spent on building the index
  std::string detail;   ///< its version, or the instruction set it chose
};

/// A contender that delivers nothing but the number of pairs. `points` has doubles and 2 to 6
/// dimensions.
using Contender = Outcome (*)(const Dataset& points, double eps, unsigned threads);

Outcome gpujoin_total(const Dataset& points, double eps, unsigned threads);
Outcome nanoflann_total(const Dataset& points, double eps, unsigned threads);
Outcome rtree_total(const Dataset& points, double eps, unsigned threads);

// gpujoin again, delivering more than the number.
Outcome gpujoin_counts(const Dataset& points, double eps, unsigned threads);
Outcome gpujoin_pairs(const Dataset& points, double eps, unsigned threads);
Outcome gpujoin_distances(const Dataset& points, double eps, unsigned threads);
Outcome gpujoin_id_pairs(const Dataset& points, double eps, unsigned threads);

inline double now_ms() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

/// Calls `count(begin, end)` for blocks of [0, rows) on that many threads and returns the sum of
/// what it returns. Blocks are handed out as threads get free.
template <class Count>
std::uint64_t sum_in_parallel(std::uint64_t rows, unsigned threads, Count count) {
  constexpr std::uint64_t kBlock = 512;
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> sum = 0;
  const auto work = [&] {
    std::uint64_t own = 0;
    for (std::uint64_t begin; (begin = next.fetch_add(kBlock)) < rows;)
      own += count(begin, begin + kBlock < rows ? begin + kBlock : rows);
    sum += own;
  };
  std::vector<std::jthread> helpers;
  for (unsigned t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
  helpers.clear();
  return sum;
}

}  // namespace gpujoin::bench

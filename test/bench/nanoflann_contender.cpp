// nanoflann: a k-d tree, and a radius search from each point. The search only counts, and queries
// come in the tree's own order, so that one finds in the cache what the last one left there.
#include <cmath>
#include <limits>
#include <nanoflann.hpp>

#include "contenders.h"
#include "core/threshold.h"

namespace gpujoin::bench {
namespace {

// The best of 8 to 48, or close to it, in every case of the bench; nanoflann's default is 10.
constexpr std::size_t kLeafPoints = 32;

/// What nanoflann wants to know of the points.
template <int Dims>
struct Points {
  const double* coordinates;
  std::uint64_t rows;

  std::size_t kdtree_get_point_count() const { return rows; }
  double kdtree_get_pt(std::uint32_t row, std::size_t column) const {
    return coordinates[std::uint64_t{row} * Dims + column];
  }
  template <class Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

/// nanoflann's result set, for counting alone. The tree passes on what is below `limit`.
struct Counter {
  double limit;
  std::uint64_t count = 0;

  bool full() const { return true; }
  std::size_t size() const { return count; }
  double worstDist() const { return limit; }
  bool addPoint(double, std::uint32_t) {
    ++count;
    return true;
  }
};

/// NANOFLANN_VERSION is 0xMmP.
std::string version() {
  constexpr int kDigits = NANOFLANN_VERSION;
  return std::to_string(kDigits >> 8) + '.' + std::to_string(kDigits >> 4 & 15) + '.' +
         std::to_string(kDigits & 15);
}

template <int Dims>
Outcome run(const Dataset& data, double eps, unsigned threads) {
  using Distance = nanoflann::L2_Simple_Adaptor<double, Points<Dims>, double, std::uint32_t>;
  using Tree = nanoflann::KDTreeSingleIndexAdaptor<Distance, Points<Dims>, Dims, std::uint32_t>;
  const Points<Dims> points{static_cast<const double*>(data.first_chunk), data.rows};
  // sum <= raw is sum < the next double.
  const double limit =
      std::nextafter(make_threshold(Metric::kL2, eps).raw, std::numeric_limits<double>::infinity());
  Outcome outcome;
  outcome.detail = version();
  const double start = now_ms();
  Tree tree(Dims, points, nanoflann::KDTreeSingleIndexAdaptorParams(kLeafPoints));
  tree.buildIndex();
  outcome.index_ms = now_ms() - start;
  outcome.pairs = sum_in_parallel(data.rows, threads, [&](std::uint64_t begin, std::uint64_t end) {
    Counter counter{limit};
    for (std::uint64_t i = begin; i < end; ++i)
      tree.findNeighbors(counter, points.coordinates + std::uint64_t{tree.vAcc[i]} * Dims, {});
    return counter.count;
  });
  return outcome;
}

}  // namespace

Outcome nanoflann_total(const Dataset& points, double eps, unsigned threads) {
  switch (points.dims) {
    case 2:
      return run<2>(points, eps, threads);
    case 3:
      return run<3>(points, eps, threads);
    case 4:
      return run<4>(points, eps, threads);
    case 5:
      return run<5>(points, eps, threads);
    default:
      return run<6>(points, eps, threads);
  }
}

}  // namespace gpujoin::bench

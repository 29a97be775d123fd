// Boost.Geometry's R-tree, packed in bulk: from each point the box that holds every point within
// eps, and the exact distance for what lies in it. The tree holds bare points, nothing that names
// them, and queries come in its own order, so that one finds in the cache what the last one left
// there.
#define BOOST_ALLOW_DEPRECATED_HEADERS  // Boost 1.74 warns of its own
#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <boost/iterator/function_output_iterator.hpp>
#include <boost/version.hpp>
#include <cfloat>
#include <cmath>
#include <utility>

#include "contenders.h"
#include "core/threshold.h"

namespace gpujoin::bench {
namespace {

namespace bg = boost::geometry;
namespace bgi = boost::geometry::index;

// The best of 4 to 32, or close to it, in every case of the bench.
constexpr std::size_t kNodeEntries = 8;

template <int Dims>
using Point = bg::model::point<double, Dims, bg::cs::cartesian>;

/// Calls `visit` with each of 0 .. Dims - 1 as a compile-time constant.
template <int Dims, class Visit>
void for_each_column(Visit visit) {
  [&]<std::size_t... D>(std::index_sequence<D...>) {
    (visit(std::integral_constant<std::size_t, D>()), ...);
  }
  (std::make_index_sequence<Dims>());
}

/// Every point whose distance is at most eps lies in it, whatever the rounding.
template <int Dims>
bg::model::box<Point<Dims>> box_around(const Point<Dims>& center, double reach) {
  Point<Dims> low, high;
  for_each_column<Dims>([&](auto d) {
    const double x = bg::get<d>(center);
    bg::set<d>(low, std::nextafter(x - reach, -DBL_MAX));
    bg::set<d>(high, std::nextafter(x + reach, DBL_MAX));
  });
  return {low, high};
}

template <int Dims>
double sum_of_squares(const Point<Dims>& a, const Point<Dims>& b) {
  double sum = 0;
  for_each_column<Dims>([&](auto d) {
    const double difference = bg::get<d>(a) - bg::get<d>(b);
    sum += difference * difference;
  });
  return sum;
}

template <int Dims>
std::vector<Point<Dims>> read_points(const Dataset& data) {
  std::vector<Point<Dims>> points(data.rows);
  const double* x = static_cast<const double*>(data.first_chunk);
  for (Point<Dims>& point : points) for_each_column<Dims>([&](auto d) { bg::set<d>(point, *x++); });
  return points;
}

template <int Dims>
Outcome run(const Dataset& data, double eps, unsigned threads) {
  using Tree = bgi::rtree<Point<Dims>, bgi::rstar<kNodeEntries>>;
  const Threshold threshold = make_threshold(Metric::kL2, eps);
  const double reach = threshold.reach * (1 + 2 * DBL_EPSILON);
  Outcome outcome;
  outcome.detail = BOOST_LIB_VERSION;
  const double start = now_ms();
  const std::vector<Point<Dims>> points = read_points<Dims>(data);
  const Tree tree(points.begin(), points.end());
  outcome.index_ms = now_ms() - start;
  const std::vector<Point<Dims>> queries(tree.begin(), tree.end());
  outcome.pairs = sum_in_parallel(data.rows, threads, [&](std::uint64_t begin, std::uint64_t end) {
    std::uint64_t count = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      const Point<Dims>& query = queries[i];
      const auto check = [&](const Point<Dims>& found) {
        count += sum_of_squares<Dims>(query, found) <= threshold.raw;
      };
      tree.query(bgi::intersects(box_around<Dims>(query, reach)),
                 boost::make_function_output_iterator(check));
    }
    return count;
  });
  return outcome;
}

}  // namespace

Outcome rtree_total(const Dataset& points, double eps, unsigned threads) {
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

// Times nearest-neighbour joins and prints rows of a Markdown table. Arguments are read from left
// to right: NAME=VALUE holds for the cases after it, SET,DIMENSIONS,LEFT,RIGHT,K is a case; where
// RIGHT is 0 a table meets itself, but no row itself. SET is unif (uniform in the unit cube), expo
// (exponential, lambda 40), mix (1,000 clusters of 8 intrinsic dimensions) or grid (unif, rounded
// to 1/512: many distances are equal, and in few dimensions many points). Names: scalar (float32,
// float64), metric (l2, cosine), index (auto, tiles, none: a tree), rounds, threads, kept (yes, no:
// whether the engine keeps the right rows from run to run), check (left rows whose neighbours are
// compared with the CPU engine's; 0: none).
//
//   gpujoin_measure_nearest unif,2,2000000,2000000,8 scalar=float32 mix,384,100000,100000,10
//
// The engine is the one that GPUJOIN_CUDA_ENGINE names, or the CPU engine. A time begins with the
// coordinates in host memory and ends with the last batch in host memory; the first run of a case
// is not counted, the median of the others is reported.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../unit/points.h"
#include "engine/engine.h"
#include "measuring.h"

namespace gpujoin {
namespace {

struct Options {
  ScalarType scalar = ScalarType::kFloat64;
  Metric metric = Metric::kL2;
  std::uint32_t rounds = 5;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t check = 200;
  IndexMethod index = IndexMethod::kAuto;
  bool kept = false;
};

void set_option(Options* options, const std::string& name, const std::string& value) {
  if (name == "scalar" && (value == "float32" || value == "float64"))
    options->scalar = value == "float32" ? ScalarType::kFloat32 : ScalarType::kFloat64;
  else if (name == "metric" && (value == "l2" || value == "cosine"))
    options->metric = value == "l2" ? Metric::kL2 : Metric::kCosine;
  else if (name == "index" && (value == "auto" || value == "tiles" || value == "none"))
    options->index = value == "auto"    ? IndexMethod::kAuto
                     : value == "tiles" ? IndexMethod::kTiles
                                        : IndexMethod::kNone;
  else if (name == "rounds")
    options->rounds = std::max(1u, static_cast<std::uint32_t>(std::stoul(value)));
  else if (name == "threads")
    options->threads = std::max(1u, static_cast<std::uint32_t>(std::stoul(value)));
  else if (name == "kept" && (value == "yes" || value == "no"))
    options->kept = value == "yes";
  else if (name == "check")
    options->check = std::stoull(value);
  else
    throw std::runtime_error("no such option: " + name + "=" + value);
}

double normal(test::Random& random) {
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(2 * random.exponential()) * std::cos(kTwoPi * random.unit());
}

/// Calls fill(random, row) for each row, on several threads, with the same random numbers whatever
/// their number.
template <class Fill>
void for_rows(std::uint64_t rows, std::uint64_t seed, std::uint32_t threads, const Fill& fill) {
  constexpr std::uint64_t kBlockRows = 4096;
  std::vector<std::thread> workers;
  for (std::uint32_t worker = 0; worker < threads; ++worker)
    workers.emplace_back([=, &fill] {
      for (std::uint64_t block = worker; block * kBlockRows < rows; block += threads) {
        test::Random random(seed * 1000003 + block);
        const std::uint64_t end = std::min(rows, (block + 1) * kBlockRows);
        for (std::uint64_t row = block * kBlockRows; row < end; ++row) fill(random, row);
      }
    });
  for (std::thread& worker : workers) worker.join();
}

/// The clusters of two sides are the same, their rows are not.
template <class T>
std::vector<T> make_rows(const std::string& set, std::uint32_t dims, std::uint64_t rows,
                         std::uint64_t seed, std::uint32_t threads) {
  constexpr std::size_t kClusters = 1000, kIntrinsic = 8;
  std::vector<double> centers, bases;
  if (set == "mix") {
    test::Random random(dims);
    centers.resize(kClusters * dims);
    bases.resize(kClusters * kIntrinsic * dims);
    for (double& x : centers) x = random.between(0.2, 0.8);
    for (double& x : bases) x = normal(random) / std::sqrt(static_cast<double>(dims));
  } else if (set != "unif" && set != "expo" && set != "grid") {
    throw std::runtime_error("no such set: " + set);
  }
  std::vector<T> values(rows * dims);
  for_rows(rows, seed, threads, [&](test::Random& random, std::uint64_t row) {
    T* const point = &values[row * dims];
    if (set != "mix") {
      for (std::uint32_t d = 0; d < dims; ++d)
        point[d] = static_cast<T>(set == "unif"   ? random.unit()
                                  : set == "grid" ? std::round(random.unit() * 512) / 512
                                                  : random.exponential() / 40);
      return;
    }
    const std::size_t cluster = random.index(kClusters);
    double along[kIntrinsic];
    for (double& x : along) x = 0.05 * normal(random);
    for (std::uint32_t d = 0; d < dims; ++d) {
      double x = centers[cluster * dims + d] + 0.002 * normal(random);
      for (std::size_t axis = 0; axis < kIntrinsic; ++axis)
        x += along[axis] * bases[(cluster * kIntrinsic + axis) * dims + d];
      point[d] = static_cast<T>(x);
    }
  });
  return values;
}

/// The neighbours of each of the first left rows, which are named by their numbers.
using Neighbors = std::vector<std::vector<std::pair<double, std::int64_t>>>;

Neighbors find_neighbors(const EngineTable& engine, const JoinRequest& request,
                         std::uint64_t rows) {
  Neighbors found(rows);
  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  if (!status.ok()) throw std::runtime_error(status.message);
  for (ResultBatch batch{}; (status = engine.next_batch(join, &batch)).ok();)
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const auto left = static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]);
      if (left >= rows) continue;
      for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at)
        found[left].emplace_back(batch.distances[at], batch.right_ids[batch.neighbors[at]]);
    }
  engine.close(join);
  if (status.code != StatusCode::kEnd) throw std::runtime_error(status.message);
  return found;
}

/// Says whether the first left rows have the neighbours that the CPU engine finds.
const char* check_neighbors(const EngineTable& engine, const JoinRequest& request,
                            const Options& options) {
  const std::uint64_t rows = std::min(options.check, request.left().rows);
  if (rows == 0) return "not checked";
  Dataset first = request.left();
  first.rows = rows;
  const std::uint64_t k = request.neighbors();
  JoinRequest few = JoinRequest(Sides::two(first, request.right()), {request.metric(), DBL_MAX},
                                Output::nearest(k + (request.self_join() ? 1 : 0)));
  few.resources = request.resources;
  Neighbors expected = find_neighbors(*cpu_engine(), few, rows);
  if (request.self_join())
    for (std::uint64_t row = 0; row < rows; ++row) {
      auto& neighbors = expected[row];
      std::erase_if(neighbors, [row](const auto& neighbor) {
        return neighbor.second == static_cast<std::int64_t>(row);
      });
      neighbors.resize(std::min<std::size_t>(neighbors.size(), k));
    }
  return find_neighbors(engine, request, rows) == expected ? "the same" : "NOT THE SAME";
}

template <class T>
void measure(const EngineTable& engine, const Options& options, const std::string& set,
             std::uint32_t dims, std::uint64_t left_rows, std::uint64_t right_rows,
             std::uint64_t k) {
  const std::vector<T> left = make_rows<T>(set, dims, left_rows, 1, options.threads);
  const std::vector<T> right = make_rows<T>(set, dims, right_rows, 2, options.threads);
  const Dataset left_points = {left.data(), nullptr, left_rows, dims, options.scalar};
  Dataset right_points = {right.data(), nullptr, right_rows, dims, options.scalar};
  static std::uint64_t cases = 0;
  std::vector<std::int64_t> ids(options.kept ? right_rows : 0);
  std::iota(ids.begin(), ids.end(), 0);
  if (options.kept) {
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 40;
    engine.keep(kBytes, kBytes);
    right_points.key = {++cases, 1};
    right_points.ids = ids.data();
  }
  const Sides sides = right_rows == 0 ? Sides::one(left_points, PairSelection::kDistinct)
                                      : Sides::two(left_points, right_points);
  JoinRequest request(sides, PointsWithin{options.metric, DBL_MAX}, Output::nearest(k));
  request.resources.threads = options.threads;
  request.knobs.index = options.index;
  const Run run = median_run(engine, request, options.rounds);
  const char* const check = check_neighbors(engine, request, options);
  const JoinStats& stats = run.stats;
  std::printf(
      "| %s %u-D %s %s | %llu x %llu | %llu | %.5f | %.4f | %.2f | %.2f | %.4g | %.4g | "
      "%llu | %llu | %s | %s |\n",
      set.c_str(), dims, sizeof(T) == sizeof(float) ? "float32" : "float64",
      to_string(options.metric), static_cast<unsigned long long>(left_rows),
      static_cast<unsigned long long>(request.right().rows), static_cast<unsigned long long>(k),
      run.seconds, run.first_seconds, stats.index_ms, run.close_seconds * 1e3,
      static_cast<double>(stats.candidates) / static_cast<double>(left_rows),
      static_cast<double>(stats.rechecked) / static_cast<double>(left_rows),
      static_cast<unsigned long long>(stats.memory_peak >> 20),
      static_cast<unsigned long long>(stats.device_memory_peak >> 20),
      to_string(stats.strategy.index), check);
  std::fflush(stdout);
}

void run_case(const EngineTable& engine, const Options& options, const std::string& argument) {
  const std::vector<std::string> parts = split(argument);
  if (parts.size() != 5) throw std::runtime_error("not SET,DIMENSIONS,LEFT,RIGHT,K: " + argument);
  const auto dims = static_cast<std::uint32_t>(std::stoul(parts[1]));
  const auto run = options.scalar == ScalarType::kFloat32 ? measure<float> : measure<double>;
  run(engine, options, parts[0], dims, std::stoull(parts[2]), std::stoull(parts[3]),
      std::stoull(parts[4]));
}

}  // namespace
}  // namespace gpujoin

int main(int count, char** arguments) {
  return gpujoin::run_cases<gpujoin::Options>(
      count, arguments,
      "| data | rows | k | s | first s | index ms | close ms | candidates a row | decided a row | "
      "host MB | device MB | method | neighbors |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|\n",
      gpujoin::set_option, gpujoin::run_case);
}

// Times clusters, spanning trees and duplicates, and prints rows of a Markdown table. Arguments are
// read from left to right: scalar=float32|float64, metric=l2|l1|linf|cosine, rounds=N and threads=N
// hold for the cases after them; SET,DIMENSIONS,ROWS,EPS,MIN_POINTS is a case of DBSCAN,
// SET,DIMENSIONS,ROWS,EPS,duplicates one of duplicates by cosine distance,
// SET,DIMENSIONS,ROWS,tree,MIN_POINTS one of spanning trees. SET is unif (uniform in the unit
// cube), corners (near the corners of the unit cube), blobs (half of the rows likewise, half around
// 1,000 centres, at up to 0.004 of them in each column), equal, twins (uniform around 0; a tenth
// are other rows, changed by up to a tenth in each column), or the path of a CSV file of numbers.
//
//   gpujoin_measure_clusters unif,2,1000000,0.002,5 twins,384,20000,0.05,duplicates
//
// The engine is the one that GPUJOIN_CUDA_ENGINE names, or the CPU engine. A time begins with the
// coordinates in host memory and ends with the last batch in host memory; the join's is what
// remains of it after uploading and indexing, as far as the engine tells. The first run of a case
// is not counted, the median of the others is reported.

#include <fstream>
#include <map>
#include <thread>

#include "../unit/points.h"
#include "core/cluster.h"
#include "measuring.h"

namespace gpujoin {
namespace {

struct Options {
  std::uint32_t rounds = 3;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  ScalarType scalar = ScalarType::kFloat64;
  Metric metric = Metric::kL2;  ///< of clusters and trees
};

struct Case {
  std::string set;
  std::uint32_t dims;
  std::uint64_t rows;
  double eps;
  std::uint64_t min_points;  ///< 0: duplicates
  bool tree;
};

template <class T>
std::vector<T> read_csv(const Case& wanted) {
  std::ifstream file(wanted.set);
  if (!file) throw std::runtime_error("no such set: " + wanted.set);
  std::vector<T> values;
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> parts = split(line);
    for (std::uint32_t d = 0; d < wanted.dims; ++d)
      values.push_back(static_cast<T>(std::stod(parts.at(d))));
  }
  return values;
}

template <class T>
std::vector<T> make_values(const Case& wanted) {
  const std::uint64_t rows = wanted.rows;
  const std::uint32_t dims = wanted.dims;
  if (wanted.set != "unif" && wanted.set != "blobs" && wanted.set != "equal" &&
      wanted.set != "twins" && wanted.set != "corners")
    return read_csv<T>(wanted);
  test::Random random(dims);
  std::vector<T> values(rows * dims, 0.5);
  if (wanted.set == "equal") return values;
  const bool twins = wanted.set == "twins";
  for (T& x : values) x = static_cast<T>(twins ? random.between(-1, 1) : random.unit());
  if (wanted.set == "corners")
    for (T& x : values)
      x = static_cast<T>(static_cast<double>(random.index(2)) + 0.01 * random.unit());
  if (twins)
    for (std::uint64_t row = 9; row < rows; row += 10) {
      const std::uint64_t other = random.index(rows / 10) * 10;
      for (std::uint32_t d = 0; d < dims; ++d)
        values[row * dims + d] =
            values[other * dims + d] + static_cast<T>(random.between(-0.1, 0.1));
    }
  if (wanted.set == "blobs") {
    std::vector<double> centers(std::size_t{1000} * dims);
    for (double& x : centers) x = random.unit();
    for (std::uint64_t row = 1; row < rows; row += 2) {
      const double* const center = &centers[random.index(1000) * dims];
      for (std::uint32_t d = 0; d < dims; ++d)
        values[row * dims + d] =
            static_cast<T>(center[d] + 0.004 * random.between(-1, 1) * random.unit());
    }
  }
  return values;
}

Output output_of(const Case& wanted) {
  if (wanted.tree) return Output::spanning_tree(wanted.min_points);
  return wanted.min_points == 0 ? Output::duplicates(false) : Output::clusters(wanted.min_points);
}

/// What a result says, in words: the same for all engines.
std::string describe(const EngineTable& engine, const JoinRequest& request) {
  std::uint64_t roles[3] = {}, clusters = 0, pairs = 0;
  double weight = 0;
  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  if (!status.ok()) throw std::runtime_error(status.message);
  ResultBatch batch{};
  while ((status = engine.next_batch(join, &batch)).ok()) {
    pairs += batch.pair_count;
    for (std::uint64_t i = 0; batch.distances != nullptr && i < batch.pair_count; ++i)
      weight += batch.distances[i];
    for (std::uint64_t i = 0; batch.counts != nullptr && i < batch.row_count; ++i) {
      const RowCluster row = unpack_cluster(batch.counts[i]);
      ++roles[static_cast<int>(row.role)];
      if (row.role != ClusterRole::kNoise) clusters = std::max(clusters, row.cluster + 1);
    }
  }
  engine.close(join);
  if (status.code != StatusCode::kEnd) throw std::runtime_error(status.message);
  if (request.output() == Output::kDuplicates) return std::to_string(pairs) + " duplicates";
  if (request.output() == Output::kSpanningTree)
    return std::to_string(pairs) + " edges, " + std::to_string(weight) + " together";
  return std::to_string(clusters) + " clusters, " + std::to_string(roles[2]) + " core, " +
         std::to_string(roles[1]) + " border";
}

template <class T>
void measure(const EngineTable& engine, const Options& options, const Case& wanted) {
  const std::vector<T> values = make_values<T>(wanted);
  const Dataset points = {values.data(), nullptr, values.size() / wanted.dims, wanted.dims,
                          options.scalar};
  const bool duplicates = wanted.min_points == 0;
  JoinRequest request(Sides::one(points, PairSelection::kAll),
                      PointsWithin{duplicates ? Metric::kCosine : options.metric, wanted.eps},
                      output_of(wanted));
  request.resources.threads = options.threads;
  const std::string found = describe(engine, request);
  const Run run = median_run(engine, request, options.rounds);
  std::printf(
      "| %s %u-D, %llu | %g | %llu | %.4f | %.4f | %.1f | %.1f | %.4g | %llu | %llu | %s |\n",
      wanted.set.substr(wanted.set.rfind('/') + 1).c_str(), wanted.dims,
      static_cast<unsigned long long>(points.rows), wanted.eps,
      static_cast<unsigned long long>(wanted.min_points), run.seconds, run.first_seconds,
      run.stats.index_ms, run.stats.join_ms, static_cast<double>(run.stats.candidates),
      static_cast<unsigned long long>(run.stats.memory_peak >> 20),
      static_cast<unsigned long long>(run.stats.device_memory_peak >> 20), found.c_str());
  std::fflush(stdout);
}

Metric metric_named(const std::string& name) {
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf, Metric::kCosine})
    if (name == to_string(metric)) return metric;
  throw std::runtime_error("no such metric: " + name);
}

void set_option(Options* options, const std::string& name, const std::string& value) {
  if (name == "scalar")
    options->scalar = value == "float32" ? ScalarType::kFloat32 : ScalarType::kFloat64;
  else if (name == "metric")
    options->metric = metric_named(value);
  else if (name == "rounds")
    options->rounds = static_cast<std::uint32_t>(std::max(1ul, std::stoul(value)));
  else if (name == "threads")
    options->threads = static_cast<std::uint32_t>(std::stoul(value));
  else
    throw std::runtime_error("no such option: " + name);
}

void run_case(const EngineTable& engine, const Options& options, const std::string& argument) {
  const std::vector<std::string> parts = split(argument);
  if (parts.size() != 5)
    throw std::runtime_error("not SET,DIMENSIONS,ROWS,EPS,MIN_POINTS: " + argument);
  const Case wanted{parts[0],
                    static_cast<std::uint32_t>(std::stoul(parts[1])),
                    std::stoull(parts[2]),
                    parts[3] == "tree" ? 0 : std::stod(parts[3]),
                    parts[4] == "duplicates" ? 0 : std::stoull(parts[4]),
                    parts[3] == "tree"};
  if (options.scalar == ScalarType::kFloat32)
    measure<float>(engine, options, wanted);
  else
    measure<double>(engine, options, wanted);
}

constexpr char kHead[] =
    "| data | eps | points | s | first s | index ms | join ms | candidates | host MB | device MB | "
    "found |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n";

}  // namespace
}  // namespace gpujoin

int main(int count, char** arguments) {
  return gpujoin::run_cases<gpujoin::Options>(count, arguments, gpujoin::kHead, gpujoin::set_option,
                                              gpujoin::run_case);
}

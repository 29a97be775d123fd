// Times joins of two uniform sets of square boxes in the unit cube (thesis, chapter 4): the volumes
// of the boxes of a side add up to its density. Prints rows of a Markdown table. Arguments are read
// from left to right: LEFT_ROWS,RIGHT_ROWS,DENSITY is a case, and with 0 right rows a self-join;
// dims=N, eps=EPS, scalar=TYPE, threads=N, device_memory_mb=N and rounds=N hold for the cases after
// them, and so does method=METHOD[,METHOD...]: each case is run by each.
//
//   gpujoin_measure_boxes method=auto,layered_grid,sort_sweep,none 100000,1000000,1
//
// A time begins with the boxes (single precision) and ids in pageable host memory and ends with the
// last batch, or the number of pairs, in host memory; the first run of a case is not
// counted, the median of the others is reported. All methods have to agree on the number of pairs.

#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "../unit/points.h"
#include "engine/strategy/box_strategy.h"
#include "measuring.h"

namespace gpujoin {
namespace {

struct Options {
  std::vector<std::string> methods{"auto"};
  std::uint32_t dims = 2;
  double eps = 0;
  ScalarType scalar = ScalarType::kFloat32;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t device_memory_limit = 0;
  std::uint32_t rounds = 5;
};

struct Side {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> ids;
  std::uint32_t numbers;

  Side(const Options& options, std::uint64_t rows, double density, std::uint64_t seed)
      : ids(rows), numbers(2 * options.dims) {
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    const double side = std::pow(density / static_cast<double>(rows), 1.0 / options.dims);
    test::Random random(seed);
    doubles.resize(rows * numbers);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::uint32_t d = 0; d < options.dims; ++d) {
        const double low = random.unit();
        doubles[row * numbers + d] = low;
        doubles[row * numbers + options.dims + d] = low + side;
      }
    }
    if (options.scalar == ScalarType::kFloat64) return;
    floats.assign(doubles.begin(), doubles.end());
    doubles = {};
  }
  Dataset view() const {
    if (floats.empty())
      return {doubles.data(), ids.data(), ids.size(), numbers, ScalarType::kFloat64};
    return {floats.data(), ids.data(), ids.size(), numbers, ScalarType::kFloat32};
  }
};

const std::map<std::string, BoxMethod> kMethods = {{"auto", BoxMethod::kAuto},
                                                   {"layered_grid", BoxMethod::kLayeredGrid},
                                                   {"sort_sweep", BoxMethod::kSortSweep},
                                                   {"none", BoxMethod::kNone}};

void measure(const EngineTable& engine, const Options& options, std::uint64_t left_rows,
             std::uint64_t right_rows, double density) {
  const Side left(options, left_rows, density, 1);
  const Side right(options, right_rows, density, 2);
  const Sides sides = right_rows == 0 ? Sides::one(left.view(), PairSelection::kAll)
                                      : Sides::two(left.view(), right.view());
  const auto run = [&](BoxMethod method, BoxOutput output) {
    JoinRequest request(sides, BoxesWithin{Metric::kL2, options.eps}, output);
    request.resources.threads = options.threads;
    request.resources.device_memory_limit = options.device_memory_limit;
    request.knobs.box_method = method;
    return median_run(engine, request, options.rounds);
  };
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < options.methods.size(); ++i) {
    const BoxMethod method = kMethods.at(options.methods[i]);
    const Run total = run(method, BoxOutput::kTotal);
    const Run pairs = run(method, BoxOutput::kPairs);
    const JoinStats& stats = pairs.stats;
    if (i == 0) expected = stats.pairs;
    if (stats.pairs != expected || total.stats.pairs != expected)
      throw std::runtime_error("the methods disagree: " + std::to_string(expected) + ", " +
                               std::to_string(stats.pairs) + ", " +
                               std::to_string(total.stats.pairs));
    std::printf(
        "| %llu | %llu | %u-D | %g | %g | %s | %s | %llu | %.4f | %.4f | %.4f | %.1f | %.1f | %.1f "
        "| "
        "%.4g | %llu | %llu |\n",
        static_cast<unsigned long long>(left_rows), static_cast<unsigned long long>(right_rows),
        options.dims, density, options.eps, options.methods[i].c_str(), to_string(stats.box_method),
        static_cast<unsigned long long>(stats.pairs), pairs.seconds, total.seconds,
        pairs.first_seconds, stats.index_ms, stats.join_ms, total.stats.join_ms,
        static_cast<double>(stats.candidates), static_cast<unsigned long long>(stats.batches),
        static_cast<unsigned long long>(stats.device_memory_peak >> 20));
    std::fflush(stdout);
  }
}

void set_option(Options* options, const std::string& name, const std::string& value) {
  const auto number = [&] { return std::stoull(value); };
  const auto positive = [&] { return std::max(1u, static_cast<std::uint32_t>(number())); };
  if (name == "method")
    options->methods = split(value);
  else if (name == "dims")
    options->dims = positive();
  else if (name == "eps")
    options->eps = std::stod(value);
  else if (name == "scalar")
    options->scalar = value == "float64" ? ScalarType::kFloat64 : ScalarType::kFloat32;
  else if (name == "threads")
    options->threads = positive();
  else if (name == "device_memory_mb")
    options->device_memory_limit = number() << 20;
  else if (name == "rounds")
    options->rounds = positive();
  else
    throw std::runtime_error("no such option: " + name);
}

constexpr char kHead[] =
    "| left | right | boxes | density | eps | method | ran | pairs | pairs s | total s | first s "
    "| "
    "index ms | join ms | total's join ms | candidates | batches | device MB |\n"
    "|---:|---:|---|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

void run_case(const EngineTable& engine, const Options& options, const std::string& argument) {
  unsigned long long left_rows, right_rows;
  double density;
  if (std::sscanf(argument.c_str(), "%llu,%llu,%lf", &left_rows, &right_rows, &density) != 3 ||
      left_rows == 0)
    throw std::runtime_error("not LEFT_ROWS,RIGHT_ROWS,DENSITY: " + argument);
  measure(engine, options, left_rows, right_rows, density);
}

}  // namespace
}  // namespace gpujoin

int main(int count, char** arguments) {
  return gpujoin::run_cases(count, arguments, gpujoin::kHead, gpujoin::set_option,
                            gpujoin::run_case);
}

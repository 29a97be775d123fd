// Times an engine on the sets of the papers, each case several times in one process, and prints
// rows of a Markdown table. Arguments are read from left to right: KNOB=VALUE holds for the cases
// after it, SET,DIMENSIONS,ROWS,EPS is a case. SET is unif (uniform in the unit cube), expo
// (exponential, lambda 40, below 1), mix (1,000 clusters of 8 intrinsic dimensions), the path of a
// CSV file of numbers (its first columns) or of an IDX file of bytes, whose name ends in -ubyte.
//
//   gpujoin_measure unif,2,2000000,0.002 access_pattern=full unif,2,2000000,0.002
//
// The engine is the one that GPUJOIN_CUDA_ENGINE names, or the CPU engine. A time begins with the
// coordinates in host memory and ends with the last batch in host memory; the first run of a case
// is not counted, the median of the others is reported. With kept=on they find on their devices
// what earlier runs of the case left there, as the later queries of a service do.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../unit/points.h"
#include "engine/strategy/choose_strategy.h"
#include "measuring.h"

namespace gpujoin {
namespace {

struct Options {
  Knobs knobs;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t device_memory_limit = 0;
  std::uint32_t rounds = 5;
  Output output = Output::pairs();  ///< what is timed besides the total
  bool adds = false;                ///< that is the sums of NeighborSums
  bool kept = false;
  ScalarType scalar = ScalarType::kFloat64;
  std::string changed;  ///< the knobs that differ from auto, in words
};

struct Case {
  std::string set;
  std::uint32_t dims;
  std::uint64_t rows;
  double eps;
};

std::vector<double> read_csv(const Case& wanted) {
  std::ifstream file(wanted.set);
  if (!file) throw std::runtime_error("cannot read " + wanted.set);
  std::vector<double> values;
  std::string line;
  while (std::getline(file, line) &&
         (wanted.rows == 0 || values.size() < wanted.rows * wanted.dims)) {
    const char* at = line.c_str();
    for (std::uint32_t d = 0; d < wanted.dims; ++d) {
      char* end;
      values.push_back(std::strtod(at, &end));
      at = *end == ',' ? end + 1 : end;
    }
  }
  return values;
}

/// The elements of an IDX file, three dimensions of them behind a header of 16 bytes.
std::vector<double> read_bytes(const Case& wanted) {
  std::ifstream file(wanted.set, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + wanted.set);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<double> values;
  for (std::size_t i = 16; i < bytes.size(); ++i)
    values.push_back(static_cast<unsigned char>(bytes[i]));
  return values;
}

double normal(test::Random& random) {
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(2 * random.exponential()) * std::cos(kTwoPi * random.unit());
}

/// 1,000 centres uniform in [0.2, 0.8]^n; around each of them 8 directions of N(0, 1) / sqrt(n)
/// with coefficients N(0, 0.05); and noise N(0, 0.002).
std::vector<double> make_mix(const Case& wanted) {
  constexpr std::size_t kClusters = 1000, kIntrinsic = 8;
  const std::size_t dims = wanted.dims;
  test::Random random(dims);
  std::vector<double> centers(kClusters * dims), bases(kClusters * kIntrinsic * dims);
  for (double& x : centers) x = random.between(0.2, 0.8);
  for (double& x : bases) x = normal(random) / std::sqrt(static_cast<double>(dims));
  std::vector<double> values(wanted.rows * dims);
  for (std::size_t row = 0; row < wanted.rows; ++row) {
    const std::size_t cluster = random.index(kClusters);
    double* const point = &values[row * dims];
    for (std::size_t d = 0; d < dims; ++d)
      point[d] = centers[cluster * dims + d] + 0.002 * normal(random);
    for (std::size_t axis = 0; axis < kIntrinsic; ++axis) {
      const double coefficient = 0.05 * normal(random);
      const double* const basis = &bases[(cluster * kIntrinsic + axis) * dims];
      for (std::size_t d = 0; d < dims; ++d) point[d] += coefficient * basis[d];
    }
  }
  return values;
}

/// The same numbers on every machine.
std::vector<double> make_values(const Case& wanted) {
  if (wanted.set == "mix") return make_mix(wanted);
  if (wanted.set.ends_with("-ubyte")) return read_bytes(wanted);
  if (wanted.set != "unif" && wanted.set != "expo") return read_csv(wanted);
  test::Random random(wanted.dims);
  std::vector<double> values(wanted.rows * wanted.dims);
  for (double& x : values) {
    do x = wanted.set == "unif" ? random.unit() : random.exponential() / 40;
    while (x >= 1);
  }
  return values;
}

/// What GPU-SJ's model of a join's time has besides the work itself: pinning buffers and handling
/// batches, milliseconds.
double modelled_overhead(const JoinStats& stats) {
  const double buffer_mb =
      static_cast<double>(stats.batch_pairs) * sizeof(std::uint32_t) / (1 << 20);
  return stats.streams * buffer_mb * stats.pin_ms_per_mb +
         static_cast<double>(stats.batches) * stats.batch_ms;
}

/// What the strategy and the engine chose.
std::string describe(const JoinStats& stats) {
  const Strategy& strategy = stats.strategy;
  char text[256];
  std::snprintf(text, sizeof text, "%s of %u, sort %d, %s, %s, %u a point, %u streams",
                to_string(strategy.index), strategy.grid_dims, strategy.sort_column + 1,
                to_string(strategy.access_pattern), to_string(strategy.cell_order),
                stats.threads_per_point, stats.streams);
  return text;
}

/// For each row the sum of a column of its neighbours, and the sum of their distances.
struct NeighborSums {
  explicit NeighborSums(std::uint64_t rows) : amounts(rows) {
    for (std::uint64_t row = 0; row < rows; ++row) amounts[row] = static_cast<double>(row % 1000);
    asked.right_columns = 1;
    asked.right = &column;
    for (const ValueStep step : {ValueStep::kRight, ValueStep::kDistance}) {
      asked.program[asked.programs].count = 1;
      asked.program[asked.programs].steps[0] = step;
      asked.measure[asked.measures++] = {Fold::kSumOf, asked.programs++};
    }
  }

  std::vector<double> amounts;
  const double* column = amounts.data();
  PairSums asked{};
};

void print_header(const EngineTable& engine) {
  print_device(engine);
  std::printf(
      "| data | eps | knobs | pairs | total s | pairs s | first s | planning ms | model ms "
      "| index ms | close ms | candidates | batches | host MB | device MB | chosen |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
}

/// What planning takes of a join, milliseconds: the median of some runs after a first one. An
/// engine has costs of its own, but draws the same samples.
double planning_ms(const JoinRequest& request, std::uint32_t rounds) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i <= rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    choose_strategy(request);
    times.push_back(seconds_since(start) * 1e3);
  }
  const auto middle = times.begin() + 1 + rounds / 2;
  std::nth_element(times.begin() + 1, middle, times.end());
  return *middle;
}

void measure(const EngineTable& engine, const Options& options, const Case& wanted,
             const std::vector<double>& values) {
  std::vector<float> narrow;
  if (options.scalar == ScalarType::kFloat32) narrow.assign(values.begin(), values.end());
  const void* const coordinates =
      narrow.empty() ? static_cast<const void*>(values.data()) : narrow.data();
  constexpr DatasetKey kKnown = {.identity = 1};
  Dataset points = {coordinates, nullptr, values.size() / wanted.dims, wanted.dims, options.scalar};
  if (options.kept) points.key = kKnown;
  const NeighborSums sums(options.adds ? points.rows : 0);
  JoinRequest request(Sides::one(points, PairSelection::kAll),
                      PointsWithin{Metric::kL2, wanted.eps},
                      options.adds ? Output::sums(&sums.asked) : options.output);
  request.resources.threads = options.threads;
  request.resources.device_memory_limit = options.device_memory_limit;
  request.knobs = options.knobs;
  const Run total = median_run(engine, request.asking(Output::total()), options.rounds);
  const Run pairs = median_run(engine, request, options.rounds);
  if (total.stats.pairs != pairs.stats.pairs)
    throw std::runtime_error("total and pairs disagree: " + std::to_string(total.stats.pairs) +
                             ", " + std::to_string(pairs.stats.pairs));
  engine.forget(kKnown.identity);
  const JoinStats& stats = pairs.stats;
  const std::size_t slash = wanted.set.rfind('/');
  const std::string name = slash == std::string::npos ? wanted.set : wanted.set.substr(slash + 1);
  std::printf(
      "| %s %u-D, %llu | %g | %s | %llu | %.4f | %.4f | %.4f | %.2f | %.2f | %.1f | %.1f | %.4g | "
      "%llu | "
      "%llu | %llu | %s |\n",
      name.c_str(), wanted.dims, static_cast<unsigned long long>(points.rows), wanted.eps,
      options.changed.c_str(), static_cast<unsigned long long>(stats.pairs), total.seconds,
      pairs.seconds, pairs.first_seconds, planning_ms(request, options.rounds),
      modelled_overhead(stats), stats.index_ms, pairs.close_seconds * 1e3,
      static_cast<double>(stats.candidates), static_cast<unsigned long long>(stats.batches),
      static_cast<unsigned long long>(stats.memory_peak >> 20),
      static_cast<unsigned long long>(stats.device_memory_peak >> 20), describe(stats).c_str());
  std::fflush(stdout);
}

/// The position of `value` among `names`, which are in the order of the enumerators.
template <class E>
E choice(const std::string& value, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) throw std::runtime_error("no such value: " + value);
  return static_cast<E>(found - names.begin());
}

/// Sets what KNOB=VALUE says.
void set_option(Options* options, const std::string& name, const std::string& value) {
  Knobs& knobs = options->knobs;
  const auto toggle = [&] { return choice<Switch>(value, {"auto", "on", "off"}); };
  const auto number = [&] { return std::stoull(value); };
  const auto small = [&] { return static_cast<std::uint32_t>(number()); };
  const std::map<std::string, std::function<void()>> setters = {
      {"index",
       [&] {
         knobs.index =
             choice<IndexMethod>(value, {"auto", "grid", "reference_points", "tiles", "none"});
       }},
      {"reference_points", [&] { knobs.reference_points = small(); }},
      {"reference_placement",
       [&] {
         knobs.reference_placement = choice<ReferencePlacement>(value, {"auto", "outer", "inner"});
       }},
      {"indexed_dimensions", [&] { knobs.indexed_dimensions = small(); }},
      {"reorder_dimensions", [&] { knobs.reorder_dimensions = toggle(); }},
      {"sort_unindexed", [&] { knobs.sort_unindexed = toggle(); }},
      {"short_circuit", [&] { knobs.short_circuit = toggle(); }},
      {"access_pattern",
       [&] {
         knobs.access_pattern =
             choice<AccessPattern>(value, {"auto", "full", "linear_id", "unicomp"});
       }},
      {"cell_order",
       [&] {
         knobs.cell_order = choice<CellOrder>(value, {"auto", "linear", "zorder", "hilbert"});
       }},
      {"work_order",
       [&] {
         knobs.work_order = choice<WorkOrder>(value, {"auto", "none", "sorted", "queue"});
       }},
      {"threads_per_point", [&] { knobs.threads_per_point = small(); }},
      {"streams", [&] { knobs.streams = small(); }},
      {"batch_pairs", [&] { knobs.batch_pairs = number(); }},
      {"output",
       [&] {
         options->adds = value == "sums";
         if (options->adds) return;
         const Output outputs[] = {Output::pairs(), Output::pairs_with_distances(),
                                   Output::count_per_row(), Output::total()};
         options->output =
             outputs[choice<Output::Kind>(value, {"pairs", "distances", "counts", "total"})];
       }},
      {"scalar",
       [&] {
         options->scalar = choice<ScalarType>(value, {"float32", "float64"});
       }},
      {"threads", [&] { options->threads = small(); }},
      {"device_memory_mb", [&] { options->device_memory_limit = number() << 20; }},
      {"kept", [&] { options->kept = toggle() == Switch::kOn; }},
      {"rounds", [&] { options->rounds = std::max(1u, small()); }}};
  const auto setter = setters.find(name);
  if (setter == setters.end()) throw std::runtime_error("no such knob: " + name);
  setter->second();
}

/// KNOB=VALUE; KNOB alone takes it back to the default.
void read_option(Options* options, std::map<std::string, std::string>* given,
                 const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  given->erase(name);
  if (equals != std::string::npos) (*given)[name] = argument.substr(equals + 1);
  *options = Options{};
  for (const auto& [knob, value] : *given) {
    set_option(options, knob, value);
    if (knob != "rounds")
      options->changed += (options->changed.empty() ? "" : " ") + knob + "=" + value;
  }
}

Case read_case(const std::string& argument) {
  Case wanted;
  const std::size_t comma = argument.find(',');
  wanted.set = argument.substr(0, comma);
  unsigned long long rows = 0;
  if (std::sscanf(argument.c_str() + comma, ",%u,%llu,%lf", &wanted.dims, &rows, &wanted.eps) !=
          3 ||
      wanted.dims == 0)
    throw std::runtime_error("not SET,DIMENSIONS,ROWS,EPS: " + argument);
  wanted.rows = rows;
  return wanted;
}

void run_all(const std::vector<std::string>& arguments) {
  constexpr std::uint64_t kMostKept = std::uint64_t{1} << 36;
  const EngineTable& engine = find_engine();
  engine.keep(kMostKept, kMostKept);
  print_header(engine);
  Options options;
  std::map<std::string, std::string> given;
  std::map<std::string, std::vector<double>> sets;  // by what a case names before its eps
  for (const std::string& argument : arguments) {
    if (argument.find(',') == std::string::npos) {
      read_option(&options, &given, argument);
      continue;
    }
    const Case wanted = read_case(argument);
    std::vector<double>& values = sets[argument.substr(0, argument.rfind(','))];
    if (values.empty()) values = make_values(wanted);
    try {
      measure(engine, options, wanted, values);
    } catch (const std::exception& error) {
      std::printf("| %s | | %s | %s |\n", argument.c_str(), options.changed.c_str(), error.what());
    }
  }
}

}  // namespace
}  // namespace gpujoin

int main(int count, char** arguments) {
  try {
    gpujoin::run_all({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpujoin_measure: %s\n", error.what());
    return 1;
  }
}

// gpujoin_bench: the CPU engine against libraries that find the same pairs. Contenders take turns,
// and each turn is printed as it ends, one JSON object a line; test/bench/run makes tables of them.
//
//   gpujoin_bench [--rounds N] [--threads N] [--ionosphere FILE.csv] [--only TEXT]
//
// --only runs the cases whose name holds TEXT. --ionosphere adds a set of points read from a file,
// two columns a line.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../unit/points.h"
#include "contenders.h"

namespace gpujoin::bench {
namespace {

struct Entrant {
  const char* name;
  Contender run;
};

constexpr Entrant kEntrants[] = {
    {"gpujoin", gpujoin_total},
    {"nanoflann", nanoflann_total},
    {"rtree", rtree_total},
};
constexpr Entrant kOutputs[] = {
    {"total", gpujoin_total},         {"counts", gpujoin_counts},     {"pairs", gpujoin_pairs},
    {"distances", gpujoin_distances}, {"id pairs", gpujoin_id_pairs},
};

enum class Shape { kIonosphere, kUniform, kExponential };

struct Case {
  Shape shape;
  std::uint32_t dims;
  std::uint64_t rows;
  double eps;
};

// Some tens of neighbours a point; then dense ones.
constexpr Case kCases[] = {
    {Shape::kIonosphere, 2, 0, 0.05},        {Shape::kIonosphere, 2, 0, 1},
    {Shape::kUniform, 2, 500000, 0.005},     {Shape::kUniform, 3, 300000, 0.03},
    {Shape::kUniform, 4, 200000, 0.085},     {Shape::kUniform, 5, 200000, 0.14},
    {Shape::kUniform, 6, 200000, 0.2},       {Shape::kExponential, 2, 500000, 0.0002},
    {Shape::kExponential, 3, 300000, 0.001}, {Shape::kExponential, 4, 200000, 0.003},
    {Shape::kExponential, 5, 200000, 0.006}, {Shape::kExponential, 6, 200000, 0.01},
    {Shape::kUniform, 2, 200000, 0.04},      {Shape::kExponential, 6, 50000, 0.03},
};
// The cases in which gpujoin delivers more than the number of pairs.
constexpr Case kOutputCases[] = {
    {Shape::kIonosphere, 2, 0, 1},
    {Shape::kUniform, 4, 200000, 0.085},
    {Shape::kExponential, 6, 50000, 0.03},
};

struct Options {
  int rounds = 3;
  unsigned threads = std::thread::hardware_concurrency();
  std::string ionosphere;
  std::string only;
};

const char* shape_name(Shape shape) {
  switch (shape) {
    case Shape::kIonosphere:
      return "ionosphere";
    case Shape::kUniform:
      return "uniform";
    default:
      return "exponential";
  }
}

/// Two numbers a line, whatever separates them.
std::vector<double> read_columns(const std::string& file) {
  std::ifstream in(file);
  std::vector<double> values;
  double x;
  while (in >> x) {
    values.push_back(x);
    if (in.peek() == ',') in.get();
  }
  return values;
}

/// Row-major. Uniform in [0, 1), or exponential with lambda 40, cut at 1.
std::vector<double> make_coordinates(const Case& c, const Options& options) {
  if (c.shape == Shape::kIonosphere) return read_columns(options.ionosphere);
  test::Random random(c.dims);
  std::vector<double> values(c.rows * c.dims);
  for (double& x : values) {
    if (c.shape == Shape::kUniform)
      x = random.unit();
    else
      while ((x = random.exponential() / 40) > 1) continue;
  }
  return values;
}

/// Short turns vary more, and more of them can be had.
bool is_short(double first_turn, int rounds_done, const Options& options) {
  constexpr double kEnoughMs = 2000;
  constexpr int kMostTimes = 10;
  return rounds_done < kMostTimes * options.rounds && now_ms() - first_turn < kEnoughMs;
}

template <std::size_t Count>
void run_case(const char* group, const Case& c, const Entrant (&entrants)[Count],
              const Options& options) {
  if (c.shape == Shape::kIonosphere && options.ionosphere.empty()) return;
  const std::string name = std::string(shape_name(c.shape)) + ' ' + std::to_string(c.dims) + "-D";
  if (name.find(options.only) == std::string::npos) return;
  const std::vector<double> values = make_coordinates(c, options);
  const Dataset points{values.data(), nullptr, values.size() / c.dims, c.dims,
                       ScalarType::kFloat64};
  const double first_turn = now_ms();
  for (int round = 0; round < options.rounds || is_short(first_turn, round, options); ++round) {
    for (const Entrant& entrant : entrants) {
      const double start = now_ms();
      const Outcome outcome = entrant.run(points, c.eps, options.threads);
      const double total_ms = now_ms() - start;
      std::printf(
          "{\"group\": \"%s\", \"set\": \"%s\", \"rows\": %llu, \"eps\": %g, \"threads\": %u, "
          "\"entrant\": \"%s\", \"pairs\": %llu, \"total_ms\": %.3f, \"index_ms\": %.3f, "
          "\"detail\": \"%s\"}\n",
          group, name.c_str(), static_cast<unsigned long long>(points.rows), c.eps, options.threads,
          entrant.name, static_cast<unsigned long long>(outcome.pairs), total_ms, outcome.index_ms,
          outcome.detail.c_str());
      std::fflush(stdout);
    }
  }
}

bool read_options(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string option = argv[i];
    const char* const value = argv[i + 1];
    if (option == "--rounds")
      options->rounds = std::atoi(value);
    else if (option == "--threads")
      options->threads = static_cast<unsigned>(std::atoi(value));
    else if (option == "--ionosphere")
      options->ionosphere = value;
    else if (option == "--only")
      options->only = value;
    else
      return false;
  }
  return options->rounds > 0 && options->threads > 0;
}

}  // namespace
}  // namespace gpujoin::bench

int main(int argc, char** argv) {
  using namespace gpujoin::bench;
  Options options;
  if (!read_options(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: gpujoin_bench [--rounds N] [--threads N] [--ionosphere FILE.csv] "
                 "[--only TEXT]\n");
    return 2;
  }
  for (const Case& c : kCases) run_case("libraries", c, kEntrants, options);
  for (const Case& c : kOutputCases) run_case("outputs", c, kOutputs, options);
  return 0;
}

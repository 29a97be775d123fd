// Times top-k joins of two uniform sets of points in the unit square with uniform scores (thesis,
// chapter 7), and prints rows of a Markdown table. Arguments are read from left to right:
// ROWS,EPS,K is a case of ROWS points a side; score=FUNCTION, device_memory_mb=N and rounds=N hold
// for the cases after them, and so does method=METHOD[,METHOD...]: each case is run by each.
//
//   gpujoin_measure_topk method=auto,heap,sort 1000000,0.001,16
//
// A time begins with coordinates (single precision) and scores in pageable host memory and ends
// with the result in host memory; the first run of a case is not counted, the median of the others
// is reported. All methods have to agree.

#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "../unit/points.h"
#include "measuring.h"

namespace gpujoin {
namespace {

constexpr std::uint32_t kDims = 2;

struct Side {
  std::vector<float> coordinates;
  std::vector<double> scores;

  Side(std::uint64_t rows, std::uint64_t seed) : coordinates(rows * kDims), scores(rows) {
    test::Random random(seed);
    for (float& x : coordinates) x = static_cast<float>(random.unit());
    for (double& x : scores) x = random.unit();
  }
  Dataset view() const {
    return {coordinates.data(), nullptr, scores.size(), kDims, ScalarType::kFloat32, scores.data()};
  }
};

struct Options {
  std::vector<std::string> methods{"auto"};
  std::string score = "sum";
  std::uint64_t device_memory_limit = 0;
  std::uint32_t rounds = 5;
};

const std::map<std::string, TopkMethod> kMethods = {{"auto", TopkMethod::kAuto},
                                                    {"threshold", TopkMethod::kThreshold},
                                                    {"heap", TopkMethod::kHeap},
                                                    {"sort", TopkMethod::kSort}};
const std::map<std::string, ScoreFunction> kFunctions = {{"sum", ScoreFunction::kSum},
                                                         {"product", ScoreFunction::kProduct},
                                                         {"min", ScoreFunction::kMin},
                                                         {"max", ScoreFunction::kMax},
                                                         {"distance", ScoreFunction::kDistance}};

/// The scores of a join's result, in order.
std::vector<double> scores_of(const EngineTable& engine, const JoinRequest& request) {
  std::vector<double> scores;
  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  if (!status.ok()) throw std::runtime_error(status.message);
  ResultBatch batch{};
  while ((status = engine.next_batch(join, &batch)).ok())
    scores.insert(scores.end(), batch.distances, batch.distances + batch.row_count);
  engine.close(join);
  if (status.code != StatusCode::kEnd) throw std::runtime_error(status.message);
  return scores;
}

void measure(const EngineTable& engine, const Options& options, std::uint64_t rows, double eps,
             std::uint64_t k) {
  const Side left(rows, 1), right(rows, 2);
  const Top top = {{kFunctions.at(options.score), options.score == "distance", {1, 1}}, k};
  JoinRequest request(Sides::two(left.view(), right.view()), PointsWithin{Metric::kL2, eps},
                      Output::top_pairs(top));
  request.resources.threads = std::max(1u, std::thread::hardware_concurrency());
  request.resources.device_memory_limit = options.device_memory_limit;
  std::vector<double> expected;
  for (const std::string& name : options.methods) {
    request.knobs.topk_method = kMethods.at(name);
    std::vector<double> scores = scores_of(engine, request);
    if (expected.empty()) expected = scores;
    if (scores != expected) throw std::runtime_error("the methods disagree");
    const Run run = median_run(engine, request, options.rounds);
    std::printf(
        "| %llu | %g | %llu | %s | %s | %llu | %.4f | %.4f | %.1f | %.1f | %u | %.4g | %llu |\n",
        static_cast<unsigned long long>(rows), eps, static_cast<unsigned long long>(k),
        options.score.c_str(), name.c_str(), static_cast<unsigned long long>(scores.size()),
        run.seconds, run.first_seconds, run.stats.index_ms, run.stats.join_ms,
        run.stats.topk_rounds, static_cast<double>(run.stats.candidates),
        static_cast<unsigned long long>(run.stats.device_memory_peak >> 20));
    std::fflush(stdout);
  }
}

void set_option(Options* options, const std::string& name, const std::string& value) {
  if (name == "method")
    options->methods = split(value);
  else if (name == "score")
    options->score = value;
  else if (name == "device_memory_mb")
    options->device_memory_limit = std::stoull(value) << 20;
  else if (name == "rounds")
    options->rounds = std::max(1u, static_cast<std::uint32_t>(std::stoul(value)));
  else
    throw std::runtime_error("no such option: " + name);
}

constexpr char kHead[] =
    "| points a side | eps | k | score | method | pairs | s | first s | index ms | join ms | "
    "rounds | candidates | device MB |\n"
    "|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";

void run_case(const EngineTable& engine, const Options& options, const std::string& argument) {
  unsigned long long rows, k;
  double eps;
  if (std::sscanf(argument.c_str(), "%llu,%lf,%llu", &rows, &eps, &k) != 3)
    throw std::runtime_error("not ROWS,EPS,K: " + argument);
  measure(engine, options, rows, eps, k);
}

}  // namespace
}  // namespace gpujoin

int main(int count, char** arguments) {
  return gpujoin::run_cases(count, arguments, gpujoin::kHead, gpujoin::set_option,
                            gpujoin::run_case);
}

// Runs engines for the tests: the list of engines, a JoinRequest to start from, a join run to its
// end with every batch checked for its shape, and the comparison with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request/pair_cursor.h"
#include "oracle.h"

namespace gpujoin::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Every engine under test: the CPU engine, and the CUDA engine where the environment variable
/// GPUJOIN_CUDA_ENGINE names its shared object and it finds a device.
std::vector<const EngineTable*> engines();

/// The engines that run on a device; or null alone, for tests that say so.
std::vector<const EngineTable*> devices();

/// Whether the engine runs on a device, whose driver allocates host memory as it likes.
inline bool is_device(const EngineTable& engine) { return &engine != cpu_engine(); }

/// Every engine knows all of them.
inline const std::vector<Metric> kMetrics = {Metric::kL2, Metric::kL1, Metric::kLInf,
                                             Metric::kCosine};

/// Expects as many live allocations as `before`.
void expect_no_leak(const EngineTable& engine, std::int64_t before);

/// The fixture of every test that runs an engine; a test suite derives from it under its own name.
class EngineTest : public testing::TestWithParam<const EngineTable*> {
 protected:
  void SetUp() override {
    if (GetParam() == nullptr) GTEST_SKIP() << "no device: test/device/run tests on one";
  }

  const EngineTable& engine() const { return *GetParam(); }
};

inline std::string engine_name(const testing::TestParamInfo<const EngineTable*>& info) {
  return info.param != nullptr ? info.param->name : "no_device";
}

#define GPUJOIN_ON_EVERY_ENGINE(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(Engine, suite, testing::ValuesIn(::gpujoin::test::engines()), \
                           ::gpujoin::test::engine_name)

/// For tests that only a device can fail.
#define GPUJOIN_ON_DEVICES(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Engine, suite, testing::ValuesIn(::gpujoin::test::devices()), \
                           ::gpujoin::test::engine_name)

/// A self-join for all pairs (`right` null), or two datasets.
inline Sides sides_of(const Points& left, const Points* right) {
  return right == nullptr ? Sides::one(left.view(), PairSelection::kAll)
                          : Sides::two(left.view(), right->view());
}

/// A request for all pairs of a self-join (`right` null) or of two datasets, everything left to the
/// engine.
inline JoinRequest make_request(const Points& left, const Points* right, Metric metric,
                                double eps) {
  JoinRequest request(sides_of(left, right), PointsWithin{metric, eps}, Output::pairs());
  request.resources.threads = 2;
  return request;
}

/// Asks for another output: of points any but kTopPairs, of boxes kPairs or kTotal.
void ask(JoinRequest& request, Output::Kind output);

/// Selects other pairs of a self-join. Joins of two datasets know kAll only.
void select(JoinRequest& request, PairSelection pairs);

/// Puts other rows in the place of those there, `right` ignored by a self-join.
inline void set_sides(JoinRequest& request, const Dataset& left, const Dataset& right) {
  request.sides = request.sides.with_rows(left, right);
}

/// The ids that a batch came with, and a copy of some of them: those of a generation stay the same.
struct IdsSeen {
  std::uint64_t generation = 0;  ///< none so far
  const std::int64_t* arrays[2] = {};
  std::uint64_t counts[2] = {};
  std::vector<std::int64_t> some;
};

/// What a join delivered, in sorted order; top pairs and trees in the order of their coming.
struct RunResult {
  Status status;  ///< kEnd if it ran to its end
  std::vector<FoundPair> pairs;
  std::vector<RowCount> counts;
  std::map<std::int64_t, std::vector<std::uint64_t>> sums;  ///< of Output::kSums: words by left id
  std::uint64_t total = 0;                                  ///< sum of the batches' pair_count
  std::uint64_t batches = 0;
  std::uint64_t largest_batch = 0;  ///< most pairs in a batch
  std::uint64_t interruptions = 0;
  JoinStats stats{};
  IdsSeen ids;
};

/// Checks that a batch is well formed and adds what it holds to *result.
void collect(const JoinRequest& request, const ResultBatch& batch, RunResult* result);

/// Opens, pulls to the end and closes. Where `interrupt` is given, an interruption is answered by
/// lowering it.
RunResult run_join(const EngineTable& engine, const JoinRequest& request,
                   volatile int* interrupt = nullptr);

/// Sorts what may come in any order.
void sort_result(const JoinRequest& request, RunResult* result);

/// Whether a finished run delivered exactly the oracle's pairs; reports the first difference.
testing::AssertionResult matches_oracle(const RunResult& result, const JoinRequest& request,
                                        const Oracle& oracle);

/// Runs and compares, in each output and, for a self-join, each PairSelection; or in a third of
/// these, by number.
testing::AssertionResult every_output_matches(const EngineTable& engine, JoinRequest request,
                                              const Oracle& oracle,
                                              std::optional<std::size_t> third = {});

/// Runs and compares a join with every kind of plan (no index, grids of few and many dimensions,
/// reference points, sorted and not, screened and not, half and full walks), in every output; under
/// a sanitizer each plan of a self-join in a third of its outputs, and another third in each call.
testing::AssertionResult every_plan_matches(const EngineTable& engine, const Points& left,
                                            const Points* right, Metric metric, double eps);

/// The request in words, for failures.
std::string describe(const JoinRequest& request);

}  // namespace gpujoin::test

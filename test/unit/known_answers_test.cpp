// Counts of pairs in real data that were found by brute force elsewhere. The files are not part of
// the project: they are looked for in $GPUJOIN_DATA, or in shared/data beside the project's folder,
// and skipped when absent.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// The unpacked bytes of a data file; empty when there is none.
std::string read_gz(const char* name) {
  const char* const folder = std::getenv("GPUJOIN_DATA");
  const std::filesystem::path path =
      (folder != nullptr ? std::filesystem::path(folder)
                         : std::filesystem::path(__FILE__).parent_path() / "../../../shared/data") /
      name;
  if (!std::filesystem::exists(path)) return {};
  const auto close = [](std::FILE* file) { pclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(
      popen(("gzip -dc '" + path.string() + "'").c_str(), "r"), close);
  std::string bytes;
  char buffer[1 << 16];
  while (const std::size_t size = pipe ? std::fread(buffer, 1, sizeof buffer, pipe.get()) : 0)
    bytes.append(buffer, size);
  return bytes;
}

/// Some columns of a CSV text without quotes, row-major.
std::vector<double> csv_columns(const std::string& text, bool header,
                                const std::vector<std::size_t>& columns) {
  std::vector<double> values;
  std::size_t line = header ? text.find('\n') + 1 : 0;
  while (line < text.size()) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    std::vector<std::size_t> fields = {line};
    for (std::size_t i = line; i < end; ++i)
      if (text[i] == ',') fields.push_back(i + 1);
    for (const std::size_t column : columns)
      values.push_back(std::strtod(text.c_str() + fields.at(column), nullptr));
    line = end + 1;
  }
  return values;
}

class KnownAnswers : public EngineTest {
 protected:
  std::uint64_t total(const Points& points, double eps, const Knobs& knobs = {}) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
    ask(request, Output::kTotal);
    request.knobs = knobs;
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    return result.total;
  }

  /// The number of pairs that are delivered one by one.
  std::uint64_t delivered(const Points& points, double eps) {
    const JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
    Join* join = nullptr;
    if (!engine().open(&request, &join).ok()) return 0;
    std::uint64_t pairs = 0;
    ResultBatch batch{};
    while (engine().next_batch(join, &batch).ok()) {
      PairCursor cursor;
      cursor.start(batch, request.orders_pairs());
      IdPair pair{};
      while (cursor.next(&pair)) ++pairs;
    }
    engine().close(join);
    return pairs;
  }
};
GPUJOIN_ON_EVERY_ENGINE(KnownAnswers);

TEST_P(KnownAnswers, ionosphere) {
  const std::string text = read_gz("ionosphere-100k.csv.gz");
  if (text.empty()) GTEST_SKIP() << "ionosphere-100k.csv.gz is not there";
  const Points points(2, csv_columns(text, false, {0, 1}));
  ASSERT_EQ(points.rows(), 100000u);
  EXPECT_EQ(total(points, 1), 27982048u);
  EXPECT_EQ(total(points, 1, {.indexed_dimensions = 2}), 27982048u);
  EXPECT_EQ(
      total(points, 1, {.short_circuit = Switch::kOn, .access_pattern = AccessPattern::kFull}),
      27982048u);
  EXPECT_EQ(delivered(points, 1), 27982048u);
}

TEST_P(KnownAnswers, us_zipcodes) {
  const std::string text = read_gz("us-zipcodes.csv.gz");
  if (text.empty()) GTEST_SKIP() << "us-zipcodes.csv.gz is not there";
  const Points points(2, csv_columns(text, true, {1, 2}));
  ASSERT_EQ(points.rows(), 42049u);
  EXPECT_EQ(total(points, 0.1), 949923u);
  EXPECT_EQ(delivered(points, 0.1), 949923u);
}

TEST_P(KnownAnswers, earthquakes) {
  const std::string text = read_gz("earthquakes-23k.csv.gz");
  if (text.empty()) GTEST_SKIP() << "earthquakes-23k.csv.gz is not there";
  const Points points(3, csv_columns(text, true, {1, 2, 3}));
  ASSERT_EQ(points.rows(), 23412u);
  EXPECT_EQ(total(points, 1), 1233844u);
  EXPECT_EQ(total(points, 1, {.short_circuit = Switch::kOn}), 1233844u);
  EXPECT_EQ(delivered(points, 1), 1233844u);
}

TEST_P(KnownAnswers, mnist) {
  if (kSanitized) GTEST_SKIP() << "too long under a sanitizer";
  const std::string bytes = read_gz("mnist-t10k-images-idx3-ubyte.gz");
  if (bytes.empty()) GTEST_SKIP() << "mnist-t10k-images-idx3-ubyte.gz is not there";
  ASSERT_EQ(bytes.size(), 16u + 10000 * 784);
  std::vector<double> values;
  values.reserve(bytes.size() - 16);
  for (std::size_t i = 16; i < bytes.size(); ++i)
    values.push_back(static_cast<unsigned char>(bytes[i]));
  const Points points(784, values, ScalarType::kFloat32);
  EXPECT_EQ(total(points, 1000), 130330u);
  EXPECT_EQ(total(points, 1000, {.index = IndexMethod::kTiles, .short_circuit = Switch::kOff}),
            130330u);
  EXPECT_EQ(total(points, 1000, {.index = IndexMethod::kNone}), 130330u);
  EXPECT_EQ(delivered(points, 1000), 130330u);
}

}  // namespace
}  // namespace gpujoin::test

// Engines that are shared objects: what is opened, and what is refused and why.

#include "engine/load_engine.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpujoin::test {
namespace {

void expect_refused(const Status& status, const char* mentions) {
  EXPECT_EQ(status.code, StatusCode::kUnavailable);
  EXPECT_NE(std::strstr(status.message, mentions), nullptr) << status.message;
  EXPECT_STRNE(status.hint, "");
}

TEST(LoadEngine, a_table_of_the_same_headers_is_taken) {
  EXPECT_TRUE(check_table(*cpu_engine(), "cpu").ok());
}

TEST(LoadEngine, a_table_of_another_version_is_refused) {
  EngineTable table = *cpu_engine();
  ++table.abi_version;
  expect_refused(check_table(table, "abacus"), "the abacus engine was built with another version");
}

TEST(LoadEngine, a_table_of_another_size_is_refused) {
  EngineTable table = *cpu_engine();
  table.size += sizeof(void*);
  expect_refused(check_table(table, "abacus"), "another version");
}

TEST(LoadEngine, a_struct_of_another_size_is_refused) {
  constexpr auto kSizes = sizeof(EngineSizes) / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < kSizes; ++i) {
    EngineTable table = *cpu_engine();
    std::uint32_t sizes[kSizes];
    std::memcpy(sizes, &table.sizes, sizeof sizes);
    sizes[i] += 8;
    std::memcpy(&table.sizes, sizes, sizeof sizes);
    expect_refused(check_table(table, "abacus"), "another version");
  }
}

TEST(LoadEngine, what_is_no_engine_is_refused) {
  const EngineTable* engine = nullptr;
  expect_refused(load_engine("/nowhere/abacus.so", "abacus", &engine), "is not installed");

  const std::string text = testing::TempDir() + "gpujoin_abacus.so";
  std::ofstream(text) << "no library";
  expect_refused(load_engine(text.c_str(), "abacus", &engine), "could not load the abacus engine");
  std::filesystem::remove(text);

  Dl_info library = {};
  double (*const function)(double) = std::cbrt;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(function), &library), 0);
  expect_refused(load_engine(library.dli_fname, "abacus", &engine), "is not an engine of gpujoin");
  EXPECT_EQ(engine, nullptr);
}

}  // namespace
}  // namespace gpujoin::test

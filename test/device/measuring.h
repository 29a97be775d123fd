// Runs a join several times and reports the median: what the programs that measure engines have in
// common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "../unit/chosen_devices.h"
#include "engine/load_engine.h"

namespace gpujoin {

struct Run {
  double seconds;
  double first_seconds;
  double close_seconds;
  JoinStats stats;
};

/// The engine that GPUJOIN_CUDA_ENGINE names, or the CPU engine.
inline const EngineTable& find_engine() {
  const char* const path = std::getenv("GPUJOIN_CUDA_ENGINE");
  if (path == nullptr) return *cpu_engine();
  const EngineTable* engine = nullptr;
  const Status status = load_engine(path, "cuda", &engine);
  if (!status.ok()) throw std::runtime_error(status.message);
  return *engine;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline Run run_once(const EngineTable& engine, const JoinRequest& asked) {
  const JoinRequest request = on_chosen_devices(asked);
  Run run{};
  const auto start = std::chrono::steady_clock::now();
  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  if (!status.ok()) throw std::runtime_error(status.message);
  ResultBatch batch{};
  while (status.ok()) status = engine.next_batch(join, &batch);
  run.seconds = seconds_since(start);
  engine.stats(join, &run.stats);
  engine.close(join);
  run.close_seconds = seconds_since(start) - run.seconds;
  if (status.code != StatusCode::kEnd) throw std::runtime_error(status.message);
  return run;
}

/// The run of median time. The first one is reported apart: it pays for starting the device and
/// pinning.
inline Run median_run(const EngineTable& engine, const JoinRequest& request, std::uint32_t rounds) {
  std::vector<Run> runs;
  const double first_seconds = run_once(engine, request).seconds;
  for (std::uint32_t i = 0; i < rounds; ++i) runs.push_back(run_once(engine, request));
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.seconds < b.seconds; });
  runs[runs.size() / 2].first_seconds = first_seconds;
  return runs[runs.size() / 2];
}

/// The parts of a list with commas.
inline std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

inline void print_device(const EngineTable& engine) {
  DeviceInfo device{};
  std::uint32_t count = 0;
  const Status status = engine.probe(&device, 1, &count);
  if (!status.ok()) throw std::runtime_error(status.message);
  std::printf("%s: %s, %s\n\n", engine.name, device.name, device.detail);
}

/// The main program: prints the head of a table; then, from left to right, calls
/// set_option(&options, name, value) for each argument NAME=VALUE and run_case(engine, options,
/// argument) for the others. Returns the exit status.
template <class Options>
int run_cases(int count, char** arguments, const char* head,
              void (*set_option)(Options*, const std::string&, const std::string&),
              void (*run_case)(const EngineTable&, const Options&, const std::string&)) {
  try {
    const EngineTable& engine = find_engine();
    print_device(engine);
    std::printf("%s", head);
    Options options;
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      const std::size_t equals = argument.find('=');
      if (equals != std::string::npos)
        set_option(&options, argument.substr(0, equals), argument.substr(equals + 1));
      else
        run_case(engine, options, argument);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], error.what());
    return 1;
  }
  return 0;
}

}  // namespace gpujoin

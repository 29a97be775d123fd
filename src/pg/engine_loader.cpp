// Finds gpujoin_cpu.so and gpujoin_cuda.so and opens them as PostgreSQL opens its JIT provider
// [PostgreSQL, jit.c], but not by PostgreSQL's load_external_function(): they have no magic block,
// since they do not know PostgreSQL.
#include "pg/engine_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include "engine/load_engine.h"
#include "engine/strategy/choose_strategy.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/settings.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

constexpr const char* kCudaEngine = "gpujoin_cuda.so";

enum class LoadState { kUntried, kLoaded, kFailed };

const EngineTable* cpu = nullptr;  // once loaded

Status load_cpu() {
  if (cpu != nullptr) return {};
  char path[MAXPGPATH];
  find_beside("gpujoin_cpu.so", path, sizeof path);
  Status status = load_engine(path, "cpu", &cpu);
  if (!status.ok()) strlcpy(status.hint, "Install all files of gpujoin.", sizeof status.hint);
  return status;
}

LoadState cuda_state = LoadState::kUntried;
const EngineTable* cuda_engine = nullptr;
Status cuda_failure;

/// Sets *engine where it has a device to run on, or returns why not.
Status load_cuda(const EngineTable** engine) {
  char path[MAXPGPATH];
  find_beside(kCudaEngine, path, sizeof path);
  const EngineTable* table = nullptr;
  Status status = load_engine(path, "cuda", &table);
  if (!status.ok()) return status;
  DeviceInfo device;
  std::uint32_t count = 0;
  status = table->probe(&device, 1, &count);
  if (status.ok()) *engine = table;
  return status;
}

/// Null when the engine cannot be used, for the reason in cuda_failure.
const EngineTable* get_cuda() {
  if (cuda_state == LoadState::kUntried) {
    cuda_failure = load_cuda(&cuda_engine);
    cuda_state = cuda_failure.ok() ? LoadState::kLoaded : LoadState::kFailed;
  }
  return cuda_engine;
}

double cpu_ms = 0;  // what this session's joins on the CPU have taken

/// Whether `auto` prefers a device. The first join on it starts the driver, which takes as long as
/// many a join on the CPU: a session does so once its joins on the CPU come to as much.
bool is_worth_a_device(const JoinRequest& request) {
  constexpr double kStartMs = 350;  // measured on an H200: 345
  constexpr double kJoinMs = 2;     // what the smallest join takes on a running device
  const double enough_ms = cuda_engine != nullptr ? kJoinMs : kStartMs - cpu_ms;
  const double enough_core_ms = enough_ms * request.resources.threads;
  if (enough_ms > 0 && estimate_core_ms(request, enough_core_ms) <= enough_core_ms) return false;
  return !is_for_cores(request);
}

}  // namespace

void find_beside(const char* name, char* path, std::size_t size) {
  Dl_info own = {};
  char folder[MAXPGPATH];
  const bool known = dladdr(&cuda_state, &own) != 0 && own.dli_fname != nullptr;
  strlcpy(folder, known ? own.dli_fname : "", sizeof folder);
  get_parent_directory(folder);
  snprintf(path, size, "%s/%s", folder[0] == '/' ? folder : pkglib_path, name);
}

bool is_cuda_installed() {
  static const bool is_there = [] {
    char path[MAXPGPATH];
    find_beside(kCudaEngine, path, sizeof path);
    return access(path, F_OK) == 0;
  }();
  return is_there;
}

void preload_engines() { load_cpu(); }

const EngineTable* session_cpu() {
  if (const Status status = load_cpu(); !status.ok()) raise_status(status);
  return cpu;
}

bool is_session_cpu(const EngineTable* engine) { return engine == cpu; }

EngineChoice choose_engine(const JoinRequest& request, bool refuses) {
  const EnginePreference preference = engine_preference();
  const bool on_cpu = preference == EnginePreference::kCpu ||
                      (preference == EnginePreference::kAuto &&
                       (request.keys.count > 0 || !is_worth_a_device(request)));
  if (on_cpu) return {session_cpu(), ""};
  if (const EngineTable* const cuda = get_cuda()) return {cuda, ""};
  if (preference == EnginePreference::kCuda && refuses) raise_status(cuda_failure);
  EngineChoice choice = {session_cpu(), ""};
  strlcpy(choice.fallback, cuda_failure.message, sizeof choice.fallback);
  return choice;
}

void note_join(const EngineTable* engine, const JoinStats& stats) {
  if (is_session_cpu(engine)) cpu_ms += stats.index_ms + stats.join_ms;
}

EngineListing list_engine(int number) {
  if (number == 0) {
    const Status status = load_cpu();
    return {"cpu", cpu, status};
  }
  return {"cuda", get_cuda(), cuda_failure};
}

}  // namespace gpujoin

#include "engine/load_engine.h"

#include <dlfcn.h>
#include <unistd.h>

namespace gpujoin {

Status check_table(const EngineTable& table, const char* name) {
  if (table.abi_version == kEngineAbiVersion && table.size == sizeof table &&
      table.sizes == EngineSizes{})
    return {};
  return make_status(StatusCode::kUnavailable, "Install both from the same version of gpujoin.",
                     "the %s engine was built with another version of gpujoin", name);
}

Status load_engine(const char* path, const char* name, const EngineTable** engine) {
  constexpr const char* kUseCpu = "Set gpujoin.engine to \"auto\" or \"cpu\" to use the CPU.";
  if (access(path, F_OK) != 0)
    return make_status(StatusCode::kUnavailable, kUseCpu, "the %s engine is not installed", name);
  void* const object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr)
    return make_status(StatusCode::kUnavailable, kUseCpu, "could not load the %s engine: %s", name,
                       dlerror());
  void* const entry = dlsym(object, GPUJOIN_ENGINE_SYMBOL);
  if (entry == nullptr)
    return make_status(StatusCode::kUnavailable, kUseCpu, "\"%s\" is not an engine of gpujoin",
                       path);
  const EngineTable* const table = reinterpret_cast<EngineEntry>(entry)();
  const Status status = check_table(*table, name);
  if (status.ok()) *engine = table;
  return status;
}

}  // namespace gpujoin

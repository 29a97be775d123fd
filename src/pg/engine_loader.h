// Which engines this backend has. An engine is loaded when it is first asked for: a session whose
// joins run in the service needs none. No device's is loaded in the postmaster, and its failure is
// remembered for the life of the backend.
#pragma once

#include <cstddef>

#include "engine/engine.h"

namespace gpujoin {

/// Writes the path of a file beside this library, wherever PostgreSQL found that.
void find_beside(const char* name, char* path, std::size_t size);

/// Whether the engine of GPUs is installed, with or without a GPU.
bool is_cuda_installed();

/// In the postmaster, under shared_preload_libraries: loads what backends may inherit. No thread
/// and no device is touched.
void preload_engines();

/// The CPU engine. Raises an error where it is not installed.
const EngineTable* session_cpu();

/// Whether the engine is the CPU's, loaded.
bool is_session_cpu(const EngineTable* engine);

/// The engine that a join runs on, and, when a device would have been worth it but there is none,
/// why.
struct EngineChoice {
  const EngineTable* engine;
  char fallback[sizeof(Status::message)];  ///< "" when nothing was given up
};

/// Follows gpujoin.engine; under `auto` a device serves joins that are large enough to repay it.
/// When the engine asked for cannot be used, raises an error where `refuses`, and else gives the
/// CPU's.
EngineChoice choose_engine(const JoinRequest& request, bool refuses);

/// Records what a join took, for the choices that follow.
void note_join(const EngineTable* engine, const JoinStats& stats);

inline constexpr int kEngineCount = 2;

struct EngineListing {
  const char* name;
  const EngineTable* engine;  ///< null: cannot be used, for the reason in `status`
  Status status;
};

/// Engine `number` of 0 .. kEngineCount - 1, loaded if it is not yet.
EngineListing list_engine(int number);

}  // namespace gpujoin

// The engine contract: a C table of functions that only plain structs and views cross. The CPU
// engine is linked in; others are shared objects that export one symbol, GPUJOIN_ENGINE_SYMBOL, of
// type EngineEntry.
#pragma once

#include <cstdint>

#include "engine/request/request.h"
#include "engine/request/result.h"
#include "engine/request/status.h"

namespace gpujoin {

inline constexpr std::uint32_t kEngineAbiVersion = 18;
#define GPUJOIN_ENGINE_SYMBOL "gpujoin_engine"

/// One processor or device an engine can run on.
struct DeviceInfo {
  char name[96];
  std::uint32_t parallelism;   ///< hardware threads, or multiprocessors
  std::uint64_t memory_bytes;  ///< host memory, or device memory
  char detail[64];             ///< instruction set, or compute capability
  char unusable[128];          ///< why no join can run on it; "" if joins can
};

/// How a device's memory is used, in bytes; all 0 before a join of this process has used it.
struct DeviceMemory {
  std::uint64_t used;   ///< by all programs
  std::uint64_t kept;   ///< of it by what this process keeps for further joins
  std::uint64_t joins;  ///< and by its joins
};

/// Sizes of the structs that cross the table, and of the structs in them: where one differs, a
/// struct was changed without a new version.
struct EngineSizes {
  std::uint32_t request = sizeof(JoinRequest);
  std::uint32_t dataset = sizeof(Dataset);
  std::uint32_t knobs = sizeof(Knobs);
  std::uint32_t top = sizeof(Top);
  std::uint32_t sums = sizeof(PairSums);
  std::uint32_t batch = sizeof(ResultBatch);
  std::uint32_t stats = sizeof(JoinStats);
  std::uint32_t strategy = sizeof(Strategy);
  std::uint32_t device = sizeof(DeviceInfo);
  std::uint32_t memory = sizeof(DeviceMemory);
  std::uint32_t status = sizeof(Status);

  bool operator==(const EngineSizes&) const = default;
};

/// An open join, the engine's own (engine/joins/join.h).
struct Join;

/// No member throws, prints or exits. All calls on one join come from one thread; only these call
/// back, the functions of a RowFile.
struct EngineTable {
  // The versions and sizes of the headers that the engine was built with, checked in this order
  // (engine/load_engine.h).
  std::uint32_t abi_version = kEngineAbiVersion;
  std::uint32_t size = sizeof(EngineTable);
  EngineSizes sizes = {};

  const char* name;  ///< "cpu", "cuda"

  /// Lists up to `capacity` devices and sets *count. Returns kUnavailable with a reason if joins
  /// can run on none.
  Status (*probe)(DeviceInfo* devices, std::uint32_t capacity, std::uint32_t* count);

  /// Checks the request, copies it, starts the work in the background and sets *join. The datasets
  /// stay the caller's. On failure *join is null and nothing is left behind.
  Status (*open)(const JoinRequest* request, Join** join);

  /// Waits for the next part of the result. kOk: *batch is set. kEnd: the result is complete.
  /// kInterrupted: nothing is lost, call again to go on. Anything else ends the join; close()
  /// remains to be called.
  Status (*next_batch)(Join* join, ResultBatch* batch);

  void (*stats)(const Join* join, JoinStats* stats);

  /// Stops the work wherever it is, waits until its threads have ended, and frees everything.
  void (*close)(Join* join);

  // What is kept of datasets with a key, for the joins that follow. In a process that has several
  // joins at a time. Joins of an engine on the host may be called by several threads at once; an
  // engine on devices is called by one thread at a time, whichever, but for kept() and memory().

  /// Sets how many bytes may be kept, on each device and for it on the host; 0, as it is at first:
  /// none.
  void (*keep)(std::uint64_t host_bytes, std::uint64_t device_bytes) = nullptr;
  /// Forgets what is kept of a dataset, but what a join still uses.
  void (*forget)(std::uint64_t identity) = nullptr;
  /// Adds the bytes kept of a dataset.
  void (*kept)(std::uint64_t identity, std::uint64_t* host_bytes,
               std::uint64_t* device_bytes) = nullptr;
  /// Sets the memory of the first `capacity` devices.
  void (*memory)(DeviceMemory* devices, std::uint32_t capacity) = nullptr;
};

using EngineEntry = const EngineTable* (*)();

/// The CPU engine (src/cpu), for programs that are linked with it.
const EngineTable* cpu_engine();

}  // namespace gpujoin

// The settings below `gpujoin.`, as the rest of src/pg reads them.
#pragma once

#include "engine/request/request.h"

namespace gpujoin {

enum class EnginePreference : int { kAuto, kCuda, kCpu };

void define_settings();

EnginePreference engine_preference();
bool customscan_enabled();

/// The device a join runs on where an engine has several, from 0.
std::int32_t device_number();

/// The techniques of the papers (docs/sources.md) as the session wants them.
Knobs knob_settings();

/// Worker threads a join may use; at least 1.
std::uint32_t thread_limit();

/// Bytes of host memory that a join may hold, its copy of the tables included.
std::uint64_t host_memory_limit_bytes();

/// Bytes of device memory that a join may hold; 0 = no limit.
std::uint64_t device_memory_limit_bytes();

}  // namespace gpujoin

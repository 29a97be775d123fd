// The settings below `gpujoin.`, as the rest of src/pg reads them.
#pragma once

#include "engine/request/request.h"

namespace gpujoin {

enum class EnginePreference : int { kAuto, kCuda, kCpu };

/// Whether joins run in the service: where it is there and worth it, always, or never.
enum class ServicePreference : int { kAuto, kOn, kOff };

void define_settings();

EnginePreference engine_preference();
bool customscan_enabled();

/// Whether the planner takes the node wherever it serves, whatever that costs.
bool prefers_node();

/// How a query is reported that compares many pairs without the node.
enum class MissReport : int { kOff, kNotice, kLog };
MissReport miss_report();

ServicePreference service_preference();

/// The devices that a join may use.
DeviceNumbers device_numbers();

/// The techniques of the papers (docs/sources.md) as the session wants them.
Knobs knob_settings();

/// Worker threads a join may use; at least 1.
std::uint32_t thread_limit();

/// Bytes of host memory that a join may hold, its copy of the tables included.
std::uint64_t host_memory_limit_bytes();

/// Bytes of device memory that a join may hold; 0 = no limit.
std::uint64_t device_memory_limit_bytes();

// What the service may use, all sessions' joins together.
double log_min_duration();                  ///< milliseconds; INFINITY: none
std::uint32_t service_threads();            ///< at least 1
std::uint64_t service_join_memory_bytes();  ///< of the host, for joins at work
std::uint64_t table_memory_bytes();         ///< of the host, for tables; 0: none stays
std::uint64_t device_table_memory_bytes();  ///< of each device, likewise

}  // namespace gpujoin

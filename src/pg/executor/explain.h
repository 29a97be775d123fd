// What EXPLAIN prints for both forms of the node.
#pragma once

#include "pg/executor/engine_run.h"

namespace gpujoin {

/// Whether all is printed: VERBOSE asks for it, and so do formats that programs read.
inline bool is_detailed(const ExplainState* es) {
  return es->verbose || es->format != EXPLAIN_FORMAT_TEXT;
}

/// A number in its shortest form, in every format: 0.5, not 0.500000.
void explain_number(const char* label, double number, ExplainState* es);

void explain_count(const char* label, std::uint64_t count, ExplainState* es);

/// Rows that a condition removed in all loops of a node, as PostgreSQL prints them: the mean of the
/// loops; in text only where there are any.
void explain_removed(const char* label, double rows, const PlanState* state, ExplainState* es);

/// What the engine did: which one, why not another, its index, and what it found; the rest where
/// all is printed. Times are left out under TIMING OFF and estimated costs under COSTS OFF.
void explain_report(const JoinReport& report, ExplainState* es);

/// Where rows that wait for their pair are kept.
enum class KeptRows { kNone, kMemory, kDisk };
void explain_kept_rows(KeptRows kept, ExplainState* es);

/// Which device did how much of a shared join, "0: 51 %, 1: 49 %"; of others an empty string.
const char* shares_of_devices(const JoinStats& stats);

}  // namespace gpujoin

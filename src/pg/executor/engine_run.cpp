#include "pg/executor/engine_run.h"

#include "pg/errors.h"
#include "pg/settings.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

JoinReport last_report;
SessionCounts counts = {};
EngineRun* runs = nullptr;  // of this session, that have not ended

/// What the memory context calls at its end, after errors too, so it raises none.
void end_run(void* ended) {
  EngineRun* const run = static_cast<EngineRun*>(ended);
  stop_engine(run);
  close_spill_file(&run->spill);
  EngineRun** link = &runs;
  while (*link != run) link = &(*link)->next;
  *link = run->next;
}

void call_at_end(MemoryContext context, MemoryContextCallbackFunction function, EngineRun* run) {
  MemoryContextCallback* const callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
  callback->func = function;
  callback->arg = run;
  MemoryContextRegisterResetCallback(context, callback);
}

std::uint64_t held_by(const EngineRun* run) {
  if (run->join == nullptr) return run->report.dataset_bytes;
  JoinStats stats = {};
  run->engine->stats(run->join, &stats);
  return run->report.dataset_bytes + stats.memory_peak;
}

/// Ends the engine's work, if any; what it wrote to the file goes.
void close_engine(EngineRun* run) {
  if (run->join == nullptr) return;
  run->engine->close(run->join);
  run->join = nullptr;
  run->spill.end = run->input_end;
}

/// Raises the engine's failure, unless the run handles it itself.
void fail(EngineRun* run, const Status& status) {
  raise_spill_error(&run->spill);
  if (status.code != StatusCode::kMemoryLimit || !run->may_exhaust || run->delivered)
    raise_status(status);
  run->exhausted = true;
  close_engine(run);
}

/// Opens an engine that is `fallback` for a reason, or "".
Status open_engine(EngineRun* run, const EngineTable* engine, const char* fallback) {
  run->engine = engine;
  run->delivered = false;
  run->input_end = run->spill.end;
  run->report.engine = engine->name;
  strlcpy(run->report.fallback, fallback, sizeof run->report.fallback);
  if (fallback[0] != '\0') note_fallback(run, Fallback::kEngine, fallback);
  const Status status = engine->open(&run->request, &run->join);
  if (!status.ok()) run->join = nullptr;
  return status;
}

/// Under `auto` the CPU serves where the device cannot, until the device has emitted pairs. Returns
/// the failure where that does not help.
Status fall_back(EngineRun* run, const Status& failure) {
  if (run->engine == cpu_engine() || engine_preference() != EnginePreference::kAuto ||
      run->delivered)
    return failure;
  close_engine(run);
  return open_engine(run, cpu_engine(), failure.message);
}

/// Waits for the next batch; interrupts are raised.
Status pull(EngineRun* run) {
  Status status = run->engine->next_batch(run->join, &run->batch);
  while (status.code == StatusCode::kInterrupted) {
    CHECK_FOR_INTERRUPTS();
    status = run->engine->next_batch(run->join, &run->batch);
  }
  return status;
}

}  // namespace

void init_engine_run(EngineRun* run, MemoryContext context, const char* name) {
  run->report.name = name;
  init_spill_file(&run->spill, context);
  run->next = runs;
  runs = run;
  call_at_end(context, end_run, run);
}

void stop_engine_with(EngineRun* run, MemoryContext context) {
  call_at_end(
      context, [](void* ended) { stop_engine(static_cast<EngineRun*>(ended)); }, run);
}

std::uint64_t available_memory(const EngineRun* run) {
  std::uint64_t left = host_memory_limit_bytes();
  for (const EngineRun* other = runs; other != nullptr; other = other->next)
    if (other != run) left -= std::min(left, held_by(other));
  return left;
}

std::uint64_t dataset_share(const EngineRun* run, int sides) {
  return std::max<std::uint64_t>(available_memory(run) / 3 / static_cast<std::uint64_t>(sides), 1);
}

Resources engine_resources(const EngineRun* run) {
  const std::uint64_t limit = available_memory(run), held = run->report.dataset_bytes;
  return {.threads = thread_limit(),
          .memory_limit = limit > held ? limit - held : 1,
          .device_memory_limit = device_memory_limit_bytes(),
          .soft_limits = run->may_exhaust,
          .device = device_number(),
          .interrupt = &InterruptPending,
          .scratch = &run->spill.functions};
}

void set_request(EngineRun* run, const JoinRequest& request) {
  run->request = request;
  run->request.resources = engine_resources(run);
  run->request.knobs = knob_settings();
}

void begin_join(EngineRun* run) {
  restart_run(run);
  std::memset(run->noted, 0, sizeof run->noted);
  ++counts.joins;
}

void note_fallback(EngineRun* run, Fallback fallback, const char* reason) {
  constexpr const char* kMeanings[kFallbackCount] = {"runs on the CPU", "finds all pairs",
                                                     "evaluates its condition for every pair"};
  const int number = static_cast<int>(fallback);
  if (run->noted[number]) return;
  run->noted[number] = true;
  ++counts.fallbacks[number];
  ereport(DEBUG1, (errmsg("%s %s: %s", run->report.name, kMeanings[number], reason)));
}

void restart_run(EngineRun* run) {
  stop_engine(run);
  run->report.stats = {};
}

void start_engine(EngineRun* run, const EngineTable* engine) {
  const JoinRequest& request = run->request;
  JoinReport& report = run->report;
  report.role = GetUserId();
  report.metric = request.metric();
  report.pairs = request.pairs();
  report.eps = request.eps();
  report.complete = false;
  report.stats = {};
  run->exhausted = false;
  run->delivered = false;
  EngineChoice choice = {engine, ""};
  if (engine == nullptr)
    choice = choose_engine(request);
  else
    strlcpy(choice.fallback, report.fallback, sizeof choice.fallback);
  Status status = open_engine(run, choice.engine, choice.fallback);
  if (!status.ok()) status = fall_back(run, status);
  if (!status.ok()) fail(run, status);
}

bool next_engine_batch(EngineRun* run) {
  if (run->join == nullptr) return false;
  Status status = pull(run);
  if (!status.ok() && status.code != StatusCode::kEnd) {
    status = fall_back(run, status);
    if (status.ok()) status = pull(run);
  }
  if (status.code == StatusCode::kEnd) {
    run->report.complete = true;
    stop_engine(run);
    return false;
  }
  if (!status.ok()) {
    fail(run, status);
    return false;
  }
  run->delivered = true;
  return true;
}

void stop_engine(EngineRun* run) {
  if (run->join == nullptr) return;
  last_report = report_run(run);
  note_join(run->engine, run->report.stats);
  close_engine(run);
  run->batch = {};
}

JoinReport report_run(EngineRun* run) {
  if (run->join != nullptr) run->engine->stats(run->join, &run->report.stats);
  return run->report;
}

SessionCounts session_counts() { return counts; }

const JoinReport* last_join_report() {
  const bool own = last_report.name != nullptr && last_report.role == GetUserId();
  return own ? &last_report : nullptr;
}

}  // namespace gpujoin

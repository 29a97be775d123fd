#include "pg/engine_run.h"

#include "pg/errors.h"
#include "pg/settings.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

JoinReport last_report;

/// What the memory context calls at its end, after errors too, so it raises none.
void end_run(void* run) { stop_engine(static_cast<EngineRun*>(run)); }

/// Opens an engine that is `fallback` for a reason, or "".
Status open_engine(EngineRun* run, const EngineTable* engine, const char* fallback) {
  run->engine = engine;
  run->delivered = false;
  run->report.engine = engine->name;
  strlcpy(run->report.fallback, fallback, sizeof run->report.fallback);
  const Status status = engine->open(&run->request, &run->join);
  if (!status.ok()) run->join = nullptr;
  return status;
}

/// Under `auto` the CPU serves where the device cannot, until the device has handed over pairs.
/// Returns the failure where that does not help.
Status fall_back(EngineRun* run, const Status& failure) {
  if (run->engine == cpu_engine() || engine_preference() != EnginePreference::kAuto ||
      run->delivered)
    return failure;
  if (run->join != nullptr) run->engine->close(run->join);
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
  MemoryContextCallback* const callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
  callback->func = end_run;
  callback->arg = run;
  MemoryContextRegisterResetCallback(context, callback);
}

JoinRequest default_request(std::uint64_t held_bytes) {
  const std::uint64_t limit = host_memory_limit_bytes();
  JoinRequest request = {};
  request.threads = thread_limit();
  request.memory_limit = limit > held_bytes ? limit - held_bytes : 1;
  request.device_memory_limit = device_memory_limit_bytes();
  request.device = device_number();
  request.interrupt = &InterruptPending;
  request.knobs = knob_settings();
  return request;
}

void start_engine(EngineRun* run) {
  const JoinRequest& request = run->request;
  JoinReport& report = run->report;
  report.metric = request.metric;
  report.pairs = request.pairs;
  report.eps = request.eps;
  report.complete = false;
  report.stats = {};
  const EngineChoice choice = choose_engine(request);
  Status status = open_engine(run, choice.engine, choice.fallback);
  if (!status.ok()) status = fall_back(run, status);
  if (!status.ok()) raise_status(status);
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
  if (!status.ok()) raise_status(status);
  run->delivered = true;
  return true;
}

void stop_engine(EngineRun* run) {
  if (run->join == nullptr) return;
  last_report = report_run(run);
  note_join(run->engine, last_report.stats);
  run->engine->close(run->join);
  run->join = nullptr;
  run->batch = {};
}

const JoinReport& report_run(EngineRun* run) {
  if (run->join != nullptr) run->engine->stats(run->join, &run->report.stats);
  return run->report;
}

const JoinReport* last_join_report() {
  return last_report.name != nullptr ? &last_report : nullptr;
}

}  // namespace gpujoin

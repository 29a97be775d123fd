#include "pg/executor/engine_run.h"

#include "pg/errors.h"
#include "pg/service/join_reports.h"
#include "pg/service/reach_service.h"
#include "pg/session_progress.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint32_t kShownMs = 200;  // how old what other sessions see of a join may be

JoinReport last_report;
SessionCounts counts = {};
EngineRun* runs = nullptr;  // of this session, that have not ended

emit_log_hook_type previous_log = nullptr;

/// emit_log_hook: a cancel ends the joins that are open, though no engine may be at work when it is
/// raised. At the end of a run nobody knows any more which error it was.
void note_cancel(ErrorData* error) {
  if (error->elevel == ERROR && error->sqlerrcode == ERRCODE_QUERY_CANCELED)
    for (EngineRun* run = runs; run != nullptr; run = run->next)
      if (run->join != nullptr) run->cancelled = true;
  if (previous_log != nullptr) previous_log(error);
}

/// What the memory context calls at its end, after errors too, so it raises none.
void end_run(void* ended) {
  EngineRun* const run = static_cast<EngineRun*>(ended);
  stop_engine(run);
  close_connection(&run->service.connection);
  close_spill_file(&run->spill);
  EngineRun** link = &runs;
  while (*link != run) link = &(*link)->next;
  *link = run->next;
  hide_join();
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
  close_connection(&run->service.connection);
  run->spill.end = run->input_end;
}

/// Raises the engine's failure, unless the run handles it itself.
void fail(EngineRun* run, const Status& status) {
  raise_spill_error(&run->spill);
  if (status.code != StatusCode::kMemoryLimit || !run->plain_sql || run->delivered)
    raise_status(status);
  run->exhausted = true;
  close_engine(run);
}

/// What opening any engine begins with.
void prepare_open(EngineRun* run, const EngineTable* engine, const char* place) {
  run->engine = engine;
  run->delivered = false;
  run->checked_ids = 0;
  run->input_end = run->spill.end;
  run->report.engine = engine->name;
  run->report.place = place;
}

/// Opens an engine of the session that is `fallback` for a reason, or "".
Status open_engine(EngineRun* run, const EngineTable* engine, const char* fallback) {
  prepare_open(run, engine, "session");
  strlcpy(run->report.fallback, fallback, sizeof run->report.fallback);
  if (fallback[0] != '\0') note_fallback(run, Fallback::kEngine, fallback);
  const Status status = engine->open(&run->request, &run->join);
  if (!status.ok()) run->join = nullptr;
  return status;
}

/// Whether a join of so many rows is to run in the service: under `auto` where it is large enough
/// to repay the way there. Measured on two cores with a table of n points, a count takes as long on
/// either way up to some 10,000: 1 ms of 1,000, 4 ms of 10,000; of 100,000 points 31 ms in the
/// session, and 6 in the service, which keeps them.
bool is_worth_service(double rows) {
  constexpr double kFewRows = 10000;
  if (!IsUnderPostmaster) return false;
  if (service_preference() != ServicePreference::kAuto)
    return service_preference() == ServicePreference::kOn;
  return rows >= kFewRows;
}

bool wants_service(const EngineRun* run) {
  const Sides& sides = run->request.sides;
  if (run->read_whole != nullptr) return true;
  return !sides.in_file() && sides.has_pairs() &&
         is_worth_service(static_cast<double>(sides.rows()));
}

/// Begins a conversation. Under `on` the service is waited for.
bool reach(EngineRun* run, bool waits, Status* why) {
  waits = waits || service_preference() == ServicePreference::kOn;
  return reach_service(&run->service.connection, waits ? kConnectMs : 0, why);
}

/// Opens the join in the service.
Status open_in_service(EngineRun* run) {
  prepare_open(run, service_engine(), "service");
  run->report.fallback[0] = '\0';
  Status status = run->service.unreached;
  run->service.unreached = {};
  if (!status.ok()) return status;
  if (run->service.connection.socket < 0 && !reach(run, false, &status)) return status;
  status = open_service_join(&run->service.connection, wanted_engine(), run->request,
                             run->service.shared, run->groups, &run->join);
  if (!status.ok()) close_connection(&run->service.connection);
  return status;
}

/// Opens the engine of the session that it prefers.
Status open_in_session(EngineRun* run) {
  const EngineChoice choice = choose_engine(run->request, !run->plain_sql);
  return open_engine(run, choice.engine, choice.fallback);
}

/// Whether a failure is of the service rather than of the join.
bool is_of_service(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kOutOfMemory ||
         code == StatusCode::kDeviceFailure || code == StatusCode::kInternal;
}

/// What the user can do where the service is wanted and cannot be had.
Status with_hint(Status failure) {
  constexpr const char* kHint =
      "Set gpujoin.service to \"auto\" or \"off\" to join in the session.";
  if (failure.hint[0] == '\0') strlcpy(failure.hint, kHint, sizeof failure.hint);
  return failure;
}

/// Opens the join anew, with rows that the backend has, in the service or the session.
template <class Open>
Status open_anew(EngineRun* run, const Status& failure, const Open& open) {
  close_engine(run);
  if (run->read_whole != nullptr && !run->read_whole(run))
    return make_status(StatusCode::kMemoryLimit, nullptr, "%s", failure.message);
  return open(run);
}

Status open_where_wanted(EngineRun* run) {
  return wants_service(run) ? open_in_service(run) : open_in_session(run);
}

/// Under `on` the next service serves where one has ended.
Status try_again(EngineRun* run, const Status& failure) {
  if (run->service.tried_again || !says_service_ended(failure)) return with_hint(failure);
  run->service.tried_again = true;
  const Status status = open_anew(run, failure, open_where_wanted);
  return is_of_service(status.code) ? with_hint(status) : status;
}

/// Under `auto` the session serves where the service cannot, and the CPU where the device cannot,
/// until one of them has emitted pairs. Plain SQL is served so under `on` and `cuda`, too. Returns
/// the failure where that does not help.
Status fall_back(EngineRun* run, Status failure) {
  if (run->delivered) return failure;
  if (run->engine == service_engine()) {
    if (!is_of_service(failure.code)) return failure;
    if (service_preference() == ServicePreference::kOn) {
      failure = try_again(run, failure);
      const bool serves = run->plain_sql && run->engine == service_engine();
      if (!serves || !is_of_service(failure.code)) return failure;
    }
    strlcpy(run->report.place_reason, failure.message, sizeof run->report.place_reason);
    note_fallback(run, Fallback::kService, failure.message);
    const Status status = open_anew(run, failure, open_in_session);
    return status.ok() || run->engine == service_engine() ? status : fall_back(run, status);
  }
  const bool falls = engine_preference() == EnginePreference::kAuto || run->plain_sql;
  if (is_session_cpu(run->engine) || !falls) return failure;
  close_engine(run);
  return open_engine(run, session_cpu(), failure.message);
}

/// Takes over which engine the service runs the join on.
void note_serving_engine(EngineRun* run) {
  const ServingEngine* const serving = engine_of_service_join(run->join);
  run->report.engine = serving->name;
  strlcpy(run->report.fallback, serving->fallback, sizeof run->report.fallback);
  if (serving->fallback[0] != '\0') note_fallback(run, Fallback::kEngine, serving->fallback);
}

/// Whether statistics count a fallback of this join. Without a GPU engine every join would be one
/// for want of a GPU.
bool is_counted(const EngineRun* run, Fallback fallback) {
  return run->noted[static_cast<int>(fallback)] &&
         (fallback != Fallback::kEngine || is_cuda_installed());
}

/// What the run, whose engine is about to stop, adds to the counts of joins. What was read, and why
/// a join fell back, counts once for a join, which may have several runs.
service::JoinCounts counts_of(EngineRun* run) {
  const JoinReport& report = run->report;
  service::JoinCounts more = {};
  more.rows = report.stats.left_rows + report.stats.right_rows;
  more.pairs = report.stats.pairs;
  more.candidates = report.stats.candidates;
  more.index_ms = report.stats.index_ms;
  more.join_ms = report.stats.join_ms;
  more.cancels = run->cancelled ? 1 : 0;
  if (!run->is_new) return more;
  run->is_new = false;
  more.joins = 1;
  more.service_joins = run->engine == service_engine() ? 1 : 0;
  more.device_joins = strcmp(report.engine, "cuda") == 0 ? 1 : 0;
  more.table_blocks = report.table_blocks;
  more.blocks_read = report.blocks_read;
  more.read_ms = report.read_ms;
  for (int i = 0; i < kFallbackCount; ++i)
    more.fallbacks[i] = is_counted(run, static_cast<Fallback>(i)) ? 1 : 0;
  return more;
}

/// Logs what a run did that took long. Says nothing at the end of a transaction that failed, which
/// is reported otherwise.
void log_if_slow(const EngineRun* run) {
  const JoinReport& report = run->report;
  const JoinStats& stats = report.stats;
  const double ms = report.read_ms + stats.index_ms + stats.join_ms;
  if (!(ms >= log_min_duration()) || !IsTransactionState()) return;
  ereport(LOG,
          (errmsg("gpujoin duration: %.3f ms  %s: %llu and %llu rows, %llu candidates, %llu pairs",
                  ms, report.name, static_cast<unsigned long long>(stats.left_rows),
                  static_cast<unsigned long long>(stats.right_rows),
                  static_cast<unsigned long long>(stats.candidates),
                  static_cast<unsigned long long>(stats.pairs)),
           errdetail("Reading %.3f ms, index %.3f ms, join %.3f ms, on %s in the %s%s.",
                     report.read_ms, stats.index_ms, stats.join_ms, report.engine, report.place,
                     report.complete ? "" : ", not to its end")));
}

/// Shows what the engine of the session is at, or that its batch is being returned.
void show_progress(const EngineRun* run, bool returns) {
  if (run->engine == service_engine()) return hide_join();  // the service tells
  JoinStats stats = {};
  run->engine->stats(run->join, &stats);
  show_join(stats, run->engine->name,
            returns ? service::JoinPhase::kReturning : service::phase_of(stats));
}

/// The ids of a side's rows, if they are known by their positions. The service may have the ids of
/// rows that it keeps.
IdRange positions_of(const Dataset& rows, const SharedSide& shared) {
  const bool named = rows.ids != nullptr || rows.file != nullptr || shared.table != nullptr;
  return {named ? 0 : static_cast<std::int64_t>(rows.rows), 0};
}

/// Raises an error if a batch names rows that the join does not have.
void check_batch(EngineRun* run) {
  const ResultBatch& batch = run->batch;
  const Output::Kind output = run->request.output();
  const char* problem = problem_of_batch(batch, output, gives_groups(run) ? run->groups.count : 0);
  if (problem == nullptr && batch.row_count > 0 && run->checked_ids != batch.ids_generation) {
    if (!are_in_range(batch.left_ids, batch.left_id_count, run->ids[0]) ||
        (wants_pairs(output) && !are_in_range(batch.right_ids, batch.right_id_count, run->ids[1])))
      problem = "an id is none of the join's rows";
    run->checked_ids = batch.ids_generation;
  }
  if (problem != nullptr)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("the engine \"%s\" returned a wrong batch", run->report.engine),
                    errdetail_internal("In the batch %s.", problem)));
}

/// Waits for the next batch; interrupts are raised.
Status pull(EngineRun* run) {
  show_progress(run, false);
  Status status = run->engine->next_batch(run->join, &run->batch);
  while (status.code == StatusCode::kInterrupted) {
    run->cancelled = true;
    CHECK_FOR_INTERRUPTS();
    run->cancelled = false;
    show_progress(run, false);
    status = run->engine->next_batch(run->join, &run->batch);
  }
  return status;
}

}  // namespace

service::WantedEngine wanted_engine() {
  switch (engine_preference()) {
    case EnginePreference::kCuda:
      return service::WantedEngine::kCuda;
    case EnginePreference::kCpu:
      return service::WantedEngine::kCpu;
    default:
      return service::WantedEngine::kAuto;
  }
}

void install_engine_runs() {
  previous_log = emit_log_hook;
  emit_log_hook = note_cancel;
}

void init_engine_run(EngineRun* run, MemoryContext context, const char* name) {
  run->report.name = name;
  run->service = {};
  init_spill_file(&run->spill, context);
  run->next = runs;
  runs = run;
  call_at_end(context, end_run, run);
  run->report.metric = to_string(Metric::kL2);
}

void stop_engine_with(EngineRun* run, MemoryContext context) {
  call_at_end(
      context, [](void* ended) { stop_engine(static_cast<EngineRun*>(ended)); }, run);
}

namespace {

/// Returns the run's share of a limit, at least 1.
template <class T>
T share_of(const EngineRun* run, T limit) {
  const int processes = run != nullptr ? std::max(run->processes, 1) : 1;
  return std::max<T>(limit / static_cast<T>(processes), 1);
}

}  // namespace

std::uint64_t available_memory(const EngineRun* run) {
  std::uint64_t left = share_of(run, host_memory_limit_bytes());
  for (const EngineRun* other = runs; other != nullptr; other = other->next)
    if (other != run) left -= std::min(left, held_by(other));
  return left;
}

std::uint64_t dataset_share(const EngineRun* run, int sides) {
  return std::max<std::uint64_t>(available_memory(run) / 3 / static_cast<std::uint64_t>(sides), 1);
}

Resources engine_resources(const EngineRun* run) {
  const std::uint64_t limit = available_memory(run);
  Resources resources = {.threads = share_of(run, thread_limit()),
                         .memory_limit = limit,
                         .device_memory_limit = device_memory_limit_bytes(),
                         .soft_limits = true,
                         .devices = device_numbers(),
                         .interrupt = &InterruptPending};
  if (run == nullptr) return resources;
  const std::uint64_t held = run->report.dataset_bytes;
  resources.memory_limit = limit > held ? limit - held : 1;
  resources.soft_limits = run->plain_sql;
  resources.patience_ms = kShownMs;
  resources.scratch = &run->spill.functions;
  return resources;
}

void set_request(EngineRun* run, const JoinRequest& request) {
  run->request = request;
  run->groups = {};
  const IdRange left = positions_of(request.left(), run->service.shared[0]);
  limit_ids(run, left,
            request.self_join() ? left : positions_of(request.right(), run->service.shared[1]));
  name_radius(run, to_string(request.metric()), request.eps());
  run->request.resources = engine_resources(run);
  run->request.knobs = knob_settings();
}

void limit_ids(EngineRun* run, const IdRange& left, const IdRange& right) {
  run->ids[0] = left;
  run->ids[1] = right;
  run->checked_ids = 0;
}

void name_radius(EngineRun* run, const char* metric, double radius) {
  run->metric = metric;
  run->radius = radius;
}

bool begin_service_join(EngineRun* run, double rows, bool waits) {
  run->service.unreached = {};
  if (!is_worth_service(rows)) return false;
  if (reach(run, waits, &run->service.unreached)) return true;
  strlcpy(run->report.place_reason, run->service.unreached.message,
          sizeof run->report.place_reason);
  return false;
}

void forget_sides(EngineRun* run) {
  run->service.shared[0] = run->service.shared[1] = {};
  run->read_whole = nullptr;
  run->report.table_blocks = run->report.blocks_read = 0;
}

void share_side(EngineRun* run, int side, SharedPoints* shared, const KeptSide& kept,
                bool (*read_whole)(EngineRun* run)) {
  run->service.shared[side] = {shared, kept.kept ? &kept.table : nullptr};
  if (!kept.kept) return;
  run->read_whole = read_whole;
  run->report.table_blocks += kept.table.blocks;
  run->report.blocks_read += kept.table.count;
}

bool gives_groups(const EngineRun* run) {
  return run->groups.count > 0 && run->engine == service_engine();
}

void begin_join(EngineRun* run) {
  restart_run(run);
  std::memset(run->noted, 0, sizeof run->noted);
  ++counts.joins;
  run->is_new = true;
}

void note_fallback(EngineRun* run, Fallback fallback, const char* reason) {
  constexpr const char* kMeanings[kFallbackCount] = {"runs on the CPU", "finds all pairs",
                                                     "evaluates its condition for every pair",
                                                     "runs in the session"};
  const int number = static_cast<int>(fallback);
  if (run->noted[number]) return;
  run->noted[number] = true;
  if (is_counted(run, fallback)) ++counts.fallbacks[number];
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
  report.metric = run->metric;
  report.pairs = request.pairs();
  report.eps = run->radius;
  report.keys = request.keys.count;
  report.complete = false;
  report.stats = {};
  run->exhausted = false;
  run->delivered = run->service.tried_again = false;
  report.place_reason[0] = '\0';
  Status status;
  if (engine != nullptr && engine != service_engine())
    status = open_engine(run, engine, pstrdup(report.fallback));
  else
    status = open_where_wanted(run);
  if (!status.ok()) status = fall_back(run, status);
  if (!status.ok()) fail(run, status);
}

bool next_engine_batch(EngineRun* run) {
  if (run->join == nullptr) return false;
  Status status = pull(run);
  while (!status.ok() && status.code != StatusCode::kEnd) {
    status = fall_back(run, status);
    if (!status.ok()) break;
    status = pull(run);
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
  check_batch(run);
  run->delivered = true;
  show_progress(run, true);
  return true;
}

void stop_engine(EngineRun* run) {
  if (run->join == nullptr) return;
  last_report = report_run(run);
  note_join(run->engine, run->report.stats);
  report_join(counts_of(run));
  log_if_slow(run);
  close_engine(run);
  hide_join();
  run->batch = {};
}

void add_work(const JoinStats& of, JoinStats* to) {
  to->candidates += of.candidates;
  to->pairs += of.pairs;
  to->rechecked += of.rechecked;
  to->batches += of.batches;
  to->parts += of.parts;
  to->index_ms += of.index_ms;
  to->join_ms += of.join_ms;
}

namespace {

/// Counts candidates as pairs are counted, so that they are never fewer: half a walk compares a
/// pair once for both orders, and need not compare a row with itself.
void count_both_orders(const JoinRequest& request, JoinStats* stats) {
  const Output::Kind output = request.output();
  const bool lists_pairs =
      output == Output::kPairs || output == Output::kPairsWithDistances || output == Output::kTotal;
  const PairSelection pairs = request.pairs();
  if (!request.self_join() || !lists_pairs || pairs == PairSelection::kUnordered) return;
  if (!is_mirrored(stats->strategy.access_pattern, pairs) && stats->parts == 0) return;
  stats->candidates *= 2;
  if (pairs == PairSelection::kAll) stats->candidates += stats->left_rows;
}

}  // namespace

JoinReport report_run(EngineRun* run) {
  if (run->join == nullptr) return run->report;
  run->engine->stats(run->join, &run->report.stats);
  count_both_orders(run->request, &run->report.stats);
  if (run->engine == service_engine()) note_serving_engine(run);
  return run->report;
}

SessionCounts session_counts() { return counts; }

const JoinReport* last_join_report() {
  const bool own = last_report.name != nullptr && last_report.role == GetUserId();
  return own ? &last_report : nullptr;
}

}  // namespace gpujoin

// A request run on an engine: which one, its batches, its end. Shared by the functions and both
// kinds of plan nodes. Plain data and one engine handle; the end of a memory context closes it, so
// an error anywhere leaves nothing behind.
#pragma once

#include "engine/engine.h"
#include "engine/request/check_batch.h"
#include "pg/compat.h"
#include "pg/engine_loader.h"
#include "pg/reading/kept_side.h"
#include "pg/service/service_engine.h"
#include "pg/store/spill_file.h"
#include "service/protocol/messages.h"

namespace gpujoin {

/// What a join did, for EXPLAIN and gpu_last_join().
struct JoinReport {
  const char* name;  ///< of the function, or of the plan node
  Oid role;          ///< that ran it
  const char* engine;
  char fallback[sizeof(EngineChoice::fallback)];
  const char* place;                           ///< "service" or "session"
  char place_reason[sizeof(Status::message)];  ///< why the service was not to be had; or ""
  const char* metric;                          ///< a constant
  PairSelection pairs;
  double eps;  ///< in the metric's units
  std::uint32_t dims;
  std::uint32_t keys;  ///< of pairs, that the engine compares
  std::uint64_t dataset_bytes;
  double read_ms;
  std::uint32_t read_workers;  ///< parallel workers that read with the session
  std::uint64_t table_blocks;  ///< of tables whose rows stay in the service
  std::uint64_t blocks_read;   ///< of these
  bool complete;
  JoinStats stats;
};

/// What a join could not be. Each is counted, and reported in the server's log at DEBUG1.
enum class Fallback {
  kEngine,   ///< the CPU serves where a device was to
  kTopk,     ///< all pairs are found where the first were wanted
  kLoop,     ///< the condition is evaluated for every pair
  kService,  ///< the session serves where the service was to
};
inline constexpr int kFallbackCount = service::kCountedFallbacks;

/// What the session has done, for gpu_session_joins().
struct SessionCounts {
  std::uint64_t joins;
  std::uint64_t fallbacks[kFallbackCount];  ///< joins, by Fallback
};

/// How a join uses the service.
struct ServiceUse {
  Connection connection;  ///< where the join runs there
  Status unreached;       ///< why begin_service_join() found no service, until the join starts
  SharedSide shared[2];   ///< where the rows of the sides lie in shared memory, as far as they do
  bool tried_again;       ///< the service ended before, and the join was begun once more
};

struct EngineRun {
  JoinRequest request;
  const char* metric;  ///< of the request, as reports name it; a constant
  double radius;       ///< likewise
  const EngineTable* engine;
  Join* join;                 ///< null when no engine is at work
  bool delivered;             ///< the engine has emitted a batch
  IdRange ids[2];             ///< of the left rows and the right ones, in batches of this request
  std::uint64_t checked_ids;  ///< ResultBatch::ids_generation of the ids found in range; 0: none
  ResultBatch batch;          ///< the last one
  JoinReport report;
  ServiceUse service;
  SumGroups groups;  ///< by which the service adds up what it finds of left rows
  /// Reads the rows that the service has, and sets the request again; null: the backend has all.
  /// False: the run ends, exhausted, and the caller joins in another way.
  bool (*read_whole)(EngineRun* run);
  void* reader;             ///< for read_whole(): whose run it is
  SpillFile spill;          ///< for rows that do not fit in memory
  std::uint64_t input_end;  ///< in the file; what the engine writes lies beyond
  int processes;   ///< Each gets this share of the limits of memory and threads. 0: one process.
  bool plain_sql;  ///< the query names no function that may refuse: as long as nothing was emitted,
                   ///< the CPU serves where the engine asked for cannot, and too little memory ends
                   ///< the engine's work and sets `exhausted`
  bool cancelled;  ///< the query was cancelled before the join had ended
  bool is_new;     ///< a join that was not counted yet
  bool exhausted;
  bool noted[kFallbackCount];  ///< fallbacks of this join
  EngineRun* next;             ///< in the session's list
};

/// When a backend loads the library: has cancels of joins noted.
void install_engine_runs();

/// Prepares a run, zeroed by the caller, that ends with `context`.
void init_engine_run(EngineRun* run, MemoryContext context, const char* name);

/// Returns the bytes that the run may hold: gpujoin.host_memory_limit, or its share of a parallel
/// plan, less what the session's other runs, their data and their engines hold. `run` may be null.
std::uint64_t available_memory(const EngineRun* run);

/// The part of this that each of so many sides may hold: an index is about twice as large as the
/// points, and buffers come on top.
std::uint64_t dataset_share(const EngineRun* run, int sides);

/// The engine that the session prefers, for the service.
service::WantedEngine wanted_engine();

/// Returns what the settings allow the engine, less the memory of the run's data. Null: for a
/// search, which is part of a plain SQL query and has no run.
Resources engine_resources(const EngineRun* run);

/// Sets run->request, with these resources and the knobs of the settings, and without groups. Rows
/// without ids are known by their positions; other ids may be any until limit_ids() is called.
void set_request(EngineRun* run, const JoinRequest& request);

/// Sets which ids the rows of the request have. Another id in a batch is an error.
void limit_ids(EngineRun* run, const IdRange& left, const IdRange& right);

/// Has reports show the request's metric and radius as the caller knows them.
void name_radius(EngineRun* run, const char* metric, double radius);

/// Stops the engine at the end of this context, too, which holds the data.
void stop_engine_with(EngineRun* run, MemoryContext context);

/// Begins the conversation of a join that is to run in the service, so that its tables can be
/// looked for there; `rows` are about those of both sides, INFINITY where that is not known. False:
/// it is to run in the session. `waits`: for a service that has to be started, as it does under
/// `on`. Raises interrupts.
bool begin_service_join(EngineRun* run, double rows, bool waits = false);

/// Before sides are read: forgets where the rows of those before were.
void forget_sides(EngineRun* run);

/// Notes where the rows of side 0 or 1 are: in memory that is shared, unless that is null, and in
/// the service, as far as they are kept. Both outlive the run.
void share_side(EngineRun* run, int side, SharedPoints* shared, const KeptSide& kept,
                bool (*read_whole)(EngineRun* run));

/// Whether rows of batches are groups.
bool gives_groups(const EngineRun* run);

/// Begins a join: one more of the session's. Stops the engine and forgets its figures.
void begin_join(EngineRun* run);

/// Stops the engine and forgets its figures; the same join goes on with another request.
void restart_run(EngineRun* run);

/// Notes why a join falls back, once for each.
void note_fallback(EngineRun* run, Fallback fallback, const char* reason);

/// Starts run->request on `engine`, or on the engine that the session prefers, in the service
/// where that is wanted and to be had. Raises engine errors.
void start_engine(EngineRun* run, const EngineTable* engine = nullptr);

/// Sets run->batch to the next batch; false at the end of the result. Raises engine errors and
/// interrupts.
bool next_engine_batch(EngineRun* run);

/// Stops the engine wherever it is, keeping its figures.
void stop_engine(EngineRun* run);

/// Adds what a join did to what others did before it.
void add_work(const JoinStats& of, JoinStats* to);

/// What the run has done so far.
JoinReport report_run(EngineRun* run);

SessionCounts session_counts();

/// What the session's last join did; null when there was none, or when another role ran it.
const JoinReport* last_join_report();

}  // namespace gpujoin

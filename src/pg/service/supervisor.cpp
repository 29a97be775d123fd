// One supervisor is at work in a server, whoever started it: it holds the lock of a file. Where
// the lock is taken a dynamic supervisor ends, and the preloaded one waits.
#include "pg/service/supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pg/engine_loader.h"
#include "pg/service/prewarmer.h"
#include "pg/service/service_process.h"
#include "pg/settings.h"
#include "service/protocol/messages.h"

extern "C" {
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

/// Base backups leave it out, as they do the socket.
constexpr const char* kLockName = "pgsql_tmp_gpujoin_supervisor";

constexpr long kFirstDelayMs = 100, kLastDelayMs = 60000;
constexpr long kHealthyMs = 1000;  ///< what lived so long can be started
constexpr long kQuietMs = 60000;   ///< after a line in the log
constexpr long kPollMs = 10000;    ///< whether the socket is still there
constexpr long kLockMs = 1000;     ///< whether the lock is free
constexpr int kRestartSeconds = 5;

struct Supervisor {
  ServiceProcess process;
  TimestampTz started;                ///< the process
  TimestampTz next_start;             ///< not before
  TimestampTz reported;               ///< its last death in the log
  long delay_ms;                      ///< after the next death
  BackgroundWorkerHandle* prewarmer;  ///< that the last start of the process started, or null
};

bool registered = false;  // by the postmaster

std::uint32_t wait_event() {
  static const std::uint32_t event = new_wait_event("GpujoinSupervisorMain");
  return event;
}

int open_lock() {
  const int file = open(kLockName, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", kLockName)));
  return file;
}

/// The lock of the whole file, which its descriptor holds until it is closed.
struct flock whole_file() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Takes the lock for the rest of this process; false where another one holds it.
bool take_lock() {
  const int file = open_lock();
  struct flock lock = whole_file();
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return true;
  close(file);
  return false;
}

/// Whether a supervisor is at work; one that is being started is not yet.
bool is_supervised() {
  const int file = open_lock();
  struct flock lock = whole_file();
  const bool asked = fcntl(file, F_OFD_GETLK, &lock) == 0;
  close(file);
  return asked && lock.l_type != F_UNLCK;
}

long ms_since(TimestampTz then) { return static_cast<long>((GetCurrentTimestamp() - then) / 1000); }

/// A death by a signal is always logged: a crash, or the system without memory. The pauses between
/// starts limit how often.
void report_end(Supervisor* supervisor, int status) {
  const bool is_quiet = ms_since(supervisor->reported) < kQuietMs && !WIFSIGNALED(status);
  const int level = is_quiet ? DEBUG1 : LOG;
  if (level == LOG) supervisor->reported = GetCurrentTimestamp();
  char* const how = wait_result_to_str(status);
  ereport(level, (errmsg("%s ended, restarting: %s", kServiceProgram, how),
                  errdetail("Joins run in their sessions until it is back.")));
  pfree(how);
}

/// Sets when to start the process again: at once is too soon for one that cannot live.
void note_end(Supervisor* supervisor, int status) {
  if (ms_since(supervisor->started) >= kHealthyMs) supervisor->delay_ms = kFirstDelayMs;
  report_end(supervisor, status);
  supervisor->next_start = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), supervisor->delay_ms);
  supervisor->delay_ms = std::min(2 * supervisor->delay_ms, kLastDelayMs);
}

/// Has the new service read what gpu_prewarm(keep => true) named.
void prewarm(Supervisor* supervisor) {
  if (supervisor->prewarmer != nullptr) {
    TerminateBackgroundWorker(supervisor->prewarmer);
    pfree(supervisor->prewarmer);
  }
  const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  supervisor->prewarmer = start_prewarmer();
  MemoryContextSwitchTo(caller);
}

void start(Supervisor* supervisor) {
  start_service_process(&supervisor->process);
  supervisor->started = GetCurrentTimestamp();
  prewarm(supervisor);
}

/// A service that nobody can reach any more is replaced.
void look_for_socket(Supervisor* supervisor) {
  if (supervisor->process.pid == 0 || ms_since(supervisor->started) < kPollMs ||
      access(service::kSocketName, F_OK) == 0)
    return;
  ereport(LOG, (errmsg("the socket of %s was removed, restarting", kServiceProgram)));
  end_service_process(&supervisor->process);
}

/// Waits until the process ends, the next start or the next look is due, or a signal arrives.
void wait_for_event(const Supervisor* supervisor) {
  int events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;
  long left = kPollMs;
  if (supervisor->process.pid != 0)
    events |= WL_SOCKET_READABLE;
  else
    left = std::max(-ms_since(supervisor->next_start), 1L);
  WaitLatchOrSocket(MyLatch, events, supervisor->process.socket, left, wait_event());
  ResetLatch(MyLatch);
}

void follow_signals(Supervisor* supervisor) {
  CHECK_FOR_INTERRUPTS();
  if (ShutdownRequestPending) {
    end_service_process(&supervisor->process);
    proc_exit(1);  // the server starts a preloaded one again, unless it ends itself
  }
  if (!ConfigReloadPending) return;
  ConfigReloadPending = false;
  ProcessConfigFile(PGC_SIGHUP);
  configure_service_process(&supervisor->process);
}

[[noreturn]] void supervise() {
  Supervisor supervisor = {};
  supervisor.delay_ms = kFirstDelayMs;
  for (;;) {
    follow_signals(&supervisor);
    int status = 0;
    if (supervisor.process.pid != 0 && has_service_ended(&supervisor.process, &status))
      note_end(&supervisor, status);
    look_for_socket(&supervisor);
    if (supervisor.process.pid == 0 && ms_since(supervisor.next_start) >= 0) start(&supervisor);
    wait_for_event(&supervisor);
  }
}

/// Waits until no other supervisor is at work; a dynamic one leaves it to the other.
void become_the_one(bool preloaded) {
  while (!take_lock()) {
    if (!preloaded) proc_exit(0);
    Supervisor idle = {};
    follow_signals(&idle);
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kLockMs, wait_event());
    ResetLatch(MyLatch);
  }
}

BackgroundWorker describe_worker(bool preloaded) {
  BackgroundWorker worker = {};
  strlcpy(worker.bgw_name, "gpujoin supervisor", sizeof worker.bgw_name);
  strlcpy(worker.bgw_type, "gpujoin supervisor", sizeof worker.bgw_type);
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
  worker.bgw_start_time = BgWorkerStart_ConsistentState;
  worker.bgw_restart_time = preloaded ? kRestartSeconds : BGW_NEVER_RESTART;
  strlcpy(worker.bgw_library_name, "gpujoin", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, "gpujoin_supervisor", sizeof worker.bgw_function_name);
  worker.bgw_main_arg = BoolGetDatum(preloaded);
  return worker;
}

bool is_installed() {
  char path[MAXPGPATH];
  find_beside(kServiceProgram, path, sizeof path);
  return access(path, X_OK) == 0;
}

}  // namespace

void register_supervisor() {
  if (service_preference() == ServicePreference::kOff || !is_installed()) return;
  BackgroundWorker worker = describe_worker(true);
  RegisterBackgroundWorker(&worker);
  registered = true;
}

bool is_preloaded() { return registered; }

Status start_supervisor() {
  constexpr long kPatienceMs = 10000;
  static TimestampTz tried = 0;
  static Status result;
  if (tried != 0 && ms_since(tried) < kPatienceMs) return result;
  tried = GetCurrentTimestamp();
  result = {};
  BackgroundWorker worker = describe_worker(false);
  BackgroundWorkerHandle* handle = nullptr;
  if (!IsUnderPostmaster)
    result = make_status(StatusCode::kUnavailable, nullptr,
                         "a server of one session has no gpujoin service");
  else if (!is_installed())
    result = make_status(StatusCode::kUnavailable, nullptr, "gpujoin_service is not installed");
  else if (!is_supervised() && !RegisterDynamicBackgroundWorker(&worker, &handle))
    result = make_status(StatusCode::kOutOfMemory, nullptr,
                         "the server has no free worker process for the gpujoin service");
  if (handle != nullptr) pfree(handle);
  return result;
}

}  // namespace gpujoin

void gpujoin_supervisor(Datum preloaded) {
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  BackgroundWorkerUnblockSignals();
  gpujoin::become_the_one(DatumGetBool(preloaded));
  gpujoin::supervise();
}

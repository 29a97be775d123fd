#include "pg/session_progress.h"

extern "C" {
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

/// Lies beyond PostgreSQL's own commands, and is the largest that the type holds. The mark tells
/// gpujoin from other extensions that take the same number.
constexpr auto kCommand = static_cast<ProgressCommandType>(7);
constexpr int64 kMark = 0x6770756a6f696e;
static_assert(PROGRESS_COMMAND_COPY < 7);

/// Places of the parameters.
enum Parameter : int {
  kMarkPlace,
  kSince,
  kPhase,
  kOnDevice,
  kLeftRows,
  kRightRows,
  kCandidates,
  kPairs,
  kWork,
  kWorkDone,
  kParameters
};
static_assert(kParameters <= PGSTAT_NUM_PROGRESS_PARAM);

bool is_own(const PgBackendStatus* status) {
  return status->st_progress_command == kCommand && status->st_progress_param[kMarkPlace] == kMark;
}

/// Puts the values of the parameters from `first` on, together.
void put(int first, std::initializer_list<std::uint64_t> values) {
  int places[kParameters];
  int64 numbers[kParameters];
  int count = 0;
  for (const std::uint64_t value : values) {
    places[count] = first + count;
    numbers[count++] = static_cast<int64>(value);
  }
  pgstat_progress_update_multi_param(count, places, numbers);
}

/// True if the session's progress is ours. A release with a command of this number would show ours
/// in its own view.
bool take_place() {
  if (!kHasFreeProgressCommand || MyBEEntry == nullptr || !pgstat_track_activities) return false;
  if (is_own(MyBEEntry)) return true;
  if (MyBEEntry->st_progress_command != PROGRESS_COMMAND_INVALID) return false;
  pgstat_progress_start_command(kCommand, InvalidOid);
  put(kMarkPlace, {kMark, static_cast<std::uint64_t>(GetCurrentTimestamp())});
  return true;
}

std::uint64_t number_of(service::JoinPhase phase) { return static_cast<std::uint64_t>(phase); }

bool is_on_device(const char* engine) { return strcmp(engine, "cuda") == 0; }

}  // namespace

void show_reading(std::uint64_t rows) {
  if (take_place()) put(kPhase, {number_of(service::JoinPhase::kReading), 0, rows, 0, 0, 0, 0, 0});
}

void show_join(const JoinStats& stats, const char* engine, service::JoinPhase phase) {
  if (!take_place()) return;
  put(kPhase, {number_of(phase), is_on_device(engine), stats.left_rows, stats.right_rows,
               stats.candidates, stats.pairs, stats.work, stats.work_done});
}

void show_searches(std::uint64_t searches, std::uint64_t rows, std::uint64_t candidates,
                   const char* engine) {
  if (take_place())
    put(kPhase, {number_of(service::JoinPhase::kSearching), is_on_device(engine), searches, rows,
                 candidates, 0, 0, 0});
}

void hide_join() {
  if (MyBEEntry != nullptr && is_own(MyBEEntry)) pgstat_progress_end_command();
}

int session_places() { return pgstat_fetch_stat_numbackends(); }

bool join_of_session(int place, service::ListedJoin* join) {
  const LocalPgBackendStatus* const local = status_of_backend(place + 1);
  if (local == nullptr || !is_own(&local->backendStatus)) return false;
  const PgBackendStatus& status = local->backendStatus;
  const auto number = [&](Parameter which) {
    return static_cast<std::uint64_t>(status.st_progress_param[which]);
  };
  *join = {};
  join->pid = status.st_procpid;
  join->database = status.st_databaseid;
  join->phase = static_cast<service::JoinPhase>(number(kPhase));
  const bool reads = join->phase == service::JoinPhase::kReading;
  snprintf(join->engine, sizeof join->engine, "%s",
           reads                    ? ""
           : number(kOnDevice) != 0 ? "cuda"
                                    : "cpu");
  constexpr std::int64_t kDays = POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;
  join->since_us = status.st_progress_param[kSince] + kDays * USECS_PER_DAY;
  join->left_rows = number(kLeftRows);
  join->right_rows = number(kRightRows);
  join->candidates = number(kCandidates);
  join->pairs = number(kPairs);
  join->work = number(kWork);
  join->work_done = number(kWorkDone);
  return true;
}

}  // namespace gpujoin

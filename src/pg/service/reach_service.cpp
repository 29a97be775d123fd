#include "pg/service/reach_service.h"

#include "engine/stopwatch.h"
#include "pg/service/supervisor.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

constexpr long kStepMs = 20;
constexpr long kGreetMs = 50;        // for joins that the session can run as well
constexpr long kRememberMs = 10000;  // as start_supervisor() does

bool is_recent(TimestampTz failure) {
  return failure != 0 && !TimestampDifferenceExceeds(failure, GetCurrentTimestamp(), kRememberMs);
}

/// The last time that this session could not reach the service.
struct Failure {
  TimestampTz when = 0;  ///< 0: never
  Connected how = Connected::kAbsent;
  Status why;
};

Failure last_failure;

/// True if the last failure stands and the service is not asked again. A caller that waits asks
/// once in a statement. One that does not wait asks an absent service again, which takes no time.
bool is_remembered(bool waits) {
  if (!is_recent(last_failure.when)) return false;
  return waits ? last_failure.when >= GetCurrentStatementStartTimestamp()
               : last_failure.how == Connected::kRefused;
}

/// A moment, in which interrupts are raised.
void wait_a_moment() {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceStart");
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kStepMs, wait_event);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

/// Starts a service where none is running, and waits for it. kAbsent: it may be there later.
Connected try_to_reach(Connection* connection, long patience_ms, Status* why) {
  const long greet_ms = patience_ms > 0 ? patience_ms : kGreetMs;
  Connected connected = connect_service(connection, greet_ms, why);
  if (connected != Connected::kAbsent) return connected;
  if (const Status started = start_supervisor(); !started.ok()) {
    *why = started;
    return connected;
  }
  *why = make_status(StatusCode::kDeviceFailure, nullptr, "the gpujoin service is not running yet");
  const Stopwatch watch;
  while (connected != Connected::kYes && watch.milliseconds() < static_cast<double>(patience_ms)) {
    wait_a_moment();
    connected = connect_service(connection, greet_ms, why);
  }
  return connected;
}

}  // namespace

bool find_service(Connection* connection) {
  static TimestampTz refused_at = 0;  // 0: never
  if (take_connection(connection)) return true;
  if (is_recent(refused_at)) return false;
  Status why;
  const Connected connected = connect_service(connection, kGreetMs, &why);
  refused_at = connected == Connected::kRefused ? GetCurrentTimestamp() : 0;
  return connected == Connected::kYes;
}

bool reach_service(Connection* connection, long patience_ms, Status* why) {
  const bool waits = patience_ms > 0;
  if (is_remembered(waits)) {
    *why = last_failure.why;
    return false;
  }
  const Connected connected = try_to_reach(connection, patience_ms, why);
  if (connected != Connected::kYes) last_failure = {GetCurrentTimestamp(), connected, *why};
  return connected == Connected::kYes;
}

}  // namespace gpujoin

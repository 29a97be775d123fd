#include "pg/service/reach_service.h"

#include "engine/stopwatch.h"
#include "pg/service/supervisor.h"

extern "C" {
#include "miscadmin.h"
#include "storage/latch.h"
}

namespace gpujoin {
namespace {

constexpr long kStepMs = 20;

/// A moment, in which interrupts are raised.
void wait_a_moment() {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceStart");
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kStepMs, wait_event);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace

bool reach_service(Connection* connection, long patience_ms, Status* why) {
  Connected connected = connect_service(connection, why);
  if (connected != Connected::kAbsent) return connected == Connected::kYes;
  const char* reason;
  if (!start_supervisor(&reason)) {
    *why = make_status(StatusCode::kUnavailable, nullptr, "%s", reason);
    return false;
  }
  *why = make_status(StatusCode::kUnavailable, nullptr, "the gpujoin service is not running yet");
  const Stopwatch watch;
  while (connected != Connected::kYes && watch.milliseconds() < static_cast<double>(patience_ms)) {
    wait_a_moment();
    connected = connect_service(connection, why);
  }
  return connected == Connected::kYes;
}

}  // namespace gpujoin

#include "pg/service/join_reports.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pg/compat.h"
#include "service/protocol/channel.h"

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

constexpr int kPauseMs = 100;

service::JoinCounts pending = {};
bool has_pending = false, ends_with_session = false;
TimestampTz sent_at = 0;

/// Sends a message to the service without waiting. False: there is none, or it has no time.
bool send_once(const service::ReportJoins& report) {
  const int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strlcpy(address.sun_path, service::kSocketName, sizeof address.sun_path);
  const bool sent = connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    service::is_same_user(file) &&
                    send_message(file, report) == service::ChannelState::kDone;
  close(file);
  return sent;
}

void send_at_end(int, Datum) { send_reports(); }

}  // namespace

void send_reports() {
  if (!has_pending || !IsUnderPostmaster || !AcquireExternalFD()) return;
  service::ReportJoins report;
  service::start_message(&report);
  service::fill_hello(&report.sender, MyDatabaseId, MyProcPid);
  report.counts = pending;
  sent_at = GetCurrentTimestamp();
  if (send_once(report)) {
    pending = {};
    has_pending = false;
  }
  ReleaseExternalFD();
}

void report_join(const service::JoinCounts& more) {
  service::add_counts(more, &pending);
  has_pending = true;
  if (!ends_with_session) before_shmem_exit(send_at_end, 0);
  ends_with_session = true;
  if (TimestampDifferenceExceeds(sent_at, GetCurrentTimestamp(), kPauseMs)) send_reports();
}

}  // namespace gpujoin

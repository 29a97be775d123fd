#include "pg/service/join_reports.h"

#include "pg/service/connection.h"

extern "C" {
#include "miscadmin.h"
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
  Connection connection;
  Status why;
  if (open_connection(&connection, &why) != Connected::kYes) return false;
  const bool sent = send_message(connection.socket, report) == service::ChannelState::kDone;
  close_connection(&connection);
  return sent;
}

void send_at_end(int, Datum) { send_reports(); }

}  // namespace

void send_reports() {
  if (!has_pending || !IsUnderPostmaster) return;
  service::ReportJoins report;
  service::start_message(&report);
  service::fill_hello(&report.sender, MyDatabaseId, DatabasePath, MyProcPid);
  report.counts = pending;
  sent_at = GetCurrentTimestamp();
  if (send_once(report)) {
    pending = {};
    has_pending = false;
  }
}

void report_join(const service::JoinCounts& more) {
  service::add_counts(more, &pending);
  has_pending = true;
  if (!ends_with_session) before_shmem_exit(send_at_end, 0);
  ends_with_session = true;
  if (TimestampDifferenceExceeds(sent_at, GetCurrentTimestamp(), kPauseMs)) send_reports();
}

}  // namespace gpujoin

#include "pg/service/connection.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/stopwatch.h"
#include "pg/store/context_end.h"

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
}

namespace gpujoin {
namespace {

using service::Descriptors;

constexpr int kMaxIdle = 4;
Connection idle[kMaxIdle];  ///< [idle_count] connections for take_connection()
int idle_count = 0;

Status refused(StatusCode code, const char* why) { return make_status(code, nullptr, "%s", why); }

/// Clients may try again, which they do not where a feature is not supported.
Status not_now(const char* why) { return refused(StatusCode::kDeviceFailure, why); }

/// Connects a socket that PostgreSQL counts.
Connected open_socket(Connection* connection, Status* why) {
  if (!AcquireExternalFD()) {
    *why = refused(StatusCode::kOutOfMemory,
                   "the session has too many files open for a connection to the gpujoin service");
    return Connected::kRefused;
  }
  const int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) {
    ReleaseExternalFD();
    *why = make_status(StatusCode::kOutOfMemory, nullptr, "could not make a socket: %s",
                       strerror(errno));
    return Connected::kRefused;
  }
  connection->socket = file;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strlcpy(address.sun_path, service::kSocketName, sizeof address.sun_path);
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return Connected::kYes;
  const int code = errno;
  close_connection(connection);
  if (code == ENOENT || code == ECONNREFUSED) {
    *why = not_now("the gpujoin service is not running");
    return Connected::kAbsent;
  }
  *why = code == EAGAIN
             ? not_now("the gpujoin service is busy")
             : make_status(StatusCode::kDeviceFailure, nullptr,
                           "could not connect to the gpujoin service: %s", strerror(code));
  return Connected::kRefused;
}

/// What is left of so many milliseconds, by a clock that nobody sets.
long left_of(long ms, const Stopwatch& since) {
  return std::max(0L, ms - static_cast<long>(since.milliseconds()));
}

/// Waits for a message so long in all; interrupts are raised.
Arrival await_calmly(const Connection* connection, void* buffer, Descriptors* descriptors,
                     long timeout_ms, std::uint32_t wait_event) {
  const Stopwatch watch;
  for (;;) {
    const Arrival arrival =
        await_message(connection, buffer, descriptors, left_of(timeout_ms, watch), wait_event);
    if (arrival != Arrival::kInterrupted) return arrival;
    CHECK_FOR_INTERRUPTS();
  }
}

/// Greets the service and waits so long for its answer. A service that is just ending is absent.
Connected greet(Connection* connection, long timeout_ms, Status* why) {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceConnect");
  service::Hello hello;
  service::fill_hello(&hello, MyDatabaseId, DatabasePath, MyProcPid);
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  Descriptors descriptors;
  const service::ChannelState sent = send_message(connection->socket, hello);
  const Arrival arrival =
      sent == service::ChannelState::kWait ? Arrival::kLate
      : sent != service::ChannelState::kDone
          ? Arrival::kClosed
          : await_calmly(connection, buffer, &descriptors, timeout_ms, wait_event);
  if (arrival == Arrival::kClosed) {
    *why = not_now("the gpujoin service ended");
    return Connected::kAbsent;
  }
  close_descriptors(&descriptors);
  const auto* const welcome =
      arrival == Arrival::kMessage ? service::message_as<service::Welcome>(buffer) : nullptr;
  if (arrival == Arrival::kLate)
    *why = not_now("the gpujoin service is busy");
  else if (welcome == nullptr)
    *why = refused(StatusCode::kUnavailable,
                   "the gpujoin service was built with another version of gpujoin");
  else
    *why = welcome->status;
  return why->ok() ? Connected::kYes : Connected::kRefused;
}

}  // namespace

Connected open_connection(Connection* connection, Status* why) {
  const Connected connected = open_socket(connection, why);
  if (connected != Connected::kYes || service::is_same_user(connection->socket)) return connected;
  *why = refused(StatusCode::kUnavailable, "the gpujoin service runs as another user");
  close_connection(connection);
  return Connected::kRefused;
}

Connected connect_service(Connection* connection, long timeout_ms, Status* why) {
  close_connection(connection);
  Connected connected = open_connection(connection, why);
  if (connected != Connected::kYes) return connected;
  connected = greet(connection, timeout_ms, why);
  if (connected != Connected::kYes) close_connection(connection);
  return connected;
}

void close_connection(Connection* connection) {
  if (connection->socket < 0) return;
  close(connection->socket);
  ReleaseExternalFD();
  *connection = {};
}

bool take_connection(Connection* connection) {
  while (idle_count > 0) {
    *connection = idle[--idle_count];
    unsigned char nothing[sizeof(service::Header)];
    Descriptors none;
    if (service::receive_message(connection->socket, nothing, sizeof nothing, &none) ==
        service::ChannelState::kWait)
      return true;
    service::close_descriptors(&none);
    close_connection(connection);
  }
  return false;
}

void leave_connection(Connection* connection) {
  service::LetGo message;
  service::start_message(&message);
  if (connection->socket < 0) return;
  if (idle_count == kMaxIdle ||
      send_message(connection->socket, message) != service::ChannelState::kDone)
    return close_connection(connection);
  idle[idle_count++] = *connection;
  *connection = {};
}

void close_connection_with(Connection* connection, MemoryContext context) {
  call_at_end(
      context, [](void* ended) { close_connection(static_cast<Connection*>(ended)); }, connection);
}

Arrival await_message(const Connection* connection, void* buffer, Descriptors* descriptors,
                      long timeout_ms, std::uint32_t wait_event) {
  const Stopwatch watch;
  for (;;) {
    switch (receive_message(connection->socket, buffer, service::kMostMessageBytes, descriptors)) {
      case service::ChannelState::kDone:
        return Arrival::kMessage;
      case service::ChannelState::kClosed:
        return Arrival::kClosed;
      default:
        break;
    }
    if (InterruptPending) return Arrival::kInterrupted;
    int events = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;
    long left = -1;
    if (timeout_ms >= 0) {
      events |= WL_TIMEOUT;
      left = left_of(timeout_ms, watch);
      if (left == 0) return Arrival::kLate;
    }
    if ((WaitLatchOrSocket(MyLatch, events, connection->socket, left, wait_event) & WL_LATCH_SET) !=
        0)
      ResetLatch(MyLatch);
  }
}

Arrival ask_service(Connection* connection, const void* message, std::size_t bytes, void* buffer,
                    Descriptors* descriptors, long timeout_ms) {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceAnswer");
  const service::ChannelState sent =
      service::send_message(connection->socket, message, bytes, nullptr, 0);
  const Arrival arrival =
      sent == service::ChannelState::kDone
          ? await_calmly(connection, buffer, descriptors, timeout_ms, wait_event)
          : Arrival::kClosed;
  if (arrival != Arrival::kMessage) close_connection(connection);
  return arrival;
}

}  // namespace gpujoin

// A backend's conversation with the service: connecting, and messages that are waited for by the
// latch. Plain data; whoever has a connection closes it, at the end of a memory context at the
// latest.
#pragma once

#include "pg/compat.h"
#include "service/protocol/channel.h"

namespace gpujoin {

struct Connection {
  int socket = -1;  ///< -1: there is no conversation
};

enum class Connected {
  kYes,
  kAbsent,   ///< no service is running
  kRefused,  ///< it has no time, or is of another build
};

/// Connects to a service of the same user, without a word. Waits for nothing and raises nothing.
/// Sets *why where there is none.
Connected open_connection(Connection* connection, Status* why);

/// How long a caller that wants an answer waits for a service that is busy. Its first steps can
/// take seconds where all processors have other work.
inline constexpr long kConnectMs = 5000;

/// Begins a conversation, after ending the one before, if any. Waits `timeout_ms` at most for the
/// service's greeting and raises interrupts. Sets *why where there is no conversation.
Connected connect_service(Connection* connection, long timeout_ms, Status* why);

/// Ends the conversation, if there is one; a join in it is stopped. Raises nothing.
void close_connection(Connection* connection);

/// Reuses a connection that leave_connection() kept, unless the service has closed it. Returns true
/// if it found one.
bool take_connection(Connection* connection);

/// Keeps an idle connection for the next take_connection() of this session, or closes it if enough
/// are kept. The service lets go of the tables that were found. Raises nothing.
void leave_connection(Connection* connection);

/// Closes it at the end of this context, too.
void close_connection_with(Connection* connection, MemoryContext context);

enum class Arrival {
  kMessage,      ///< its descriptors are the caller's
  kClosed,       ///< the service is gone
  kLate,         ///< nothing came in time
  kInterrupted,  ///< an interrupt is due
};

/// Waits for a message of at most kMostMessageBytes, for so many milliseconds or, -1, for ever.
/// Does not raise interrupts, and errors only where the system has no descriptor for waiting.
Arrival await_message(const Connection* connection, void* buffer, service::Descriptors* descriptors,
                      long timeout_ms, std::uint32_t wait_event);

inline constexpr long kAnswerMs = 30000;

/// Sends a message and waits `timeout_ms` for its answer. Raises interrupts. Closes the connection
/// if the result is not kMessage.
Arrival ask_service(Connection* connection, const void* message, std::size_t bytes, void* buffer,
                    service::Descriptors* descriptors, long timeout_ms = kAnswerMs);

}  // namespace gpujoin

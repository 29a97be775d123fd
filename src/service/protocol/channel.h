// Messages over a connected socket. Nothing here waits, throws or touches PostgreSQL: a backend
// waits by its latch, the service by poll().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "service/protocol/messages.h"

namespace gpujoin::service {

/// Descriptors that came with a message and were not taken yet.
struct Descriptors {
  int files[kMostDescriptors];
  int count = 0;
  int taken = 0;

  /// The next one, now the caller's; -1: there is none.
  int take() { return taken < count ? files[taken++] : -1; }
};

/// Closes those that nobody took.
void close_descriptors(Descriptors* descriptors);

enum class ChannelState {
  kDone,
  kWait,    ///< the socket has no room, or nothing yet
  kClosed,  ///< the other end is gone, or talks nonsense
};

/// Sends a message of `bytes`, whole or not at all, with copies of descriptors.
ChannelState send_message(int socket, const void* message, std::size_t bytes, const int* files,
                          int count);

/// Receives one message into a buffer of `room` bytes. kDone: it has as many bytes as its header
/// says, and the descriptors are the caller's.
ChannelState receive_message(int socket, void* buffer, std::size_t room, Descriptors* descriptors);

/// A message with its header, everything else 0.
template <class Message>
void start_message(Message* message) {
  __builtin_memset(static_cast<void*>(message), 0, sizeof *message);
  message->header = {Message::kKind, sizeof *message};
}

template <class Message>
ChannelState send_message(int socket, const Message& message, const int* files = nullptr,
                          int count = 0) {
  return send_message(socket, &message, message.header.bytes, files, count);
}

/// The received message where it is of this kind and size; else null.
template <class Message>
const Message* message_as(const void* buffer) {
  const Header* const header = static_cast<const Header*>(buffer);
  if (header->kind != Message::kKind || header->bytes < kLeastBytes<Message>) return nullptr;
  const auto* const message = static_cast<const Message*>(buffer);
  return header->bytes == sent_bytes(*message) ? message : nullptr;
}

/// Room for any message.
inline constexpr std::size_t kMostMessageBytes = std::max(sizeof(Search), sizeof(FoundRows));
static_assert(sizeof(OpenJoin) <= kMostMessageBytes && sizeof(Batch) <= kMostMessageBytes &&
              sizeof(FindTable) <= kMostMessageBytes && sizeof(ListedDevices) <= kMostMessageBytes);

/// Whether the process at the other end has connected, or listens, as the user that this one runs
/// as.
bool is_same_user(int socket);

/// The room of this build's structs, for Hello; and whether another's are the same.
void fill_hello(Hello* hello, std::uint32_t database, const char* folder, std::int32_t pid);
bool is_same_build(const Hello& hello);

}  // namespace gpujoin::service

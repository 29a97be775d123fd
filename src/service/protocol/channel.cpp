#include "service/protocol/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpujoin::service {
namespace {

/// Room for the descriptors of a message.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
};

bool is_wait(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == ENOBUFS; }

/// Takes the descriptors of a message.
void read_descriptors(msghdr* message, Descriptors* descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    descriptors->count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(descriptors->files, CMSG_DATA(part),
                static_cast<std::size_t>(descriptors->count) * sizeof(int));
  }
}

}  // namespace

void close_descriptors(Descriptors* descriptors) {
  for (int file = descriptors->take(); file >= 0; file = descriptors->take()) close(file);
}

ChannelState send_message(int socket, const void* message, std::size_t bytes, const int* files,
                          int count) {
  iovec part = {const_cast<void*>(message), bytes};
  msghdr packet = {};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  Control control = {};
  if (count > 0) {
    packet.msg_control = control.bytes;
    packet.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(count));
    cmsghdr* const header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(count));
    std::memcpy(CMSG_DATA(header), files, sizeof(int) * static_cast<std::size_t>(count));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(bytes)) return ChannelState::kDone;
  return sent < 0 && is_wait(errno) ? ChannelState::kWait : ChannelState::kClosed;
}

ChannelState receive_message(int socket, void* buffer, std::size_t room, Descriptors* descriptors) {
  *descriptors = {};
  iovec part = {buffer, room};
  Control control = {};
  msghdr packet = {};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  packet.msg_control = control.bytes;
  packet.msg_controllen = sizeof control.bytes;
  ssize_t received;
  do {
    received = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return is_wait(errno) ? ChannelState::kWait : ChannelState::kClosed;
  read_descriptors(&packet, descriptors);
  Header header = {};
  const auto bytes = static_cast<std::size_t>(received);
  if (bytes >= sizeof header) std::memcpy(&header, buffer, sizeof header);
  const bool whole = (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (whole && bytes >= sizeof header && header.bytes == bytes) return ChannelState::kDone;
  close_descriptors(descriptors);
  return ChannelState::kClosed;
}

bool is_same_user(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void fill_hello(Hello* hello, std::uint32_t database, const char* folder, std::int32_t pid) {
  start_message(hello);
  hello->magic = kMagic;
  hello->protocol_version = kProtocolVersion;
  hello->engine_abi_version = kEngineAbiVersion;
  hello->sizes = EngineSizes{};
  hello->database = database;
  hello->pid = pid;
  std::snprintf(hello->folder, sizeof hello->folder, "%s", folder);
}

bool is_same_build(const Hello& hello) {
  return hello.magic == kMagic && hello.protocol_version == kProtocolVersion &&
         hello.engine_abi_version == kEngineAbiVersion && hello.sizes == EngineSizes{};
}

}  // namespace gpujoin::service

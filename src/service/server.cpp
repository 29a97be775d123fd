#include "service/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "engine/worker_pool.h"
#include "service/failure.h"
#include "service/log.h"

namespace gpujoin::service {
namespace {

constexpr int kBacklog = 1024;

void check(bool holds, const char* what) {
  if (!holds)
    throw Failure{make_status(StatusCode::kUnavailable, nullptr, "could not %s: %s", what,
                              std::strerror(errno))};
}

}  // namespace

Descriptor listen_at(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  errno = ENAMETOOLONG;
  check(std::strlen(path) < sizeof address.sun_path, "make the socket");
  std::strcpy(address.sun_path, path);
  Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  check(listener.get() >= 0, "make the socket");
  const mode_t before = umask(077);
  const int bound = bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  umask(before);
  check(bound == 0, "bind the socket");
  check(listen(listener.get(), kBacklog) == 0, "listen on the socket");
  return listener;
}

Server::Server(Descriptor listener, FindEngine find_device)
    : service_(std::move(find_device)), listener_(std::move(listener)) {}

Server::~Server() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  for (Conversation* const conversation : conversations_) conversation->shut_down();
  ended_.wait(lock, [this] { return threads_ == 0; });
}

void Server::accept_clients() {
  for (;;) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) {
      // Whoever waits is still there, so asking again at once would keep a core busy.
      if (errno != EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    if (!is_same_user(socket.get())) {
      if (refusals_.is_due()) log_line("refused a client of another user");
      continue;
    }
    const Status status = begin_thread([this, file = socket.get()] { converse(file); });
    if (status.ok()) {
      socket.release();
      continue;
    }
    if (refusals_.is_due()) log_line("refused a client: %s", status.message);
    // The client asks again at once, and the next thread will hardly start sooner.
    socket = Descriptor(-1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return;
  }
}

/// Runs work() in a thread of its own, for which the server's end waits.
template <class Work>
Status Server::begin_thread(const Work& work) {
  // The thread is counted before it starts, so that nobody waits for fewer.
  {
    const std::lock_guard lock(mutex_);
    ++threads_;
  }
  const Status status = guarded([&]() -> Status {
    start_thread([this, work] {
      work();
      end_thread();
    }).detach();
    return {};
  });
  if (!status.ok()) end_thread();
  return status;
}

void Server::end_thread() {
  const std::lock_guard lock(mutex_);
  --threads_;
  ended_.notify_all();
}

/// A conversation, in its thread.
void Server::converse(int socket) {
  const Status status = guarded([&]() -> Status {
    Conversation conversation(service_, Descriptor(socket));
    std::list<Conversation*>::iterator place;
    {
      const std::lock_guard lock(mutex_);
      place = conversations_.insert(conversations_.end(), &conversation);
      if (closing_) conversation.shut_down();
    }
    conversation.run();
    const std::lock_guard lock(mutex_);
    conversations_.erase(place);
    return {};
  });
  if (!status.ok() && refusals_.is_due()) log_line("refused a client: %s", status.message);
}

void Server::configure(const Configure& limits) {
  service_.threads = limits.threads;
  service_.admission.configure(limits.threads, limits.join_memory);
  // Half of the memory is for rows, half for what engines make of them.
  service_.tables.configure(limits.host_memory / 2);
  service_.engines.keep(limits.host_memory - limits.host_memory / 2, limits.device_memory);
}

void Server::drop_removed() {
  // What engines keep of a table is dropped when the device is free, for which clients cannot wait.
  begin_thread([this] {
    guarded([this]() -> Status {
      service_.tables.drop_removed();
      service_.counts.drop_removed();
      return {};
    });
  });
}

bool Server::is_to_be_replaced() {
  if (!service_.engines.is_spent()) return false;
  listener_ = Descriptor(-1);
  const std::lock_guard lock(mutex_);
  return threads_ == 0;
}

}  // namespace gpujoin::service

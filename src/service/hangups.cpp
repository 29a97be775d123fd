#include "service/hangups.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

#include "engine/worker_pool.h"

namespace gpujoin::service {
namespace {

void check(bool holds) {
  if (!holds) throw std::system_error(errno, std::generic_category());
}

}  // namespace

Hangups::Hangups() : poll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC)) {
  check(poll_.get() >= 0 && wake_.get() >= 0);
  epoll_event event = {EPOLLIN, {.u64 = 0}};
  check(epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  thread_ = start_thread([this] { run(); });
}

Hangups::~Hangups() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::uint64_t Hangups::watch(int socket, Interrupt& interrupt) {
  const std::lock_guard lock(mutex_);
  const auto place = watched_.emplace(++last_number_, &interrupt).first;
  epoll_event event = {EPOLLRDHUP | EPOLLONESHOT, {.u64 = last_number_}};
  if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, socket, &event) == 0) return last_number_;
  const int code = errno;
  watched_.erase(place);
  throw std::system_error(code, std::generic_category());
}

void Hangups::forget(int socket, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  watched_.erase(number);
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket, nullptr);
}

void Hangups::run() {
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(poll_.get(), events, 64, -1);
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) return;
      const auto found = watched_.find(events[i].data.u64);
      if (found != watched_.end()) found->second->cancel();
    }
  }
}

}  // namespace gpujoin::service

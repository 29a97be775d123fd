// The program gpujoin_service, started with the name of its socket: joins for all sessions of a
// PostgreSQL server. Its standard input is a socket of the supervisor, its standard error the
// server's log.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "engine/load_engine.h"
#include "service/clock.h"
#include "service/failure.h"
#include "service/log.h"
#include "service/server.h"

namespace gpujoin::service {
namespace {

constexpr int kReplaceMe = 3;  // exit status: the device is out of use for this process
constexpr const char* kCountsFile = "pg_stat/gpujoin.stat";  // in the server's data directory

/// All memory is the system's to free, and the socket the supervisor's: nothing is left to do.
[[noreturn]] void end(int status) { _exit(status); }

void end_on_signal(int) { end(0); }

/// The same, but that the counts of joins are kept.
[[noreturn]] void leave(Server& server, int status) {
  server.save_counts();
  end(status);
}

volatile sig_atomic_t is_to_leave = 0;
void leave_on_signal(int) { is_to_leave = 1; }

/// Signals as this program wants them, whatever the process had before. The server signals whole
/// groups of processes: what is meant for queries is not for this one.
void set_signals() {
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  for (const int number : {SIGPIPE, SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGALRM})
    sigaction(number, &action, nullptr);
  action.sa_handler = SIG_DFL;
  for (const int number : {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL})
    sigaction(number, &action, nullptr);
  action.sa_handler = end_on_signal;
  sigaction(SIGQUIT, &action, nullptr);
  action.sa_handler = leave_on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The server's files and sockets are not for this program.
void close_inherited() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3, ~0u, 0) == 0) return;
#endif
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (int file = 3; file < static_cast<int>(limit.rlim_cur); ++file) close(file);
}

/// Each conversation has about ten descriptors.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Takes what the supervisor says; ends with it.
void take_limits(Server& server) {
  alignas(64) unsigned char message[kMostMessageBytes];
  Descriptors descriptors;
  for (;;) {
    const ChannelState state = receive_message(STDIN_FILENO, message, sizeof message, &descriptors);
    close_descriptors(&descriptors);
    if (state == ChannelState::kWait) return;
    const Configure* const limits =
        state == ChannelState::kDone ? message_as<Configure>(message) : nullptr;
    if (limits == nullptr) leave(server, 0);  // the supervisor is gone
    server.configure(*limits);
  }
}

[[noreturn]] void serve(const char* path, const std::string& cuda_engine) {
  Descriptor listener = listen_at(path);
  Server server(std::move(listener), [cuda_engine](const EngineTable** engine) {
    return load_engine(cuda_engine.c_str(), "cuda", engine);
  });
  server.keep_counts(kCountsFile);
  std::int64_t saved_us = now_us(), searched_us = saved_us;
  for (;;) {
    constexpr int kPollMs = 1000, kEndMs = 20;
    constexpr std::int64_t kSaveUs = 1000000, kSearchUs = 10000000;
    pollfd files[] = {{server.listener(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(files, 2, files[0].fd < 0 ? kEndMs : kPollMs) < 0) {
      if (errno != EINTR) leave(server, 1);
      files[0].revents = files[1].revents = 0;
    }
    if (is_to_leave != 0) leave(server, 0);
    if (now_us() - saved_us >= kSaveUs) {
      server.save_counts();
      saved_us = now_us();
    }
    if (now_us() - searched_us >= kSearchUs) {
      server.drop_removed();
      searched_us = now_us();
    }
    if (files[1].revents != 0) take_limits(server);
    if (server.is_to_be_replaced()) leave(server, kReplaceMe);
    if (files[0].revents != 0 && server.listener() >= 0) server.accept_clients();
  }
}

/// The device's engine lies beside this program where no other one is named.
std::string default_engine() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return program.substr(0, program.rfind('/') + 1) + "gpujoin_cuda.so";
}

}  // namespace
}  // namespace gpujoin::service

int main(int count, char** words) {
  using namespace gpujoin::service;
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: gpujoin_service SOCKET [CUDA_ENGINE]\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Threads that wait for a device sleep for some microseconds; by default Linux adds 50 to that.
  prctl(PR_SET_TIMERSLACK, 1000);
  set_signals();
  close_inherited();
  raise_descriptor_limit();
  const gpujoin::Status status = guarded(
      [&]() -> gpujoin::Status { serve(words[1], count == 3 ? words[2] : default_engine()); });
  log_line("cannot start: %s", status.message);
  return 1;
}

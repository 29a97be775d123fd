#include "pg/service/service_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "pg/engine_loader.h"
#include "pg/settings.h"
#include "service/protocol/channel.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// The child, from fork() on: nothing of PostgreSQL runs in it, and the program itself puts signals
/// in order, closes the server's files, and sees to it that it ends with its parent. A session of
/// its own keeps signals away that are meant for the supervisor's group. That it may be killed for
/// want of memory, as any backend may, was settled when the postmaster started the supervisor.
[[noreturn]] void run_program(const char* path, int input) {
  setsid();
  if (dup2(input, STDIN_FILENO) == STDIN_FILENO)
    execl(path, kServiceProgram, service::kSocketName, static_cast<char*>(nullptr));
  _exit(127);
}

void forget(ServiceProcess* process) {
  close(process->socket);
  *process = {};
}

}  // namespace

void start_service_process(ServiceProcess* process) {
  char path[MAXPGPATH];
  find_beside(kServiceProgram, path, sizeof path);
  unlink(service::kSocketName);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    ereport(ERROR, (errcode_for_socket_access(), errmsg("could not make a pair of sockets: %m")));
  fflush(nullptr);  // what is buffered is written once
  const pid_t pid = fork();
  if (pid == 0) run_program(path, sockets[1]);
  const int code = errno;
  close(sockets[1]);
  if (pid < 0) {
    close(sockets[0]);
    errno = code;
    ereport(ERROR, (errmsg("could not start %s: %m", kServiceProgram)));
  }
  *process = {pid, sockets[0]};
  configure_service_process(process);
}

void configure_service_process(const ServiceProcess* process) {
  if (process->pid == 0) return;
  service::Configure message;
  service::start_message(&message);
  message.threads = service_threads();
  message.join_memory = service_join_memory_bytes();
  message.host_memory = table_memory_bytes();
  message.device_memory = device_table_memory_bytes();
  if (send_message(process->socket, message) == service::ChannelState::kWait)
    ereport(LOG, (errmsg("%s does not read its settings", kServiceProgram)));
}

void end_service_process(ServiceProcess* process) {
  constexpr int kPatienceMs = 2000, kStepMs = 10;
  if (process->pid == 0) return;
  kill(process->pid, SIGTERM);
  int waited = 0, status;
  while (waitpid(process->pid, &status, WNOHANG) == 0) {
    if (waited == kPatienceMs) kill(process->pid, SIGKILL);
    pg_usleep(kStepMs * 1000L);
    waited += kStepMs;
  }
  forget(process);
}

bool has_service_ended(ServiceProcess* process, int* status) {
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  service::Descriptors descriptors;
  const service::ChannelState state =
      receive_message(process->socket, buffer, sizeof buffer, &descriptors);
  close_descriptors(&descriptors);
  if (state != service::ChannelState::kClosed) return false;
  // Its files are closed a moment before it can be waited for.
  constexpr int kPatience = 100;
  for (int i = 0; waitpid(process->pid, status, WNOHANG) == 0; ++i) {
    if (i == kPatience) kill(process->pid, SIGKILL);
    pg_usleep(1000);
  }
  forget(process);
  return true;
}

}  // namespace gpujoin

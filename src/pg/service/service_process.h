// The program that serves all sessions, as the child of its supervisor.
#pragma once

#include <sys/types.h>

#include "pg/compat.h"

namespace gpujoin {

struct ServiceProcess {
  pid_t pid = 0;    ///< 0: it does not run
  int socket = -1;  ///< its standard input
};

inline constexpr const char* kServiceProgram = "gpujoin_service";

/// Starts the program, which ends when this process does. Raises an error where the system has no
/// descriptor or process for it.
void start_service_process(ServiceProcess* process);

/// Sends it the settings as they are.
void configure_service_process(const ServiceProcess* process);

/// Ends it: asked first, and killed after two seconds.
void end_service_process(ServiceProcess* process);

/// Whether it has ended, which closes its standard input, and *status as of waitpid(). A program
/// that lives on without it is killed.
bool has_service_ended(ServiceProcess* process, int* status);

}  // namespace gpujoin

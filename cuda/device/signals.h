// Signals and the driver's threads. The driver starts threads of its own when a process first uses
// it; they inherit the signal mask of the thread that calls, and must see none of the server's
// signals. So signals are blocked during calls of the engine, and let in where it waits.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace gpujoin::cuda {

/// Blocks all signals while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers_mask());
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &callers_mask(), nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  /// Lets signals reach their handlers, and waits up to that long for one.
  static void let_in(long nanoseconds) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, &callers_mask(), &blocked);
    if (nanoseconds > 0) {
      const timespec pause{0, nanoseconds};
      nanosleep(&pause, nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  }

 private:
  static sigset_t& callers_mask() {
    static thread_local sigset_t mask;
    return mask;
  }
};

}  // namespace gpujoin::cuda

// How a call of the engine waits for the device.
#pragma once

#include "cuda/device/memory.h"
#include "cuda/device/signals.h"
#include "engine/request/request.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// Waits some milliseconds for the device. False: not done yet, or an interrupt came up.
inline bool wait(const Event& event) {
  const Stopwatch watch;
  for (unsigned looks = 0;; ++looks) {
    if (event.done()) return true;
    if (watch.milliseconds() > 5) return false;
    if (looks < 200) continue;  // a few ten microseconds: most batches come that fast
    SignalsBlocked::let_in(20000);
  }
}

/// Lets signals in, for work may be so short that nothing waits for it, and returns whether they
/// raised the flag, which may be null.
inline bool interrupted(const volatile int* interrupt) {
  SignalsBlocked::let_in(0);
  return is_raised(interrupt);
}

}  // namespace gpujoin::cuda

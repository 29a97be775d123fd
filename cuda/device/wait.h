// How a call of the engine waits for devices.
#pragma once

#include "cuda/device/signals.h"
#include "engine/request/result.h"
#include "engine/request/status.h"

namespace gpujoin::cuda {

/// What a join that never waits for its device has come to.
enum class Progress {
  kNone,   ///< the device is not done yet with what comes before
  kSome,   ///< there may be more to do at once
  kBatch,  ///< the next batch is there
  kEnd,
};

/// The waiting of one call. Between two looks at the device signals are let in.
class Wait {
 public:
  /// The flag, which may be null, is the request's.
  explicit Wait(const volatile int* interrupt) : interrupt_(interrupt) {}

  /// Called after a look; `idle`: nothing was ready. Waits a little where nothing has been for a
  /// while, and returns whether signals raised the flag.
  bool interrupted(bool idle) {
    idle_looks_ = idle ? idle_looks_ + 1 : 0;
    SignalsBlocked::let_in(idle_looks_ < kLooks ? 0 : kPauseNanoseconds);
    return is_raised(interrupt_);
  }

 private:
  static constexpr unsigned kLooks = 100;  ///< a few ten microseconds: most batches come that fast
  static constexpr long kPauseNanoseconds = 20000;

  const volatile int* interrupt_;
  unsigned idle_looks_ = 0;
};

/// A join's next_batch(): calls advance(), which returns its Progress, until there is a batch or no
/// more. The flag, which may be null, is the request's.
template <class Advance>
Status wait_for_batch(const volatile int* interrupt, const Advance& advance) {
  Wait wait(interrupt);
  for (;;) {
    const Progress progress = advance();
    if (progress == Progress::kBatch) return {};
    if (progress == Progress::kEnd) return {StatusCode::kEnd};
    if (wait.interrupted(progress == Progress::kNone)) return {StatusCode::kInterrupted};
  }
}

}  // namespace gpujoin::cuda

// Whose turn it is on the device: its engine is called by one thread at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

#include "service/interrupt.h"

namespace gpujoin::service {

/// A join's account with the device. For one thread; the turn may be held between calls.
class DeviceUse {
 public:
  explicit DeviceUse(Interrupt& interrupt) : interrupt_(interrupt) {}
  DeviceUse(const DeviceUse&) = delete;

 private:
  friend class Turns;
  using Clock = std::chrono::steady_clock;

  Interrupt& interrupt_;
  bool holds_ = false;
  Clock::duration used_{0};
  Clock::time_point since_;  ///< it waits, or holds
  std::condition_variable called_;
};

/// Who has used the device least goes first, so that a small join does not wait for the end of a
/// large one; who has waited long counts as having used less, so that a large one comes forward.
/// Where others wait, the one that holds the turn is asked to yield after kSlice.
class Turns {
 public:
  static constexpr std::chrono::milliseconds kSlice{10};

  /// Waits for the turn, unless it is held already. False: cancelled meanwhile.
  bool take(DeviceUse& use) { return take(use, true); }
  /// The same for the end of a join, which a cancel does not keep from its turn.
  void take_to_close(DeviceUse& use) { take(use, false); }
  /// Gives it to the next one, where it is held.
  void give_back(DeviceUse& use);

 private:
  bool take(DeviceUse& use, bool may_cancel);
  void call_next();

  std::mutex mutex_;
  DeviceUse* holder_ = nullptr;
  DeviceUse* called_ = nullptr;  ///< the one that is next, where nobody holds it
  std::list<DeviceUse*> waiting_;
};

}  // namespace gpujoin::service

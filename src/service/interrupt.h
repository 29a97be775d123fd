// What stops or pauses the work of a conversation, from other threads.
#pragma once

#include <atomic>

namespace gpujoin::service {

class Interrupt {
 public:
  /// For Resources::interrupt.
  const volatile int* flag() const { return &flag_; }

  /// The client is gone: for good.
  void cancel() {
    cancelled_.store(true);
    set_flag(1);
  }
  bool cancelled() const { return cancelled_.load(); }

  /// Somebody else waits for the device.
  void ask_to_yield() {
    yields_.store(true);
    set_flag(1);
  }
  bool is_to_yield() const { return yields_.load(); }
  /// The device was given to others, and taken again.
  void go_on() {
    yields_.store(false);
    set_flag(0);
    // A cancel that came before the flag went down would be lost. All threads see these stores and
    // loads in one order: who cancels after this look raises the flag after it went down.
    if (cancelled() || is_to_yield()) set_flag(1);
  }

 private:
  void set_flag(int value) { std::atomic_ref(flag_).store(value); }

  int flag_ = 0;  ///< engines read it without a lock, see is_raised()
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> yields_{false};
};

/// How often those that wait look whether they were cancelled.
inline constexpr int kPollMs = 50;

}  // namespace gpujoin::service

// Which joins are at work at a time: on the CPU so many of about one size, and as many as memory
// allows. A join that waits for its client is not at work.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

#include "service/interrupt.h"

namespace gpujoin::service {

/// What a join is expected to take. Joins of one class are within a factor of 4.
struct JoinSize {
  int size_class;          ///< 0: the smallest ones .. kSizeClasses - 1
  std::uint64_t memory;    ///< bytes of the host
  std::uint64_t kept = 0;  ///< of these, what the join holds while it waits for its client
};

inline constexpr int kSizeClasses = 10;

/// The class of a join that takes so long alone.
int size_class_of(double ms);

/// How much less than others a join's threads get of the processors, as a nice value. It holds
/// towards everything on the machine, where a join is to be no slower than in its session: so only
/// joins of more than a second are nice, by half.
inline int niceness_of(int size_class) {
  constexpr int kLongClass = 4, kNice = 3;
  return size_class < kLongClass ? 0 : kNice;
}

class Admission {
 public:
  /// Threads that joins on the CPU have, and bytes that joins may take together; 0: no limit.
  void configure(std::uint32_t threads, std::uint64_t memory);

  /// Waits for a place on the CPU. A join waits for none that is much larger than it: classes do
  /// not wait for each other, and the system shares the processors between them. False: cancelled.
  bool take_place(const JoinSize& size, Interrupt& interrupt);
  void give_place(const JoinSize& size);

  /// Waits until there is memory. A join that takes little is always let in, and so is any join
  /// while no other is at work. False: cancelled.
  bool take_memory(const JoinSize& size, Interrupt& interrupt);
  /// The join waits for its client: gives back all but what is kept.
  void give_memory(const JoinSize& size);
  /// The join goes on.
  void retake_memory(const JoinSize& size);
  /// The join has ended, after give_memory().
  void give_kept(const JoinSize& size);

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// Waits in a queue until it is the first and fits(). False: cancelled.
  template <class Fits>
  bool wait(Lock& lock, std::list<Interrupt*>& queue, Interrupt& interrupt, const Fits& fits);
  std::uint32_t places(int size_class) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t threads_ = 1;
  std::uint64_t memory_ = 0;
  std::uint64_t used_ = 0;     ///< of the memory
  std::uint32_t working_ = 0;  ///< joins between take_memory() or retake_memory() and give_memory()
  std::array<std::uint32_t, kSizeClasses> running_{};
  std::array<std::list<Interrupt*>, kSizeClasses> queues_;
  std::list<Interrupt*> memory_queue_;
};

}  // namespace gpujoin::service

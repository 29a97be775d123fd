#include "service/admission.h"

#include <algorithm>
#include <chrono>

namespace gpujoin::service {
namespace {

constexpr double kSmallestMs = 16;          // up to here joins are of class 0
constexpr std::uint32_t kLargeAtATime = 2;  // of each class: one may wait for memory or its threads
constexpr std::uint64_t kLittle = 64;       // memory of so small a part is always given

}  // namespace

int size_class_of(double ms) {
  int size_class = 0;
  for (double bound = kSmallestMs; ms > bound && size_class < kSizeClasses - 1; bound *= 4)
    ++size_class;
  return size_class;
}

void Admission::configure(std::uint32_t threads, std::uint64_t memory) {
  const std::lock_guard lock(mutex_);
  threads_ = std::max(threads, 1u);
  memory_ = memory;
  changed_.notify_all();
}

std::uint32_t Admission::places(int size_class) const {
  return size_class == 0 ? std::max(4u, threads_) : kLargeAtATime;
}

template <class Fits>
bool Admission::wait(Lock& lock, std::list<Interrupt*>& queue, Interrupt& interrupt,
                     const Fits& fits) {
  const auto place = queue.insert(queue.end(), &interrupt);
  while (queue.begin() != place || !fits()) {
    if (interrupt.cancelled()) break;
    changed_.wait_for(lock, std::chrono::milliseconds(kPollMs));
  }
  queue.erase(place);
  changed_.notify_all();  // the next one is the first now
  return !interrupt.cancelled();
}

bool Admission::take_place(const JoinSize& size, Interrupt& interrupt) {
  Lock lock(mutex_);
  std::uint32_t& running = running_[static_cast<std::size_t>(size.size_class)];
  const auto fits = [&] { return running < places(size.size_class); };
  if (!wait(lock, queues_[static_cast<std::size_t>(size.size_class)], interrupt, fits))
    return false;
  ++running;
  return true;
}

void Admission::give_place(const JoinSize& size) {
  const std::lock_guard lock(mutex_);
  --running_[static_cast<std::size_t>(size.size_class)];
  changed_.notify_all();
}

bool Admission::take_memory(const JoinSize& size, Interrupt& interrupt) {
  Lock lock(mutex_);
  const bool waits = memory_ != 0 && size.memory > memory_ / kLittle;
  // Joins of clients that never go on may keep all memory. They must not stop the others.
  const auto fits = [&] { return memory_ == 0 || working_ == 0 || used_ + size.memory <= memory_; };
  if (waits && !wait(lock, memory_queue_, interrupt, fits)) return false;
  used_ += size.memory;
  ++working_;
  return true;
}

void Admission::give_memory(const JoinSize& size) {
  const std::lock_guard lock(mutex_);
  used_ -= size.memory - size.kept;
  --working_;
  changed_.notify_all();
}

void Admission::retake_memory(const JoinSize& size) {
  const std::lock_guard lock(mutex_);
  used_ += size.memory - size.kept;
  ++working_;
}

void Admission::give_kept(const JoinSize& size) {
  const std::lock_guard lock(mutex_);
  used_ -= size.kept;
  changed_.notify_all();
}

}  // namespace gpujoin::service

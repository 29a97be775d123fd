// Worker threads that see no signals and never touch PostgreSQL, and a loop that they share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gpujoin {

/// Starts a thread with all signals blocked, so that the process's signals go to the caller's
/// thread. Throws std::system_error.
std::thread start_thread(std::function<void()> body);

/// Thrown inside the engine to leave work that is no longer wanted.
struct Stopped {};

class WorkerPool {
 public:
  using Task = std::function<void(std::size_t index, unsigned worker)>;

  /// `threads` workers in all: the thread that calls parallel_for is worker 0. When the system has
  /// no more threads to give, fewer are used.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();

  unsigned size() const { return static_cast<unsigned>(helpers_.size()) + 1; }

  /// Runs task(index, worker) once for each index below `count` and returns when all have ended.
  /// Rethrows the first exception of a task; throws Stopped when stop() was called. One call at a
  /// time, not nested.
  void parallel_for(std::size_t count, const Task& task);

  /// Makes parallel_for leave after the tasks that are running. From any thread, any number of
  /// times.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void throw_if_stopped() const {
    if (stopped()) throw Stopped{};
  }

 private:
  void help(unsigned worker);
  void take_tasks(unsigned worker);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const Task* task_ = nullptr;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> next_{0};
  unsigned round_ = 0;
  unsigned busy_ = 0;
  bool closing_ = false;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace gpujoin

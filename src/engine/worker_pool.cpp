#include "engine/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace gpujoin {

std::thread start_thread(std::function<void()> body) {
  struct SignalsBlocked {
    sigset_t before;
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } blocked;  // a new thread inherits the mask of its creator
  return std::thread(std::move(body));
}

WorkerPool::WorkerPool(unsigned threads) {
  helpers_.reserve(threads > 0 ? threads - 1 : 0);
  for (unsigned worker = 1; worker < threads; ++worker) {
    try {
      helpers_.push_back(start_thread([this, worker] { help(worker); }));
    } catch (const std::exception&) {
      break;  // fewer threads are slower, not wrong
    }
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  start_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void WorkerPool::parallel_for(std::size_t count, const Task& task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    count_ = count;
    next_ = 0;
    if (count > 1) {  // a single task is done before a helper is awake
      busy_ = static_cast<unsigned>(helpers_.size());
      ++round_;
    }
  }
  if (count > 1) start_.notify_all();
  take_tasks(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  task_ = nullptr;
  failed_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  throw_if_stopped();
}

void WorkerPool::help(unsigned worker) {
  unsigned seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return closing_ || round_ != seen; });
      if (closing_) return;
      seen = round_;
    }
    take_tasks(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void WorkerPool::take_tasks(unsigned worker) {
  try {
    while (!failed_.load(std::memory_order_relaxed) && !stopped()) {
      const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= count_.load(std::memory_order_relaxed)) return;
      (*task_)(index, worker);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    failed_ = true;
  }
}

}  // namespace gpujoin

#include "service/turns.h"

#include <algorithm>

namespace gpujoin::service {
namespace {

/// Beyond this, what a join has used counts no more: so long it waits at most behind smaller ones.
constexpr std::chrono::milliseconds kMostUsed{100};

}  // namespace

bool Turns::take(DeviceUse& use, bool may_cancel) {
  std::unique_lock lock(mutex_);
  if (use.holds_) return true;
  use.since_ = DeviceUse::Clock::now();
  const auto place = waiting_.insert(waiting_.end(), &use);
  if (holder_ == nullptr && called_ == nullptr) call_next();
  while (called_ != &use) {
    if (may_cancel && use.interrupt_.cancelled()) {
      waiting_.erase(place);
      return false;
    }
    auto until = DeviceUse::Clock::now() + std::chrono::milliseconds(kPollMs);
    if (holder_ != nullptr) {
      const auto slice_end = holder_->since_ + kSlice;
      if (slice_end <= DeviceUse::Clock::now())
        holder_->interrupt_.ask_to_yield();
      else
        until = std::min(until, slice_end);
    }
    use.called_.wait_until(lock, until);
  }
  waiting_.erase(place);
  called_ = nullptr;
  holder_ = &use;
  use.holds_ = true;
  use.since_ = DeviceUse::Clock::now();
  use.interrupt_.go_on();
  return true;
}

void Turns::give_back(DeviceUse& use) {
  const std::lock_guard lock(mutex_);
  if (!use.holds_) return;
  use.holds_ = false;
  use.used_ += DeviceUse::Clock::now() - use.since_;
  holder_ = nullptr;
  call_next();
}

void Turns::call_next() {
  if (waiting_.empty()) return;
  const auto now = DeviceUse::Clock::now();
  const auto owed = [now](const DeviceUse* use) {
    return std::min<DeviceUse::Clock::duration>(use->used_, kMostUsed) - (now - use->since_);
  };
  called_ =
      *std::min_element(waiting_.begin(), waiting_.end(),
                        [&](const DeviceUse* a, const DeviceUse* b) { return owed(a) < owed(b); });
  called_->called_.notify_one();
}

}  // namespace gpujoin::service

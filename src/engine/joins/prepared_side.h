// What an engine makes of the rows of one side before it joins them: points where the engine wants
// them, and their index. Joins borrow it, several at a time; none changes it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace gpujoin {

/// Memory on the host and on a device.
struct SideBytes {
  std::uint64_t host = 0;
  std::uint64_t device = 0;

  SideBytes& operator+=(const SideBytes& other) {
    host += other.host;
    device += other.device;
    return *this;
  }
};

/// Each engine has its own. It holds what its memory is counted on.
struct PreparedSide {
  virtual ~PreparedSide() = default;
  /// By which it is prepared; the side keeps the plan.
  virtual const void* plan() const = 0;
  /// Its own. From any thread.
  virtual SideBytes bytes() const = 0;
  /// What it holds besides, which other sides may hold, too.
  virtual const PreparedSide* rests_on() const { return nullptr; }
};

/// Where a join of certain rows leaves what it has prepared, and where other joins of the same
/// rows, by the same plan, find it. From any thread.
class SideSlot {
 public:
  /// The right to prepare the side. A join that can wait while another one prepares it takes a turn
  /// before it looks into the slot.
  class Turn {
   public:
    /// Waits; calls poll() now and then, and throws what it throws.
    template <class Poll>
    Turn(SideSlot& slot, const Poll& poll) : slot_(slot) {
      constexpr std::chrono::milliseconds kBetweenPolls(5);
      std::unique_lock lock(slot.mutex_);
      while (slot.taken_) {
        slot.free_.wait_for(lock, kBetweenPolls);
        lock.unlock();
        poll();
        lock.lock();
      }
      slot.taken_ = true;
    }
    ~Turn() {
      const std::lock_guard lock(slot_.mutex_);
      slot_.taken_ = false;
      slot_.free_.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SideSlot& slot_;
  };

  /// The side by this plan; null: there is none.
  std::shared_ptr<PreparedSide> find(const void* plan) const {
    const std::lock_guard lock(mutex_);
    return side_ && side_->plan() == plan ? side_ : nullptr;
  }
  /// Leaves a side, or null, in the place of the one there.
  void put(std::shared_ptr<PreparedSide> side) {
    const std::lock_guard lock(mutex_);
    side_.swap(side);  // the other one goes after the lock
  }
  /// Calls look() with the side, by whichever plan, or null. The side stays there until look()
  /// returns: it is destroyed by the join that replaces it, never by the caller, whose thread may
  /// have no device.
  template <class Look>
  void look_at_side(const Look& look) const {
    const std::lock_guard lock(mutex_);
    look(side_.get());
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
  std::shared_ptr<PreparedSide> side_;
};

/// The side by this plan: from its slot, or what make() returns, which is left there. Without a
/// slot it is made. Waits while another join prepares it, and calls poll() meanwhile. Throws what
/// both throw.
template <class Side, class Poll, class Make>
std::shared_ptr<Side> take_side(SideSlot* slot, const void* plan, const Poll& poll,
                                const Make& make) {
  if (slot == nullptr) return make();
  const SideSlot::Turn turn(*slot, poll);
  if (auto side = slot->find(plan)) return std::static_pointer_cast<Side>(std::move(side));
  slot->put(nullptr);  // memory for two there may not be
  std::shared_ptr<Side> side = make();
  slot->put(side);
  return side;
}

}  // namespace gpujoin

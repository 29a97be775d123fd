// The engines of the service: the CPU's, which is linked in, and a device's, which is opened and
// started in the background.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/engine.h"
#include "service/protocol/messages.h"
#include "service/turns.h"

namespace gpujoin::service {

/// How the device's engine is found: sets *engine, or returns why there is none.
using FindEngine = std::function<Status(const EngineTable** engine)>;

class Engines {
 public:
  /// Starts the device in the background. Throws std::system_error.
  explicit Engines(FindEngine find_device);
  ~Engines();
  Engines(const Engines&) = delete;

  const EngineTable& cpu() const { return *cpu_engine(); }
  DeviceState device_state(Status* reason = nullptr) const;
  /// Waits until the device has started, or not. False: cancelled.
  bool wait_for_start(const Interrupt& interrupt) const;
  /// The device's engine, in the state kReady. It is called by who holds the turn.
  const EngineTable& device() const { return *device_; }
  Turns& turns() { return turns_; }

  /// Looks whether the device still works after it has failed, with the turn held.
  void note_failure();
  /// Whether this process cannot use a device any more that another one might.
  bool is_spent() const;

  // EngineTable's functions of these names, of both engines. The first two wait for their turn.
  void keep(std::uint64_t host_bytes, std::uint64_t device_bytes);
  void forget(std::uint64_t identity);
  void kept(std::uint64_t identity, std::uint64_t* host_bytes, std::uint64_t* device_bytes);
  void memory(DeviceMemory* devices, std::uint32_t capacity);

 private:
  void start(const FindEngine& find_device);
  void set_limits();
  template <class Call>
  void on_device(const Call& call);

  Turns turns_;
  const EngineTable* device_ = nullptr;
  mutable std::mutex mutex_;  ///< guards what follows
  mutable std::condition_variable started_;
  DeviceState state_ = DeviceState::kStarting;
  Status reason_;
  std::uint64_t host_bytes_ = 0, device_bytes_ = 0;  ///< that engines may keep
  std::thread starter_;
};

}  // namespace gpujoin::service

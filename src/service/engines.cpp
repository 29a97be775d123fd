#include "service/engines.h"

#include <algorithm>
#include <chrono>

#include "engine/worker_pool.h"
#include "service/failure.h"
#include "service/log.h"

namespace gpujoin::service {
namespace {

/// A join of a few points: the device's context is there after it, with all that was measured.
Status try_join(const EngineTable& engine) {
  constexpr int kRows = 256;
  float points[kRows][2];
  for (int i = 0; i < kRows; ++i) points[i][0] = points[i][1] = static_cast<float>(i);
  const Dataset data = {points, nullptr, kRows, 2, ScalarType::kFloat32};
  const JoinRequest request(Sides::one(data, PairSelection::kAll), PointsWithin{Metric::kL2, 1.5},
                            Output::pairs());
  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  ResultBatch batch;
  while (status.ok() || status.code == StatusCode::kInterrupted)
    status = engine.next_batch(join, &batch);
  if (join != nullptr) engine.close(join);
  return status.code == StatusCode::kEnd ? Status{} : status;
}

}  // namespace

Engines::Engines(FindEngine find_device)
    : starter_(start_thread([this, find = std::move(find_device)] { start(find); })) {}

Engines::~Engines() { starter_.join(); }

void Engines::start(const FindEngine& find_device) {
  const EngineTable* engine = nullptr;
  DeviceInfo info = {};
  const Status status = guarded([&]() -> Status {
    std::uint32_t count = 0;
    if (const Status found = find_device(&engine); !found.ok()) return found;
    if (const Status probed = engine->probe(&info, 1, &count); !probed.ok()) return probed;
    return try_join(*engine);
  });
  if (status.ok())
    log_line("joins run on the device %s, too", info.name);
  else
    log_line("joins run on the CPU: %s", status.message);
  const std::lock_guard lock(mutex_);
  if (status.ok()) device_ = engine;
  state_ = status.ok() ? DeviceState::kReady : DeviceState::kUnavailable;
  reason_ = status;
  set_limits();  // nobody else calls the device before this lock goes
  started_.notify_all();
}

DeviceState Engines::device_state(Status* reason) const {
  const std::lock_guard lock(mutex_);
  if (reason != nullptr) *reason = reason_;
  return state_;
}

bool Engines::wait_for_start(const Interrupt& interrupt) const {
  std::unique_lock lock(mutex_);
  while (state_ == DeviceState::kStarting && !interrupt.cancelled())
    started_.wait_for(lock, std::chrono::milliseconds(kPollMs));
  return !interrupt.cancelled();
}

void Engines::note_failure() {
  const Status status = try_join(*device_);
  if (status.ok()) return;
  log_line("the device is out of use: %s", status.message);
  const std::lock_guard lock(mutex_);
  state_ = DeviceState::kUnavailable;
  reason_ = status;
}

bool Engines::is_spent() const {
  const std::lock_guard lock(mutex_);
  return state_ == DeviceState::kUnavailable && device_ != nullptr;
}

template <class Call>
void Engines::on_device(const Call& call) {
  if (device_state() != DeviceState::kReady) return;
  Interrupt none;
  DeviceUse use(none);
  turns_.take_to_close(use);
  call();
  turns_.give_back(use);
}

/// Half of the host's memory is for what the device has there, where there is one.
void Engines::set_limits() {
  const bool has_device = state_ == DeviceState::kReady;
  const std::uint64_t of_device = has_device ? host_bytes_ / 2 : 0;
  cpu().keep(host_bytes_ - of_device, 0);
  if (has_device) device_->keep(of_device, device_bytes_);
}

void Engines::keep(std::uint64_t host_bytes, std::uint64_t device_bytes) {
  {
    const std::lock_guard lock(mutex_);
    host_bytes_ = host_bytes;
    device_bytes_ = device_bytes;
    if (state_ != DeviceState::kReady) set_limits();
  }
  on_device([&] {
    const std::lock_guard lock(mutex_);
    set_limits();
  });
}

void Engines::forget(std::uint64_t identity) {
  cpu().forget(identity);
  on_device([&] { device().forget(identity); });
}

void Engines::kept(std::uint64_t identity, std::uint64_t* host_bytes, std::uint64_t* device_bytes) {
  cpu().kept(identity, host_bytes, device_bytes);
  // It may be called while others are.
  if (device_state() == DeviceState::kReady) device().kept(identity, host_bytes, device_bytes);
}

void Engines::memory(DeviceMemory* devices, std::uint32_t capacity) {
  std::fill_n(devices, capacity, DeviceMemory{});
  if (device_state() == DeviceState::kReady) device().memory(devices, capacity);
}

}  // namespace gpujoin::service

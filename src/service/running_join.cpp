#include "service/running_join.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "engine/strategy/choose_strategy.h"
#include "service/failure.h"

namespace gpujoin::service {
namespace {

constexpr double kDeviceJoinMs = 2;     // what the smallest join takes on a running device
constexpr double kDeviceStartMs = 350;  // starting one; measured on an H200: 345

constexpr std::uint32_t kWatchedMs = 200;  // how old what watch() says may be

double estimate_ms(const JoinRequest& request) {
  const double threads = std::max(request.resources.threads, 1u);
  return estimate_core_ms(request, kDeviceJoinMs * threads) / threads;
}

/// Bytes that the engine is expected to hold: the points in its order, and their index; of bits two
/// passes over them, too.
std::uint64_t estimate_memory(const JoinRequest& request) {
  const std::uint64_t copies = is_of_bits(request.metric()) ? 4 : 2, row_bytes = 12 * copies;
  std::uint64_t bytes = request.left().rows * (copies * point_bytes(request.left()) + row_bytes);
  if (!request.self_join())
    bytes += request.right().rows * (copies * point_bytes(request.right()) + row_bytes);
  const std::uint64_t limit = request.resources.memory_limit;
  return limit == 0 ? bytes : std::min(bytes, limit);
}

/// Clusters of rows by their keys are a join for each key.
double joins_of(const JoinRequest& request) {
  const bool by_key = request.output() == Output::kClusters && request.keys.count > 0;
  return by_key ? request.keys.most[0] + 1 : 1;
}

}  // namespace

RunningJoin::RunningJoin(const Machine& machine, Interrupt& interrupt, const JoinRequest& request,
                         std::uint64_t sent_bytes, WantedEngine wanted)
    : machine_(machine),
      interrupt_(interrupt),
      request_(request),
      may_fall_back_(wanted == WantedEngine::kAuto),
      use_(interrupt) {
  request_.resources.interrupt = interrupt.flag();
  request_.resources.patience_ms = kWatchedMs;
  const double ms = estimate_ms(request_);
  size_ = {size_class_of(ms), estimate_memory(request_) + sent_bytes, sent_bytes};
  engine_ = choose(wanted, ms);
}

const EngineTable* RunningJoin::choose(WantedEngine wanted, double ms) {
  Engines& engines = machine_.engines;
  const EngineTable* const cpu = &engines.cpu();
  if (wanted == WantedEngine::kCpu) return cpu;
  if (may_fall_back_ && (ms <= kDeviceJoinMs * joins_of(request_) || is_for_cores(request_)))
    return cpu;
  if (engines.device_state() == DeviceState::kStarting) {
    if (may_fall_back_ && ms <= kDeviceStartMs) return cpu;
    if (!engines.wait_for_start(interrupt_)) return cpu;  // cancelled
  }
  Status reason;
  if (engines.device_state(&reason) == DeviceState::kReady) return &engines.device();
  if (!may_fall_back_) throw Failure{reason};
  fallback_ = reason;
  return cpu;
}

RunningJoin::~RunningJoin() {
  close();
  rest();
  if (admitted_) machine_.admission.give_kept(size_);
}

/// Waits until this join may work. False: cancelled.
bool RunningJoin::work() {
  pause_ = JoinPhase::kWaiting;
  const bool may = take_turn();
  pause_ = JoinPhase::kJoining;
  return may;
}

bool RunningJoin::take_turn() {
  Admission& admission = machine_.admission;
  if (interrupt_.cancelled()) return false;
  if (!admitted_) {
    admitted_ = has_memory_ = admission.take_memory(size_, interrupt_);
    if (!admitted_) return false;
  } else if (!has_memory_) {
    admission.retake_memory(size_);
    has_memory_ = true;
  }
  if (is_on_device()) return machine_.engines.turns().take(use_);
  if (!has_place_) has_place_ = admission.take_place(size_, interrupt_);
  return has_place_;
}

void RunningJoin::rest() {
  pause_ = JoinPhase::kReturning;
  machine_.engines.turns().give_back(use_);
  if (has_place_) machine_.admission.give_place(size_);
  if (has_memory_) machine_.admission.give_memory(size_);
  has_place_ = has_memory_ = false;
}

/// One call of the engine; kInterrupted where there is nothing to show yet.
Status RunningJoin::step(ResultBatch* batch) {
  if (join_ != nullptr) return engine_->next_batch(join_, batch);
  // The engine's threads inherit it from this one.
  if (!is_on_device()) setpriority(PRIO_PROCESS, 0, niceness_of(size_.size_class));
  const Status status = engine_->open(&request_, &join_);
  return status.ok() ? Status{StatusCode::kInterrupted} : status;
}

Status RunningJoin::next(ResultBatch* batch) {
  for (;;) {
    if (!work()) return {StatusCode::kInterrupted};
    const Status status = step(batch);
    remember();
    const bool failed =
        !status.ok() && status.code != StatusCode::kEnd && status.code != StatusCode::kInterrupted;
    if (failed && !fall_back(status)) return status;
    if (interrupt_.is_to_yield()) {
      machine_.engines.turns().give_back(use_);
      if (!is_on_device()) interrupt_.go_on();
    }
    if (failed || status.code == StatusCode::kInterrupted) continue;
    delivered_ = true;
    return status;
  }
}

/// Under `auto` the CPU serves where the device cannot, until the device has emitted a batch.
bool RunningJoin::fall_back(const Status& failure) {
  if (!is_on_device()) return false;
  machine_.engines.turns().take_to_close(use_);
  close();
  if (failure.code == StatusCode::kDeviceFailure) machine_.engines.note_failure();
  machine_.engines.turns().give_back(use_);
  if (!may_fall_back_ || delivered_) return false;
  fallback_ = failure;
  const std::lock_guard lock(watched_);
  engine_ = &machine_.engines.cpu();
  return true;
}

void RunningJoin::close() {
  if (join_ == nullptr) return;
  if (is_on_device()) machine_.engines.turns().take_to_close(use_);
  engine_->close(std::exchange(join_, nullptr));
}

void RunningJoin::stats(JoinStats* stats) const {
  *stats = {};
  if (join_ != nullptr) engine_->stats(join_, stats);
}

/// Keeps what the engine, which one thread at a time may ask, says now.
void RunningJoin::remember() {
  JoinStats now;
  stats(&now);
  const std::lock_guard lock(watched_);
  last_ = now;
}

JoinPhase RunningJoin::watch(JoinStats* stats, const char** engine) const {
  const std::lock_guard lock(watched_);
  *stats = last_;
  *engine = engine_->name;
  const JoinPhase pause = pause_;
  return pause == JoinPhase::kJoining ? phase_of(*stats) : pause;
}

}  // namespace gpujoin::service

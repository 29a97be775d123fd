// A join at work on an engine of the service, among others: which engine, its turns and its place,
// and the CPU in the place of a device that fails.
#pragma once

#include <atomic>
#include <mutex>

#include "engine/engine.h"
#include "service/admission.h"
#include "service/engines.h"
#include "service/protocol/messages.h"

namespace gpujoin::service {

/// What joins share.
struct Machine {
  Engines& engines;
  Admission& admission;
};

/// For one thread, which starts no other join: the threads of a large join yield to others.
class RunningJoin {
 public:
  /// The request was checked; its interrupt is set here. `sent_bytes` of results are held for the
  /// client until the join ends. The datasets and `interrupt` outlive the join. Throws Failure
  /// where the engine that is wanted cannot be used.
  RunningJoin(const Machine& machine, Interrupt& interrupt, const JoinRequest& request,
              std::uint64_t sent_bytes, WantedEngine wanted);
  /// Stops the engine's work.
  ~RunningJoin();
  RunningJoin(const RunningJoin&) = delete;

  /// The next part of the result, as EngineTable::next_batch has it. kInterrupted: cancelled.
  Status next(ResultBatch* batch);
  /// Lets others work while this join waits for its client.
  void rest();

  void stats(JoinStats* stats) const;
  /// The same as of the last step, and what the join is at, from any thread.
  JoinPhase watch(JoinStats* stats, const char** engine) const;
  bool is_on_device() const { return engine_ != &machine_.engines.cpu(); }
  const char* engine() const { return engine_->name; }
  const char* fallback() const { return fallback_.message; }  ///< why the CPU serves; or ""

 private:
  const EngineTable* choose(WantedEngine wanted, double ms);
  bool work();
  bool take_turn();
  Status step(ResultBatch* batch);
  bool fall_back(const Status& failure);
  void remember();
  void close();

  const Machine machine_;
  Interrupt& interrupt_;
  JoinRequest request_;
  const bool may_fall_back_;
  JoinSize size_{};
  DeviceUse use_;
  Status fallback_;
  const EngineTable* engine_;
  Join* join_ = nullptr;        ///< null: not opened yet
  mutable std::mutex watched_;  ///< guards engine_ and last_ from those who watch
  JoinStats last_{};            ///< after the last step
  std::atomic<JoinPhase> pause_{JoinPhase::kWaiting};  ///< why it does not work; kJoining: it does
  bool delivered_ = false;
  bool admitted_ = false;
  bool has_memory_ = false;
  bool has_place_ = false;
};

}  // namespace gpujoin::service

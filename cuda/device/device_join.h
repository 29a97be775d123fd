// A join on one device, which moves on whenever the device is ready for it: a caller waits for one
// join, or looks after several on devices of their own in turn. It starts no threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cuda/device/device_context.h"
#include "cuda/device/stop_word.h"
#include "cuda/device/wait.h"
#include "engine/joins/join.h"
#include "engine/request/buffer.h"

namespace gpujoin::cuda {

/// Throws Unable, CudaError, MemoryLimitExceeded or std::bad_alloc from every method but stats().
/// The device is current.
class DeviceJoin : public Join {
 public:
  /// Does what the device is ready for, some milliseconds of work at most. The batch before is no
  /// longer valid.
  Progress advance(ResultBatch* batch);

  /// Whether it can do nothing until a join that it shares its work with has found something.
  virtual bool waits() const { return false; }

  /// Names the positions of a batch; once there is one. Where joins share their work, the one that
  /// began it names the batches of all.
  void name(ResultBatch* batch) const {
    batch->set_ids(left_ids_, request_.left().rows, right_ids_, request_.right().rows);
  }

  Status next_batch(ResultBatch* batch) final;
  void stats(JoinStats* stats) const override;

 protected:
  /// advance(), which counts batches and names them.
  virtual Progress move_on(ResultBatch* batch) = 0;

  /// `request` is a valid one. Its datasets outlive the join.
  DeviceJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources);

  /// The ids of a side's rows; its numbers 0, 1, .. where it has none.
  const std::int64_t* ids_of_rows(const Dataset& data, Buffer<std::int64_t>& numbers);

  JoinRequest request_;
  const std::shared_ptr<JoinResources> resources_;
  const cudaStream_t stream_;               ///< the resources'
  std::optional<StopWord> stop_;            ///< for kernels, once there are some
  Event step_;                              ///< what the current phase waits for
  const std::int64_t* left_ids_ = nullptr;  ///< of all batches, as in ResultBatch
  const std::int64_t* right_ids_ = nullptr;
  JoinStats stats_{};

 private:
  double spent_ms_ = 0;  ///< inside next_batch
};

}  // namespace gpujoin::cuda

// A join that several devices share [GPU-Join, section 4.6]: both sides are on each of them, and
// they take parts of the left one in turn (engine/joins/work_share.h), so that each pair is found
// by one. A device that fails before the first batch leaves its part to the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/device/device_join.h"
#include "cuda/grid/range_plan.h"
#include "engine/joins/join.h"
#include "engine/joins/row_batches.h"
#include "engine/joins/top_pairs.h"
#include "engine/joins/work_share.h"
#include "engine/request/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// Whether a join of points by this plan may be worth sharing: its first places will tell. Or
/// whether one for nearest neighbours, or one of boxes, is: it is expected to take so long that
/// several devices end sooner than one, for each of which the sides have to be prepared.
/// Knobs::share_devices decides where it is set.
bool may_be_worth_sharing(const JoinRequest& request, const RangePlan& plan);
bool is_worth_sharing(const JoinRequest& request);

/// When devices share a join of points, of which all but the first copy the sides. Throws
/// CudaError.
Sharing sharing_of(const JoinRequest& request, const std::vector<DeviceContext*>& devices);

/// Opens a device's share of a join. The device is current. Throws what DeviceJoin throws.
using OpenShare = std::function<std::unique_ptr<DeviceJoin>(
    std::shared_ptr<JoinResources> resources, const WorkShare& work)>;

/// `request` is one for Output::kPairs, kPairsWithDistances, kCountPerRow, kTotal, kTopPairs,
/// kSums, kNearest or kClusters, or of boxes. Of clusters one share has all of the answer, and the
/// others none. Its datasets and the devices outlive the join. Any device may be current. Methods
/// but stats() throw what the last device left has thrown.
class SharedJoin final : public Join {
 public:
  /// `begun`: what the first share uses, where something has begun with it; or null.
  SharedJoin(const JoinRequest& request, std::vector<DeviceContext*> devices,
             const Sharing& sharing, OpenShare open,
             std::shared_ptr<JoinResources> begun = nullptr);
  ~SharedJoin() override;

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  /// What a device does.
  struct Share {
    DeviceContext* device;
    WorkShare work;
    std::unique_ptr<DeviceJoin> join;
    bool has_ended;
  };

  template <class Call>
  bool call(std::size_t number, const Call& made);
  void leave_out_or_throw(std::size_t number);
  void open_share();
  void open_first_share();
  bool may_open() const;
  bool has_turn(const Share& share) const;
  static void close(Share& share);
  void close_shares();
  void forget_results();
  bool gathers() const;
  void gather(const ResultBatch& batch);
  bool deliver(ResultBatch* batch);
  Progress advance(ResultBatch* batch);

  const JoinRequest request_;
  std::vector<DeviceContext*> devices_;  ///< the one that begins is the first
  const Sharing sharing_;
  const OpenShare open_;
  std::shared_ptr<JoinResources> begun_;  ///< until the first share has it
  std::shared_ptr<HostBudget> host_;
  std::vector<WorkShare> work_;  ///< by device
  std::vector<Share> shares_;  ///< that are at work, or were: of the first devices, in their order
  std::size_t next_ = 0;       ///< share to be looked after next
  bool delivered_ = false;     ///< the caller has a batch

  // What shares add up to, where it is delivered after all of them.
  std::uint64_t total_ = 0;
  Buffer<std::uint64_t> counts_;    ///< [left rows]
  Buffer<FoldWord> sums_;           ///< [left rows][row_words()]
  std::optional<RowBatches> rows_;  ///< of both, in the end
  std::unique_ptr<TopPairs> top_;
  std::unique_ptr<TopBatches> top_batches_;
  std::uint64_t batches_ = 0, pairs_ = 0;
  double spent_ms_ = 0;  ///< inside next_batch
};

}  // namespace gpujoin::cuda

// Joins of datasets that do not fit on the device: both sides are cut into blocks along one column,
// and blocks that lie within reach of each other are joined, two at a time, each in a step.
// Datasets that fit are one block, at no further cost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/range_join.h"
#include "engine/buffer.h"
#include "engine/row_copy.h"
#include "engine/top_pairs.h"

namespace gpujoin::cuda {

/// Thrown where work on the host is given up because of an interrupt; next_batch() begins it anew.
struct Interrupted {};

/// One side, cut into blocks of rows with consecutive values of the cut column. Values that are not
/// finite count as infinitely large: rows with such values match nothing, in whichever block.
class BlockedSide {
 public:
  /// Cuts `data` into blocks of at most `block_rows`, in O(rows * blocks) on the host. Throws
  /// Interrupted when *interrupt, which may be null, is raised.
  BlockedSide(MemoryBudget& budget, const Dataset& data, std::uint32_t column,
              std::uint64_t block_rows, const volatile int* interrupt);

  std::size_t blocks() const { return ends_.size(); }
  double low(std::size_t block) const { return low_[block]; }
  double high(std::size_t block) const { return high_[block]; }

  /// A copy of a block's rows; `ids` are the dataset's ids, or rows where it has none or `by_row`
  /// asks for them.
  RowCopy load(std::size_t block, bool by_row) const;

 private:
  MemoryBudget& budget_;
  const Dataset& data_;
  const volatile int* interrupt_;
  Buffer<std::uint32_t> rows_;
  std::vector<std::uint64_t> ends_;
  std::vector<double> low_, high_;
};

/// The join behind the engine's table. Methods throw as RangeJoin's do.
class BlockedJoin final : public Join {
 public:
  /// The context outlives the join.
  BlockedJoin(const JoinRequest& request, DeviceContext& context);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  struct Step {
    std::size_t left, right;
    bool self;
  };

  void cut();
  void list_steps(double reach);
  void start_step();
  Status next_of_steps(ResultBatch* batch);
  void add_counts(const ResultBatch& batch);
  Status next_top_pairs(ResultBatch* batch);
  void end_step();
  bool gathers() const;
  JoinStats stats_with_step() const;
  ResultBatch gathered() const;

  JoinRequest request_;
  JoinResources resources_;        ///< of all steps
  bool in_blocks_ = false;         ///< or all at once
  std::uint64_t block_bytes_ = 0;  ///< of device memory for two blocks
  bool cut_ = false;
  std::unique_ptr<BlockedSide> left_side_, right_side_;
  std::vector<Step> steps_;
  std::size_t step_ = 0;
  RowCopy left_, right_;
  JoinRequest step_request_{};
  std::unique_ptr<RangeJoin> join_;  ///< of the current step, or the only one
  JoinStats done_{};                 ///< of the steps before
  std::uint64_t total_ = 0;
  Buffer<std::uint64_t> counts_;
  Buffer<std::uint32_t> rows_;
  Buffer<std::int64_t> ids_;
  std::optional<TopPairs> top_;  ///< of the steps before, where top pairs are wanted
  std::optional<TopBatches> top_batches_;
  bool delivered_ = false;
};

}  // namespace gpujoin::cuda

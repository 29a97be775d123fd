// The join of sides that do not fit in an engine's memory, or not in the caller's: both are divided
// into parts along one column, and parts within reach of each other are joined, two at a time, each
// in a step. It knows no engine: PartJoins are what it is built on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/joins/divided_side.h"
#include "engine/joins/join.h"
#include "engine/joins/part_ahead.h"
#include "engine/joins/prepared_side.h"
#include "engine/joins/top_pairs.h"
#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/length_classes.h"

namespace gpujoin {

/// Where sides are cut, and how far the values of two rows of a pair differ at most, or the lengths
/// of their intervals.
struct Cut {
  CutColumn column;
  double reach;
};

/// What bounds the rows of a part.
struct PartSize {
  std::uint64_t row_bytes;  ///< of host memory that a join takes for a row, but for its copy
  std::uint64_t most_rows;
};

/// The column of the data, or the key, that separates points best, so that a part meets few others;
/// a strategy by reference points has none, and another one is chosen. A part of bits meets all
/// others, whatever the strategy. Throws std::bad_alloc.
Cut choose_cut(const JoinRequest& request, const Strategy& strategy, const WalkCosts& costs);

/// By the lengths of an interval: a part meets all others, by the longest interval of both.
Cut cut_by_length(const JoinRequest& request, const LengthClasses& classes);

/// How many of the request's threads are worth it to divide its sides.
unsigned dividing_threads(const JoinRequest& request);

/// Returns the request for a step of such a join, which may hold `memory_limit` bytes; 0: no limit.
JoinRequest request_of_step(const JoinRequest& request, const Output& output, const Sides& sides,
                            std::uint64_t memory_limit);

/// Bytes that a row of both sides takes in the sums of their parts: what is carried along, the same
/// in the order of an index, and what is added up, by the join of two parts and over all of them.
std::uint64_t sum_row_bytes(const JoinRequest& request);

/// Bytes that a row of a part takes, with its columns of sums.
std::uint64_t part_row_bytes(const JoinRequest& request);

/// An engine's joins of the parts of one join.
class PartJoins {
 public:
  virtual ~PartJoins() = default;

  /// Where sides of points are cut. Throws what open() throws.
  virtual Cut cut() = 0;

  /// How many rows a part may have, so that two of them are joined within the memory that there is.
  /// Throws MemoryLimitExceeded where that is too little for any.
  virtual std::uint64_t part_rows() = 0;

  /// Whether the next part is loaded while two are joined, by threads of the host, which joins
  /// leave idle. part_rows() has room for it. Not for rows in a file: these the caller's thread
  /// reads.
  virtual bool loads_ahead() const { return false; }

  /// Opens the join of two parts, or of one part with itself. The rows of each slot stay the same;
  /// null: rows that no other join will ask for. Data outlives the join. Throws what the engine's
  /// table turns into a Status.
  virtual std::unique_ptr<Join> open(const JoinRequest& part, std::shared_ptr<SideSlot> left,
                                     std::shared_ptr<SideSlot> right) = 0;

  /// Whether joins of parts keep the limits of memory.
  virtual void enforce_limits(bool enforced) = 0;
};

class PartitionedJoin final : public Join {
 public:
  /// `budget` is for parts and what engines make of them; the joins of parts share it. The data
  /// outlives the join. Methods throw what `parts` and Buffer throw. Where limits are soft, pieces
  /// of few rows that do not fit are joined all the same after the first batch.
  PartitionedJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget,
                  std::unique_ptr<PartJoins> parts);
  ~PartitionedJoin() override;

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  struct Range {
    std::uint64_t first, rows;
  };
  /// Two parts, or pieces of them where the parts were too large.
  struct Step {
    std::size_t left, right;
    bool self;  ///< one piece with itself
    Range left_range, right_range;
  };
  /// A part in memory.
  struct LoadedPart {
    std::size_t number = ~std::size_t{0};
    RowCopy rows;
    std::shared_ptr<SideSlot> slot;
  };

  void begin();
  bool divide();
  bool both_orders() const;
  std::uint64_t work_of(const Step& step) const;
  void list_steps();
  bool is_one_part(const Step& step) const;
  const DividedSide& right_side() const;
  void load(LoadedPart& part, const DividedSide& side, std::size_t number);
  void load_parts(const Step& step);
  bool is_loaded(const DividedSide& side, std::size_t number) const;
  bool meets_right(const Step& step) const;
  void load_ahead();
  JoinRequest part_request(const Step& step);
  void open_step();
  void end_step();
  void split_step();
  Status next_of_step(ResultBatch* batch);
  bool gathers() const;
  bool mirrors(const Step& step) const;
  void take(const ResultBatch& batch);
  void take_counts(const ResultBatch& batch);
  void make_room_for_counts();
  void start_counts();
  void ask_sums(const Step& step, JoinRequest* part);
  ResultBatch end_counts();
  Status finish(ResultBatch* batch);
  Status next_of_steps(ResultBatch* batch);

  const JoinRequest request_;
  Cut cut_{};
  std::shared_ptr<MemoryBudget> budget_;
  std::unique_ptr<PartJoins> parts_;
  std::optional<WorkerPool> dividers_;
  std::optional<DividedSide> left_side_, right_side_;  // of a self-join the left one alone
  bool divided_ = false;
  std::vector<Step> steps_;       ///< to be done, the next one last
  std::uint64_t steps_work_ = 0;  ///< of all steps, those that are done included
  LoadedPart left_, right_;
  PartAhead ahead_;  ///< the next part that is wanted and is neither of these
  bool loads_ahead_ = false;
  std::unique_ptr<Join> join_;   ///< of the current step
  bool step_delivered_ = false;  ///< the step has a batch
  bool delivered_ = false;       ///< the caller has one
  std::uint64_t ids_generation_ = 0;
  JoinStats done_{};  ///< of the steps before

  std::uint64_t total_ = 0;
  bool total_delivered_ = false;
  bool counting_ = false;            ///< the rows of the current left part
  std::uint64_t counted_rows_ = 0;   ///< how many they are
  Buffer<std::uint64_t> counts_;     ///< theirs so far
  Buffer<std::uint32_t> positions_;  ///< 0, 1, ...
  std::uint32_t sum_width_ = 0;      ///< row_words() of Output::kSums
  Buffer<FoldWord> sums_;            ///< [rows of the left part][sum_width_]
  PairSums step_sums_{};             ///< of the current step: its columns are of its pieces
  std::vector<const double*> left_columns_, right_columns_;
  std::vector<const std::int64_t*> integer_columns_;
  std::optional<TopPairs> top_;
  std::optional<TopBatches> top_batches_;
};

}  // namespace gpujoin

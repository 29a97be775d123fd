// The nearest-neighbour join of sides that do not fit in memory: parts of the left side meet the
// parts of the right side one after the other, the near ones first, and the nearest rows so far of
// each left row are kept. It knows no engine: PartJoins are what it is built on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/joins/partitioned_join.h"

namespace gpujoin {

/// The column of the data in which rows lie furthest apart, so that most parts are too far away to
/// have neighbours of another.
Cut choose_nearest_cut(const JoinRequest& request);

class PartitionedNearest final : public Join {
 public:
  /// The request is one for Output::kNearest; otherwise as PartitionedJoin. Parts are opened with
  /// requests for two datasets, left rows named by position.
  PartitionedNearest(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget,
                     std::unique_ptr<PartJoins> parts);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  struct Range {
    std::uint64_t first, rows;
  };
  /// Some rows of a right part, and those of the left one that are to meet them.
  struct Piece {
    std::size_t part;
    Range left, right;
    double least;  ///< no rows of the two parts are nearer to each other
  };
  /// The nearest rows of the left rows so far.
  struct Lists {
    Buffer<double> distances;         ///< [rows][k] ascending, equal ones by id
    Buffer<std::int64_t> ids;         ///< likewise
    Buffer<std::uint64_t> counts;     ///< [rows + 1]; once done where entries of listed rows begin
    Buffer<std::uint32_t> listed;     ///< [rows] once done: those that have neighbours
    Buffer<std::uint8_t> states;      ///< [rows] of RowState
    Buffer<std::uint32_t> positions;  ///< 0, 1, ...
  };
  enum RowState : std::uint8_t { kSearches, kMetItself, kMatchesNothing };

  void begin();
  bool divide();
  void begin_left();
  double farthest(const Range& rows) const;
  void open_piece();
  void close_piece();
  void split_piece();
  void take(const ResultBatch& batch);
  void merge(std::uint64_t row, const ResultBatch& batch, std::uint64_t begin, std::uint64_t end);
  bool is_itself(std::uint64_t row, std::int64_t id, double distance) const;
  Status search();
  void end_left();
  bool deliver(ResultBatch* batch);
  Status next_of_parts(ResultBatch* batch);

  const JoinRequest request_;
  const std::uint64_t k_;
  const bool without_itself_;
  Cut cut_{};
  std::shared_ptr<MemoryBudget> budget_;
  std::unique_ptr<PartJoins> parts_;
  std::optional<WorkerPool> dividers_;
  std::optional<DividedSide> left_side_, right_side_;
  bool divided_ = false;
  std::size_t left_number_ = 0;  ///< the left part at hand, or the next one
  bool searching_ = false, delivering_ = false;
  RowCopy left_, right_;
  std::size_t right_number_ = ~std::size_t{0};
  std::vector<Piece> pieces_;  ///< that the left part has still to meet, the next one last
  std::unique_ptr<Join> join_;
  bool piece_delivered_ = false;  ///< the join of the piece at hand has
  bool delivered_ = false;        ///< the caller has a batch
  Lists lists_;
  std::vector<double> merged_distances_;
  std::vector<std::int64_t> merged_ids_;
  std::uint64_t listed_rows_ = 0, done_rows_ = 0;  ///< of the left part; delivered
  std::uint64_t ids_generation_ = 0;
  JoinStats done_{};
};

}  // namespace gpujoin

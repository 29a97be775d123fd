// The smallest spanning tree of rows that do not fit in memory with their index, and the clusters
// that follow from it: from trees of parts of them, and some bytes for each row. It knows no
// engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/disjoint_sets.h"
#include "core/tree_edge.h"
#include "engine/joins/partitioned_join.h"
#include "engine/joins/rank_order.h"
#include "engine/joins/stable_clusters.h"
#include "engine/joins/step_sort.h"

namespace gpujoin {

/// Edges have an order in which no two are equal. So an edge is in the smallest tree unless it is
/// the last one of a circle, and an edge of the smallest tree of all rows is in that of any rows
/// that have its two ends. Hence, where rows are cut into parts along one column:
///
/// 1. The core distances of all rows, by a join with their nearest rows.
/// 2. The tree of each part.
/// 3. The edges between each part and the next one. A first edge between them tells how long others
///    can be, at most: as long as that, or as the longest edge of one of both trees. So of either
///    part only those rows matter that are so near to the other one.
/// 4. By then there is a tree of all rows, unless there are several, and what is longer than its
///    longest edge is in no smaller one. The other pairs of parts that are nearer to each other
///    than that follow, the nearest first. What edges shorter than the gap between two parts
///    connect needs no edge between them.
///
/// All these are trees of rows in memory whose core distances are known. Edges are put together as
/// they come; now and then those that close circles go.
///
/// Beside parts it holds up to 36 bytes a row: its rank, its core distance, a link
/// (core/disjoint_sets.h), an edge and a quarter of another one, and a bit; 4 more where the rows
/// are in memory. For clusters it holds ids, edges and StableClusters in the end.
class PartitionedTree final : public Join {
 public:
  /// The request is one for Output::kSpanningTree or Output::kStableClusters. `joins` opens joins
  /// of all rows with their nearest ones, and trees of rows in memory that have core distances for
  /// scores. Throws what Buffer throws; next_batch() throws what `joins` and its joins throw, too.
  /// Where trees of parts lack memory, parts become smaller.
  PartitionedTree(const JoinRequest& request, const PartSize& size, OpenJoin joins);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Stage {
    kNames,
    kRanks,
    kCores,
    kDivide,
    kParts,  // those that have trees of parts
    kNeighbors,
    kOthers,
    kIds,
    kClusters,
    kResult,
  };
  struct PartPair {
    double gap;  ///< no rows of the two are nearer to each other
    std::uint32_t left, right;

    bool operator<(const PartPair& other) const {
      return gap != other.gap ? gap < other.gap
                              : std::pair(left, right) < std::pair(other.left, other.right);
    }
  };

  std::uint64_t rows() const { return data_.rows; }
  std::size_t parts() const { return side_->parts(); }
  bool joins_parts() const { return stage_ >= Stage::kParts && stage_ <= Stage::kOthers; }
  std::uint64_t row_bytes_held() const;

  Status advance();
  void read_names();
  void rank_rows();
  void open_cores();
  Status collect_cores();
  void begin_parts();
  void shrink_parts();
  void divide();

  template <class Wanted>
  RowCopy load(std::size_t part, const Wanted& wanted);
  RowCopy load_near(std::size_t part, std::size_t other, double within, std::uint32_t root);
  void unite(const RowCopy& left, const RowCopy& right);
  std::uint32_t common_root(std::size_t part);
  double gap(std::size_t left, std::size_t right) const;

  void open_next();
  void open_part();
  void open_neighbors();
  void widen(double width);
  void list_others();
  void open_other();
  void open_tree();
  Status collect_edges();
  bool take_edge(const TreeEdge& edge);
  void end_step();
  void forget_step();
  void end_stage();

  bool is_left(std::uint32_t rank) const { return (lefts_[rank / 64] >> rank % 64 & 1) != 0; }
  void mark_lefts(bool are_left);

  void start_thinning();
  void thin();
  bool connect_below(double distance);
  void end_tree();
  void read_ids();
  void gather_clusters();
  bool deliver(ResultBatch* batch);
  bool wants_edges() const { return request_.output() == Output::kSpanningTree; }

  const JoinRequest request_;
  const Dataset data_;  ///< the rows, named by their positions
  const Cut cut_;
  const OpenJoin joins_;
  MemoryBudget budget_;
  std::uint64_t part_rows_ = 0;
  Stage stage_ = Stage::kNames;
  std::uint64_t next_chunk_ = 0;  ///< of the file, whose ids are still to be read

  std::optional<RankOrder> order_;  ///< until ranks are known
  Buffer<std::uint32_t> ranks_;     ///< by position
  Buffer<double> cores_;            ///< by rank; infinite: there is none
  std::uint64_t cores_found_ = 0;
  Buffer<std::uint32_t> links_;  ///< by rank, of what edges connect
  Buffer<TreeEdge> edges_;       ///< the tree, and what came since
  std::uint64_t edge_count_ = 0, tree_edges_ = 0;
  Buffer<std::uint64_t> lefts_;  ///< a bit by rank: a row of the left part in the step at hand

  // Edges that close circles go.
  bool thinning_ = false;
  std::optional<StepSort<TreeEdge>> sort_;
  std::uint64_t looked_at_ = 0;
  double reach_ = HUGE_VAL;       ///< no edge of the tree is longer
  std::uint64_t connected_ = 0;   ///< edges that links_ have, of the tree
  bool links_are_clear_ = false;  ///< of any others

  std::optional<WorkerPool> dividers_;
  std::optional<DividedSide> side_;
  std::vector<std::uint64_t> part_cores_;  ///< by part: rows with core distances
  std::vector<double> longest_;            ///< by part: of its tree; infinite: it has several
  std::uint64_t all_cores_ = 0;
  std::size_t part_ = 0;  ///< at hand, or the pair
  std::vector<PartPair> others_;
  double width_ = -1;  ///< how near rows of neighbouring parts are to the other one; < 0: not known
  bool is_whole_ = false;  ///< all rows of both are

  RowCopy rows_;  ///< of the step at hand
  std::uint64_t left_rows_ = 0;
  std::unique_ptr<Join> join_;
  std::uint64_t held_ = 0;  ///< bytes besides the join's own
  ResultBatch batch_{};
  std::uint64_t batch_row_ = 0, batch_entry_ = 0;  ///< of the batch, not taken yet
  std::uint64_t step_edges_ = 0;                   ///< of the join at hand
  double last_distance_ = 0;                       ///< likewise
  std::uint64_t edges_between_ = 0;                ///< likewise, those that were taken
  JoinStats done_{};
  Strategy strategy_{};  ///< of the trees of parts

  // The result.
  Buffer<std::int64_t> ids_;      ///< by rank
  Buffer<std::int64_t> numbers_;  ///< of clusters, and last what noise has
  std::optional<StableClusters> clusters_;
  std::uint64_t delivered_ = 0;  ///< edges, or rows
  Buffer<std::uint32_t> batch_rows_, batch_neighbors_;
  Buffer<double> batch_distances_;
  Buffer<std::uint64_t> offsets_;  ///< 0, 1, ...
};

}  // namespace gpujoin

// Clusters of rows that do not fit in memory with their index: from joins of parts of them, and a
// few bytes for each row. It knows no engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/cluster.h"
#include "core/disjoint_sets.h"
#include "engine/joins/partitioned_join.h"

namespace gpujoin {

/// The column along which the rows of clusters are cut. Throws std::bad_alloc.
Cut choose_cluster_cut(const JoinRequest& request, const WalkCosts& costs);

/// Four joins make clusters of parts along one column:
///
/// 1. The clusters of each part by itself. Its core rows are core rows, and near each other.
/// 2. The neighbours of its other rows are counted, in the parts within reach.
/// 3. The components of core rows of two parts within reach, and of one in which step 2 has found
///    more of them.
/// 4. The core rows near the rest, in the parts within reach: a row that is no core row has fewer
///    than min_points of them, so that these are few pairs.
///
/// A join has only those rows of a part that can have partners in the other one; of the part itself
/// those that a row near another part can change. So where parts are far larger than the radius
/// nearly all work is the first join's, which is the engine's own, whatever the density.
///
/// Beside parts it holds 5 bytes a row (a link, core/disjoint_sets.h, and what the row is), 4 more
/// where the rows are in memory, and in the end 16 bytes a cluster. Clusters are numbered as
/// by every engine; of rows with one id the order is that of the parts.
class PartitionedClusters final : public Join {
 public:
  /// The request has no keys. `joins` opens joins of rows in memory: of clusters, counts and pairs.
  /// Throws what Buffer throws; next_batch() throws what `joins` and its joins throw, too. Where
  /// they lack memory before the first batch, parts become smaller.
  PartitionedClusters(const JoinRequest& request, const Cut& cut, const PartSize& size,
                      OpenJoin joins);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Stage {
    kDivide,
    kClusters,  // those that have joins
    kCounts,
    kUnions,
    kBorders,
    kLinks,  // those that number clusters
    kLists,
    kIds,
    kOrder,
    kResult,
  };
  enum State : std::uint8_t { kNone, kBorder, kCore, kRoot };

  /// Some rows of one or two parts, and what their slots are: rows of all parts are numbered, part
  /// by part.
  struct Loaded {
    RowCopy copy;
    Buffer<std::uint32_t> slots;

    Dataset view() const { return unnamed(copy.view); }
    std::uint64_t rows() const { return copy.view.rows; }
  };
  /// The core row that a border row follows so far; its slot is the row's link.
  struct Followed {
    double distance;
    std::int64_t id;
  };
  struct Cluster {
    std::int64_t id;  ///< the smallest one
    std::uint32_t root;

    bool operator<(const Cluster& other) const {
      return id != other.id ? id < other.id : root < other.root;
    }
  };

  void divide();
  void begin();
  void shrink_parts();
  Status advance();
  void begin_stage(Stage stage);
  bool joins_parts() const { return stage_ >= Stage::kClusters && stage_ <= Stage::kBorders; }
  std::size_t parts() const { return side_->parts(); }
  std::uint64_t rows_of_part() const { return bases_[part_ + 1] - bases_[part_]; }

  template <class Wanted>
  bool has(std::size_t part, const Wanted& wanted) const;
  template <class Wanted, class IsInReach>
  Loaded load(std::size_t part, const Wanted& wanted, const IsInReach& is_in_reach);
  template <class IsInReach>
  Loaded load_cores(std::size_t part, const IsInReach& is_in_reach);
  /// Whether a value is near those of a part.
  auto within_reach_of(std::size_t part) const {
    return [this, part](const Extent& value) {
      return are_within_reach(side_->extent(part), value, cut_.reach);
    };
  }
  Loaded unite(const Loaded& a, const Loaded& b);
  Extent others_of(std::size_t part) const;
  bool is_core(std::uint64_t slot) const { return states_[slot] == kCore; }
  std::uint32_t common_root(std::size_t part) const;

  void look_at_pair();
  void begin_part();
  void open_clusters();
  void open_counts(std::size_t other);
  void open_union(std::size_t other);
  void open_borders(std::size_t other);
  void open(const Sides& sides, const Output& output);
  Status collect();
  void take_clusters(const ResultBatch& batch);
  void take_counts(const ResultBatch& batch);
  void take_pairs(const ResultBatch& batch);
  void end_step();
  void mark_counted();

  void link_part();
  void list_part();
  void take_ids();
  std::uint32_t number_of(std::uint64_t slot) const;
  void order_some();
  bool deliver(ResultBatch* batch);
  Status next_of_parts(ResultBatch* batch);

  const JoinRequest request_;
  const Cut cut_;
  const OpenJoin joins_;
  MemoryBudget budget_;
  std::uint64_t part_rows_ = 0;
  std::optional<WorkerPool> dividers_;
  std::optional<DividedSide> side_;
  std::vector<std::uint64_t> bases_;  ///< [parts + 1] the first slot of each
  std::vector<bool> has_new_cores_;   ///< by part, since its own clusters

  Buffer<std::uint32_t> links_;  ///< by slot
  Buffer<std::uint8_t> states_;  ///< by slot, of State
  DisjointSets sets_;            ///< of links_

  Stage stage_ = Stage::kDivide;
  std::size_t part_ = 0, partner_ = 0;  ///< at hand, and the next one that it may meet
  Extent others_ = kNoExtent;           ///< others_of(part_)
  Loaded left_, right_;
  std::unique_ptr<Join> join_;
  std::uint64_t held_ = 0;        ///< bytes besides the join's own
  Buffer<std::uint32_t> first_;   ///< by the number that the join's clusters have: a slot
  Buffer<std::uint32_t> counts_;  ///< by row of the part
  Buffer<Followed> followed_;     ///< by row of the part
  JoinStats done_{};
  Strategy strategy_{};  ///< of the clusters of parts

  // The result.
  std::uint64_t cluster_count_ = 0, listed_ = 0, ordered_ = 0;
  Buffer<Cluster> clusters_;
  Buffer<std::int64_t> ids_;
  Buffer<std::uint64_t> words_;
  Buffer<std::uint32_t> positions_;
  std::uint64_t delivered_ = 0;  ///< rows of the part
  std::uint64_t ids_generation_ = 0;
};

}  // namespace gpujoin

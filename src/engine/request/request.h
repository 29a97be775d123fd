// What a caller asks of an engine. SQL functions and planner node fill the same JoinRequest.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/cell_order.h"
#include "core/cell_walk.h"
#include "core/cluster.h"
#include "core/distance.h"
#include "core/score.h"
#include "engine/request/dataset.h"
#include "engine/request/pair_sums.h"
#include "engine/request/status.h"

namespace gpujoin {

enum class Switch : std::int32_t { kAuto, kOn, kOff };
enum class WorkOrder : std::int32_t { kAuto, kNone, kSorted, kQueue };

/// kGrid: an epsilon grid over columns of the data [GPU-SJ, section 3] [GPU-Join, section 4.1].
/// kReferencePoints: the same over distances to reference points [COSS, section 4]. kTiles: tiles
/// of neighbouring points, compared by matrix arithmetic where their boxes come near each other.
/// kNone: the nested loop. For bits, kTiles compares every pair, kPigeonhole those that agree in
/// segments of them.
enum class IndexMethod : std::int32_t {
  kAuto,
  kGrid,
  kReferencePoints,
  kTiles,
  kNone,
  kKdTree,      ///< of nearest neighbours alone: no knob's value
  kPigeonhole,  ///< of bits alone
};
inline constexpr int kIndexMethodCount = 7;

/// Where reference points lie [COSS, section 4.4]: RP-OUTER at the edges of the data, RP-INNER
/// around its centre.
enum class ReferencePlacement : std::int32_t { kAuto, kOuter, kInner };
inline constexpr std::uint32_t kMaxReferencePoints = 16;

/// How the best pairs are found. kHeap: heaps keep the best of what was found so far
/// [thesis, sections 5.4 and 5.8]. kSort: all pairs are found, then sorted: the baseline of
/// [thesis, section 7.1]. kThreshold: only pairs that may beat the worst of the best so far are
/// compared.
enum class TopkMethod : std::int32_t { kAuto, kThreshold, kHeap, kSort };

/// The method that a top-k join takes.
inline TopkMethod method_of(TopkMethod asked) {
  return asked == TopkMethod::kAuto ? TopkMethod::kThreshold : asked;
}

/// How boxes find each other. kLayeredGrid: a grid whose cells have a bit for each part of one side
/// [MLG-join] [thesis, section 4.2]. kSortSweep: along one dimension, in sorted order (SMF [GCMF]
/// [thesis, section 4.3]). kNone: the nested loop.
enum class BoxMethod : std::int32_t { kAuto, kLayeredGrid, kSortSweep, kNone };

/// The techniques of the papers (docs/sources.md), each of which can be forced for study. Knobs
/// change speed, never the result.
struct Knobs {
  IndexMethod index = IndexMethod::kAuto;
  std::uint32_t indexed_dimensions = 0;  ///< of the grid, 0 = auto [GPU-Join, section 4.1]
  std::uint32_t reference_points = 0;    ///< 0 = auto
  ReferencePlacement reference_placement = ReferencePlacement::kAuto;
  Switch reorder_dimensions = Switch::kAuto;  ///< REORDER [GPU-Join, section 4.2]
  Switch sort_unindexed = Switch::kAuto;      ///< SORTIDU [GPU-Join, section 4.3]
  Switch short_circuit = Switch::kAuto;       ///< SHORTC [GPU-Join, section 4.4]
  AccessPattern access_pattern = AccessPattern::kAuto;
  CellOrder cell_order = CellOrder::kAuto;
  WorkOrder work_order = WorkOrder::kAuto;  ///< SORTBYWL, WORKQUEUE; devices only
  std::uint32_t threads_per_point = 0;      ///< a power of two up to 32, 0 = auto; devices only
  std::uint32_t streams = 0;                ///< batches in flight, 0 = auto; devices only
  Switch share_devices = Switch::kAuto;     ///< a join runs on several devices [GPU-Join]
  std::uint64_t batch_pairs = 0;  ///< pairs a batch at most, 0 = auto; lowered to fit in memory
  TopkMethod topk_method = TopkMethod::kAuto;
  BoxMethod box_method = BoxMethod::kAuto;

  bool operator==(const Knobs&) const = default;
};

/// Which pairs of a self-join are wanted. Joins of two datasets know kAll only.
enum class PairSelection : std::int32_t {
  kAll,        ///< both orders, and self-pairs
  kDistinct,   ///< both orders, no self-pairs
  kUnordered,  ///< each pair once, the smaller id first
};

/// Whose rows meet.
class Sides {
 public:
  /// A self-join: pairs of rows of one dataset.
  static Sides one(const Dataset& data, PairSelection pairs) { return {data, data, true, pairs}; }
  /// As many dimensions and the same scalar type on both sides.
  static Sides two(const Dataset& left, const Dataset& right) {
    return {left, right, false, PairSelection::kAll};
  }
  /// Other rows in the place of these, `right` ignored by a self-join.
  Sides with_rows(const Dataset& left, const Dataset& right) const {
    return {left, self_join() ? left : right, self_join(), pairs_};
  }

  const Dataset& left() const { return left_; }
  const Dataset& right() const { return right_; }  ///< of a self-join the left side
  bool self_join() const { return self_join_ != 0; }
  PairSelection pairs() const { return pairs_; }

  /// Rows of both sides, of a self-join counted once.
  std::uint64_t rows() const { return left_.rows + (self_join() ? 0 : right_.rows); }
  bool has_pairs() const { return left_.rows > 0 && right_.rows > 0; }
  bool in_file() const { return left_.file != nullptr || right_.file != nullptr; }

 private:
  Sides(const Dataset& left, const Dataset& right, bool self_join, PairSelection pairs)
      : left_(left), right_(right), self_join_(self_join), pairs_(pairs) {}

  Dataset left_, right_;
  std::uint8_t self_join_;  ///< no bool, which bytes of another process may be none of
  PairSelection pairs_;
};

/// What the rows of datasets are: points, or boxes, whose dims numbers are the low corner and then
/// the high one.
enum class Shape : std::int32_t { kPoints, kBoxes };

/// Points whose distance is at most eps, which is finite and >= 0. Bits have kHamming and kJaccard,
/// and nothing else has them.
struct PointsWithin {
  Metric metric;
  double eps;
};

/// Boxes with points so close; an eps of 0 asks for boxes that touch. Boxes have no kCosine.
struct BoxesWithin {
  Metric metric;
  double eps;
};

inline constexpr std::uint32_t kMostKeys = 4;

/// A pair matches only if its rows' keys, Dataset::keys, are near each other, too: in each column
/// fl(|left - right|) <= reach. NaN is near nothing.
///
/// Two columns may be one key, an interval: pairs match whose intervals have a number in common.
/// The reach of such a key is how far the low ends of two intervals that do differ at most, which
/// an index rests on: low ends differ by no more than one of both intervals is long.
struct PairKeys {
  std::uint32_t count = 0;  ///< columns
  double reach[kMostKeys];  ///< finite, >= 0; 0: equality of whole numbers, 0 .. most
  double most[kMostKeys];
  std::uint32_t intervals =
      0;  ///< columns that are low ends, a bit each; the next one has high ends

  bool is_interval(std::uint32_t column) const { return (intervals >> column & 1) != 0; }
  bool is_high_end(std::uint32_t column) const { return (intervals << 1 >> column & 1) != 0; }

  /// Whether the key of this column is near, of left(column) and right(column). High ends are their
  /// low ends' concern.
  template <class Left, class Right>
  bool are_near(std::uint32_t column, const Left& left, const Right& right) const {
    if (is_interval(column))
      return left(column) <= right(column + 1) && right(column) <= left(column + 1);
    return is_high_end(column) || std::fabs(left(column) - right(column)) <= reach[column];
  }
};

/// Whether all keys of two rows are near each other.
inline bool are_keys_near(const PairKeys& keys, const Dataset& left, std::uint64_t left_row,
                          const Dataset& right, std::uint64_t right_row) {
  for (std::uint32_t k = 0; k < keys.count; ++k)
    if (!keys.are_near(
            k, [&](std::uint32_t column) { return key_of(left, left_row, column); },
            [&](std::uint32_t column) { return key_of(right, right_row, column); }))
      return false;
  return true;
}

inline constexpr std::uint64_t kMostTopPairs = 1000000;

/// The `k` pairs within eps that come first by (score, id of the first point, id of the second), in
/// that order; all pairs where there are no more. Scores are those of pair_score(), for which
/// datasets have finite scores, or distances. Pairs of a self-join are unordered ones.
struct Top {
  Scoring scoring;
  std::uint64_t k;  ///< 1 .. kMostTopPairs
  /// Pairs with a lower score_key() may be left out, where the caller knows of k pairs that have
  /// this one or a higher.
  std::uint64_t least_key = 0;
  /// The two datasets are disjoint parts of one: comes_first() decides which point of a pair is the
  /// first, as in a self-join.
  bool parts_of_one = false;
};

/// The most that a query may ask for, which keeps all neighbours of a row together. Core distances
/// of a spanning tree in parts may be those of further ones.
inline constexpr std::uint64_t kMostNeighbors = 10000;

/// What Output::kStableClusters names the cluster of rows that are noise.
inline constexpr std::int64_t kNoCluster = -1;

/// What a join of points emits.
class Output {
 public:
  enum Kind : std::int32_t {
    kPairs,
    kPairsWithDistances,
    kCountPerRow,
    kTotal,
    kTopPairs,
    kSums,
    kNearest,
    kClusters,
    kDuplicates,
    kSpanningTree,
    kStableClusters,
  };

  static Output pairs() { return {kPairs, {}}; }
  static Output pairs_with_distances() { return {kPairsWithDistances, {}}; }
  /// For each left row the number of its pairs; under kUnordered the pairs where it comes first.
  static Output count_per_row() { return {kCountPerRow, {}}; }
  /// Which left rows have pairs: counts as those of count_per_row(), each of which may be too
  /// small, but is 0 only where there are no pairs. An engine may leave a row with its first pair.
  static Output matched_rows() {
    Output output{kCountPerRow, {}};
    output.one_suffices_ = true;
    return output;
  }
  /// The number of pairs, nothing else.
  static Output total() { return {kTotal, {}}; }
  static Output top_pairs(const Top& top) { return {kTopPairs, top}; }
  /// For each left row the number of its pairs, as count_per_row(), and these sums over them.
  static Output sums(const PairSums* sums) {
    Output output{kSums, {}};
    output.sums_ = sums;
    return output;
  }
  /// For each left row the `k` right rows, 1 or more, that come first by (distance, id),
  /// among those within eps, with their distances; fewer where there are no more. In a self-join
  /// kDistinct leaves out the row itself, and there is no kUnordered. With a `left_block` an engine
  /// that can finds those of so many consecutive left rows before those of the next ones, but for
  /// what threads do beside each other: the caller has them in a file. 0: in any order.
  static Output nearest(std::uint64_t k, std::uint64_t left_block = 0) {
    Output output{kNearest, {}};
    output.neighbors_ = k;
    output.left_block_ = left_block;
    return output;
  }
  /// For each row of a self-join its cluster among rows within eps (core/cluster.h), each row with
  /// itself whatever its distance. Clusters are numbered from 0, by the smallest id in them; a
  /// border row is in the cluster of a core row that the rule chooses. With a key, an equality, all
  /// this holds among rows of each key, whose clusters are numbered from 0; a row whose key is NaN
  /// is alone.
  static Output clusters(std::uint64_t min_points, BorderRule borders = BorderRule::kNearest) {
    Output output{kClusters, {}};
    output.min_points_ = min_points;
    output.borders_ = borders;
    return output;
  }

  /// For each row of a self-join that a better one makes superfluous: the pair of it, on the left,
  /// and the row that stays for it, with their distance. Rows are looked at by their scores, the
  /// highest first or the lowest, where datasets have scores; then by id, the smallest first; then
  /// by their places. A row stays unless a better row that stays is within eps; else the nearest of
  /// these stays for it, of several at one distance the one with the smallest id.
  static Output duplicates(bool lowest_first) {
    Output output{kDuplicates, {}};
    output.top_.scoring.lowest_first = lowest_first;
    return output;
  }

  /// The edges of the smallest spanning tree of a self-join by mutual reachability distance: of a
  /// pair that, its distance, or the core distance of one of its rows, whichever is the largest
  /// [HDBSCAN]. A row's core distance is that of the nearest other row but min_points -
  /// 2, so that it is within reach of min_points rows, itself counted; of 1 it is 0. Edges have the
  /// smaller id on the left, and come in the order by which they are preferred to each other: by
  /// distance, by the smaller id, by the larger one; rows of one id are in the order of the
  /// dataset. Rows without a finite distance to so many others are in no edge, and there may be
  /// several trees. eps is ignored.
  static Output spanning_tree(std::uint64_t min_points) {
    Output output{kSpanningTree, {}};
    output.min_points_ = min_points;
    return output;
  }
  /// For each row of a self-join the cluster of that tree that it is in, StableClusters of at least
  /// so many rows: a pair of the row and, on the right, the cluster, whose id is its number, from 0
  /// by the smallest id in it, or kNoCluster; the distance is the row's probability.
  static Output stable_clusters(std::uint64_t min_points, std::uint64_t min_cluster_size) {
    Output output{kStableClusters, {}};
    output.min_points_ = min_points;
    output.min_cluster_size_ = min_cluster_size;
    return output;
  }

  Kind kind() const { return kind_; }
  const Top& top() const { return top_; }                   ///< of kTopPairs
  const PairSums* sums() const { return sums_; }            ///< of kSums
  std::uint64_t neighbors() const { return neighbors_; }    ///< of kNearest
  std::uint64_t left_block() const { return left_block_; }  ///< likewise
  std::uint64_t min_points() const { return min_points_; }  ///< of clusters and trees, >= 1
  /// Of kStableClusters, >= 2.
  std::uint64_t min_cluster_size() const { return min_cluster_size_; }
  BorderRule borders() const { return borders_; }           ///< of kClusters
  bool one_suffices() const { return one_suffices_ != 0; }  ///< of kCountPerRow: matched_rows()
  bool lowest_first() const { return top_.scoring.lowest_first; }  ///< of kDuplicates

 private:
  Output(Kind kind, const Top& top) : kind_(kind), top_(top) {}

  Kind kind_;
  Top top_;
  const PairSums* sums_ = nullptr;
  std::uint64_t neighbors_ = 0;
  std::uint64_t left_block_ = 0;
  std::uint64_t min_points_ = 0;
  std::uint64_t min_cluster_size_ = 0;
  std::uint8_t one_suffices_ = 0;  ///< no bool, as Sides::self_join_
  BorderRule borders_ = BorderRule::kNearest;
};

/// Whether the output follows from a spanning tree.
inline bool is_of_spanning_tree(Output::Kind output) {
  return output == Output::kSpanningTree || output == Output::kStableClusters;
}

inline bool wants_pairs(Output::Kind output) {
  return output != Output::kCountPerRow && output != Output::kTotal && output != Output::kSums &&
         output != Output::kClusters;
}

/// Whether each left row comes once, with a number: of its pairs, or what pack_cluster() makes.
inline bool wants_counts(Output::Kind output) {
  return output == Output::kCountPerRow || output == Output::kSums || output == Output::kClusters;
}

/// Whether each pair comes with a number: its distance, or its score.
inline bool wants_distances(Output::Kind output) {
  return output == Output::kPairsWithDistances || output == Output::kTopPairs ||
         output == Output::kNearest || output == Output::kDuplicates || is_of_spanning_tree(output);
}

/// What a join of boxes emits.
enum class BoxOutput : std::int32_t { kPairs, kTotal };

/// Whether an interrupt flag, which may be null, is up. Signal handlers and other threads raise it
/// at any time.
inline bool is_raised(const volatile int* flag) {
  return flag != nullptr && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

inline constexpr std::uint32_t kMostDevices = 16;

/// Devices by number, from 0 on, each named once; none: all that there are.
struct DeviceNumbers {
  std::uint32_t count = 1;
  std::int32_t number[kMostDevices] = {};  ///< [count]

  bool operator==(const DeviceNumbers&) const = default;
};

/// What a join may use, and what stops it.
struct Resources {
  std::uint32_t threads = 1;       ///< of the host, >= 1
  std::uint64_t memory_limit = 0;  ///< bytes of host memory the engine may hold, 0 = no limit
  std::uint64_t device_memory_limit = 0;  ///< bytes of device memory, 0 = no limit
  bool soft_limits = false;  ///< a join exceeds them rather than fail after a first batch
  DeviceNumbers devices;     ///< of which a join uses one or more; devices only
  /// After so long without a batch next_batch on the host returns kInterrupted, for who watches the
  /// join by its statistics; 0: it waits.
  std::uint32_t patience_ms = 0;
  /// Nonzero: next_batch returns kInterrupted soon; may be null.
  const volatile int* interrupt = nullptr;
  /// Called before a look at the flag, where the engine holds off the signals that raise it.
  void (*let_signals_in)() = nullptr;
  const RowFile* scratch = nullptr;  ///< for rows that do not fit in memory; null: there is none

  /// Whether the join is to stop. On the thread that calls the join.
  bool are_interrupted() const {
    if (let_signals_in != nullptr) let_signals_in();
    return is_raised(interrupt);
  }
};

class JoinRequest {
 public:
  JoinRequest(const Sides& sides, const PointsWithin& predicate, const Output& output)
      : sides(sides),
        shape_(Shape::kPoints),
        metric_(predicate.metric),
        eps_(predicate.eps),
        output_(output) {}
  JoinRequest(const Sides& sides, const BoxesWithin& predicate, BoxOutput output)
      : sides(sides),
        shape_(Shape::kBoxes),
        metric_(predicate.metric),
        eps_(predicate.eps),
        output_(output == BoxOutput::kTotal ? Output::total() : Output::pairs()) {}

  Sides sides;
  Resources resources;
  Knobs knobs;
  PairKeys keys = {};  ///< of joins of points, but for the best and the nearest pairs

  // Another question about the same points.
  JoinRequest asking(const PointsWithin& predicate, const Output& output) const {
    JoinRequest other(sides, predicate, output);
    other.resources = resources;
    other.knobs = knobs;
    other.keys = keys;
    return other;
  }
  JoinRequest asking(const PointsWithin& predicate) const { return asking(predicate, output_); }
  JoinRequest asking(const Output& output) const { return asking({metric_, eps_}, output); }

  Shape shape() const { return shape_; }
  Metric metric() const { return metric_; }
  double eps() const { return eps_; }
  Output::Kind output() const { return output_.kind(); }
  const Top& top() const { return output_.top(); }                   ///< of kTopPairs
  const PairSums* sums() const { return output_.sums(); }            ///< of kSums
  std::uint64_t neighbors() const { return output_.neighbors(); }    ///< of kNearest
  std::uint64_t left_block() const { return output_.left_block(); }  ///< likewise
  std::uint64_t min_points() const { return output_.min_points(); }  ///< of clusters and trees
  std::uint64_t min_cluster_size() const { return output_.min_cluster_size(); }
  BorderRule borders() const { return output_.borders(); }  ///< of kClusters
  bool one_suffices() const { return output_.one_suffices(); }
  bool lowest_first() const { return output_.lowest_first(); }  ///< of kDuplicates

  const Dataset& left() const { return sides.left(); }
  const Dataset& right() const { return sides.right(); }
  bool self_join() const { return sides.self_join(); }
  PairSelection pairs() const {
    const bool once = output() == Output::kTopPairs && self_join();
    return once ? PairSelection::kUnordered : sides.pairs();
  }
  /// Whether the first point of a pair is not the left one, but the one that comes_first().
  bool orders_pairs() const {
    return pairs() == PairSelection::kUnordered ||
           (output() == Output::kTopPairs && top().parts_of_one);
  }

 private:
  Shape shape_;
  Metric metric_;
  double eps_;
  Output output_;
};

/// The same question without its keys.
inline JoinRequest without_keys(JoinRequest request) {
  const auto bare = [](Dataset data) {
    data.keys = nullptr;
    data.key_places = nullptr;
    data.key_columns = 0;
    return data;
  };
  request.sides = request.sides.with_rows(bare(request.left()), bare(request.right()));
  request.keys = {};
  return request;
}

/// The same request of the rows that are in memory, for what looks at samples.
inline JoinRequest in_memory(JoinRequest request) {
  request.sides = request.sides.with_rows(in_memory(request.left()), in_memory(request.right()));
  return request;
}

/// For joins of rows in memory alone. Throws MemoryLimitExceeded where some lie in a file.
void require_rows_in_memory(const JoinRequest& request);

/// What every engine checks first: kInvalidArgument for a request that no engine can serve.
Status check_request(const JoinRequest& request);

// The names that settings and arguments have for them.
const char* to_string(IndexMethod method);
const char* to_string(ReferencePlacement placement);
const char* to_string(AccessPattern pattern);
const char* to_string(CellOrder order);
const char* to_string(Metric metric);
const char* to_string(ScoreFunction function);
const char* to_string(TopkMethod method);

}  // namespace gpujoin

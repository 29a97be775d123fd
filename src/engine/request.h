// What a caller asks of an engine. SQL functions and planner node fill the same JoinRequest.
#pragma once

#include <cstdint>

#include "core/cell_order.h"
#include "core/cell_walk.h"
#include "core/distance.h"
#include "core/score.h"
#include "engine/dataset.h"
#include "engine/status.h"

namespace gpujoin {

/// Which pairs of a self-join are wanted. Joins of two datasets know kAll only.
enum class PairSelection : std::int32_t {
  kAll,        ///< both orders, and self-pairs
  kDistinct,   ///< both orders, no self-pairs
  kUnordered,  ///< each pair once, the smaller id first
};

enum class Output : std::int32_t {
  kPairs,
  kPairsWithDistances,
  kCountPerRow,  ///< for each left row the number of its pairs; under kUnordered the pairs
                 ///< where it comes first
  kTotal,        ///< the number of pairs, nothing else
  kTopPairs,     ///< the pairs with the best scores, see Top
};

inline bool wants_pairs(Output output) {
  return output != Output::kCountPerRow && output != Output::kTotal;
}

/// Whether each pair comes with a number: its distance, or its score.
inline bool wants_distances(Output output) {
  return output == Output::kPairsWithDistances || output == Output::kTopPairs;
}

/// What the rows of datasets are: points, or boxes, whose dims numbers are the low corner and then
/// the high one.
enum class Shape : std::int32_t { kPoints, kBoxes };

enum class Switch : std::int32_t { kAuto, kOn, kOff };
enum class WorkOrder : std::int32_t { kAuto, kNone, kSorted, kQueue };

/// kGrid: an epsilon grid over columns of the data [GPU-SJ, section 3] [GPU-Join, section 4.1].
/// kReferencePoints: the same over distances to reference points [COSS, section 4]. kTiles: tiles
/// of neighbouring points, compared by matrix arithmetic where their boxes come near each other.
/// kNone: the nested loop.
enum class IndexMethod : std::int32_t { kAuto, kGrid, kReferencePoints, kTiles, kNone };
inline constexpr int kIndexMethodCount = 5;

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
  std::uint64_t batch_pairs = 0;  ///< pairs a batch at most, 0 = auto; lowered to fit in memory
  TopkMethod topk_method = TopkMethod::kAuto;
  BoxMethod box_method = BoxMethod::kAuto;
};

inline constexpr std::uint64_t kMostTopPairs = 1000000;

/// What a request for Output::kTopPairs asks for: the `k` pairs within eps that come first by
/// (score, id of the first point, id of the second), in that order; all pairs where there are no
/// more. Scores are those of pair_score(), for which datasets have finite scores, or distances.
///
/// A self-join asks for kUnordered. Two datasets under kUnordered are disjoint parts of one
/// dataset: there, too, comes_first() decides which point of a pair is the first.
struct Top {
  Scoring scoring;
  std::uint64_t k;  ///< 1 .. kMostTopPairs
  /// Pairs with a lower score_key() may be left out, where the caller knows of k pairs that have
  /// this one or a higher.
  std::uint64_t least_key;
};

struct JoinRequest {
  Dataset left;
  Dataset right;  ///< ignored by a self-join; as many dimensions and the same scalar type as left
  bool self_join;
  Metric metric;
  double eps;  ///< finite, >= 0
  PairSelection pairs;
  Output output;
  std::uint32_t threads;              ///< of the host, >= 1
  std::uint64_t memory_limit;         ///< bytes of host memory the engine may hold, 0 = no limit
  std::uint64_t device_memory_limit;  ///< bytes of device memory, 0 = no limit
  std::int32_t device;                ///< which device, from 0; devices only
  const volatile int* interrupt;  ///< nonzero: next_batch returns kInterrupted soon; may be null
  const RowFile* scratch;         ///< for rows that do not fit in memory; null: there is none
  Knobs knobs;
  Shape shape;  ///< boxes: kPairs or kTotal; an eps of 0 asks for boxes that touch
  Top top;      ///< of kTopPairs
};

/// The same request of the rows that are in memory, for what looks at samples.
inline JoinRequest in_memory(JoinRequest request) {
  request.left = in_memory(request.left);
  request.right = in_memory(request.right);
  return request;
}

/// Whether rows of the request lie in a file.
inline bool is_in_file(const JoinRequest& request) {
  return request.left.file != nullptr || (!request.self_join && request.right.file != nullptr);
}

/// What every engine checks first: kInvalidArgument for a request that no engine can serve.
Status check_request(const JoinRequest& request);

}  // namespace gpujoin

// What a caller asks of an engine. SQL functions and planner node fill the same JoinRequest.
#pragma once

#include <cstdint>

#include "core/cell_order.h"
#include "core/cell_walk.h"
#include "core/distance.h"
#include "engine/dataset.h"
#include "engine/status.h"

namespace gpujoin {

/// Which pairs of a self-join are wanted. Joins of two datasets know kAll only.
enum class PairSelection : std::int32_t {
  kAll,        ///< both orders, and each row with itself
  kDistinct,   ///< both orders, no row with itself
  kUnordered,  ///< each pair once, the smaller id first
};

enum class Output : std::int32_t {
  kPairs,
  kPairsWithDistances,
  kCountPerRow,  ///< for each left row the number of its pairs; under kUnordered those where it
                 ///< comes first
  kTotal,        ///< the number of pairs, nothing else
};

inline bool wants_pairs(Output output) {
  return output == Output::kPairs || output == Output::kPairsWithDistances;
}

enum class Switch : std::int32_t { kAuto, kOn, kOff };
enum class WorkOrder : std::int32_t { kAuto, kNone, kSorted, kQueue };

/// kGrid: an epsilon-grid over columns of the data (GPU-SJ, GPU-Join). kReferencePoints: the same
/// over distances to reference points (COSS). kTiles: tiles of neighbouring points, compared by
/// matrix arithmetic where their boxes come near each other. kNone: each point with each.
enum class IndexMethod : std::int32_t { kAuto, kGrid, kReferencePoints, kTiles, kNone };
inline constexpr int kIndexMethodCount = 5;

/// Where reference points lie (COSS, section 4.4): RP-OUTER at the edges of the data, RP-INNER
/// around its centre.
enum class ReferencePlacement : std::int32_t { kAuto, kOuter, kInner };
inline constexpr std::uint32_t kMaxReferencePoints = 16;

/// The techniques of the papers, each to be forced for study. Knobs change speed, never the result.
struct Knobs {
  IndexMethod index = IndexMethod::kAuto;
  std::uint32_t indexed_dimensions = 0;  ///< grid dimensions, 0 = auto (GPU-Join: k < n)
  std::uint32_t reference_points = 0;    ///< 0 = auto
  ReferencePlacement reference_placement = ReferencePlacement::kAuto;
  Switch reorder_dimensions = Switch::kAuto;  ///< REORDER
  Switch sort_unindexed = Switch::kAuto;      ///< SORTIDU
  Switch short_circuit = Switch::kAuto;       ///< SHORTC
  AccessPattern access_pattern = AccessPattern::kAuto;
  CellOrder cell_order = CellOrder::kAuto;
  WorkOrder work_order = WorkOrder::kAuto;  ///< SORTBYWL, WORKQUEUE; devices only
  std::uint32_t threads_per_point = 0;      ///< a power of two up to 32, 0 = auto; devices only
  std::uint32_t streams = 0;                ///< batches in flight, 0 = auto; devices only
  std::uint64_t batch_pairs = 0;  ///< pairs a batch at most, 0 = auto; lowered to fit in memory
};

struct JoinRequest {
  Dataset left;
  Dataset right;  ///< ignored by a self-join; as many dimensions and the same scalar type as left
  bool self_join;
  Metric metric;
  double eps;  ///< finite, >= 0
  PairSelection pairs;
  Output output;
  std::uint32_t threads;              ///< worker threads of a CPU engine, >= 1
  std::uint64_t memory_limit;         ///< bytes of host memory the engine may hold, 0 = no limit
  std::uint64_t device_memory_limit;  ///< bytes of device memory, 0 = no limit
  std::int32_t device;                ///< which device, from 0; devices only
  const volatile int* interrupt;  ///< nonzero: next_batch returns kInterrupted soon; may be null
  Knobs knobs;
};

/// What every engine checks first: kInvalidArgument for a request that no engine can serve.
Status check_request(const JoinRequest& request);

}  // namespace gpujoin

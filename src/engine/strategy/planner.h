// What each way to join is expected to cost, from a sample of the data. choose_strategy.cpp
// compares the costs.
#pragma once

#include <optional>
#include <vector>

#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/directions.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/sample.h"
#include "engine/strategy/sampled_columns.h"

namespace gpujoin {

/// The sample, and plans of each method that rest on it.
class Planner {
 public:
  /// Throws std::bad_alloc, as the plans do. The arguments outlive the planner.
  Planner(const JoinRequest& request, const WalkCosts& costs);

  /// Returns true if comparing all pairs takes no longer than choosing an index would: with few
  /// rows of many dimensions. The sample is small then.
  bool is_futile() const { return futile_; }
  /// Whether tiles can serve: screens by dot products serve L2, and cosine by its directions.
  bool knows_tiles() const;
  /// Whether tiles are worth a plan where nothing is forced.
  bool wants_tiles() const;

  Strategy plan_grid();
  Strategy plan_reference_points();
  Strategy plan_tiles();
  Strategy plan_none() const;

 private:
  struct Columns {
    std::vector<SampledColumn> columns;
    std::vector<PairMask> near;  ///< of each, the pairs within its reach

    void add_to(std::vector<ColumnChoice>* choices) const;
  };
  const Columns& data_columns();
  Columns with_masks(std::vector<SampledColumn> columns) const;
  double count_near_matches();
  const OrdinarySample& ordinary();
  Strategy start(IndexMethod index) const;
  Strategy plan_cells(Strategy strategy, std::vector<ColumnChoice> choices, double point_ns) const;
  double walk_ns(double cells_and_candidates_ns) const;
  void finish(Strategy& strategy, double candidates, double cost_per_point) const;
  double count_meeting_tiles(const std::vector<const SampledColumn*>& columns) const;

  const JoinRequest& request_;
  const WalkCosts& costs_;
  const bool futile_;
  const std::uint64_t worth_;  // rows of a side
  IndexedSample rows_;
  const JoinRequest& indexed_;  // of rows_
  Sample sample_;               // rows are those of indexed_
  SampledPairs deciding_;
  std::optional<SampledPairs> every_;       // where the estimate takes more than the choice
  std::optional<OrdinarySample> ordinary_;  // once asked for
  Columns key_columns_;
  Columns data_columns_;  // once asked for
  double left_rows_;
  double right_rows_;
  double all_pairs_;
  double matches_ = 0;  // of the sample's pairs
  double reach_;
};

/// What brute force costs one core, in milliseconds, at most.
double most_brute_force_ms(const JoinRequest& request, const WalkCosts& costs);

}  // namespace gpujoin

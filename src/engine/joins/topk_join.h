// The top-k join that compares only what can be among the best: rows of the best scores first, or
// for distances the nearest points first. It is built on a plain top-k join (topk_scan's, or a
// device's own), to which it gives parts of the rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/joins/join.h"
#include "engine/joins/score_plan.h"
#include "engine/joins/score_strata.h"
#include "engine/joins/top_pairs.h"
#include "engine/request/row_copy.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin {

/// What an engine's plain top-k join costs, in nanoseconds.
struct PlainJoinCosts {
  WalkCosts walk;  ///< of one worker
  double workers;
  double step;  ///< of a join, whatever its size
  double row;   ///< of a row, until it is indexed
  double pair;  ///< of a pair within eps, keeping it or not
};

/// Opens the join that a request for Output::kTopPairs asks for by its topk_method: kHeap and kSort
/// are the plain join's. Throws what `plain_join` and Buffer throw; so do the join's methods.
std::unique_ptr<Join> open_topk_join(const JoinRequest& request, const OpenJoin& plain_join,
                                     const PlainJoinCosts& costs);

/// Works in rounds. A round guesses a key that k pairs will have, or a radius that has k pairs, and
/// finds all pairs at least as good; if k have come, no other pair is better than they, and the
/// first k of them are the result. Otherwise the next round guesses with what this one has learnt;
/// the last one is the plain join of everything, which no guess can fail.
class TopkJoin final : public Join {
 public:
  TopkJoin(const JoinRequest& request, OpenJoin plain_join, const PlainJoinCosts& costs);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  void expect_costs(const PlainJoinCosts& costs);
  bool is_worth_guessing() const;
  void join_whole();
  void advance();
  void start_round();
  void guess_key();
  void guess_eps();
  void open_step(const ScoreStep& step);
  void open_part(JoinRequest part);
  template <class CanMatter>
  Dataset choose_rows(const Dataset& data, const ScoreStrata& strata, StrataSet set,
                      bool more_allowed, const CanMatter& can_matter, RowCopy* copy);
  Status collect_part();
  void end_step();

  JoinRequest request_;
  OpenJoin plain_join_;
  MemoryBudget budget_;
  bool by_distance_;

  // What is expected.
  double wanted_pairs_;    ///< k and some more, so that chance seldom leaves fewer
  double match_rate_ = 0;  ///< the share of pairs within eps among all pairs; more than 0
  ScoreCosts costs_{};
  double whole_ns_ = 0;  ///< of the plain join of everything

  // The round.
  std::uint32_t round_ = 0;
  std::optional<TopPairs> top_;
  std::uint64_t floor_ = 0;  ///< the round finds all pairs with this key or a higher one
  double eps_ = 0;           ///< by_distance_: the radius that has this key
  std::optional<ScoreStrata> left_strata_, right_strata_;
  std::optional<ScorePlanner> planner_;
  std::vector<ScoreStep> steps_;
  std::size_t step_ = 0;

  // The part being joined, or the whole.
  RowCopy left_, right_;
  std::unique_ptr<Join> part_;
  std::uint64_t held_ = 0;  ///< bytes besides the part's own
  bool whole_ = false;      ///< its batches are the result

  JoinStats done_{};  ///< of the parts before
  std::uint32_t parts_ = 0;
  std::optional<TopBatches> batches_;
};

}  // namespace gpujoin

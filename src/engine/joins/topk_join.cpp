#include "engine/joins/topk_join.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/joins/score_bounds.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin {
namespace {

// Where a join takes less, guessing is not worth its while.
constexpr double kWorthGuessingNs = 2e6;
// Parts have to take less than this share of what the whole does.
constexpr double kWorthPartsShare = 0.9;
constexpr double kPassNs = 5;      // of a row, finding its stratum
constexpr double kCopyNs = 10;     // of a row, choosing and copying it
constexpr double kCollectNs = 15;  // of a pair
constexpr std::uint32_t kMostRounds = 4;

double all_row_pairs(const JoinRequest& request) {
  return static_cast<double>(request.left().rows) * static_cast<double>(request.right().rows) *
         (request.self_join() ? 0.5 : 1);
}

/// Whether to guess whatever it is expected to save.
bool is_forced(const JoinRequest& request) {
  return request.knobs.topk_method == TopkMethod::kThreshold;
}

}  // namespace

std::unique_ptr<Join> open_topk_join(const JoinRequest& request, const OpenJoin& plain_join,
                                     const PlainJoinCosts& costs) {
  const TopkMethod method = request.knobs.topk_method;
  if (method == TopkMethod::kHeap || method == TopkMethod::kSort) return plain_join(request);
  return std::make_unique<TopkJoin>(request, plain_join, costs);
}

TopkJoin::TopkJoin(const JoinRequest& request, OpenJoin plain_join, const PlainJoinCosts& costs)
    : request_(request),
      plain_join_(std::move(plain_join)),
      budget_(request.resources.memory_limit),
      by_distance_(request.top().scoring.function == ScoreFunction::kDistance) {
  done_.left_rows = request.left().rows;
  done_.right_rows = request.right().rows;
  const auto k = static_cast<double>(request.top().k);
  wanted_pairs_ = k + 3 * std::sqrt(k) + 4;
  // The most distant pairs within eps are no easier to find than all pairs.
  const bool hopeless = by_distance_ && (!request.top().scoring.lowest_first || request.eps() == 0);
  const bool parts_may_do = !hopeless && all_row_pairs(request) > 0;
  if (parts_may_do) expect_costs(costs);
  if (!parts_may_do || (!is_forced(request) && !is_worth_guessing())) join_whole();
}

void TopkJoin::expect_costs(const PlainJoinCosts& costs) {
  const double rows = static_cast<double>(request_.sides.rows()),
               row_pairs = all_row_pairs(request_);
  const double fixed_ns = costs.step + rows * costs.row;
  const double row_pair_ns = costs.walk.candidate + costs.walk.dimension * request_.left().dims;
  costs_.step = costs.step;
  whole_ns_ = fixed_ns + row_pairs * row_pair_ns / costs.workers;  // by brute force
  if (!is_forced(request_) && !is_worth_guessing()) return;
  const Strategy strategy = choose_strategy(request_, costs.walk);
  const double walk_ns = 1e6 * strategy.estimate().ms / costs.workers;
  match_rate_ = strategy.least_pairs / static_cast<double>(request_.left().rows) /
                static_cast<double>(request_.right().rows);
  costs_.row = kCopyNs + costs.row;
  costs_.row_pair = walk_ns / row_pairs + match_rate_ * costs.pair;
  whole_ns_ = fixed_ns + row_pairs * costs_.row_pair;
}

/// Whether parts may be expected to take much less than the whole: they take a join, too, and the
/// passes that select rows.
bool TopkJoin::is_worth_guessing() const {
  const double passes_ns = by_distance_ ? 0 : kPassNs * static_cast<double>(request_.sides.rows());
  return whole_ns_ - costs_.step >= kWorthGuessingNs && passes_ns < whole_ns_ / 2;
}

Status TopkJoin::next_batch(ResultBatch* batch) {
  while (!whole_ && !batches_) {
    try {
      if (part_ == nullptr)
        advance();
      else if (Status status = collect_part(); !status.ok())
        return status;
    } catch (const MemoryLimitExceeded&) {
      join_whole();  // which needs no copies
    }
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  }
  if (whole_) return part_->next_batch(batch);
  if (!batches_->next(batch)) return {StatusCode::kEnd};
  return {};
}

/// Drops all parts and pairs and leaves everything to the plain join.
void TopkJoin::join_whole() {
  done_ = stats_with(done_, part_.get(), held_);
  part_.reset();
  left_ = {};
  right_ = {};
  round_ = kMostRounds;
  steps_.clear();
  step_ = 0;
  planner_.reset();
  left_strata_.reset();
  right_strata_.reset();
  batches_.reset();
  top_.reset();
  open_part(request_);
  whole_ = true;
}

/// Does what comes before the next part, or before the result.
///
/// A round that has met every pair with a key of floor_ or more, and has k pairs of such keys, has
/// the result: another pair has a lower key than each of them. So has a round whose floor_ is the
/// caller's least key, however many pairs it has.
void TopkJoin::advance() {
  if (step_ < steps_.size()) return open_step(steps_[step_]);
  const bool complete = round_ > 0 && top_ && (top_->full() || floor_ <= request_.top().least_key);
  if (!complete) return start_round();
  top_->finish();
  batches_.emplace(budget_, request_, *top_);
}

void TopkJoin::start_round() {
  if (round_ == kMostRounds) return join_whole();
  if (!top_) top_.emplace(budget_, request_, TopkMethod::kThreshold);
  by_distance_ ? guess_eps() : guess_key();
  if (whole_) return;
  ++round_;
  step_ = 0;
  floor_ = std::max(floor_, request_.top().least_key);
  top_->restart(floor_);
}

/// The first guess assumes that scores are independent of places. Later guesses expect as many
/// pairs of such scores as the rounds before have found.
void TopkJoin::guess_key() {
  if (!left_strata_) left_strata_ = cut_by_score(budget_, request_.left());
  if (!request_.self_join() && !right_strata_)
    right_strata_ = cut_by_score(budget_, request_.right());
  if (!planner_)
    planner_.emplace(request_, *left_strata_, request_.self_join() ? *left_strata_ : *right_strata_,
                     costs_);
  double row_pairs = wanted_pairs_ / match_rate_;
  if (round_ > 0) {
    const double before = planner_->row_pairs(floor_);
    const double found = std::max(static_cast<double>(top_->size()), 0.5);
    row_pairs = before * std::max(2.0, wanted_pairs_ / found);
  }
  floor_ = planner_->key_of(row_pairs);
  double ns = 0;
  steps_ = planner_->plan(std::max(floor_, request_.top().least_key), &ns);
  ns += kPassNs * static_cast<double>(request_.sides.rows());
  if (!is_forced(request_) && ns > kWorthPartsShare * whole_ns_) join_whole();
}

/// In a space of so many dimensions a ball of k times the volume has the radius times the root of
/// k. Where the data has fewer dimensions, the first guess has more pairs than wanted, which is no
/// harm: rows cost more than pairs here, and all rows are in every round.
void TopkJoin::guess_eps() {
  constexpr double kRoom = 4;  // for the error of a sample
  const double first = kRoom * wanted_pairs_ / (match_rate_ * all_row_pairs(request_));
  const double found = std::max(static_cast<double>(top_->size()), 0.5);
  const double growth = round_ == 0 ? first : kRoom * std::max(1.0, wanted_pairs_ / found);
  eps_ = (round_ == 0 ? request_.eps() : eps_) * std::pow(growth, 1.0 / request_.left().dims);
  const double ns = costs_.row * static_cast<double>(request_.sides.rows()) +
                    growth * costs_.row_pair * all_row_pairs(request_);
  const bool worth = is_forced(request_) || round_ > 0 || ns < kWorthPartsShare * whole_ns_;
  if (!(eps_ < request_.eps()) || !worth) return join_whole();
  floor_ = score_key(true, eps_);
  steps_ = {{0, 0, request_.self_join(), floor_}};
}

/// Opens the join of a step, unless the pairs that have come since it was planned leave nothing of
/// it. Rows are left out where no partner of theirs could make a pair with a good key.
void TopkJoin::open_step(const ScoreStep& step) {
  const std::uint64_t key = top_->least_key();
  Top top = request_.top();
  top.least_key = key;
  if (by_distance_)
    return open_part(request_.asking({request_.metric(), eps_}, Output::top_pairs(top)));
  if (step.best_key < key) return end_step();
  const ScoreStrata& right_strata = request_.self_join() ? *left_strata_ : *right_strata_;
  const Interval right = right_strata.range_of(step.right);
  const Dataset left = choose_rows(
      request_.left(), *left_strata_, step.left, steps_.size() == 1,
      [&](Interval own) { return reachable_keys(request_, own, right).best >= key; }, &left_);
  if (left.rows == 0) return end_step();
  JoinRequest part = request_;
  if (step.self) {
    part.sides = Sides::one(left, PairSelection::kUnordered);
  } else {
    const Interval left_scores = score_range(left);
    const Dataset right_rows = choose_rows(
        request_.right(), right_strata, step.right, !request_.self_join(),
        [&](Interval own) { return reachable_keys(request_, left_scores, own).best >= key; },
        &right_);
    if (right_rows.rows == 0) return end_step();
    part.sides = Sides::two(left, right_rows);
    top.parts_of_one = request_.orders_pairs();
  }
  open_part(part.asking(Output::top_pairs(top)));
}

/// The rows of some strata that can make good pairs, copied; or all rows, which need no copy, where
/// `more_allowed` and most rows are needed anyway. Further rows are allowed where no other step
/// meets their pairs: pairs that no step was to meet have keys below floor_, which top_ does not
/// take.
template <class CanMatter>
Dataset TopkJoin::choose_rows(const Dataset& data, const ScoreStrata& strata, StrataSet set,
                              bool more_allowed, const CanMatter& can_matter, RowCopy* copy) {
  const std::uint64_t most = strata.rows_of(set);
  if (more_allowed && most > data.rows / 4 * 3) return data;
  Buffer<std::uint32_t> rows(budget_, most);
  std::uint64_t count = 0;
  for (std::uint64_t row = 0; row < data.rows; ++row)
    if (contains(set, strata.of_row[row]) && can_matter({data.scores[row], data.scores[row]}))
      rows[count++] = static_cast<std::uint32_t>(row);
  *copy = copy_rows(budget_, data, rows.data(), count, [] {});
  return copy->view;
}

void TopkJoin::open_part(JoinRequest part) {
  held_ = budget_.used();
  part.resources.memory_limit = budget_.limit_within();
  part_ = plain_join_(part);
  ++parts_;
}

Status TopkJoin::collect_part() {
  for (;;) {
    ResultBatch batch{};
    Status status = part_->next_batch(&batch);
    if (status.code == StatusCode::kEnd) break;
    if (!status.ok()) return status;
    top_->add(request_, batch);
  }
  done_ = stats_with(done_, part_.get(), held_);
  part_.reset();
  top_->select();
  end_step();
  return {};
}

void TopkJoin::end_step() {
  left_ = {};
  right_ = {};
  ++step_;
}

void TopkJoin::stats(JoinStats* stats) const {
  *stats = stats_with(done_, part_.get(), held_);
  if (whole_) {
    JoinStats whole{};
    part_->stats(&whole);
    stats->pairs = whole.pairs;
    stats->batches = whole.batches;
  } else if (batches_) {
    stats->pairs = batches_->pairs();
    stats->batches = batches_->batches();
  }
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
  stats->topk_method = TopkMethod::kThreshold;
  stats->topk_rounds = parts_;
}

}  // namespace gpujoin

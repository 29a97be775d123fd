// The first pairs of a join by a score. The engine is asked for more of the best pairs than are
// wanted, and the join's other conditions are evaluated for each of these; where too few remain,
// the engine is asked for more. A Sort above the node does the final ordering: this file only
// discards pairs that cannot be among the first.
#include "pg/executor/join_top.h"

#include <cfloat>

#include "pg/executor/join_batch.h"
#include "pg/executor/join_explain.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_work.h"
#include "pg/store/huge_array.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// No score is further from 0.
double most_of_score(const JoinNode* node) {
  const double left = node->left.scores.range.most, right = node->right.scores.range.most;
  switch (node->data.top.function) {
    case ScoreFunction::kSum:
      return left + right;
    case ScoreFunction::kProduct:
      return left * right;
    default:
      return std::fmax(left, right);
  }
}

/// Whether the query may raise an error over a score that is out of its type's range. Bounds are a
/// little low where they have been rounded.
bool may_leave_range(const JoinNode* node) {
  const TopPlan& top = node->data.top;
  const double most = most_of_score(node);
  const double least = node->left.scores.range.least * node->right.scores.range.least;
  const bool product = top.function == ScoreFunction::kProduct;
  switch (top.type) {
    case INT2OID:
      return most > PG_INT16_MAX;
    case INT4OID:
      return most > PG_INT32_MAX;
    case INT8OID:
      return most > 9e18;
    case FLOAT4OID:
      return most > FLT_MAX || (product && least < FLT_MIN);
    case FLOAT8OID:
      return most > DBL_MAX || (product && least < DBL_MIN);
    default:
      return most > DBL_MAX;  // none of numeric, but the engine's scores would be no numbers
  }
}

/// Bounds the difference of two pairs' scores to the engine less that to the query.
///
/// Over float8, and over whole numbers below 2^53, both do the same arithmetic or exact one.
/// Elsewhere values are rounded to float8, by 2^-53 of themselves at most, the engine's score once
/// more, and the query's to float4 by 2^-24: for two pairs twice the sum of these, in shares of the
/// largest score, and what is lost where numbers are too small for their shares.
double error_of_scores(const JoinNode* node) {
  const TopPlan& top = node->data.top;
  const double most = most_of_score(node);
  const double values = std::fmax(node->left.scores.range.most, node->right.scores.range.most);
  const bool whole = is_integer_type(top.type);
  if (top.type == FLOAT8OID || (whole && std::fmax(most, values) < 0x1p53)) return 0;
  if (top.type == FLOAT4OID) return most * 0x1p-22 + 0x1p-140;
  return most * 0x1p-49 + (1 + values) * 1e-300;
}

/// How far apart two scores of the engine have to be for the query's to be in the same order, where
/// none is further from 0 than `score`.
double error_at(const JoinNode* node, double score) {
  if (node->data.top.function != ScoreFunction::kDistance) return node->top->score_error;
  const EpsBand band =
      eps_band(distance_test(node->data.test), score, node->pairs.run->report.dims);
  return band.engine_serves ? band.select - band.accept : INFINITY;
}

/// Whether a pair of this score, or a pair after it, may come before one of the first k pairs that
/// are kept.
bool may_come_later(const JoinNode* node, double score) {
  const TopPlan& top = node->data.top;
  if (node->top->kept.count < static_cast<std::uint64_t>(top.k)) return true;
  const double worst = node->top->kept.pairs[top.k - 1].score;
  const double gap = top.lowest_first ? score - worst : worst - score;
  const double error = error_at(node, score);
  return error > 0 || top.ties ? gap <= error : false;
}

void add(JoinNode* node, ScoredPairs* list, const ScoredPair& pair) {
  reserve_next(node->context, &list->pairs, list->count, &list->room);
  list->pairs[list->count++] = pair;
}

/// Keeps a pair that comes after all that are kept. False when no more is needed.
bool keep(JoinNode* node, const ScoredPair& pair) {
  add(node, &node->top->kept, pair);
  return may_come_later(node, pair.score);
}

bool is_better(const JoinNode* node, double a, double b) {
  return node->data.top.lowest_first ? a < b : a > b;
}

/// The distance of a finite point from itself: rounding may leave a vector at an angle to itself,
/// and a zero vector has none.
double own_distance(const Dataset& points, std::uint64_t row, Metric metric) {
  if (metric != Metric::kCosine) return 0;
  if (points.scalar == ScalarType::kFloat32) {
    const float* const vector = point<float>(points, row);
    return raw_distance<Metric::kCosine>(vector, vector, points.dims);
  }
  const double* const vector = point<double>(points, row);
  return raw_distance<Metric::kCosine>(vector, vector, points.dims);
}

bool has_file(const Dataset& points) { return points.file != nullptr; }

/// Adds the self-pairs of these rows that match.
void find_own_of(JoinNode* node, const Dataset& left, const Dataset& right) {
  const Scoring& scoring = node->pairs.run->request.top().scoring;
  const bool distance = scoring.function == ScoreFunction::kDistance;
  for (std::uint64_t i = 0; i < left.rows; ++i) {
    CHECK_FOR_INTERRUPTS();
    if (!is_finite_row(left, i)) continue;
    node->pairs.pair.distance = own_distance(left, i, node->data.test.by->metric);
    if (!(node->pairs.pair.distance <= node->pairs.band.select)) continue;
    const auto row = static_cast<std::uint64_t>(left.ids[i]);
    const auto other = static_cast<std::uint64_t>(right.ids[i]);
    show_pair(node, row, other);
    if (!passes(node, row, other)) continue;
    const double score =
        distance ? node->pairs.pair.distance : pair_score(scoring, left.scores[i], right.scores[i]);
    add(node, &node->top->own, {score, row, other});
  }
}

/// Finds the self-pairs that match, best first.
void find_own(JoinNode* node) {
  const Dataset& points = node->left.points;
  if (!has_file(points)) find_own_of(node, points, node->right.points);
  for (std::uint64_t i = 0; has_file(points) && i < chunk_count(points); ++i) {
    const Dataset& chunk = load_points(&node->left.buffer, i);
    find_own_of(node, chunk, chunk);  // in a file the same points have the same numbers
  }
  const auto before = [&](const ScoredPair& a, const ScoredPair& b) {
    return is_better(node, a.score, b.score);
  };
  std::sort(node->top->own.pairs, node->top->own.pairs + node->top->own.count, before);
}

/// Keeps the self-pairs that come before a pair of this score, or `all`. False when no more is
/// needed.
bool keep_own(JoinNode* node, double score, bool all) {
  ScoredPairs& own = node->top->own;
  while (own.emitted < own.count && (all || !is_better(node, score, own.pairs[own.emitted].score)))
    if (!keep(node, own.pairs[own.emitted++])) return false;
  return true;
}

/// Keeps the matching pairs among the pairs that the engine emits, until no other can be among the
/// first. False when pairs that the engine was not asked for may be.
bool keep_first(JoinNode* node) {
  node->top->kept.count = node->top->own.emitted = node->pairs.handed_over = 0;
  while (next_engine_match(node)) {
    const double score = node->pairs.pair.distance;
    if (!keep_own(node, score, false)) return true;
    if (!keep(node, {score, node->output.last_left, node->output.last_right})) return true;
  }
  const double last = node->pairs.pair.distance;
  const bool complete = node->pairs.handed_over < node->pairs.run->request.top().k;
  return !keep_own(node, last, complete) || complete || !may_come_later(node, last);
}

/// How many pairs an engine is asked for at most: so many that it can hold several copies.
std::uint64_t most_pairs(std::uint64_t memory_limit) {
  constexpr std::uint64_t kPairBytes = 256;
  return std::min(memory_limit / kPairBytes, kMostTopPairs);
}

/// Finds the first pairs. Returns whether they are among the pairs kept.
bool find_first(JoinNode* node) {
  if (node->pairs.run->join == nullptr) return true;  // there are no pairs
  JoinRequest& request = node->pairs.run->request;
  if (request.self_join() && !comes_from(node, RowSource::kKept)) find_own(node);
  while (!keep_first(node)) {
    if (comes_from(node, RowSource::kKept)) {  // a conversation with the service is about one join
      node->pairs.run->exhausted = true;
      return false;
    }
    if (node->top->problem != nullptr) return false;
    const std::uint64_t most = most_pairs(request.resources.memory_limit);
    if (node->top->wanted.k >= most) return false;
    node->top->asked = node->top->wanted.k = std::min(8 * node->top->wanted.k, most);
    request = request.asking(Output::top_pairs(node->top->wanted));
    stop_engine(node->pairs.run);
    start_engine(node->pairs.run);
    forget_pairs(node);
  }
  stop_engine(node->pairs.run);
  forget_pairs(node);
  return node->top->problem == nullptr;
}

/// The next pair that was kept.
bool next_kept(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  ScoredPairs& kept = node->top->kept;
  if (kept.emitted == kept.count) return false;
  const ScoredPair& pair = kept.pairs[kept.emitted++];
  *left = pair.left;
  *right = pair.right;
  return true;
}

/// The next pair that may be among the first, in the scan tuple. False at their end, or with
/// the problem when they were not found; then all pairs have to be emitted.
bool next_top(JoinNode* node) {
  if (!node->output.draining && !find_first(node)) {
    if (node->top->problem == nullptr)
      node->top->problem = "too many pairs have nearly the same score, or fail other conditions";
    return false;
  }
  node->output.draining = true;
  // Pairs of odd rows follow, whatever their scores: the Sort above orders them.
  std::uint64_t left, right;
  if (node->pairs.looping || !next_pair(node, next_kept, &left, &right)) return next_match(node);
  show_pair(node, left, right);
  return true;
}

void clear_top(TopWork* work) {
  work->kept.count = work->kept.emitted = work->own.count = work->own.emitted = work->asked = 0;
}

}  // namespace

void begin_top(JoinNode* node) { node->top = static_cast<TopWork*>(palloc0(sizeof(TopWork))); }

void forget_top(JoinNode* node) { *node->top = {}; }

double read_score(JoinNode* node, Side* side, TupleTableSlot* slot) {
  bool is_null;
  const Datum value = slot_getattr(slot, side->scores.value, &is_null);
  const double score = is_null ? 0 : number_of(side->scores.type, value);
  if (is_null)
    node->top->problem = "a score is NULL";
  else if (!std::isfinite(score))
    node->top->problem = "a score is not finite";
  side->scores.range.most = std::fmax(side->scores.range.most, std::fabs(score));
  if (score != 0) side->scores.range.least = std::fmin(side->scores.range.least, std::fabs(score));
  return score;
}

bool may_halve_top(const JoinNode* node) {
  const TopPlan& top = node->data.top;
  const Dataset &left = node->left.points, &right = node->right.points;
  if (!has_filter(node) || left.rows != right.rows || has_file(left) != has_file(right))
    return false;
  if (top.function == ScoreFunction::kDistance) return true;
  return top.signs[0] == top.signs[1] &&
         (has_file(left) ||  // are_same_points() compares them there
          std::memcmp(left.scores, right.scores, left.rows * sizeof(double)) == 0);
}

void ask_first(JoinNode* node) {
  const TopPlan& plan = node->data.top;
  const bool scored = plan.function != ScoreFunction::kDistance;
  if (node->inputs.form == ValueForm::kBox)
    node->top->problem = "values are no points";
  else if (scored && node->top->problem == nullptr && may_leave_range(node))
    node->top->problem = "a score may be out of range";
  const auto k = static_cast<std::uint64_t>(plan.k);
  const std::uint64_t most = most_pairs(engine_resources(node->pairs.run).memory_limit);
  if (k > most) node->top->problem = "so many pairs would not fit in gpujoin.host_memory_limit";
  node->top->score_error = scored ? error_of_scores(node) : 0;
  Top& top = node->top->wanted;
  top.scoring = {plan.function,
                 plan.lowest_first,
                 {static_cast<double>(plan.signs[0]), static_cast<double>(plan.signs[1])}};
  const bool certain = !has_filter(node) && !has_open_pairs(node) && !plan.ties &&
                       error_at(node, node->pairs.band.select) == 0;
  top.k = certain ? k : std::min(std::max(2 * k, k + 64), most);
}

void start_top(JoinNode* node) {
  clear_top(node->top);
  start_join(node);
}

bool next_first_row(JoinNode* node) {
  if (node->pairs.mode == Mode::kTop) {
    if (next_top(node)) return true;
    if (finds_top(node) || misses_rows(node)) return false;
    restart_run(node->pairs.run);
    start_rows(node);
    clear_top(node->top);
    start_pairs(node);
    start_work(node);
  }
  return next_joined_row(node);
}

Mode mode_of_top(const JoinNode* node) { return finds_top(node) ? Mode::kTop : mode_of_rows(node); }

void explain_top(const JoinNode* node, const Words& words, ExplainState* es) {
  const TopPlan& top = node->data.top;
  ExplainPropertyText(
      "Order", psprintf("%s%s", words(node->expressions.score), top.lowest_first ? "" : " DESC"),
      es);
  ExplainPropertyInteger("K", nullptr, top.k, es);
  ExplainPropertyText("Score Function", to_string(top.function), es);
}

}  // namespace gpujoin

// Who decides which pairs. The engine joins the points of both sides. Then the condition itself is
// evaluated for the pairs of odd rows. Each pair of rows comes once: by the engine if neither row
// is odd, with the odd left rows if the left row is odd, and else with the odd right rows.
#include "pg/executor/join_work.h"

#include "engine/strategy/choose_strategy.h"
#include "pg/executor/join_batch.h"
#include "pg/executor/join_blocks.h"
#include "pg/executor/join_eps.h"
#include "pg/executor/join_extents.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_kept.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_order.h"
#include "pg/executor/join_products.h"
#include "pg/executor/join_radii.h"
#include "pg/executor/join_result.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_sums.h"
#include "pg/executor/join_top.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

Output wanted_output(JoinNode* node) {
  if (node->pairs.mode == Mode::kSums) return wanted_sums(node);
  if (node->pairs.mode == Mode::kCounts)
    return shows_right(node) ? Output::count_per_row() : Output::matched_rows();
  if (node->pairs.mode == Mode::kTotal) return Output::total();
  if (node->pairs.mode == Mode::kTop) return Output::top_pairs(node->top->wanted);
  return has_open_pairs(node) ? Output::pairs_with_distances() : Output::pairs();
}

PairSelection wanted_pairs(const JoinNode* node) {
  if (comes_from(node, RowSource::kKept) && node->pairs.mode != Mode::kTop)
    return node->inputs.kept_pairs;
  if (!node->pairs.order_by_engine) return PairSelection::kAll;
  return node->data.order.order == KeyOrder::kDifferent ? PairSelection::kDistinct
                                                        : PairSelection::kUnordered;
}

Sides wanted_sides(JoinNode* node) {
  const Side* const classed = node->pairs.classes.side;
  const bool self_join = (node->pairs.mode != Mode::kTop || may_halve_top(node)) &&
                         classed == nullptr && are_same_points(node) &&
                         (!has_keys(node) || node->pairs.keys->same);
  const auto dataset = [&](bool left) {
    const Side& side = left ? node->left : node->right;
    Dataset points =
        with_keys(node, left, &side == classed ? node->pairs.classes.points : side.points);
    if (comes_from(node, RowSource::kSummed) && points.file == nullptr)
      points.ids = nullptr;  // which are positions
    return node->sums != nullptr ? with_sums(node, left, self_join, points) : points;
  };
  if (!self_join) return Sides::two(dataset(true), dataset(false));
  Dataset points = dataset(true);
  // In memory rows are named by position, which the right side counts its own way.
  if (points.file == nullptr)
    points.ids = node->pairs.order_by_engine ? node->pairs.sides.ranks : nullptr;
  return Sides::one(points, wanted_pairs(node));
}

JoinRequest wanted_request(JoinNode* node) {
  const Sides sides = wanted_sides(node);
  const Metric metric = node->data.test.by->metric;
  if (node->inputs.form == ValueForm::kBox)
    return {sides, BoxesWithin{metric, node->pairs.band.select},
            node->pairs.mode == Mode::kTotal ? BoxOutput::kTotal : BoxOutput::kPairs};
  JoinRequest request(sides, PointsWithin{metric, node->pairs.band.select}, wanted_output(node));
  if (has_keys(node)) request.keys = node->pairs.keys->asked;
  return request;
}

/// Sets the band of distances that the radius leaves to the engine and to the condition. False when
/// no pair can match.
bool find_band(JoinNode* node) {
  double eps = 0;
  bool is_null = true;
  if (!compute_eps(node, &eps, &is_null)) return false;
  node->pairs.eps_of_all = eps;
  node->pairs.band =
      has_row_radii(node) ? widest_band(node, eps) : band_within(node, node->data.test, eps);
  // Values are no nearer than their boxes, but may be farther apart.
  const bool decided = node->data.test.by->form == TestForm::kOverlap && !node->data.test.open &&
                       !node->inputs.approximate;
  if (node->inputs.form == ValueForm::kBox && !decided) node->pairs.band.accept = -1;
  return !is_null;
}

/// Asks without keys where these leave the engine more work than the conditions would be.
void weigh_keys(JoinNode* node) {
  constexpr double kPairNs = 80;  // measured: a condition of two columns
  if (!has_keys(node) || are_keys_worth(node->pairs.run->request, kPairNs)) return;
  drop_keys(node, "another index without keys is quicker");
  node->pairs.mode = node->result->mode(node);
  ask_engine(node, wanted_request(node));
}

/// Starts the engine on the points of both sides.
void start_points(JoinNode* node) {
  forget_pairs(node);
  ask_engine(node, wanted_request(node));
  weigh_keys(node);
  if (node->pairs.mode == Mode::kSums) group_sums(node);
  start_engine(node->pairs.run);
  if (node->pairs.mode == Mode::kTop) node->top->asked = node->top->wanted.k;
}

void start_loop(JoinNode* node, const PairLoop& loop) {
  node->pairs.loop = loop;
  node->pairs.looping = true;
}

void add_matches(JoinNode* node, std::uint64_t left, std::uint64_t count) {
  if (node->output.matches != nullptr)
    node->output.matches[left] += count;
  else if (notes_matches(node) && count > 0)
    mark_late_row(node->left.late, static_cast<std::int64_t>(left));
}

/// Takes over what the engine counts. False when it had no memory for it.
bool take_counts(JoinNode* node) {
  while (next_engine_batch(node->pairs.run)) {
    const ResultBatch& batch = node->pairs.run->batch;
    node->output.total += batch.pair_count;
    for (std::uint64_t i = 0; i < batch.row_count; ++i)
      add_matches(node, row_of(node, node->left, batch.left_ids[batch.rows[i]]), batch.counts[i]);
  }
  return !node->pairs.run->exhausted;
}

/// The engine had no memory, and has emitted nothing yet: it makes pairs instead, which takes the
/// least, or else the condition is evaluated for all pairs.
void do_without(JoinNode* node) {
  if (lacks_rows(node)) return;
  if (node->pairs.classes.side != nullptr) {
    set_classes_aside(node);
    node->pairs.step = Step::kOddLeft;
    return;
  }
  if (node->pairs.mode == Mode::kTop)
    node->top->problem = "the join does not fit in gpujoin.host_memory_limit";
  if (has_keys(node) && node->pairs.mode != Mode::kSums) {
    drop_keys(node, "the index does not fit in gpujoin.host_memory_limit");
    node->pairs.mode = node->result->mode(node);
    node->pairs.step = Step::kPoints;
    return;
  }
  const bool other_way = node->pairs.mode == Mode::kTop || node->pairs.mode == Mode::kSums ||
                         node->pairs.order_by_engine;
  node->pairs.order_by_engine = false;
  node->pairs.mode = node->pairs.mode == Mode::kSums ? Mode::kPairs
                     : other_way                     ? node->result->mode(node)
                                                     : Mode::kLoop;
  node->pairs.step = Step::kPoints;
}

/// Whether all rows are points in memory.
bool are_points(const JoinNode* node, const Side& side) {
  return side.points.rows == row_count(node, side) && side.points.file == nullptr;
}

/// Reports that no engine joins the points.
void note_loop(JoinNode* node) {
  if (node->pairs.band.all && are_points(node, node->left) && are_points(node, node->right)) {
    node->report.loop_reason = "every pair of points is within the radius";
    return;
  }
  node->report.loop_reason = "the condition is asked for every pair";
  note_fallback(node->pairs.run, Fallback::kLoop,
                node->pairs.band.engine_serves
                    ? "the join does not fit in gpujoin.host_memory_limit"
                    : "no engine takes the radius");
}

/// Joins all points, or all rows.
void join_points(JoinNode* node) {
  if (node->top != nullptr && node->top->problem != nullptr)
    note_fallback(node->pairs.run, Fallback::kTopk, node->top->problem);
  if (node->pairs.mode == Mode::kLoop) {
    node->pairs.step = Step::kDone;
    note_loop(node);
    store_late_rows(node);
    PairLoop loop = {};
    loop.left_rows = row_count(node, node->left);
    loop.right_rows = row_count(node, node->right);
    start_loop(node, loop);
    return;
  }
  node->pairs.step = Step::kOddLeft;
  if (node->left.points.rows == 0 || node->right.points.rows == 0) return;
  if (node->pairs.classes.side != nullptr) {
    if (!next_radius_class(node)) return;
    node->pairs.step = Step::kPoints;
  }
  if (node->pairs.mode == Mode::kSums && !prepare_sums(node)) node->pairs.mode = Mode::kPairs;
  start_points(node);
  const bool counts = node->pairs.mode == Mode::kCounts || node->pairs.mode == Mode::kTotal;
  if (node->pairs.run->exhausted || (counts && !take_counts(node)) ||
      (node->pairs.mode == Mode::kSums && !take_sums(node)))
    do_without(node);
}

void start_odd_loop(JoinNode* node, bool left) {
  const Side& side = left ? node->left : node->right;
  if (side.odd.count == 0) return;
  store_late_rows(node);
  PairLoop loop = {};
  loop.left_rows = left ? side.odd.count : row_count(node, node->left);
  loop.right_rows = left ? row_count(node, node->right) : side.odd.count;
  (left ? loop.odd_left : loop.odd_right) = side.odd.rows;
  loop.right_outer = left;
  loop.skip_odd_left = !left;
  start_loop(node, loop);
}

/// Whether no more pairs of the left row are wanted.
bool is_complete(const JoinNode* node, std::uint64_t left) {
  return is_settled(node, left) || is_group_complete(node, left);
}

std::uint64_t row_at(const OddRow* odd, std::uint64_t at) {
  return odd != nullptr ? static_cast<std::uint64_t>(odd[at].row) : at;
}

/// The next pair of the loop; false at its end.
bool next_in_loop(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  PairLoop& loop = node->pairs.loop;
  for (;;) {
    std::uint64_t &inner = loop.right_outer ? loop.left : loop.right,
                  &outer = loop.right_outer ? loop.right : loop.left;
    const std::uint64_t inner_rows = loop.right_outer ? loop.left_rows : loop.right_rows;
    if (inner == inner_rows) {
      inner = 0;
      ++outer;
    }
    if (inner_rows == 0 || outer >= (loop.right_outer ? loop.right_rows : loop.left_rows))
      return false;
    *left = row_at(loop.odd_left, loop.left);
    *right = row_at(loop.odd_right, loop.right);
    ++inner;
    CHECK_FOR_INTERRUPTS();
    const bool skip = is_complete(node, *left) ||
                      (loop.skip_odd_left && find_odd(node->left.odd, *left) != nullptr);
    if (!skip) return true;
    if (!loop.right_outer) inner = inner_rows;
  }
}

/// Whether the row is known to be a point without NaN and infinities.
bool is_finite_point(const JoinNode* node, const Side& side, std::uint64_t row) {
  return are_points(node, side) && side.late == nullptr && is_finite_row(side.points, row);
}

/// What is known of the pair that the engine emitted last. Boxes may be nearer than their values.
Verdict judge(const JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (has_row_radii(node) && node->pairs.run->request.output() == Output::kPairsWithDistances)
    return compare_radii(node, left, right, node->pairs.pair.distance);
  return is_open(node) ? Verdict::kOpen : Verdict::kWithin;
}

/// Evaluates the condition, where its answer is not known, for a pair that the scan tuple shows.
bool asks(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (node->pairs.band.all && is_finite_point(node, node->left, left) &&
      is_finite_point(node, node->right, right))
    return true;
  ++node->report.evaluated;
  MemoryContextReset(node->asked);
  show_tested(node, &node->left, left);
  show_tested(node, &node->right, right);
  const bool matches = holds(node, node->conditions.distance);
  if (!matches) ++node->report.rejected;
  return matches;
}

/// Conditions before and after the engine's own.
struct Others {
  ExprState *early, *late;
};

/// Whether all conditions hold for a pair that the scan tuple shows, in PostgreSQL's order: the one
/// on the keys' order unless the engine `ordered` the pairs, and its own where it left it `open`.
/// Counts those for which they do not.
bool fulfils(JoinNode* node, std::uint64_t left, std::uint64_t right, bool ordered, bool open,
             const Others& others) {
  const bool may = !breaks_box_rule(node, left, right) &&
                   (ordered || holds(node, node->conditions.order)) && holds(node, others.early);
  if (may && open && !asks(node, left, right)) return false;
  if (may && holds(node, others.late)) return true;
  InstrCountFiltered2(&node->css, 1);
  return false;
}

void note_match(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  add_matches(node, left, 1);
  node->output.last_left = left;
  node->output.last_right = right;
}

/// Whether of a pair and its reverse the engine emits one, and the order of keys is not known to
/// it.
bool emits_halves(const JoinNode* node) {
  return node->pairs.mode == Mode::kTop || (comes_from(node, RowSource::kKept) &&
                                            node->inputs.kept_pairs == PairSelection::kUnordered);
}

/// The next pair that the engine found.
bool next_of_engine(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  const JoinRequest& request = node->pairs.run->request;
  read_late_rows(node);
  if (node->pairs.reverse_due) {
    std::swap(node->pairs.pair.id1, node->pairs.pair.id2);
    node->pairs.reverse_due = false;
  } else {
    while (!node->pairs.cursor.next(&node->pairs.pair))
      if (!next_batch(node)) return false;
    node->pairs.reverse_due = request.self_join() && emits_halves(node);
  }
  const bool reversed = request.self_join() && node->pairs.order_by_engine &&
                        node->data.order.order == KeyOrder::kGreater;
  *left = row_of(node, node->left, reversed ? node->pairs.pair.id2 : node->pairs.pair.id1);
  *right = row_of(node, node->right, reversed ? node->pairs.pair.id1 : node->pairs.pair.id2);
  return true;
}

/// The next pair of the loop that the condition is asked about.
bool next_asked_in_loop(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  while (next_in_loop(node, left, right))
    if (!node->inputs.tests_srids ||
        !are_srids_apart(node, *left, *right, pair_radius(node, *left, *right)))
      return true;
  return false;
}

bool next_loop_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_pair(node, next_asked_in_loop, &left, &right)) {
    if (is_complete(node, left)) continue;  // since the pair was made
    show_pair(node, left, right);
    if (fulfils(node, left, right, false, true, {node->conditions.early, node->conditions.late})) {
      note_match(node, left, right);
      return true;
    }
  }
  node->pairs.looping = false;
  return false;
}

/// The ids of a side's rows: positions of its points, numbers of rows, or ctids.
IdRange ids_of(const JoinNode* node, const Side& side) {
  if (names_positions(node)) return {static_cast<std::int64_t>(side.points.rows), 0};
  if (side.late != nullptr) return ids_of_table(*side.late);
  if (side.places.rows > 0) return {};  // find_row_place() knows them
  return {static_cast<std::int64_t>(row_count(node, side)), 0};
}

}  // namespace

void ask_engine(JoinNode* node, const JoinRequest& request) {
  EngineRun* const run = node->pairs.run;
  set_request(run, request);
  if (!comes_from(node, RowSource::kKept) || node->nearest != nullptr ||
      node->left.late != nullptr || node->right.late != nullptr)
    limit_ids(run, ids_of(node, node->left), ids_of(node, node->right));
}

std::uint64_t row_of(const JoinNode* node, const Side& side, std::int64_t id) {
  if (comes_from(node, RowSource::kSummed)) return static_cast<std::uint64_t>(id);
  const bool stored = side.places.rows > 0;  // late rows, in the order of the points
  if (!names_positions(node))
    return stored ? find_row_place(side.places, id) : static_cast<std::uint64_t>(id);
  if (node->pairs.order_by_engine && node->pairs.sides.by_rank != nullptr)
    id = node->pairs.sides.by_rank[id];
  return static_cast<std::uint64_t>(stored ? id : side.points.ids[id]);
}

bool has_filter(const JoinNode* node) {
  return early_conditions(node) != nullptr || late_conditions(node) != nullptr ||
         (node->conditions.order != nullptr && !node->pairs.order_by_engine);
}

bool decides_pairs(const JoinNode* node) { return !has_open_pairs(node) && !has_filter(node); }

Mode mode_of_rows(const JoinNode* node) {
  if (!decides_pairs(node)) return Mode::kPairs;
  if (node->data.counts && !node->data.grouped) return Mode::kTotal;
  // A row's count is of the unordered pairs where it comes first.
  const bool counts =
      (node->data.grouped || !(shows_right(node) || node->data.names_matches)) &&
      !(node->pairs.order_by_engine && node->data.order.order == KeyOrder::kGreater);
  return counts && node->inputs.form != ValueForm::kBox ? Mode::kCounts : Mode::kPairs;
}

void start_join(JoinNode* node) {
  if (notes_matches(node) && node->left.late == nullptr) clear_matches(node);
  node->pairs.band = {true, true, false, 0, 0};
  const bool may_match = find_band(node);
  if (comes_from(node, RowSource::kKept) && may_match && !node->pairs.band.engine_serves) {
    node->pairs.run->exhausted = true;
    return;
  }
  start_pairs(node);
  if (!may_match) node->pairs.step = Step::kDone;
  if (comes_from(node, RowSource::kSummed) && may_match && node->pairs.mode != Mode::kSums) {
    node->pairs.run->exhausted = true;
    return;
  }
  start_work(node);
  node->output.pairs_are_rows = are_pairs_rows(node);
}

void start_pairs(JoinNode* node) {
  if (node->top != nullptr) ask_first(node);
  if (node->pairs.keys != nullptr) find_keys(node);
  find_radius_classes(node);
  node->pairs.order_by_engine = node->conditions.order != nullptr && node->top == nullptr &&
                                node->pairs.classes.side == nullptr &&
                                node->pairs.band.engine_serves && find_ranks(node) &&
                                (!has_keys(node) || node->pairs.keys->same);
  node->pairs.mode = node->pairs.band.engine_serves ? node->result->mode(node) : Mode::kLoop;
  const bool none = node->pairs.band.none && node->pairs.band.engine_serves;
  node->pairs.step = none ? Step::kOddLeft : Step::kPoints;
  node->pairs.looping = false;
}

bool start_work(JoinNode* node) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    switch (node->pairs.step) {
      case Step::kPoints:
        join_points(node);
        break;
      case Step::kOddLeft:
        node->pairs.step = Step::kOddRight;
        start_odd_loop(node, true);
        break;
      case Step::kOddRight:
        node->pairs.step = Step::kDone;
        start_odd_loop(node, false);
        break;
      case Step::kDone:
        return false;
    }
    if (node->pairs.looping || node->pairs.run->join != nullptr) return true;
  }
}

bool next_batch(JoinNode* node) {
  CHECK_FOR_INTERRUPTS();
  if (node->pairs.run->join == nullptr) return false;
  if (!next_engine_batch(node->pairs.run)) {
    node->pairs.cursor = {};
    if (node->pairs.run->exhausted) do_without(node);
    return false;
  }
  node->pairs.cursor.start(node->pairs.run->batch, node->pairs.run->request.orders_pairs());
  node->pairs.handed_over += node->pairs.run->batch.pair_count;
  return true;
}

bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  return next_pair(node, next_of_engine, left, right);
}

bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  const Verdict verdict = judge(node, left, right);
  if (verdict == Verdict::kBeyond) return false;
  const bool ordered = node->pairs.order_by_engine && node->pairs.run->request.self_join();
  return fulfils(node, left, right, ordered, verdict == Verdict::kOpen,
                 {early_conditions(node), late_conditions(node)});
}

bool next_engine_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_found(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_complete(node, left)) continue;
    show_pair(node, left, right);
    if (!passes(node, left, right)) continue;
    note_match(node, left, right);
    return true;
  }
  return false;
}

bool next_match(JoinNode* node) {
  do {
    if (node->pairs.looping ? next_loop_match(node) : next_engine_match(node)) return true;
  } while (node->pairs.looping || start_work(node));
  return false;
}

}  // namespace gpujoin

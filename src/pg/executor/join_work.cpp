// Who decides which pairs. The engine joins the points of both sides. Then the condition itself is
// evaluated for the pairs of odd rows. Each pair of rows comes once: by the engine if neither row
// is odd, with the odd left rows if the left row is odd, and else with the odd right rows.
#include "pg/executor/join_node.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// The mode in which the engine alone serves.
Mode engine_mode(const JoinNode* node) {
  if (node->data.top.k > 0 && node->top_problem == nullptr) return Mode::kTop;
  if (has_open_pairs(node) || has_filter(node)) return Mode::kPairs;
  if (node->data.counts && !node->data.grouped) return Mode::kTotal;
  // A row's count is of the unordered pairs where it comes first.
  const bool counts = (node->data.grouped || !(shows_right(node) || node->data.names_matches)) &&
                      !(node->order_by_engine && node->data.order.order == KeyOrder::kGreater);
  return counts && node->form != ValueForm::kBox ? Mode::kCounts : Mode::kPairs;
}

Output wanted_output(const JoinNode* node) {
  if (node->mode == Mode::kCounts) return Output::count_per_row();
  if (node->mode == Mode::kTotal) return Output::total();
  if (node->mode == Mode::kTop) return Output::top_pairs(node->top);
  return has_open_pairs(node) ? Output::pairs_with_distances() : Output::pairs();
}

PairSelection wanted_pairs(const JoinNode* node) {
  if (!node->order_by_engine) return PairSelection::kAll;
  return node->data.order.order == KeyOrder::kDifferent ? PairSelection::kDistinct
                                                        : PairSelection::kUnordered;
}

Sides wanted_sides(JoinNode* node) {
  const bool self_join = (node->mode != Mode::kTop || may_halve_top(node)) && are_same_points(node);
  if (!self_join) return Sides::two(node->left.points, node->right.points);
  Dataset points = node->left.points;
  // In memory rows are named by position, which the right side counts its own way.
  if (points.file == nullptr) points.ids = node->order_by_engine ? node->ranks : nullptr;
  return Sides::one(points, wanted_pairs(node));
}

JoinRequest wanted_request(JoinNode* node) {
  const Sides sides = wanted_sides(node);
  const Metric metric = node->data.test.by->metric;
  if (node->form == ValueForm::kBox)
    return {sides, BoxesWithin{metric, node->band.select},
            node->mode == Mode::kTotal ? BoxOutput::kTotal : BoxOutput::kPairs};
  return {sides, PointsWithin{metric, node->band.select}, wanted_output(node)};
}

/// Starts the engine on the points of both sides.
void start_points(JoinNode* node) {
  forget_pairs(node);
  set_request(node->run, wanted_request(node));
  start_engine(node->run);
  node->top_asked = node->mode == Mode::kTop ? node->top.k : 0;
}

/// The row that the engine names: by its number, or in a self-join by the point's position or rank.
std::uint64_t row_of(const JoinNode* node, const Side& side, std::int64_t id) {
  if (!names_positions(node)) return static_cast<std::uint64_t>(id);
  if (node->order_by_engine && node->by_rank != nullptr) id = node->by_rank[id];
  return static_cast<std::uint64_t>(side.points.ids[id]);
}

void start_loop(JoinNode* node, const PairLoop& loop) {
  node->loop = loop;
  node->looping = true;
}

/// Takes over what the engine counts. False when it had no memory for it.
bool take_counts(JoinNode* node) {
  while (next_engine_batch(node->run)) {
    const ResultBatch& batch = node->run->batch;
    node->total += batch.pair_count;
    for (std::uint64_t i = 0; i < batch.row_count; ++i)
      node->matches[row_of(node, node->left, batch.left_ids[batch.rows[i]])] += batch.counts[i];
  }
  return !node->run->exhausted;
}

/// The engine had no memory, and has emitted nothing yet: it makes pairs instead, which takes the
/// least, or else the condition is evaluated for all pairs.
void do_without(JoinNode* node) {
  if (node->mode == Mode::kTop)
    node->top_problem = "the join does not fit in gpujoin.host_memory_limit";
  const bool other_way = node->mode == Mode::kTop || node->order_by_engine;
  node->order_by_engine = false;
  node->mode = other_way ? engine_mode(node) : Mode::kLoop;
  node->step = Step::kPoints;
}

/// Whether all rows are points in memory.
bool are_points(const Side& side) {
  return side.points.rows == row_count(side) && side.points.file == nullptr;
}

/// Reports that no engine joins the points.
void note_loop(JoinNode* node) {
  if (node->band.all && are_points(node->left) && are_points(node->right)) {
    node->loop_reason = "every pair of points is within the radius";
    return;
  }
  node->loop_reason = "the condition is asked for every pair";
  note_fallback(node->run, Fallback::kLoop,
                node->band.engine_serves ? "the join does not fit in gpujoin.host_memory_limit"
                                         : "no engine takes the radius");
}

/// Joins all points, or all rows.
void join_points(JoinNode* node) {
  if (node->top_problem != nullptr) note_fallback(node->run, Fallback::kTopk, node->top_problem);
  if (node->mode == Mode::kLoop) {
    node->step = Step::kDone;
    note_loop(node);
    PairLoop loop = {};
    loop.left_rows = row_count(node->left);
    loop.right_rows = row_count(node->right);
    start_loop(node, loop);
    return;
  }
  node->step = Step::kOddLeft;
  if (node->left.points.rows == 0 || node->right.points.rows == 0) return;
  start_points(node);
  const bool counts = node->mode == Mode::kCounts || node->mode == Mode::kTotal;
  if (node->run->exhausted || (counts && !take_counts(node))) do_without(node);
}

void start_odd_loop(JoinNode* node, bool left) {
  const Side& side = left ? node->left : node->right;
  PairLoop loop = {};
  loop.left_rows = left ? side.odd.count : row_count(node->left);
  loop.right_rows = left ? row_count(node->right) : side.odd.count;
  (left ? loop.odd_left : loop.odd_right) = side.odd.rows;
  loop.right_outer = left;
  loop.skip_odd_left = !left;
  if (side.odd.count > 0) start_loop(node, loop);
}

std::uint64_t row_at(const OddRow* odd, std::uint64_t at) {
  return odd != nullptr ? static_cast<std::uint64_t>(odd[at].row) : at;
}

/// The next pair of the loop; false at its end.
bool next_in_loop(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  PairLoop& loop = node->loop;
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
    const bool skip = is_settled(node, *left) ||
                      (loop.skip_odd_left && find_odd(node->left.odd, *left) != nullptr);
    if (!skip) return true;
    if (!loop.right_outer) inner = inner_rows;
  }
}

/// Whether the row is known to be a point without NaN and infinities.
bool is_finite_point(const Side& side, std::uint64_t row) {
  return are_points(side) && is_finite_row(side.points, row);
}

/// Evaluates the condition, where its answer is not known, for a pair that the scan tuple shows.
bool asks(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (node->band.all && is_finite_point(node->left, left) && is_finite_point(node->right, right))
    return true;
  ++node->evaluated;
  MemoryContextReset(node->asked);
  show_tested(node, &node->left, left);
  show_tested(node, &node->right, right);
  const bool matches = holds(node, node->condition);
  if (!matches) ++node->rejected;
  return matches;
}

/// Whether all conditions hold for a pair that the scan tuple shows, in PostgreSQL's order: the one
/// on the keys' order unless the engine `ordered` the pairs, and its own where it left it `open`.
/// Counts those for which they do not.
bool fulfils(JoinNode* node, std::uint64_t left, std::uint64_t right, bool ordered, bool open) {
  const bool may = (ordered || holds(node, node->order)) && holds(node, node->early);
  if (may && open && !asks(node, left, right)) return false;
  if (may && holds(node, node->late)) return true;
  InstrCountFiltered2(&node->css, 1);
  return false;
}

void note_match(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (node->matches != nullptr) ++node->matches[left];
  node->last_left = left;
  node->last_right = right;
}

/// The next pair that the engine found.
bool next_of_engine(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  const JoinRequest& request = node->run->request;
  if (node->reverse_due) {
    std::swap(node->pair.id1, node->pair.id2);
    node->reverse_due = false;
  } else {
    while (!node->cursor.next(&node->pair))
      if (!next_batch(node)) return false;
    node->reverse_due = request.self_join() && node->mode == Mode::kTop;
  }
  const bool reversed =
      request.self_join() && node->order_by_engine && node->data.order.order == KeyOrder::kGreater;
  *left = row_of(node, node->left, reversed ? node->pair.id2 : node->pair.id1);
  *right = row_of(node, node->right, reversed ? node->pair.id1 : node->pair.id2);
  return true;
}

bool next_loop_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_pair(node, next_in_loop, &left, &right)) {
    if (is_settled(node, left)) continue;  // since the pair was made
    show_pair(node, left, right);
    if (fulfils(node, left, right, false, true)) {
      note_match(node, left, right);
      return true;
    }
  }
  node->looping = false;
  return false;
}

}  // namespace

bool has_filter(const JoinNode* node) {
  return node->early != nullptr || node->late != nullptr ||
         (node->order != nullptr && !node->order_by_engine);
}

void start_pairs(JoinNode* node) {
  if (node->data.top.k > 0) node->top = first_top(node, engine_resources(node->run).memory_limit);
  node->order_by_engine = node->order != nullptr && node->data.top.k == 0 &&
                          node->band.engine_serves && find_ranks(node);
  node->mode = node->band.engine_serves ? engine_mode(node) : Mode::kLoop;
  const bool none = node->band.none && node->band.engine_serves;
  node->step = none ? Step::kOddLeft : Step::kPoints;
  node->looping = false;
}

bool start_work(JoinNode* node) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    switch (node->step) {
      case Step::kPoints:
        join_points(node);
        break;
      case Step::kOddLeft:
        node->step = Step::kOddRight;
        start_odd_loop(node, true);
        break;
      case Step::kOddRight:
        node->step = Step::kDone;
        start_odd_loop(node, false);
        break;
      case Step::kDone:
        return false;
    }
    if (node->looping || node->run->join != nullptr) return true;
  }
}

bool next_batch(JoinNode* node) {
  CHECK_FOR_INTERRUPTS();
  if (node->run->join == nullptr) return false;
  if (!next_engine_batch(node->run)) {
    node->cursor = {};
    if (node->run->exhausted) do_without(node);
    return false;
  }
  node->cursor.start(node->run->batch, node->run->request.orders_pairs());
  node->handed_over += node->run->batch.pair_count;
  return true;
}

bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  return next_pair(node, next_of_engine, left, right);
}

bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  const bool ordered = node->order_by_engine && node->run->request.self_join();
  return fulfils(node, left, right, ordered, is_open(node));
}

bool next_engine_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_found(node, &left, &right)) {
    CHECK_FOR_INTERRUPTS();
    if (is_settled(node, left)) continue;
    show_pair(node, left, right);
    if (!passes(node, left, right)) continue;
    note_match(node, left, right);
    return true;
  }
  return false;
}

bool next_match(JoinNode* node) {
  do {
    if (node->looping ? next_loop_match(node) : next_engine_match(node)) return true;
  } while (node->looping || start_work(node));
  return false;
}

bool asks_for_condition(JoinNode* node) {
  if (node->order == nullptr && node->early == nullptr) return true;
  PairLoop loop = {};
  loop.left_rows = row_count(node->left);
  loop.right_rows = row_count(node->right);
  start_loop(node, loop);
  std::uint64_t left, right;
  bool found = false;
  while (!found && next_in_loop(node, &left, &right)) {
    show_pair(node, left, right);
    found = holds(node, node->order) && holds(node, node->early);
  }
  node->looping = false;
  return found;
}

}  // namespace gpujoin

// Who decides which pairs. The engine joins the points of both sides, in parts where memory is
// short. Then the condition itself is evaluated for the pairs of odd rows. Each pair of rows comes
// once: by the engine or in the loop over its part if neither row is odd, with the odd left rows if
// the left row is odd, and else with the odd right rows.
#include "pg/executor/join_node.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Some of a side's points.
Dataset points_of(const Dataset& points, std::uint64_t first, std::uint64_t rows) {
  Dataset some = points;
  some.rows = rows;
  some.coordinates = static_cast<const char*>(points.coordinates) +
                     first * points.dims * scalar_bytes(points.scalar);
  some.ids = points.ids + first;
  if (points.scores != nullptr) some.scores = points.scores + first;
  return some;
}

/// The mode in which the engine alone serves.
Mode engine_mode(const JoinNode* node) {
  if (node->data.top.k > 0 && node->top_problem == nullptr) return Mode::kTop;
  if (has_open_pairs(node) || has_filter(node)) return Mode::kPairs;
  if (node->data.counts && !node->data.grouped) return Mode::kTotal;
  // A row's count is of the unordered pairs where it comes first.
  const bool counts = (node->data.grouped || !shows_right(node)) &&
                      !(node->order_by_engine && node->data.order.order == KeyOrder::kGreater);
  return counts && node->form != ValueForm::kBox ? Mode::kCounts : Mode::kPairs;
}

Output wanted_output(const JoinNode* node) {
  if (node->mode == Mode::kCounts) return Output::kCountPerRow;
  if (node->mode == Mode::kTotal) return Output::kTotal;
  if (node->mode == Mode::kTop) return Output::kTopPairs;
  if (node->form == ValueForm::kBox) return Output::kPairs;
  return has_open_pairs(node) ? Output::kPairsWithDistances : Output::kPairs;
}

PairSelection wanted_pairs(const JoinNode* node, bool self_join) {
  if (!self_join) return PairSelection::kAll;
  if (node->mode == Mode::kTop) return PairSelection::kUnordered;
  if (!node->order_by_engine) return PairSelection::kAll;
  return node->data.order.order == KeyOrder::kDifferent ? PairSelection::kDistinct
                                                        : PairSelection::kUnordered;
}

/// Starts the engine on a part.
void start_part(JoinNode* node, const Part& part) {
  node->part = part;
  node->cursor = {};
  node->reverse_due = false;
  JoinRequest& request = node->run->request;
  const Top top = request.top;
  request = default_request(node->run);
  request.top = top;
  request.left = points_of(node->left.points, part.left, part.left_rows);
  request.right = points_of(node->right.points, part.right, part.right_rows);
  request.self_join = (node->mode != Mode::kTop || may_halve_top(node)) &&
                      are_same_points(request.left, request.right);
  // In a self-join rows are named by position, which the right side counts its own way.
  if (request.self_join) request.left.ids = node->order_by_engine ? node->ranks : nullptr;
  request.shape = node->form == ValueForm::kBox ? Shape::kBoxes : Shape::kPoints;
  request.metric = node->data.test.by->metric;
  request.eps = node->band.select;
  request.output = wanted_output(node);
  request.pairs = wanted_pairs(node, request.self_join);
  start_next_part(node->run);
  node->top_asked = node->mode == Mode::kTop ? request.top.k : 0;
}

/// The row that the engine names: by its number, but in a self-join by the point's position in the
/// part, or by its rank.
std::uint64_t row_of(const JoinNode* node, const Side& side, std::uint64_t first, std::int64_t id) {
  if (!node->run->request.self_join) return static_cast<std::uint64_t>(id);
  if (node->order_by_engine && node->by_rank != nullptr) id = node->by_rank[id];
  return static_cast<std::uint64_t>(side.points.ids[first + static_cast<std::uint64_t>(id)]);
}

void add_part(JoinNode* node, const Part& part) {
  Assert(node->part_count < kMostParts);
  node->parts[node->part_count++] = part;
}

/// Puts the next pair of blocks, or all there is, on the list of parts. False at the end.
bool next_blocks(JoinNode* node) {
  const auto blocks = [](const Side& side) { return std::max(side.buffer.block_count, 1); };
  if (node->left_block == blocks(node->left)) return false;
  if (is_in_blocks(node->left)) need_block(&node->left, node->left_block);
  if (is_in_blocks(node->right)) need_block(&node->right, node->right_block);
  if (++node->right_block == blocks(node->right)) {
    node->right_block = 0;
    ++node->left_block;
  }
  if (node->left.points.rows > 0 && node->right.points.rows > 0)
    add_part(node, {0, node->left.points.rows, 0, node->right.points.rows});
  return true;
}

void start_loop(JoinNode* node, const PairLoop& loop) {
  node->loop = loop;
  node->looping = true;
}

/// The engine has no memory for the part: joins its halves instead, or, where its points take next
/// to nothing of the memory, evaluates the condition.
void split_part(JoinNode* node) {
  const Part part = node->part;
  const JoinRequest& request = node->run->request;
  if (node->order_by_engine || node->mode == Mode::kTop) {
    node->order_by_engine = false;
    if (node->mode == Mode::kTop)
      node->top_problem = "the join does not fit in gpujoin.host_memory_limit";
    node->mode = engine_mode(node);
  }
  const std::uint64_t bytes = dataset_bytes(request.left) + dataset_bytes(request.right);
  if (bytes < request.memory_limit / 4 || part.left_rows + part.right_rows < 64) {
    PairLoop loop = {};
    loop.left_ids = node->left.points.ids + part.left;
    loop.left_rows = part.left_rows;
    loop.right_ids = node->right.points.ids + part.right;
    loop.right_rows = part.right_rows;
    start_loop(node, loop);
    return;
  }
  Part one = part, other = part;
  if (part.left_rows > part.right_rows) {
    one.left_rows = part.left_rows / 2;
    other.left_rows = part.left_rows - one.left_rows;
    other.left += one.left_rows;
  } else {
    one.right_rows = part.right_rows / 2;
    other.right_rows = part.right_rows - one.right_rows;
    other.right += one.right_rows;
  }
  add_part(node, other);
  add_part(node, one);
}

/// Takes over what the engine counts in the part. False when it had no memory for it.
bool take_counts(JoinNode* node) {
  while (next_engine_batch(node->run)) {
    const ResultBatch& batch = node->run->batch;
    node->total += batch.pair_count;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const std::int64_t id = batch.left_ids[batch.rows[i]];
      node->matches[row_of(node, node->left, node->part.left, id)] += batch.counts[i];
    }
  }
  return !node->run->exhausted;
}

/// Begins with the next part. False when there is none.
bool take_next_part(JoinNode* node) {
  while (node->part_count == 0)
    if (!next_blocks(node)) return false;
  start_part(node, node->parts[--node->part_count]);
  const bool counts = node->mode == Mode::kCounts || node->mode == Mode::kTotal;
  if (node->run->exhausted || (counts && !take_counts(node))) split_part(node);
  return true;
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

bool is_settled(const JoinNode* node, std::uint64_t left) {
  return !shows_right(node) && node->matches[left] > 0;
}

std::uint64_t row_at(const OddRow* odd, const std::int64_t* ids, std::uint64_t at) {
  if (odd != nullptr) return static_cast<std::uint64_t>(odd[at].row);
  return ids != nullptr ? static_cast<std::uint64_t>(ids[at]) : at;
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
    *left = row_at(loop.odd_left, loop.left_ids, loop.left);
    *right = row_at(loop.odd_right, loop.right_ids, loop.right);
    ++inner;
    CHECK_FOR_INTERRUPTS();
    const bool skip = is_settled(node, *left) ||
                      (loop.skip_odd_left && find_odd(node->left.odd, *left) != nullptr);
    if (!skip) return true;
    if (!loop.right_outer) inner = inner_rows;
  }
}

/// Evaluates the condition for a pair that the scan tuple shows.
bool asks(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  ++node->rechecked;
  MemoryContextReset(node->asked);
  show_tested(node, &node->left, left);
  show_tested(node, &node->right, right);
  return holds(node, node->condition);
}

/// Whether all conditions hold for a pair of a loop, in PostgreSQL's order.
bool passes_all(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  return holds(node, node->order) && holds(node, node->early) && asks(node, left, right) &&
         holds(node, node->late);
}

void note_match(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (node->matches != nullptr) ++node->matches[left];
  node->last_left = left;
  node->last_right = right;
}

bool next_loop_match(JoinNode* node) {
  std::uint64_t left, right;
  while (next_in_loop(node, &left, &right)) {
    show_pair(node, left, right);
    if (passes_all(node, left, right)) {
      note_match(node, left, right);
      return true;
    }
    ++node->removed;
  }
  node->looping = false;
  return false;
}

}  // namespace

bool has_filter(const JoinNode* node) {
  return node->early != nullptr || node->late != nullptr ||
         (node->order != nullptr && !node->order_by_engine);
}

bool are_same_points(const Dataset& a, const Dataset& b) {
  if (a.rows != b.rows || a.dims != b.dims || a.scalar != b.scalar) return false;
  return std::memcmp(a.coordinates, b.coordinates, a.rows * a.dims * scalar_bytes(a.scalar)) == 0;
}

void start_pairs(JoinNode* node) {
  node->run->request.top = {};
  if (node->data.top.k > 0)
    node->run->request.top = first_top(node, default_request(node->run).memory_limit);
  node->order_by_engine = node->order != nullptr && node->data.top.k == 0 &&
                          node->band.engine_serves && find_ranks(node);
  node->mode = node->band.engine_serves ? engine_mode(node) : Mode::kLoop;
  const bool none = node->band.none && node->band.engine_serves;
  node->step = none ? Step::kOddLeft : Step::kParts;
  node->part_count = node->left_block = node->right_block = 0;
  node->looping = false;
  node->cursor = {};
}

bool start_work(JoinNode* node) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    switch (node->step) {
      case Step::kParts:
        if (node->mode == Mode::kLoop) {
          node->step = Step::kDone;
          node->looped = true;
          PairLoop loop = {};
          loop.left_rows = row_count(node->left);
          loop.right_rows = row_count(node->right);
          start_loop(node, loop);
        } else if (!take_next_part(node)) {
          node->step = Step::kOddLeft;
        }
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
    if (node->run->exhausted) split_part(node);
    return false;
  }
  node->cursor.start(node->run->batch, node->run->request.pairs);
  node->handed_over += node->run->batch.pair_count;
  return true;
}

bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  const JoinRequest& request = node->run->request;
  if (node->reverse_due) {
    std::swap(node->pair.id1, node->pair.id2);
    node->reverse_due = false;
  } else {
    while (!node->cursor.next(&node->pair))
      if (!next_batch(node)) return false;
    node->reverse_due = request.self_join && node->mode == Mode::kTop;
  }
  const bool reversed =
      request.self_join && node->order_by_engine && node->data.order.order == KeyOrder::kGreater;
  *left = row_of(node, node->left, node->part.left, reversed ? node->pair.id2 : node->pair.id1);
  *right = row_of(node, node->right, node->part.right, reversed ? node->pair.id1 : node->pair.id2);
  return true;
}

bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  const bool ordered = node->order_by_engine && node->run->request.self_join;
  if ((ordered || holds(node, node->order)) && holds(node, node->early) &&
      (!is_open(node) || asks(node, left, right)) && holds(node, node->late))
    return true;
  ++node->removed;
  return false;
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

// The nearest rows: of each left row the first k right rows by their distance, as a LATERAL
// subquery with ORDER BY and LIMIT has them. The engine finds neighbours of all points. The
// distance itself is evaluated where the engine's arithmetic is not its own and leaves the order
// open, and for rows that are no points; right rows without a distance come last. Where other
// conditions leave too few of a row's neighbours the engine is asked for more of that row's, and in
// the end all right rows are looked at. Right rows come in the order of the query's further keys,
// so the number of a row decides among equal distances.
#include "pg/executor/join_nearest.h"

#include "pg/executor/join_batch.h"
#include "pg/executor/join_blocks.h"
#include "pg/executor/join_eps.h"
#include "pg/executor/join_explain.h"
#include "pg/executor/join_extents.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_kept.h"
#include "pg/executor/join_products.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_work.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {

namespace {

/// The distance of the engine beyond which the operator's are larger than that of a pair at this
/// one.
double surely_beyond(const JoinNode* node, double distance) {
  return surely_beyond(node->data.test, node->pairs.lifted, distance, node->pairs.run->report.dims);
}

}  // namespace

// ---- One pair

double measure(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  ++node->report.evaluated;
  show_pair(node, left, right);
  MemoryContextReset(node->asked);
  show_tested(node, &node->left, left);
  show_tested(node, &node->right, right);
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = ExecStoreVirtualTuple(ExecClearTuple(slot));
  bool is_null;
  const Datum value =
      ExecEvalExprSwitchContext(node->nearest->terms.distance, expressions, &is_null);
  return is_null ? kUnknown : DatumGetFloat8(value);
}

bool is_candidate(JoinNode* node, std::uint64_t left, std::uint64_t right, bool within) {
  const bool asks = node->conditions.distance != nullptr && !within;
  node->nearest->beyond_radius = false;
  if (node->conditions.early == nullptr && !asks) return true;
  if (are_srids_apart(node, left, right, INFINITY) || breaks_box_rule(node, left, right))
    return false;
  show_pair(node, left, right);
  bool passes = holds(node, node->conditions.early);
  if (passes && asks) {
    ++node->report.evaluated;
    MemoryContextReset(node->asked);
    show_tested(node, &node->left, left);
    show_tested(node, &node->right, right);
    passes = holds(node, node->conditions.distance);
    node->nearest->beyond_radius = !passes;
  }
  if (!passes) ++node->report.rejected;
  return passes;
}

void add_ranked(NearestWork* work, double distance, std::uint64_t right) {
  reserve_next(work->context, &work->ranks.rows, work->ranks.count, &work->ranks.room);
  work->ranks.rows[work->ranks.count++] = {distance, right};
}

void add_to_heap(NearestWork* work, const NearestRow& found) {
  if (work->ranks.count < work->k) {
    add_ranked(work, found.distance, found.right);
    std::push_heap(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
  } else if (is_nearer(found, work->ranks.rows[0])) {
    std::pop_heap(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
    work->ranks.rows[work->ranks.count - 1] = found;
    std::push_heap(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
  }
}

namespace {

// ---- The rows of one left row

void begin_ranks(JoinNode* node, std::uint64_t left) {
  NearestWork* const work = node->nearest;
  work->ranks.left = left;
  work->ranks.count = work->ranks.next = 0;
  if (work->boxes.any) span_left(node);
}

/// Its rows are known, and come next.
void end_ranks(NearestWork* work) {
  work->done[work->ranks.left] = 1;
  work->ranks.none_due = work->ranks.count == 0;
}

/// Adds rows without a distance where there is room: all distances may be NULL. A radius leaves
/// them out.
void add_unknown(JoinNode* node) {
  NearestWork* const work = node->nearest;
  if (node->conditions.distance != nullptr) return;
  for (std::uint64_t i = 0; i < work->unknown_count && work->ranks.count < work->k; ++i) {
    CHECK_FOR_INTERRUPTS();
    if (is_candidate(node, work->ranks.left, work->unknown[i], true))
      add_ranked(work, kUnknown, work->unknown[i]);
  }
}

/// The rows of a left row that has no distance to any.
void rank_unknown(JoinNode* node) {
  NearestWork* const work = node->nearest;
  if (node->conditions.distance != nullptr) return;
  LateRows* const late = node->right.late;
  if (late != nullptr) restart_late_rows(late);
  const std::uint64_t rows = row_count(node, node->right);
  for (std::uint64_t number = 0; work->ranks.count < work->k; ++number) {
    CHECK_FOR_INTERRUPTS();
    if (late != nullptr ? next_late_row(late) == nullptr : number == rows) break;
    const std::uint64_t right = late != nullptr ? static_cast<std::uint64_t>(late->held) : number;
    if (is_candidate(node, work->ranks.left, right, true)) add_ranked(work, kUnknown, right);
  }
  if (late != nullptr) restart_late_rows(late);
}

/// Looks at all right rows of the left row's SRID, or at those of other ones. The first k so far
/// are a heap.
void rank_all(JoinNode* node, bool other_srid) {
  NearestWork* const work = node->nearest;
  const std::uint64_t rows = row_count(node, node->right);
  for (std::uint64_t right = 0; right < rows; ++right) {
    CHECK_FOR_INTERRUPTS();
    const double gap = gap_between_srids(node, work->ranks.left, right);
    const bool has_distance = gap < INFINITY;
    if ((gap >= 0) != other_srid || cannot_come(work, gap)) continue;
    if (work->boxes.any && cannot_come(work, least_of(node, right))) continue;
    if (!has_distance && node->conditions.distance != nullptr) continue;
    if (!is_candidate(node, work->ranks.left, right, !has_distance)) continue;
    add_to_heap(work, {has_distance ? measure(node, work->ranks.left, right) : kUnknown, right});
  }
}

/// Looks at all right rows, those of other SRIDs last: for most of these the boxes decide.
void rank_all(JoinNode* node) {
  NearestWork* const work = node->nearest;
  store_late_rows(node);
  work->ranks.count = work->ranks.next = 0;
  rank_all(node, false);
  if (node->inputs.tests_srids) rank_all(node, true);
  std::sort_heap(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
}

/// Sorts neighbours whose order the engine's distances leave open by the operator's.
void sort_open(JoinNode* node) {
  NearestWork* const work = node->nearest;
  NearestRow* const ranked = work->ranks.rows;
  for (std::uint64_t begin = 0, end; begin < std::min(work->ranks.count, work->k); begin = end) {
    double beyond = surely_beyond(node, ranked[begin].distance);
    for (end = begin + 1; end < work->ranks.count && ranked[end].distance <= beyond; ++end)
      if (ranked[end].distance > ranked[end - 1].distance)
        beyond = surely_beyond(node, ranked[end].distance);
    for (std::uint64_t i = begin; i < end; ++i)
      ranked[i].distance =
          end - begin > 1 ? measure(node, work->ranks.left, ranked[i].right) : kUnmeasured;
    std::sort(ranked + begin, ranked + end, is_nearer);
  }
}

/// Among the neighbours that the engine found come rows that it does not know. False where some
/// have no distance, so that their place is among others that have none.
bool add_odd(JoinNode* node) {
  NearestWork* const work = node->nearest;
  if (!work->terms.exact)
    for (std::uint64_t i = 0; i < work->ranks.count; ++i)
      work->ranks.rows[i].distance = measure(node, work->ranks.left, work->ranks.rows[i].right);
  std::sort(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
  const NearestRow* const kth =
      work->k > 0 && work->ranks.count >= work->k ? &work->ranks.rows[work->k - 1] : nullptr;
  const double most =
      std::min(work->boxes.farthest,
               kth != nullptr && order_class(kth->distance) == 0 ? kth->distance : INFINITY);
  for (std::uint64_t i = 0; i < work->odd_count; ++i) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t right = work->odd[i];
    const double gap = gap_between_srids(node, work->ranks.left, right);
    if (gap > most) continue;
    if (!is_candidate(node, work->ranks.left, right, false)) continue;
    const double distance = measure(node, work->ranks.left, right);
    if (distance == kUnknown) return false;
    add_ranked(work, distance, right);
  }
  std::sort(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
  return true;
}

/// rank() where values have extents.
bool rank_by_boxes(JoinNode* node, const std::uint32_t* neighbors, const double* distances,
                   std::uint64_t count, bool all) {
  bool complete = true;
  if (!rank_boxes(node, neighbors, distances, count, all, &complete)) {
    rank_all(node);
    return true;
  }
  if (complete) add_unknown(node);
  return complete;
}

/// Ranks neighbours that the engine found of the left row, nearest first; `all`: there are no more.
/// False where more of them have to be known.
bool rank(JoinNode* node, const std::uint32_t* neighbors, const double* distances,
          std::uint64_t count, bool all) {
  NearestWork* const work = node->nearest;
  if (work->boxes.any) return rank_by_boxes(node, neighbors, distances, count, all);
  const ResultBatch& batch = node->pairs.run->batch;
  double beyond = INFINITY;   // of the k-th neighbour and of those that may come before it
  double outside = INFINITY;  // where the radius, of the same function, decides against all
  const bool decides_alone = is_product(node->data.test) && !node->data.nearest.radius.open;
  bool certain = all;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (distances[i] > outside ||
        (work->ranks.count >= work->k && (work->terms.exact || distances[i] > beyond))) {
      certain = true;
      break;
    }
    const std::uint64_t right = row_of(node, node->right, batch.right_ids[neighbors[i]]);
    const bool within = work->by_radius && distances[i] <= node->pairs.band.accept;
    if (!is_candidate(node, work->ranks.left, right, within)) {
      if (work->beyond_radius && decides_alone && outside == INFINITY)
        outside = surely_beyond(node, distances[i]);
      continue;
    }
    add_ranked(work, distances[i], right);
    if (!work->terms.exact && work->ranks.count >= work->k)
      beyond = surely_beyond(node, distances[i]);
  }
  if (!certain && !(work->terms.exact && work->ranks.count >= work->k)) return false;
  if (work->odd_count > 0 && !add_odd(node)) {
    rank_all(node);
    return true;
  }
  if (work->odd_count == 0 && !work->terms.exact) sort_open(node);
  work->ranks.count = std::min(work->ranks.count, work->k);
  if (comes_from(node, RowSource::kKept) && work->ranks.count < work->k &&
      node->conditions.distance == nullptr)
    rank_all(node);  // the service has no rows without a distance
  else
    add_unknown(node);
  return true;
}

// ---- The engine

std::uint64_t most_asked(const NearestWork* work) {
  return std::min<std::uint64_t>(kMostAsked, work->points);
}

/// A few neighbours more than k tell whether the order of the first k is certain.
std::uint64_t first_asked(const JoinNode* node) {
  constexpr std::uint64_t kSpare = 2, kSpareShare = 8, kMoreBoxes = 4, kMoreBoxesShare = 4;
  const NearestWork* const work = node->nearest;
  const bool more = !work->terms.exact || node->conditions.early != nullptr ||
                    (node->conditions.distance != nullptr && !work->by_radius);
  if (work->boxes.any)
    return std::min(work->k + kMoreBoxes + work->k / kMoreBoxesShare, most_asked(work));
  return std::min(work->k + (more ? kSpare + work->k / kSpareShare : 0), most_asked(work));
}

void add_to_piece(NearestWork* work, const Dataset& points, std::uint64_t position) {
  work->search.piece.dims = points.dims;
  std::memcpy(add_point(&work->search.piece, points.ids[position]), point(points, position),
              point_bytes(points));
}

/// Makes a piece of the points of one chunk, or of those left rows that are open.
Dataset make_piece(JoinNode* node) {
  NearestWork* const work = node->nearest;
  PointBuffer* const buffer = &node->left.buffer;
  forget_points(&work->search.piece);
  work->search.piece = {};
  work->search.piece.context = work->context;
  work->search.piece.source = buffer->source;
  work->search.piece.limit = std::numeric_limits<std::uint64_t>::max() / 2;
  work->search.piece.scalar = node->left.points.scalar;
  if (work->step == NearestStep::kPoints) {
    const Dataset& chunk = load_points(buffer, work->search.chunk);
    for (std::uint64_t i = 0; i < chunk.rows; ++i) add_to_piece(work, chunk, i);
    return finish_points(&work->search.piece);
  }
  for (std::uint64_t left = 0; left < row_count(node, node->left); ++left) {
    if (!work->open[left]) continue;
    work->open[left] = 0;
    std::uint64_t position;
    const Dataset* const points =
        find_point(buffer, node->left.points, static_cast<std::int64_t>(left), &position);
    add_to_piece(work, *points, position);
  }
  work->open_count = 0;
  return finish_points(&work->search.piece);
}

/// How many left rows memory has room for, where they lie in a file; 0: they do not.
std::uint64_t spilled_block(const JoinNode* node) {
  constexpr std::uint64_t kLeast = 1 << 14, kMost = 1 << 20;  // what engines can make use of
  Size bytes = 0;
  for (const RowStore* const store : {node->left.shown.rows, node->left.tested.rows})
    bytes += spilled_bytes(store);
  if (bytes == 0) return 0;
  return std::clamp(node->inputs.budget.limit / 2 / bytes, kLeast, kMost);
}

/// Where memory was too small for the search: all right rows are looked at, unless no row has come
/// yet and the inputs can be read another way.
void note_failure(JoinNode* node) {
  NearestWork* const work = node->nearest;
  EngineRun* const run = node->pairs.run;
  if (!run->exhausted) return;
  work->search.failed = true;
  work->open_count = 0;
  if (work->search.begun) run->exhausted = false;
}

/// Begins a search for neighbours of these points. Right rows that the service has are found for
/// each search.
void search(JoinNode* node, const Dataset& left) {
  NearestWork* const work = node->nearest;
  EngineRun* const run = node->pairs.run;
  restart_run(run);
  if (work->search.begun && comes_from(node, RowSource::kKept) && !find_kept_again(node)) {
    work->search.failed = true;
    return;
  }
  const double radius = work->by_radius ? node->pairs.band.select : DBL_MAX;
  ask_engine(
      node, {Sides::two(left, node->right.points), PointsWithin{node->data.test.by->metric, radius},
             Output::nearest(work->search.asked, spilled_block(node))});
  start_engine(run);
  note_failure(node);
  work->search.begun = true;
  work->search.runs = true;
  work->search.batch_row = 0;
}

/// Begins the next search; false where the engine has done what it can.
bool search_more(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const Dataset& points = node->left.points;
  const MemoryContext caller = MemoryContextSwitchTo(work->context);
  bool begun = false;
  if (work->step == NearestStep::kPoints &&
      work->search.chunk < (points.rows > 0 ? chunk_count(points) : 0)) {
    if (points.file == nullptr || node->right.points.file != nullptr) {
      work->search.chunk = chunk_count(points);
      search(node, points);
    } else {
      node->pairs.run->service.shared[0] = {};
      search(node, make_piece(node));
      ++work->search.chunk;
    }
    begun = true;
  } else if (work->open_count > 0 && work->search.asked < most_asked(work)) {
    constexpr std::uint64_t kTimesMore = 8;
    work->step = NearestStep::kOpen;
    work->search.asked = std::min(kTimesMore * work->search.asked, most_asked(work));
    if (work->open_count * work->search.asked > few_rows(node->right.points.rows))
      store_late_rows(node);
    node->pairs.run->service.shared[0] = {};
    search(node, make_piece(node));
    begun = true;
  }
  MemoryContextSwitchTo(caller);
  return begun;
}

std::uint64_t left_id(const ResultBatch& batch, std::uint64_t row) {
  return static_cast<std::uint64_t>(batch.left_ids[batch.rows[row]]);
}

/// Has the processor fetch what the engine's next left rows need: it names them in an order of its
/// own.
void expect_left(const JoinNode* node, std::uint64_t batch_row) {
  constexpr std::uint64_t kRowsAhead = 16, kValuesAhead = 8;
  const ResultBatch& batch = node->pairs.run->batch;
  const Side& side = node->left;
  if (batch_row + kRowsAhead >= batch.row_count) return;
  const std::uint64_t later = left_id(batch, batch_row + kRowsAhead);
  const std::uint64_t sooner = left_id(batch, batch_row + kValuesAhead);
  for (const RowStore* const store : {side.shown.rows, side.tested.rows}) {
    expect_row(store, later);
    expect_values(store, sooner);
  }
  if (side.points.file == nullptr && side.points.rows == row_count(node, side))
    __builtin_prefetch(point(side.points, later));
}

/// Reads what the engine's next left rows and their neighbours need from files, as many as memory
/// allows, but at first no more than have come before.
void read_block(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const ResultBatch& batch = node->pairs.run->batch;
  const bool tested = !work->terms.exact || node->conditions.distance != nullptr;
  const std::uint64_t begin = work->search.batch_row, most = work->search.came + 1;
  const Size room = begin_wanting(node);
  Size bytes = 0;
  std::uint64_t row = begin;
  for (; row < batch.row_count && row - begin < most && bytes < room; ++row) {
    CHECK_FOR_INTERRUPTS();
    bytes += want_rows(&node->left, left_id(batch, row), tested);
    if (node->right.late != nullptr) continue;
    for (std::uint64_t i = batch.entry(row); i < batch.entry(row + 1); ++i)
      bytes += want_rows(&node->right,
                         row_of(node, node->right, batch.right_ids[batch.neighbors[i]]), tested);
  }
  read_wanted(node);
  work->search.came += row - begin;
  work->search.read_row = row;
}

/// Ranks the neighbours of the next left row that the engine names. False where it names no more.
bool next_searched(JoinNode* node) {
  NearestWork* const work = node->nearest;
  EngineRun* const run = node->pairs.run;
  while (work->search.runs) {
    CHECK_FOR_INTERRUPTS();
    if (run->join == nullptr || work->search.batch_row >= run->batch.row_count) {
      work->search.batch_row = work->search.read_row = 0;
      work->search.runs = next_engine_batch(run);
      if (!work->search.runs) note_failure(node);
      continue;
    }
    if (node->inputs.budget.spilled && work->search.batch_row == work->search.read_row)
      read_block(node);
    const ResultBatch& batch = run->batch;
    const std::uint64_t row = work->search.batch_row++, begin = batch.entry(row);
    const std::uint64_t count = batch.entry(row + 1) - begin;
    node->pairs.handed_over += count;
    expect_left(node, row);
    begin_ranks(node, left_id(batch, row));
    // Without a radius the engine leaves out what is too far for its arithmetic.
    if (count < work->search.asked && !work->by_radius) continue;
    const bool all = count < work->search.asked || work->search.asked >= work->points;
    if (rank(node, batch.neighbors + begin, batch.distances + begin, count, all)) {
      end_ranks(work);
      return true;
    }
    work->open[work->ranks.left] = 1;
    ++work->open_count;
  }
  return false;
}

/// Whether the left row is a point that the engine has compared with all others, and found nothing.
bool has_no_neighbor(JoinNode* node, std::uint64_t left, bool* is_point) {
  const NearestWork* const work = node->nearest;
  std::uint64_t position;
  const Dataset* const points =
      find_point(&node->left.buffer, node->left.points, static_cast<std::int64_t>(left), &position);
  *is_point = points != nullptr;
  return *is_point && is_finite_row(*points, position) && !work->open[left] &&
         (work->by_radius || work->points == 0) && !work->search.failed;
}

/// Ranks the rows of a left row that the engine has not.
void rank_rest(JoinNode* node, std::uint64_t left) {
  NearestWork* const work = node->nearest;
  begin_ranks(node, left);
  bool is_point = false;
  if (work->k > 0 && has_no_neighbor(node, left, &is_point))
    rank(node, nullptr, nullptr, 0, true);
  else if (work->k > 0 && !is_point && find_odd(node->left.odd, left) == nullptr)
    rank_unknown(node);
  else if (work->k > 0)
    rank_all(node);
  end_ranks(work);
}

/// The next left row, ranked.
bool next_left(JoinNode* node) {
  NearestWork* const work = node->nearest;
  read_late_rows(node);
  while (work->step != NearestStep::kRest) {
    if (work->search.runs && next_searched(node)) return true;
    if (misses_rows(node)) return false;
    if (!work->search.failed && search_more(node)) continue;
    if (work->search.failed) {
      node->report.loop_reason = "the join does not fit in gpujoin.host_memory_limit";
      note_fallback(node->pairs.run, Fallback::kLoop, node->report.loop_reason);
    }
    work->step = NearestStep::kRest;
  }
  while (work->rest < row_count(node, node->left)) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t left = work->rest++;
    if (work->done[left]) continue;
    rank_rest(node, left);
    return true;
  }
  return false;
}

/// The next pair. A left row without any comes once with kNoRow, and what distances
/// are is in node->pairs.pair.
bool next_ranked(JoinNode* node, std::uint64_t* left, std::uint64_t* right) {
  NearestWork* const work = node->nearest;
  do {
    *left = work->ranks.left;
    if (work->ranks.next < work->ranks.count) {
      const NearestRow& found = work->ranks.rows[work->ranks.next++];
      *right = found.right;
      node->pairs.pair.distance = found.distance;
      return true;
    }
    if (work->ranks.none_due && emits_unmatched(node)) {
      work->ranks.none_due = false;
      *right = kNoRow;
      return true;
    }
  } while (next_left(node));
  return false;
}

// ---- Rows

/// Computes the columns that no input has, of a pair that the scan tuple shows.
void show_outputs(JoinNode* node, std::uint64_t left, std::uint64_t right, double distance) {
  NearestWork* const work = node->nearest;
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  if (work->terms.outputs.measures && distance == kUnmeasured)
    distance = measure(node, left, right);
  for (int i = 0; i < work->terms.outputs.count; ++i) {
    if (!work->terms.outputs.is_distance[i]) continue;
    slot->tts_isnull[work->terms.outputs.columns[i]] = distance == kUnknown;
    slot->tts_values[work->terms.outputs.columns[i]] = Float8GetDatum(distance);
  }
  if (work->terms.outputs.computed == NIL) return;
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  MemoryContextReset(work->terms.outputs.values);
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = ExecStoreVirtualTuple(ExecClearTuple(slot));
  const MemoryContext caller = MemoryContextSwitchTo(work->terms.outputs.values);
  for (int i = 0; i < work->terms.outputs.count; ++i) {
    const int column = work->terms.outputs.columns[i];
    if (!work->terms.outputs.is_distance[i])
      slot->tts_values[column] =
          ExecEvalExpr(work->terms.outputs.expressions[i], expressions, &slot->tts_isnull[column]);
  }
  MemoryContextSwitchTo(caller);
}

void show_unmatched(JoinNode* node, std::uint64_t left) {
  show_left_alone(node, left);
  for (int i = 0; i < node->nearest->terms.outputs.count; ++i)
    node->css.ss.ss_ScanTupleSlot->tts_isnull[node->nearest->terms.outputs.columns[i]] = true;
}

// ---- What a run begins with

/// PostgreSQL's own LIMIT: NULL is none.
std::uint64_t read_limit(JoinNode* node) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  bool is_null;
  const Datum value = ExecEvalExprSwitchContext(node->nearest->terms.limit, expressions, &is_null);
  if (is_null) return std::numeric_limits<std::uint64_t>::max();
  const std::int64_t limit = DatumGetInt64(value);
  if (limit < 0)
    ereport(ERROR, (errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
                    errmsg("LIMIT must not be negative")));
  return static_cast<std::uint64_t>(limit);
}

/// Sets the band of distances that the radius leaves to the engine.
void read_radius(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const NearestPlan& plan = node->data.nearest;
  work->by_radius = plan.has_radius;
  work->boxes.farthest = INFINITY;
  node->pairs.band = {true, plan.has_radius, false, 0, 0};
  if (!plan.has_radius) return;
  double eps = 0;
  bool is_null = true;
  if (!compute_eps(node, &eps, &is_null) || is_null) return;  // no pair is within
  node->pairs.band = band_within(node, plan.radius, eps);
  work->by_radius = node->pairs.band.engine_serves;
  if (work->by_radius && !node->pairs.band.none) work->boxes.farthest = node->pairs.band.select;
}

/// Sorts the right rows: those that only the operator knows, those without a distance, the others.
void sort_right_rows(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const Dataset& points = node->right.points;
  if (comes_from(node, RowSource::kKept)) {
    work->points = points.rows;
    return;
  }
  const OddRows& odd = node->right.odd;
  std::uint64_t odd_room = 0, unknown_room = 0, position = 0, next_odd = 0, chunk = 0;
  const bool in_file = points.file != nullptr;
  const Dataset* loaded =
      in_file && points.rows > 0 ? &load_points(&node->right.buffer, 0) : &points;
  for (std::uint64_t row = 0; row < row_count(node, node->right); ++row) {
    CHECK_FOR_INTERRUPTS();
    if (in_file && position == loaded->rows && ++chunk < chunk_count(points)) {
      loaded = &load_points(&node->right.buffer, chunk);
      position = 0;
    }
    const bool is_point =
        position < loaded->rows && static_cast<std::uint64_t>(loaded->ids[position]) == row;
    const bool is_odd =
        next_odd < odd.count && static_cast<std::uint64_t>(odd.rows[next_odd].row) == row;
    next_odd += is_odd;
    if (is_odd || (is_point && !is_finite_row(*loaded, position))) {
      reserve_next(work->context, &work->odd, work->odd_count, &odd_room);
      work->odd[work->odd_count++] = row;
    } else if (is_point) {
      ++work->points;
    } else {
      reserve_next(work->context, &work->unknown, work->unknown_count, &unknown_room);
      work->unknown[work->unknown_count++] = row;
    }
    position += is_point;
  }
}

/// Whether expressions give the same number.
bool is_distance(const JoinNode* node, const Node* output) {
  return exprType(output) == FLOAT8OID && equal(output, node->expressions.distance);
}

/// Whoever may not call the function of a distance that the node emits in its place gets the error.
void check_call(const Expr* emitted) {
  if (IsA(emitted, FuncExpr))
    check_execute_privilege(reinterpret_cast<const FuncExpr*>(emitted)->funcid);
  if (IsA(emitted, OpExpr))
    check_execute_privilege(reinterpret_cast<const OpExpr*>(emitted)->opfuncid);
}

}  // namespace

void begin_nearest(JoinNode* node) {
  const JoinPlanExpressions& expressions = node->expressions;
  const CustomScan* const plan = castNode(CustomScan, node->css.ss.ps.plan);
  PlanState* const parent = &node->css.ss.ps;
  NearestWork* const work = static_cast<NearestWork*>(palloc0(sizeof(NearestWork)));
  const int outputs = list_length(expressions.outputs);
  node->nearest = work;
  work->terms.exact = is_exact(node->data.test);
  work->terms.distance = ExecInitExpr(expressions.distance, parent);
  work->terms.limit = ExecInitExpr(expressions.limit, parent);
  work->terms.outputs.expressions =
      static_cast<ExprState**>(palloc(sizeof(ExprState*) * (outputs + 1)));
  work->terms.outputs.columns = static_cast<int*>(palloc(sizeof(int) * (outputs + 1)));
  work->terms.outputs.is_distance = static_cast<bool*>(palloc(outputs + 1));
  for (int i = 0; i < node->data.columns.count; ++i) {
    if (node->data.columns.attributes[i] != 0) continue;
    check_call(list_nth_node(TargetEntry, plan->custom_scan_tlist, i)->expr);
    Expr* const output =
        static_cast<Expr*>(list_nth(expressions.outputs, work->terms.outputs.count));
    const bool measured = is_distance(node, reinterpret_cast<Node*>(output));
    if (!measured) work->terms.outputs.computed = lappend(work->terms.outputs.computed, output);
    work->terms.outputs.expressions[work->terms.outputs.count] = ExecInitExpr(output, parent);
    work->terms.outputs.is_distance[work->terms.outputs.count] = measured;
    work->terms.outputs.columns[work->terms.outputs.count++] = i;
    work->terms.outputs.measures = work->terms.outputs.measures || measured;
  }
  work->terms.outputs.values = AllocSetContextCreate(parent->state->es_query_cxt,
                                                     "gpujoin nearest row", ALLOCSET_SMALL_SIZES);
}

bool is_limit_within(JoinNode* node, std::uint64_t rows) { return read_limit(node) <= rows; }

List* computed_columns(const JoinNode* node) { return node->nearest->terms.outputs.computed; }

void start_nearest(JoinNode* node) {
  NearestWork* const work = node->nearest;
  if (work->context != nullptr) MemoryContextDelete(work->context);
  NearestWork fresh = {};
  fresh.terms = work->terms;
  fresh.context = AllocSetContextCreate(node->rows, "gpujoin nearest", ALLOCSET_DEFAULT_SIZES);
  stop_engine_with(node->pairs.run, fresh.context);
  node->pairs.run->exhausted = false;
  fresh.shown.left = kNoRow;
  *work = fresh;
  node->pairs.mode = Mode::kPairs;
  const std::uint64_t rows = row_count(node, node->left);
  if (rows == 0) {
    work->step = NearestStep::kRest;
    return;
  }
  work->k = std::min(read_limit(node), row_count(node, node->right));
  read_radius(node);
  work->done = static_cast<std::uint8_t*>(
      MemoryContextAllocExtended(work->context, rows, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  work->open = static_cast<std::uint8_t*>(
      MemoryContextAllocExtended(work->context, rows, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  sort_right_rows(node);
  const bool in_memory = node->right.points.file == nullptr;
  const bool has_boxes = node->left.plane_boxes.count > 0 || node->right.plane_boxes.count > 0;
  if (in_memory) prepare_boxes(node);
  work->search.asked = first_asked(node);
  const bool served = in_memory || !has_boxes;
  const bool searches =
      served && work->k > 0 && work->points > 0 && work->k <= kMostAsked && !node->pairs.band.none;
  if (!searches) work->step = NearestStep::kRest;
  if (served) return;
  work->by_radius = false;
  work->points = row_count(node, node->right);  // the engine compares none of them
  node->report.loop_reason = "the join does not fit in gpujoin.host_memory_limit";
  note_fallback(node->pairs.run, Fallback::kLoop, node->report.loop_reason);
}

void forget_nearest(JoinNode* node) { node->nearest->context = nullptr; }

void explain_nearest(const JoinNode* node, const Words& words, ExplainState* es) {
  ExplainPropertyText("Order", words(node->expressions.distance), es);
  ExplainPropertyText("K", words(node->expressions.limit), es);
}

bool next_nearest_row(JoinNode* node) {
  NearestWork* const work = node->nearest;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    std::uint64_t left = work->shown.due_left, right = work->shown.due_right;
    double distance = work->shown.due_distance;
    bool more = true;
    if (!work->shown.pair_due) {
      more = next_ranked(node, &left, &right);
      distance = node->pairs.pair.distance;
    }
    const bool is_next = !more || left != work->shown.left;
    if (is_next && work->shown.left != kNoRow && !work->shown.matched && emits_unmatched(node)) {
      work->shown.pair_due = more;
      work->shown.due_left = left;
      work->shown.due_right = right;
      work->shown.due_distance = distance;
      work->shown.matched = true;
      show_unmatched(node, work->shown.left);
      return true;
    }
    if (!more) return false;
    work->shown.pair_due = false;
    if (is_next) {
      work->shown.left = left;
      work->shown.matched = false;
    }
    if (right == kNoRow) continue;
    show_pair(node, left, right);
    show_outputs(node, left, right, distance);
    if (!holds(node, node->conditions.late)) {
      InstrCountFiltered2(&node->css, 1);
      continue;
    }
    work->shown.matched = true;
    return true;
  }
}

}  // namespace gpujoin

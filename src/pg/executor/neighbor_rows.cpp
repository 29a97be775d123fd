// Rows of gpu_neighbors(): one a point, with its neighbours as arrays. The engine is asked twice:
// first how many neighbours each point has, then for the pairs. So a point is known to be complete
// when as many have come, and nothing is held but the few points whose neighbours are spread over
// batches.
#include "pg/executor/operation.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

struct Neighbor {
  double distance;
  std::int64_t id;

  bool operator<(const Neighbor& other) const {
    return distance != other.distance ? distance < other.distance : id < other.id;
  }
};

/// A point whose neighbours came in part.
struct Part {
  std::uint64_t row;  ///< kFree: none
  std::uint64_t count;
  Neighbor* neighbors;
};

constexpr std::uint64_t kFree = ~std::uint64_t{0};

/// JoinScan::rows.
struct NeighborScan {
  MemoryContext context;  ///< holds this struct and what it points to
  JoinScan* join;
  std::uint64_t* counts;    ///< [rows] neighbours of each
  std::uint64_t entry_row;  ///< next row of the batch
  bool pairs_done;
  std::uint64_t incomplete;  ///< rows that have neighbours and were not returned yet
  std::uint64_t lone_row;    ///< next row to check for having no neighbours
  Part* parts;
  int part_count;
};

/// An engine is another library, and it runs twice. Its row numbers are checked before memory is
/// written at these places.
void check(bool holds) {
  if (!holds) elog(ERROR, "the engine counted other neighbors than it returned");
}

/// Runs the engine for `output`, the second time the same one. Rows are named by their place in the
/// dataset.
void ask(NeighborScan* scan, const Output& output) {
  EngineRun* const run = &scan->join->run;
  run->request = run->request.asking(output);
  run->request.sides = Sides::one(unnamed(run->request.left()), run->request.pairs());
  run->request.knobs.access_pattern = AccessPattern::kFull;  // a point's neighbours are its own
  start_engine(run, run->engine);
}

void count_neighbors(NeighborScan* scan) {
  EngineRun* const run = &scan->join->run;
  while (next_engine_batch(run)) {
    const ResultBatch& batch = run->batch;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const auto row = static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]);
      check(row < scan->join->left.rows);
      if (batch.counts[i] > 0 && scan->counts[row] == 0) ++scan->incomplete;
      scan->counts[row] = batch.counts[i];
    }
  }
}

void check_counts(const NeighborScan* scan) {
  const Dataset& points = scan->join->left;
  for (std::uint64_t row = 0; row < points.rows; ++row)
    if (scan->counts[row] > MaxAllocSize / sizeof(Neighbor))
      ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                      errmsg("row %lld has %llu neighbors, more than an array holds",
                             static_cast<long long>(points.ids[row]),
                             static_cast<unsigned long long>(scan->counts[row])),
                      errhint("Lower eps, or use gpu_selfjoin_distance(), which returns pairs.")));
}

/// Forgets what an earlier start has left.
NeighborScan* create_scan(JoinScan* join) {
  if (join->rows != nullptr) MemoryContextDelete(static_cast<NeighborScan*>(join->rows)->context);
  join->rows = nullptr;
  const MemoryContext context =
      AllocSetContextCreate(join->context, "gpujoin neighbors", ALLOCSET_DEFAULT_SIZES);
  NeighborScan* const scan =
      static_cast<NeighborScan*>(MemoryContextAllocZero(context, sizeof(NeighborScan)));
  scan->context = context;
  scan->join = join;
  scan->counts = static_cast<std::uint64_t*>(MemoryContextAllocExtended(
      context, (join->left.rows + 1) * sizeof(std::uint64_t), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  join->rows = scan;
  return scan;
}

Part* find_part(NeighborScan* scan, std::uint64_t row) {
  for (int i = 0; i < scan->part_count; ++i)
    if (scan->parts[i].row == row) return &scan->parts[i];
  return nullptr;
}

/// Room for the neighbours of a row.
Part* start_part(NeighborScan* scan, std::uint64_t row) {
  Part* part = find_part(scan, kFree);
  if (part == nullptr) {
    const int more = 2 * scan->part_count + 4;
    const Size bytes = more * sizeof(Part);
    scan->parts =
        static_cast<Part*>(scan->parts == nullptr ? MemoryContextAlloc(scan->context, bytes)
                                                  : repalloc(scan->parts, bytes));
    for (int i = scan->part_count; i < more; ++i) scan->parts[i].row = kFree;
    part = &scan->parts[scan->part_count];
    scan->part_count = more;
  }
  *part = {row, 0,
           static_cast<Neighbor*>(
               MemoryContextAllocHuge(scan->context, scan->counts[row] * sizeof(Neighbor)))};
  return part;
}

/// Takes the next row of the current batch in. The part that it completes, or null.
Part* take_row(NeighborScan* scan) {
  const ResultBatch& batch = scan->join->run.batch;
  const std::uint64_t at = scan->entry_row++;
  const std::uint64_t begin = batch.entry(at), end = batch.entry(at + 1);
  if (begin == end) return nullptr;
  const auto row = static_cast<std::uint64_t>(batch.left_ids[batch.rows[at]]);
  check(row < scan->join->left.rows);
  Part* part = find_part(scan, row);
  if (part == nullptr) part = start_part(scan, row);
  check(end - begin <= scan->counts[row] - part->count);
  for (std::uint64_t entry = begin; entry < end; ++entry)
    part->neighbors[part->count++] = {
        batch.distances[entry], scan->join->left.ids[batch.right_ids[batch.neighbors[entry]]]};
  if (part->count < scan->counts[row]) return nullptr;
  --scan->incomplete;
  return part;
}

/// The next point whose neighbours are complete; null when there are no more.
Part* next_complete(NeighborScan* scan) {
  EngineRun* const run = &scan->join->run;
  while (!scan->pairs_done) {
    while (scan->entry_row < run->batch.row_count)
      if (Part* const part = take_row(scan)) return part;
    scan->entry_row = 0;
    scan->pairs_done = !next_engine_batch(run);
    check(!scan->pairs_done || scan->incomplete == 0);
  }
  return nullptr;
}

/// (id, neighbors, distances), nearest first, in the current memory context.
void make_row(std::int64_t id, Neighbor* neighbors, std::uint64_t count, Datum* values) {
  std::sort(neighbors, neighbors + count);
  Datum* const ids =
      static_cast<Datum*>(palloc_extended((count + 1) * sizeof(Datum), MCXT_ALLOC_HUGE));
  Datum* const distances =
      static_cast<Datum*>(palloc_extended((count + 1) * sizeof(Datum), MCXT_ALLOC_HUGE));
  for (std::uint64_t i = 0; i < count; ++i) {
    ids[i] = Int64GetDatum(neighbors[i].id);
    distances[i] = Float8GetDatum(neighbors[i].distance);
  }
  const int length = static_cast<int>(count);
  values[0] = Int64GetDatum(id);
  values[1] = PointerGetDatum(construct_array(ids, length, INT8OID, 8, true, TYPALIGN_DOUBLE));
  values[2] =
      PointerGetDatum(construct_array(distances, length, FLOAT8OID, 8, true, TYPALIGN_DOUBLE));
}

}  // namespace

void start_neighbors(JoinScan* join) {
  if (join->arguments.pairs == PairSelection::kUnordered)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("gpu_neighbors() does not support pairs => 'unordered'"),
                    errhint("Use \"distinct\", or \"all\" to have each row among its neighbors.")));
  NeighborScan* const scan = create_scan(join);
  scan->pairs_done = true;
  if (join->left.rows == 0) return;
  ask(scan, Output::count_per_row());
  count_neighbors(scan);
  check_counts(scan);
  ask(scan, Output::pairs_with_distances());
  scan->pairs_done = false;
}

bool next_neighbors(JoinScan* join, Datum* values) {
  NeighborScan* const scan = static_cast<NeighborScan*>(join->rows);
  const Dataset& points = join->left;
  if (Part* const part = next_complete(scan)) {
    make_row(points.ids[part->row], part->neighbors, part->count, values);
    pfree(part->neighbors);
    part->row = kFree;
    return true;
  }
  while (scan->lone_row < points.rows && scan->counts[scan->lone_row] > 0) ++scan->lone_row;
  if (scan->lone_row >= points.rows) return false;
  make_row(points.ids[scan->lone_row++], nullptr, 0, values);
  return true;
}

}  // namespace gpujoin

// Rows of gpu_neighbors(): one a point, with its neighbours as arrays. The engine is asked twice:
// first how many neighbours each point has, then for the pairs. So a point is known to be complete
// when as many have come, and nothing is held but the few points whose neighbours are spread over
// batches. Rows are numbered by their places in the dataset; those that only the service has, in
// the order in which it counts them, and found by their ids. Points in a file:
// sorted_neighbors.cpp.
#include "pg/executor/operation.h"
#include "pg/store/rows_by_id.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

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
  std::uint64_t rows;       ///< of the table
  std::int64_t* named;      ///< [rows] JoinScan::by_id: their ids, by number
  RowsById numbers;         ///< likewise: their numbers, by id
  std::uint64_t numbered;   ///< likewise: rows that have a number
  std::uint64_t* counts;    ///< [rows] neighbours of each
  std::uint64_t entry_row;  ///< next row of the batch
  bool pairs_done;
  std::uint64_t incomplete;  ///< rows that have neighbours and were not returned yet
  std::uint64_t lone_row;    ///< next row to check for having no neighbours
  Part* parts;
  int part_count;
};

/// The engine runs twice, and may know other rows by their ids in its second run.
void check(bool holds) {
  if (!holds) elog(ERROR, "the engine counted other neighbors than it returned");
}

void number_rows(NeighborScan* scan) {
  scan->named = static_cast<std::int64_t*>(
      MemoryContextAllocHuge(scan->context, (scan->rows + 1) * sizeof(std::int64_t)));
  scan->numbers = make_rows_by_id(scan->context, scan->named, scan->rows);
}

/// The number of a row that is counted.
std::uint64_t number_row(NeighborScan* scan, std::int64_t name) {
  auto row = static_cast<std::uint64_t>(name);
  if (scan->join->by_id) {
    if (scan->named == nullptr) number_rows(scan);
    row = scan->numbered++;
    std::uint32_t* const place = place_of_id(scan->numbers, name);
    check(row < scan->rows && *place == 0);
    scan->named[row] = name;
    *place = static_cast<std::uint32_t>(scan->numbered);
  }
  return row;
}

/// Its number later on.
std::uint64_t number_of(const NeighborScan* scan, std::int64_t name) {
  if (!scan->join->by_id) return static_cast<std::uint64_t>(name);
  const std::uint32_t number = *place_of_id(scan->numbers, name);
  check(number > 0);
  return number - 1;
}

std::int64_t id_of_row(const NeighborScan* scan, std::uint64_t row) {
  return scan->join->by_id ? scan->named[row] : scan->join->left.ids[row];
}

void count_neighbors(NeighborScan* scan) {
  EngineRun* const run = &scan->join->run;
  while (next_engine_batch(run)) {
    const ResultBatch& batch = run->batch;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const std::uint64_t row = number_row(scan, batch.left_ids[batch.rows[i]]);
      if (batch.counts[i] > 0 && scan->counts[row] == 0) ++scan->incomplete;
      scan->counts[row] = batch.counts[i];
    }
  }
  check(!scan->join->by_id || scan->numbered == scan->rows);
}

void check_counts(const NeighborScan* scan) {
  for (std::uint64_t row = 0; row < scan->rows; ++row)
    check_neighbor_count(id_of_row(scan, row), scan->counts[row]);
}

/// Asks for the pairs. What was read, for EXPLAIN, is what was read for the counts.
void ask_for_pairs(JoinScan* join) {
  const JoinReport counted = join->run.report;
  join->rows_counted = true;
  prepare_join(join);
  join->run.report.read_ms = counted.read_ms;
  join->run.report.table_blocks = counted.table_blocks;
  join->run.report.blocks_read = counted.blocks_read;
  start_engine(&join->run, join->run.engine);
}

NeighborScan* create_scan(JoinScan* join) {
  forget_rows(join);
  const MemoryContext context =
      AllocSetContextCreate(join->context, "gpujoin neighbors", ALLOCSET_DEFAULT_SIZES);
  NeighborScan* const scan =
      static_cast<NeighborScan*>(MemoryContextAllocZero(context, sizeof(NeighborScan)));
  scan->context = context;
  scan->join = join;
  scan->rows = join->left.rows;
  scan->counts = static_cast<std::uint64_t*>(MemoryContextAllocExtended(
      context, (scan->rows + 1) * sizeof(std::uint64_t), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
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
  const std::uint64_t row = number_of(scan, batch.left_ids[batch.rows[at]]);
  Part* part = find_part(scan, row);
  if (part == nullptr) part = start_part(scan, row);
  check(end - begin <= scan->counts[row] - part->count);
  for (std::uint64_t entry = begin; entry < end; ++entry) {
    const std::int64_t name = batch.right_ids[batch.neighbors[entry]];
    part->neighbors[part->count++] = {shown_distance(scan->join, batch.distances[entry]),
                                      scan->join->by_id ? name : scan->join->left.ids[name]};
  }
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

}  // namespace

void check_neighbor_count(std::int64_t id, std::uint64_t count) {
  if (count > MaxAllocSize / sizeof(Neighbor))
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("row %lld has %llu neighbors, more than an array holds",
                           static_cast<long long>(id), static_cast<unsigned long long>(count)),
                    errhint("Lower eps, or use gpu_selfjoin_distance(), which returns pairs.")));
}

void make_neighbor_row(std::int64_t id, Neighbor* neighbors, std::uint64_t count, Datum* values) {
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

void start_neighbors(JoinScan* join) {
  if (join->arguments.pairs == PairSelection::kUnordered)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("gpu_neighbors() does not support pairs => 'unordered'"),
                    errhint("Use \"distinct\", or \"all\" to have each row among its neighbors.")));
  if (join->left.file != nullptr) return start_sorted_neighbors(join);
  NeighborScan* const scan = create_scan(join);
  scan->pairs_done = true;
  if (join->left.rows == 0) return;
  start_engine(&join->run, join->run.engine);
  count_neighbors(scan);
  check_counts(scan);
  ask_for_pairs(join);
  scan->pairs_done = false;
}

bool next_neighbors(JoinScan* join, Datum* values, bool*) {
  if (join->left.file != nullptr) return next_sorted_neighbors(join, values);
  NeighborScan* const scan = static_cast<NeighborScan*>(join->rows);
  if (Part* const part = next_complete(scan)) {
    make_neighbor_row(id_of_row(scan, part->row), part->neighbors, part->count, values);
    pfree(part->neighbors);
    part->row = kFree;
    return true;
  }
  while (scan->lone_row < scan->rows && scan->counts[scan->lone_row] > 0) ++scan->lone_row;
  if (scan->lone_row >= scan->rows) return false;
  make_neighbor_row(id_of_row(scan, scan->lone_row++), nullptr, 0, values);
  return true;
}

}  // namespace gpujoin

// Rows of gpu_neighbors() where the points lie in a file: the engine is asked for pairs once, in no
// order, and PostgreSQL sorts them by id and distance, in work_mem and temporary files. Each point
// has an entry of its own, which comes before its pairs.
#include "pg/executor/operation.h"
#include "pg/store/context_end.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/tuplesort.h"
}

namespace gpujoin {
namespace {

enum Column { kId, kDistance, kNeighbor, kColumns };

/// JoinScan::rows.
struct SortedScan {
  MemoryContext context;   ///< holds this struct and what it points to
  MemoryContext sorting;   ///< holds the sort, and ends after `context`
  Tuplesortstate* sort;    ///< null: at its end
  SubTransactionId maker;  ///< of the sort
  TupleTableSlot* entry;   ///< on its way into the sort
  TupleTableSlot* sorted;
  bool has_point;  ///< `sorted` is the entry of the next point
  Neighbor* neighbors;
  std::uint64_t count, room;
};

/// After an error PostgreSQL closes the sort's files itself, with the subtransaction that made
/// them.
void end_sort(SortedScan* scan) {
  if (scan->sort != nullptr && SubTransactionIsActive(scan->maker)) tuplesort_end(scan->sort);
  scan->sort = nullptr;
}

SortedScan* create_scan(JoinScan* join) {
  forget_rows(join);
  // The younger one of two children ends first.
  const MemoryContext sorting =
      AllocSetContextCreate(join->context, "gpujoin sort", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext context =
      AllocSetContextCreate(join->context, "gpujoin neighbors", ALLOCSET_DEFAULT_SIZES);
  SortedScan* const scan =
      static_cast<SortedScan*>(MemoryContextAllocZero(context, sizeof(SortedScan)));
  scan->context = context;
  scan->sorting = sorting;
  call_at_end(
      context,
      [](void* ended) {
        end_sort(static_cast<SortedScan*>(ended));
        MemoryContextDelete(static_cast<SortedScan*>(ended)->sorting);
      },
      scan);
  join->rows = scan;
  return scan;
}

void begin_sort(SortedScan* scan) {
  const MemoryContext caller = MemoryContextSwitchTo(scan->sorting);
  const TupleDesc columns = CreateTemplateTupleDesc(kColumns);
  TupleDescInitEntry(columns, kId + 1, "id", INT8OID, -1, 0);
  TupleDescInitEntry(columns, kDistance + 1, "distance", FLOAT8OID, -1, 0);
  TupleDescInitEntry(columns, kNeighbor + 1, "neighbor", INT8OID, -1, 0);
  AttrNumber keys[kColumns] = {kId + 1, kDistance + 1, kNeighbor + 1};
  Oid operators[kColumns] = {Int8LessOperator, Float8LessOperator, Int8LessOperator};
  Oid collations[kColumns] = {};
  bool nulls_first[kColumns] = {true, true, true};
  scan->sort = tuplesort_begin_heap(columns, kColumns, keys, operators, collations, nulls_first,
                                    work_mem, nullptr, 0);
  scan->maker = GetCurrentSubTransactionId();
  scan->entry = MakeSingleTupleTableSlot(columns, &TTSOpsVirtual);
  scan->sorted = MakeSingleTupleTableSlot(columns, &TTSOpsMinimalTuple);
  MemoryContextSwitchTo(caller);
}

/// Adds a pair, or the entry of a point.
void add_entry(SortedScan* scan, std::int64_t id, const IdPair* pair) {
  TupleTableSlot* const slot = ExecClearTuple(scan->entry);
  slot->tts_values[kId] = Int64GetDatum(id);
  slot->tts_values[kDistance] = pair != nullptr ? Float8GetDatum(pair->distance) : 0;
  slot->tts_values[kNeighbor] = pair != nullptr ? Int64GetDatum(pair->id2) : 0;
  slot->tts_isnull[kId] = false;
  slot->tts_isnull[kDistance] = slot->tts_isnull[kNeighbor] = pair == nullptr;
  tuplesort_puttupleslot(scan->sort, ExecStoreVirtualTuple(slot));
}

void add_points(SortedScan* scan, JoinScan* join) {
  const Dataset& points = join->left;
  std::int64_t* const ids = static_cast<std::int64_t*>(
      MemoryContextAllocHuge(scan->context, rows_of_chunk(points, 0) * sizeof(std::int64_t)));
  for (std::uint64_t number = 0; number < chunk_count(points); ++number) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t rows = rows_of_chunk(points, number);
    read_spill(&join->run.spill, points.places[number], ids, rows * sizeof(std::int64_t));
    for (std::uint64_t i = 0; i < rows; ++i) add_entry(scan, ids[i], nullptr);
  }
  pfree(ids);
}

void add_pairs(SortedScan* scan, JoinScan* join) {
  start_engine(&join->run, join->run.engine);
  while (next_join_pair(join)) add_entry(scan, join->pair.id1, &join->pair);
}

/// Moves to the next entry in order; false, and the sort ends, when there is none.
bool next_entry(SortedScan* scan) {
  if (tuplesort_gettupleslot(scan->sort, true, false, scan->sorted, nullptr)) {
    slot_getallattrs(scan->sorted);
    return true;
  }
  ExecClearTuple(scan->sorted);
  end_sort(scan);
  return false;
}

bool is_point(const SortedScan* scan) { return scan->sorted->tts_isnull[kDistance]; }

std::int64_t id_of_entry(const SortedScan* scan) {
  return DatumGetInt64(scan->sorted->tts_values[kId]);
}

/// Neighbours are known by ids, so pairs do not say of which of two rows with one id they are.
[[noreturn]] void raise_repeated(const JoinScan* join, std::int64_t id) {
  ereport(ERROR,
          (errcode(ERRCODE_UNIQUE_VIOLATION),
           errmsg("several rows of relation \"%s\" have the id %lld",
                  get_rel_name(join->arguments.left.relation), static_cast<long long>(id)),
           errdetail("Rows that do not fit in gpujoin.host_memory_limit are known by their ids."),
           errhint("Name a column of unique values, or raise gpujoin.host_memory_limit.")));
}

}  // namespace

void start_sorted_neighbors(JoinScan* join) {
  SortedScan* const scan = create_scan(join);
  begin_sort(scan);
  add_points(scan, join);
  add_pairs(scan, join);
  tuplesort_performsort(scan->sort);
  scan->has_point = next_entry(scan);
}

bool next_sorted_neighbors(JoinScan* join, Datum* values) {
  SortedScan* const scan = static_cast<SortedScan*>(join->rows);
  if (!scan->has_point) return false;
  const std::int64_t id = id_of_entry(scan);
  scan->count = 0;
  while ((scan->has_point = next_entry(scan)) && !is_point(scan)) {
    check_neighbor_count(id, scan->count + 1);
    reserve_next(scan->context, &scan->neighbors, scan->count, &scan->room);
    scan->neighbors[scan->count++] = {DatumGetFloat8(scan->sorted->tts_values[kDistance]),
                                      DatumGetInt64(scan->sorted->tts_values[kNeighbor])};
  }
  if (scan->has_point && id_of_entry(scan) == id) raise_repeated(join, id);
  make_neighbor_row(id, scan->neighbors, scan->count, values);
  return true;
}

}  // namespace gpujoin

// Blocks are handed out in ranges, one after the other. A process collects the rows of its range in
// memory of its own, and says how many there are. Once all ranges before it have their places, the
// range gets the next place in the memory that all processes map; any process may give it, so that
// none waits for one that is busy. Its own process copies the rows there. So the rows lie in the
// order of a scan, and at any time those that have a place are the ones that a scan would have read
// so far. Where a range gets none, the leader goes on from there alone, as a scan would: with that
// scan's errors, or its temporary file.
//
// The leader makes the memory, and workers open it by its descriptor in /proc. One that may not do
// so takes no range, nor does one of another build, where the library was replaced on disk.
#include "pg/reading/parallel_blocks.h"

#include "pg/engine_loader.h"
#include "pg/store/context_end.h"

extern "C" {
#include "access/parallel.h"
#include "access/table.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/readfuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "tcop/tcopprot.h"

PGDLLEXPORT void gpujoin_read_blocks(dsm_segment* segment, shm_toc* toc);
}

namespace gpujoin {
namespace {

using service::SharedRegion;

constexpr std::uint64_t kRangeBytes = 512 << 10;  ///< of the table, about
constexpr int kRangesPerProcess = 16;             ///< at least, as far as there are blocks
constexpr std::uint64_t kMaxGrowth = 1 << 20;     ///< of memory beyond what is needed

/// What a process collects beyond its place.
constexpr std::uint32_t kMaxStages = 8;
constexpr std::uint64_t kMaxStagedBytes = 4 << 20;

enum MemoryOf { kCoordinates, kIds, kScores, kPatches, kMemories };

/// Changes with ParallelRead, and with what processes that share one rely on.
constexpr std::uint32_t kVersion = 7;

/// What a process has collected of a range. In the segment that all processes map.
struct RangeRows {
  pg_atomic_uint32 collected;  ///< not 0: what follows is set, but for the place
  std::uint32_t rows, patches;
  std::uint32_t dims;        ///< PointBuffer::dims
  std::uint64_t affordable;  ///< affordable_rows() of such rows
  ValueShape shape;
  bool odd;
  std::uint64_t first_row, first_patch;  ///< the place, once it is given
};

/// Which ranges processes have taken, and how many have places.
struct RangeTurns {
  pg_atomic_uint32 helpers;  ///< workers that share the memory
  pg_atomic_uint32 next;     ///< the range to be read next
  pg_atomic_uint32 placed;   ///< ranges that have places
  pg_atomic_uint32 ended;    ///< not 0: no more ranges get places
  ConditionVariable moved;   ///< when these two change
  pg_atomic_flag giving;     ///< set: a process gives places
};

/// What is known of blocks before they are read.
struct SharedProof {
  int file;  ///< a descriptor of the leader's
  std::uint64_t map_pages;
  std::uint64_t kept_blocks;  ///< 0: there is no proof
  std::uint64_t known;        ///< MapReading::known
};

/// In the segment that all processes map.
struct ParallelRead {
  // Set by the leader.
  std::uint32_t version, size;  ///< kVersion, and of this struct
  HeapExtent extent;
  BlockNumber range_blocks;
  std::uint32_t ranges;
  Oid table;            ///< whose blocks are read: columns.relation, or a part of it
  SideColumns columns;  ///< but for its pointers
  int value_type;       ///< position in value_types(), or -1
  ScalarType scalar;
  ValueForm form;
  bool as_stored;         ///< ValueShape::as_stored.
  ValueDemands demands;   ///< ValueShape::demands.
  bool filter_may_raise;  ///< ScanFilter::may_raise.
  bool leaves_same;       ///< HeapBlocks::leaves_same.
  std::uint64_t limit;    ///< PointBuffer::limit.
  int leader;             ///< process that has the descriptors in `files`.
  int files[kMemories];
  std::uint64_t reserved[kMemories];
  SharedProof proof;

  RangeTurns turns;

  // For the process that gives places, alone.
  std::uint64_t bytes[kMemories];
  std::uint64_t rows, patches;
  std::uint32_t dims;  ///< PointBuffer::dims
  ValueShape shape;
};

/// Further entries of the segment's table of contents.
enum Key : std::uint64_t {
  kRead,
  kRanges,
  kAttributes,
  kTypes,
  kWords,
  kBuffers,
  kWal,
  kQuery,
  kFilter
};

/// A range's rows on their way to their place.
struct Stage {
  std::uint32_t range;
  PointBuffer points;
  BlockPatches patches;
};

/// A process at work.
struct RangeReader {
  ParallelRead* shared;
  RangeRows* ranges;  ///< [shared->ranges]
  const HeapBlocks* heap;
  const KeptBlocks* kept;
  const MapReading* map;
  BlockColumns columns;
  RowCollector rows;
  RowFilter* filter;
  bool odd;                         ///< RowCollector::has_odd, or the filter raised an error
  SharedRegion* memory[kMemories];  ///< as this process maps it
  MemoryContext context, scratch;
  Stage stages[kMaxStages];  ///< a ring
  std::uint32_t first, count;
};

// ---- The order of ranges

std::uint32_t wait_event() {
  static const std::uint32_t event = new_wait_event("GpujoinReadOrder");
  return event;
}

/// Read before the places that were given.
bool has_ended(ParallelRead* shared) {
  const bool ended = pg_atomic_read_u32(&shared->turns.ended) != 0;
  pg_read_barrier();
  return ended;
}

bool has_place(ParallelRead* shared, std::uint32_t range) {
  const bool has = pg_atomic_read_u32(&shared->turns.placed) > range;
  pg_read_barrier();
  return has;
}

/// Waits until the range has a place, or none will get one.
void await_place(ParallelRead* shared, std::uint32_t range) {
  while (!has_ended(shared) && !has_place(shared, range))
    ConditionVariableSleep(&shared->turns.moved, wait_event());
  ConditionVariableCancelSleep();
}

/// Whether the next range to get a place is collected.
bool can_give(RangeReader* reader) {
  ParallelRead* const shared = reader->shared;
  const std::uint32_t next = pg_atomic_read_u32(&shared->turns.placed);
  const bool can = !has_ended(shared) && next < shared->ranges &&
                   pg_atomic_read_u32(&reader->ranges[next].collected) != 0;
  pg_read_barrier();
  return can;
}

// ---- Places

/// Makes room in one of the memories; false where there is none.
bool make_room(RangeReader* reader, MemoryOf number, std::uint64_t bytes) {
  SharedRegion* const memory = reader->memory[number];
  std::uint64_t* const now = &reader->shared->bytes[number];
  memory->bytes = *now;  // another process may have made some
  if (bytes <= *now) return true;
  const std::uint64_t wanted = bytes + std::min(bytes / 4, kMaxGrowth);
  if (!grow_shared(memory, std::min(std::max(wanted, bytes), memory->reserved))) return false;
  *now = memory->bytes;
  return bytes <= *now;
}

/// Whether the rows can be in one dataset with those before them. The first ones settle what rows
/// have in common.
bool agrees(const ParallelRead& shared, const RangeRows& range) {
  return range.rows == 0 || shared.rows == 0 ||
         (range.shape.dims == shared.shape.dims && range.shape.srid == shared.shape.srid);
}

/// Gives the next range a place, with room for its rows; false where they can have none.
bool give_place(RangeReader* reader, RangeRows* range) {
  ParallelRead* const shared = reader->shared;
  const std::uint64_t rows = shared->rows + range->rows;
  const std::uint64_t patches = shared->patches + range->patches;
  const std::uint32_t dims = range->rows > 0 ? range->dims : shared->dims;
  if (range->odd || !agrees(*shared, *range) || (range->rows > 0 && rows > range->affordable) ||
      !make_room(reader, kCoordinates, rows * dims * scalar_bytes(shared->scalar)) ||
      !make_room(reader, kIds, rows * sizeof(std::int64_t)) ||
      (shared->columns.score != InvalidAttrNumber &&
       !make_room(reader, kScores, rows * sizeof(double))) ||
      !make_room(reader, kPatches, patches * sizeof(service::BlockPatch)))
    return false;
  if (shared->rows == 0 && rows > 0) shared->shape = range->shape;
  shared->shape.has_approximate |= range->shape.has_approximate;
  shared->shape.has_large |= range->shape.has_large;
  shared->shape.has_zero |= range->shape.has_zero;
  shared->dims = dims;
  range->first_row = shared->rows;
  range->first_patch = shared->patches;
  shared->rows = rows;
  shared->patches = patches;
  return true;
}

/// Gives places to the ranges that can have them. Where another process does, it looks again once
/// it is done, and finds what was collected meanwhile.
void give_places(RangeReader* reader) {
  ParallelRead* const shared = reader->shared;
  while (can_give(reader) && pg_atomic_test_set_flag(&shared->turns.giving)) {
    while (can_give(reader)) {
      const std::uint32_t next = pg_atomic_read_u32(&shared->turns.placed);
      const bool given = give_place(reader, &reader->ranges[next]);
      pg_write_barrier();
      if (given)
        pg_atomic_write_u32(&shared->turns.placed, next + 1);
      else
        pg_atomic_write_u32(&shared->turns.ended, 1);
    }
    pg_atomic_clear_flag(&shared->turns.giving);
    pg_memory_barrier();
    ConditionVariableBroadcast(&shared->turns.moved);
  }
}

template <class T>
T* memory(const RangeReader* reader, MemoryOf number) {
  return reinterpret_cast<T*>(reader->memory[number]->base);
}

/// Copies the rows of the first stage to their place.
void place(RangeReader* reader) {
  Stage* const stage = &reader->stages[reader->first];
  const PointBuffer& points = stage->points;
  const std::uint64_t row = reader->ranges[stage->range].first_row;
  copy_rows(
      points,
      memory<unsigned char>(reader, kCoordinates) + row * points.dims * scalar_bytes(points.scalar),
      memory<std::int64_t>(reader, kIds) + row,
      points.scored ? memory<double>(reader, kScores) + row : nullptr);
  std::copy_n(
      stage->patches.patches, stage->patches.count,
      memory<service::BlockPatch>(reader, kPatches) + reader->ranges[stage->range].first_patch);
  clear_points(&stage->points);
  reader->first = (reader->first + 1) % kMaxStages;
  --reader->count;
}

// ---- Ranges

/// Collects the rows of a range in the next stage.
void collect_range(RangeReader* reader, std::uint32_t range) {
  const ParallelRead& shared = *reader->shared;
  Stage* const stage = &reader->stages[(reader->first + reader->count++) % kMaxStages];
  stage->range = range;
  stage->patches.count = 0;
  reader->rows.points = &stage->points;
  const BlockNumber first = range * shared.range_blocks;
  const BlockNumber end = first + std::min(shared.range_blocks, shared.extent.count - first);
  read_block_range(
      *reader->heap, *reader->kept, *reader->map, first, end, stage->points, reader->scratch,
      [&](TupleTableSlot* slot) {
        if (passes(reader->filter, slot, &reader->odd))
          collect_slot(reader->columns, slot, &reader->rows);
      },
      &stage->patches);
  RangeRows* const rows = &reader->ranges[range];
  rows->rows = static_cast<std::uint32_t>(stage->points.rows);
  rows->patches = static_cast<std::uint32_t>(stage->patches.count);
  rows->dims = stage->points.dims;
  rows->affordable = stage->points.rows > 0 ? affordable_rows(stage->points, shared.limit) : 0;
  rows->shape = reader->rows.shape;
  rows->odd = reader->odd;
  pg_write_barrier();
  pg_atomic_write_u32(&rows->collected, 1);
  pg_memory_barrier();  // either give_places() finds nobody at it, or who is at it finds the range
}

bool has_room(const RangeReader* reader) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < reader->count; ++i)
    bytes += held_bytes(reader->stages[(reader->first + i) % kMaxStages].points);
  return reader->count < kMaxStages && bytes < kMaxStagedBytes;
}

/// Places what can be placed, and waits for others until there is room; or until nothing is left.
void place_stages(RangeReader* reader, bool all) {
  ParallelRead* const shared = reader->shared;
  give_places(reader);
  while (reader->count > 0) {
    const std::uint32_t range = reader->stages[reader->first].range;
    if (all || !has_room(reader)) await_place(shared, range);
    if (!has_place(shared, range)) return;
    place(reader);
  }
}

/// Reads ranges until there are none.
void read_ranges(RangeReader* reader) {
  ParallelRead* const shared = reader->shared;
  const MemoryContext caller = MemoryContextSwitchTo(reader->context);
  while (!has_ended(shared) && !reader->odd) {
    const std::uint32_t range = pg_atomic_fetch_add_u32(&shared->turns.next, 1);
    if (range >= shared->ranges) break;
    collect_range(reader, range);
    place_stages(reader, false);
  }
  place_stages(reader, true);
  MemoryContextSwitchTo(caller);
}

template <class T>
T* look_up(shm_toc* toc, Key key) {
  return static_cast<T*>(shm_toc_lookup(toc, key, true));
}

RangeReader* make_reader(shm_toc* toc, const KeptBlocks* kept, const MapReading* map,
                         const SideColumns* columns, List* conditions) {
  RangeReader* const reader = static_cast<RangeReader*>(palloc0(sizeof(RangeReader)));
  ParallelRead* const shared = look_up<ParallelRead>(toc, kRead);
  reader->shared = shared;
  reader->ranges = look_up<RangeRows>(toc, kRanges);
  reader->kept = kept;
  reader->map = map;
  reader->columns = make_block_columns(*columns);
  reader->rows.columns = columns;
  reader->rows.shape.as_stored = shared->as_stored;
  reader->rows.shape.demands = shared->demands;
  reader->rows.form = shared->form;
  reader->rows.has_odd = &reader->odd;
  reader->filter = start_filter({conditions, shared->filter_may_raise}, true);
  reader->context = AllocSetContextCreate(CurrentMemoryContext, "gpujoin rows on their way",
                                          ALLOCSET_DEFAULT_SIZES);
  reader->scratch = create_scratch();
  for (Stage& stage : reader->stages) {
    stage.points.context = reader->context;
    stage.points.limit = std::numeric_limits<std::uint64_t>::max();
    stage.points.scalar = shared->scalar;
    stage.points.scored = columns->score != InvalidAttrNumber;
  }
  return reader;
}

// ---- The leader

/// Blocks that nothing proves, as far as that is known without visiting them.
BlockNumber count_unread(const HeapBlocks& heap, const KeptBlocks& kept, const MapReading& map) {
  if (kept.count == 0) return heap.count;
  BlockNumber unread = 0;
  for (BlockNumber block = next_unproven(map, 0, heap.count); block < heap.count;
       block = next_unproven(map, block + 1, heap.count))
    unread +=
        block >= kept.count || kept.blocks[block].state == service::BlockState::kUnproven ? 1 : 0;
  return unread;
}

/// What reading so many pages costs the processor, in PostgreSQL's unit: a page has about a hundred
/// rows, or takes as long where it has values out of line.
double processor_cost(double pages) {
  constexpr double kPageRows = 100;
  return pages * kPageRows * cpu_tuple_cost;
}

/// As many workers as PostgreSQL would give to a scan of so many blocks of a table of so many
/// bytes; 0 where that saves less than it costs to start them.
int wanted_workers(const HeapBlocks& heap, std::uint64_t bytes, BlockNumber unread) {
  if (IsParallelWorker() || !IsUnderPostmaster || max_parallel_workers_per_gather == 0 ||
      unread <= 1 ||
      (unread < heap.count && unread < static_cast<BlockNumber>(min_parallel_table_scan_size)))
    return 0;
  RelOptInfo* const scanned = makeNode(RelOptInfo);
  scanned->reloptkind = RELOPT_BASEREL;
  scanned->rel_parallel_workers = RelationGetParallelWorkers(heap.relation, -1);
  const int wanted = compute_parallel_worker(scanned, unread, -1, max_parallel_workers_per_gather);
  pfree(scanned);
  const int workers = static_cast<int>(std::min<BlockNumber>(wanted, unread - 1));
  const double pages = static_cast<double>(bytes) / BLCKSZ * unread / heap.count;
  const double saved = processor_cost(pages) * workers / (workers + 1);
  return saved > parallel_setup_cost ? workers : 0;
}

/// So many blocks that a range is worth its place, and that there are ranges for all processes.
BlockNumber blocks_of_range(const HeapBlocks& heap, std::uint64_t bytes, int workers) {
  const std::uint64_t most = heap.count / ((workers + 1) * kRangesPerProcess);
  return static_cast<BlockNumber>(
      std::clamp<std::uint64_t>(kRangeBytes / (bytes / heap.count), 1, most > 0 ? most : 1));
}

int position_of(const ValueType* type) {
  for (int i = 0; i < value_type_count(); ++i)
    if (value_types()[i] == type) return i;
  return -1;
}

/// The memory of all that is read, as the leader maps it.
struct ReadMemory {
  SharedPoints* points;
  SharedRegion patches;
};

/// Null where the system has none, or rows before these lie elsewhere.
ReadMemory* make_memory(const HeapBlocks& heap, const PointBuffer& points) {
  ReadMemory* const memory = static_cast<ReadMemory*>(palloc0(sizeof(ReadMemory)));
  memory->patches = {};
  call_at_end(
      CurrentMemoryContext,
      [](void* ended) { service::close_region(&static_cast<ReadMemory*>(ended)->patches); },
      memory);
  memory->points = points.shared;
  if (points.rows == 0)
    memory->points = create_shared_points(points.context, points.limit, points.scored);
  if (memory->points == nullptr) return nullptr;
  const std::uint64_t most = heap.count * sizeof(service::BlockPatch);
  if (service::create_region("gpujoin blocks", most, &memory->patches).ok()) return memory;
  if (points.shared == nullptr) close_shared_points(memory->points);
  return nullptr;
}

void connect(RangeReader* reader, ReadMemory* memory) {
  reader->memory[kCoordinates] = &memory->points->coordinates;
  reader->memory[kIds] = &memory->points->ids;
  reader->memory[kScores] = &memory->points->scores;
  reader->memory[kPatches] = &memory->patches;
}

/// Puts an array into the segment.
template <class T>
void insert(ParallelContext* context, Key key, const T* array, std::uint64_t count) {
  T* const copy = static_cast<T*>(shm_toc_allocate(context->toc, sizeof(T) * count));
  if (array == nullptr)
    std::memset(static_cast<void*>(copy), 0, sizeof(T) * count);
  else
    std::copy_n(array, count, copy);
  shm_toc_insert(context->toc, key, copy);
}

/// call(key, array, length) for what goes into the segment. Null arrays are zeroed.
template <class Call>
void for_each_entry(const SideColumns& columns, const MapReading& map, const char* filter,
                    std::uint32_t ranges, int workers, const Call& call) {
  call(kRead, static_cast<const ParallelRead*>(nullptr), 1);
  call(kRanges, static_cast<const RangeRows*>(nullptr), ranges);
  call(kAttributes, columns.attributes, columns.count);
  call(kTypes, columns.types, columns.count);
  call(kWords, map.words, map.word_count);
  call(kBuffers, static_cast<const BufferUsage*>(nullptr), workers);
  call(kWal, static_cast<const WalUsage*>(nullptr), workers);
  if (debug_query_string != nullptr)
    call(kQuery, debug_query_string, std::strlen(debug_query_string) + 1);
  if (filter != nullptr) call(kFilter, filter, std::strlen(filter) + 1);
}

/// Makes a segment with room for all that is shared.
ParallelContext* make_context(const RowCollector& rows, const MapReading& map, std::uint32_t ranges,
                              int workers) {
  const SideColumns& columns = *rows.columns;
  List* const conditions = rows.filter.conditions;
  const char* const filter = conditions == NIL ? nullptr : nodeToString(conditions);
  char library[MAXPGPATH];
  find_beside("gpujoin.so", library, sizeof library);
  ParallelContext* const context = CreateParallelContext(library, "gpujoin_read_blocks", workers);
  const auto for_each = [&](const auto& call) {
    for_each_entry(columns, map, filter, ranges, workers, call);
  };
  for_each([&](Key, const auto* array, std::uint64_t count) {
    shm_toc_estimate_chunk(&context->estimator, sizeof *array * count);
    shm_toc_estimate_keys(&context->estimator, 1);
  });
  InitializeParallelDSM(context);
  if (context->seg != nullptr)
    for_each([&](Key key, const auto* array, std::uint64_t count) {
      insert(context, key, array, count);
    });
  return context;
}

void describe_reading(const HeapBlocks& heap, const KeptBlocks& kept, const MapReading& map,
                      const RowCollector& rows, ParallelRead* shared) {
  shared->version = kVersion;
  shared->size = sizeof *shared;
  shared->extent = heap;
  shared->table = RelationGetRelid(heap.relation);
  shared->columns = *rows.columns;
  shared->value_type = position_of(rows.columns->value_type);
  shared->scalar = rows.points->scalar;
  shared->limit = rows.points->limit;
  shared->proof = {kept.file, kept.map_pages, kept.count, map.known};
  pg_atomic_init_u32(&shared->turns.helpers, 0);
  pg_atomic_init_u32(&shared->turns.next, 0);
  pg_atomic_init_u32(&shared->turns.placed, 0);
  pg_atomic_init_u32(&shared->turns.ended, 0);
  ConditionVariableInit(&shared->turns.moved);
  pg_atomic_init_flag(&shared->turns.giving);
  shared->shape = rows.shape;
  shared->rows = rows.points->rows;
  shared->dims = rows.points->dims;
  shared->form = rows.form;
  shared->as_stored = rows.shape.as_stored;
  shared->demands = rows.shape.demands;
  shared->filter_may_raise = rows.filter.may_raise;
  shared->leaves_same = heap.leaves_same;
}

/// Tells the workers where the memory is.
void describe_memory(const RangeReader* reader, ParallelRead* shared) {
  shared->leader = MyProcPid;
  for (int number = 0; number < kMemories; ++number) {
    shared->files[number] = reader->memory[number]->file;
    shared->reserved[number] = reader->memory[number]->reserved;
    shared->bytes[number] = reader->memory[number]->bytes;
  }
}

/// Takes over all that has a place.
void take_over(const ParallelRead& shared, RangeReader* reader, ReadMemory* memory,
               RowCollector* rows, BlocksRead* read) {
  for (int number = 0; number < kMemories; ++number)
    reader->memory[number]->bytes = shared.bytes[number];
  take_rows(rows->points, memory->points, shared.dims, shared.rows);
  rows->shape = shared.shape;
  read->count = read->room = shared.patches;
  resize_array(CurrentMemoryContext, &read->patches, read->room);
  std::copy_n(gpujoin::memory<service::BlockPatch>(reader, kPatches), read->count, read->patches);
}

/// Reads with the workers of a context that has a segment. Returns the first block that is left.
BlockNumber read_with(ParallelContext* context, RangeReader* reader, ReadMemory* memory,
                      RowCollector* rows, BlocksRead* read) {
  ParallelRead* const shared = reader->shared;
  LaunchParallelWorkers(context);
  if (context->nworkers_launched == 0) return 0;
  if (parallel_leader_participation) read_ranges(reader);
  WaitForParallelWorkersToFinish(context);
  for (int worker = 0; worker < context->nworkers_launched; ++worker)
    InstrAccumParallelQuery(look_up<BufferUsage>(context->toc, kBuffers) + worker,
                            look_up<WalUsage>(context->toc, kWal) + worker);
  take_over(*shared, reader, memory, rows, read);
  rows->points->workers += pg_atomic_read_u32(&shared->turns.helpers);
  const std::uint64_t placed = pg_atomic_read_u32(&shared->turns.placed);
  return static_cast<BlockNumber>(
      std::min<std::uint64_t>(placed * shared->range_blocks, shared->extent.count));
}

// ---- Workers

/// Maps what the leader has. False where the system does not allow it.
bool open_memory(const ParallelRead& shared, SharedRegion* memory, SharedRegion* proof) {
  bool mapped = true;
  const auto open = [&](int file, std::uint64_t reserved, bool writable, SharedRegion* region) {
    if (mapped && file >= 0)
      mapped = service::open_region(shared.leader, file, reserved, writable, region).ok();
  };
  for (int number = 0; number < kMemories; ++number)
    open(shared.files[number], shared.reserved[number], true, &memory[number]);
  const SharedProof& known = shared.proof;
  if (known.kept_blocks > 0)
    open(known.file, proof_bytes(known.map_pages, known.kept_blocks), false, proof);
  return mapped;
}

SideColumns columns_of(const ParallelRead& shared, shm_toc* toc) {
  SideColumns columns = shared.columns;
  columns.attributes = look_up<AttrNumber>(toc, kAttributes);
  columns.types = look_up<Oid>(toc, kTypes);
  columns.value_type = shared.value_type < 0 ? nullptr : value_types()[shared.value_type];
  return columns;
}

/// The conditions that the rows to be read have to pass.
List* conditions_of(shm_toc* toc) {
  const char* const filter = look_up<const char>(toc, kFilter);
  if (filter == nullptr) return NIL;
  Node* const conditions = static_cast<Node*>(stringToNode(filter));
  fix_opfuncids(conditions);
  return reinterpret_cast<List*>(conditions);
}

void help(ParallelRead* shared, shm_toc* toc) {
  SharedRegion memory[kMemories], proof;
  if (!open_memory(*shared, memory, &proof)) return;
  pg_atomic_fetch_add_u32(&shared->turns.helpers, 1);
  const SideColumns columns = columns_of(*shared, toc);
  const SharedProof& known = shared->proof;
  const KeptBlocks kept = known.kept_blocks == 0 ? KeptBlocks{}
                                                 : kept_blocks(proof.base, known.map_pages,
                                                               known.kept_blocks, proof.file);
  MapReading map = {};
  map.words = look_up<std::uint64_t>(toc, kWords);
  map.known = known.known;
  const Relation relation = table_open(shared->table, AccessShareLock);
  RangeReader* const reader = make_reader(toc, &kept, &map, &columns, conditions_of(toc));
  HeapBlocks heap = join_blocks(relation, reader->columns.last, shared->extent);
  heap.leaves_same = shared->leaves_same;
  reader->heap = &heap;
  for (int number = 0; number < kMemories; ++number) reader->memory[number] = &memory[number];
  read_ranges(reader);
  end_blocks(&heap);
  table_close(relation, NoLock);
}

}  // namespace

BlockNumber read_in_parallel(const HeapBlocks& heap, const KeptBlocks& kept, RowCollector* rows,
                             BlocksRead* read) {
  const SideColumns& columns = *rows->columns;
  if (divides(columns)) return 0;  // values are numbered in the order of a scan
  const std::uint64_t bytes = table_bytes(heap.relation);
  const int workers = wanted_workers(heap, bytes, count_unread(heap, kept, read->map));
  if (workers == 0 || bytes > rows->points->limit) return 0;
  ReadMemory* const memory = make_memory(heap, *rows->points);
  if (memory == nullptr) return 0;
  const BlockNumber range_blocks = blocks_of_range(heap, bytes, workers);
  const std::uint32_t ranges = (heap.count - 1) / range_blocks + 1;
  EnterParallelMode();
  ParallelContext* const context = make_context(*rows, read->map, ranges, workers);
  BlockNumber next = 0;
  if (context->seg != nullptr) {
    ParallelRead* const shared = look_up<ParallelRead>(context->toc, kRead);
    describe_reading(heap, kept, read->map, *rows, shared);
    shared->range_blocks = range_blocks;
    shared->ranges = ranges;
    RangeReader* const reader =
        make_reader(context->toc, &kept, &read->map, &columns, rows->filter.conditions);
    for (std::uint32_t range = 0; range < ranges; ++range)
      pg_atomic_init_u32(&reader->ranges[range].collected, 0);
    reader->heap = &heap;
    connect(reader, memory);
    describe_memory(reader, shared);
    next = read_with(context, reader, memory, rows, read);
    MemoryContextDelete(reader->context);
    MemoryContextDelete(reader->scratch);
  }
  DestroyParallelContext(context);
  ExitParallelMode();
  if (rows->points->shared == nullptr) close_shared_points(memory->points);
  service::close_region(&memory->patches);
  return next;
}

}  // namespace gpujoin

void gpujoin_read_blocks(dsm_segment*, shm_toc* toc) {
  using namespace gpujoin;
  debug_query_string = look_up<const char>(toc, kQuery);
  pgstat_report_activity(STATE_RUNNING, debug_query_string);
  InstrStartParallelQuery();
  ParallelRead* const shared = look_up<ParallelRead>(toc, kRead);
  if (shared->version == kVersion && shared->size == sizeof *shared) help(shared, toc);
  InstrEndParallelQuery(look_up<BufferUsage>(toc, kBuffers) + ParallelWorkerNumber,
                        look_up<WalUsage>(toc, kWal) + ParallelWorkerNumber);
}

// Life of a JoinScan: arguments, columns, data, engine, batches, end.
#include "pg/executor/function_scan.h"

#include <cmath>

#include "pg/executor/operation.h"
#include "pg/reading/reader.h"
#include "pg/reading/relation.h"
#include "pg/reading/repeated_ids.h"
#include "pg/reading/unit_warnings.h"
#include "pg/settings.h"
#include "pg/types/value_types.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

void read_whole_sides(JoinScan* scan);
bool read_whole(EngineRun* run);

std::uint32_t dimensions(Shape shape, const Dataset& data) {
  return shape == Shape::kBoxes ? data.dims / 2 : data.dims;
}

long long first_id(JoinScan* scan, const Dataset& data) {
  std::int64_t id = 0;
  if (data.file != nullptr)
    read_spill(&scan->run.spill, data.places[0], &id, sizeof id);
  else
    id = data.ids[0];
  return id;
}

/// The dimensions of the side's values: of bits these, and not their words.
std::uint32_t value_dims(const JoinScan* scan, const Dataset& data, const ValueShape& shape) {
  return data.scalar == ScalarType::kBits ? shape.dims
                                          : dimensions(scan->arguments.function->shape, data);
}

void check_same_dims(JoinScan* scan, const ValueShape& left_shape, const ValueShape& right_shape) {
  const Dataset &left = scan->left, &right = scan->right;
  const std::uint32_t left_dims = value_dims(scan, left, left_shape),
                      right_dims = value_dims(scan, right, right_shape);
  if (left.rows == 0 || right.rows == 0 || left_dims == right_dims) return;
  const Shape shape = scan->arguments.function->shape;
  const char* const left_name = get_rel_name(scan->arguments.left.relation);
  const char* const right_name = get_rel_name(scan->arguments.right.relation);
  ereport(ERROR,
          (errcode(ERRCODE_DATA_EXCEPTION),
           errmsg("%s of relations \"%s\" and \"%s\" have different numbers of dimensions",
                  plural(shape), left_name, right_name),
           errdetail("Row %lld of \"%s\" has %u, row %lld of \"%s\" has %u.", first_id(scan, left),
                     left_name, left_dims, first_id(scan, right), right_name, right_dims),
           errhint("Name columns of the same kind with left_%s and right_%s.",
                   columns_argument(shape), columns_argument(shape))));
}

void check_same_srid(const JoinScan* scan, std::int32_t left, std::int32_t right) {
  if (scan->left.rows == 0 || scan->right.rows == 0 || left == right) return;
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
           errmsg("geometries of relations \"%s\" and \"%s\" have different SRIDs: %d and %d",
                  get_rel_name(scan->arguments.left.relation),
                  get_rel_name(scan->arguments.right.relation), left, right),
           errhint("Transform the geometries to one SRID, for example in a view.")));
}

/// A warning for ids that repeat: pairs do not say which rows they are of. Rows in a file are not
/// looked at.
void check_ids(const JoinScan* scan, const SideColumns& columns, const Dataset& points) {
  std::int64_t id;
  if (columns.unique_id || points.file != nullptr ||
      !find_repeated_id(points, available_memory(&scan->run), &id))
    return;
  ereport(WARNING,
          (errcode(ERRCODE_UNIQUE_VIOLATION),
           errmsg("several rows of relation \"%s\" have the id %lld",
                  get_rel_name(columns.relation), static_cast<long long>(id)),
           errdetail("Column \"%s\" is named as their id, and pairs name rows by it.",
                     get_attname(columns.relation, columns.id, false)),
           errhint("Name a column of unique values, or join in plain SQL, which needs no id.")));
}

/// Whether each left row is emitted, and not pairs.
bool emits_rows(const JoinScan* scan) {
  const RowKind row = scan->operation->row;
  return row == RowKind::kLeftRow || row == RowKind::kGathered;
}

/// Returns true if the rows have to be in memory: those that are divided, and those of trees.
bool needs_memory(const JoinScan* scan, const SideColumns& columns) {
  const Output::Kind output = scan->arguments.function->output;
  return divides(columns) || output == Output::kSpanningTree || output == Output::kStableClusters;
}

/// Prepares a side's buffer for rows, forgetting those that it has.
void prepare_buffer(JoinScan* scan, const SideColumns& columns, PointBuffer* points,
                    ScalarType scalar, std::uint64_t limit) {
  forget_points(points);
  points->context = scan->context;
  points->scalar = scalar;
  points->limit = limit;
  points->shares = scan->run.service.connection.socket >= 0;
  points->spill = needs_memory(scan, columns) ? nullptr : &scan->run.spill;
}

bool has_ctids(const SideColumns& columns) { return columns.id == SelfItemPointerAttributeNumber; }

/// The service may keep rows that are known by their ids: each of them where each is emitted. Rows
/// that are known by their ctids it keeps as plain SQL sees them.
bool may_keep(const JoinScan* scan, const SideColumns& columns) {
  return scan->run.service.connection.socket >= 0 && !scan->reads_whole && !divides(columns) &&
         !scan->arguments.left.bits && (!emits_rows(scan) || columns.unique_id) &&
         (scan->prewarms || !has_ctids(columns));
}

/// Checks columns of gpu_prewarm() whose rows are known by their ctids: plain SQL compares the
/// values of one column.
void check_ctids(const JoinScan* scan, const SideColumns& columns) {
  if (columns.value_type == nullptr || columns.shape == Shape::kBoxes || columns.score != 0)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("rows of relation \"%s\" cannot be known by their ctids",
                           get_rel_name(scan->arguments.left.relation)),
                    errdetail("Plain SQL joins by the distance of points of one column."),
                    errhint("Name that column with vector_columns, or a column of ids.")));
  check_block_columns(columns);
}

/// The key that rows of a partition have in common.
PairKeys key_of_partitions(const Dataset& data) {
  if (data.key_columns == 0 || data.rows == 0) return {};
  return {1, {0}, {*std::max_element(data.keys, data.keys + data.rows)}};
}

/// Reads side 0 or 1, or what of it the service does not have.
void read_side(JoinScan* scan, int side, const SideColumns& columns, ScalarType scalar,
               std::uint64_t limit, ValueShape* shape) {
  PointBuffer* const points = side == 0 ? &scan->left_points : &scan->right_points;
  Dataset* const data = side == 0 ? &scan->left : &scan->right;
  KeptSide* const kept = &scan->kept[side];
  *kept = {};
  prepare_buffer(scan, columns, points, scalar, limit);
  const bool by_ctid = scan->prewarms && has_ctids(columns);
  if (by_ctid) check_ctids(scan, columns);
  if (may_keep(scan, columns) && has_rows_here(columns, list_make1_oid(columns.relation)) &&
      read_kept_side(&scan->run.service.connection, static_cast<std::uint32_t>(side), columns,
                     by_ctid ? TableReader::kNode : TableReader::kFunction, points, shape, kept)) {
    *data = {nullptr, nullptr, kept->rows, kept->dims, scalar};
    if (!by_ctid) check_ids(scan, columns, kept->table.rows);
  } else if (by_ctid) {
    *data = {};
  } else {
    if (points->rows > 0) prepare_buffer(scan, columns, points, scalar, limit);
    scan->divided = {};
    *data = read_points(columns, points, shape, &scan->divided.groups, &scan->run.spill);
    scan->divided.all = *data;
    scan->divided.end = scan->run.spill.end;
    check_ids(scan, columns, *data);
  }
  share_side(&scan->run, side, points->shared, *kept, read_whole);
}

/// Warns once, when the sides of a call were read for the first time.
void warn_of_units(JoinScan* scan, const SideColumns& left, const SideColumns& right,
                   std::int32_t srid) {
  if (scan->warned) return;
  scan->warned = true;
  const JoinArguments& arguments = scan->arguments;
  const bool geometries = left.value_type == &kGeometryType && scan->left.rows > 0;
  warn_of_radius(arguments.metric, arguments.radius, geometries, srid);
  warn_of_latitude_first(arguments.left, left);
  if (!scan->self_join) warn_of_latitude_first(arguments.right, right);
}

/// To gpu_topk_join(), gpu_knn_join() and gpu_box_join() one table given twice is one dataset,
/// whichever of its columns were named and which are defaults.
void read_sides(JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  const bool one_table = arguments.function->takes_one_table();
  const SideColumns left = find_columns(arguments, arguments.left);
  const SideColumns right = one_table ? left : find_columns(arguments, arguments.right);
  const Output::Kind output = arguments.function->output;
  const bool knows_self_join = output == Output::kTopPairs || output == Output::kNearest ||
                               arguments.function->shape == Shape::kBoxes;
  scan->self_join = one_table || (knows_self_join && same_columns(left, right));
  const bool narrow =
      scalar_of(left) == ScalarType::kFloat32 && scalar_of(right) == ScalarType::kFloat32;
  const ScalarType scalar = arguments.left.bits ? ScalarType::kBits
                            : narrow            ? ScalarType::kFloat32
                                                : ScalarType::kFloat64;
  if (!scan->reads_whole && !divides(left)) {
    const double rows = expected_rows(left) + (scan->self_join ? 0 : expected_rows(right));
    begin_service_join(&scan->run, scan->prewarms ? INFINITY : rows, scan->prewarms);
  }
  forget_sides(&scan->run);
  scan->run.reader = scan;
  ValueShape left_shape = {}, right_shape = {};
  const std::uint64_t limit = dataset_share(&scan->run, scan->self_join ? 1 : 2);
  read_side(scan, 0, left, scalar, limit, &left_shape);
  scan->dims = value_dims(scan, scan->left, left_shape);
  if (scan->self_join) return warn_of_units(scan, left, right, left_shape.srid);
  read_side(scan, 1, right, scalar, limit, &right_shape);
  // An error names rows of both; and what the service has is lost with the conversation.
  if (scan->run.read_whole != nullptr &&
      (scan->left.dims != scan->right.dims || left_shape.srid != right_shape.srid ||
       scan->run.service.connection.socket < 0))
    return read_whole_sides(scan);
  check_same_dims(scan, left_shape, right_shape);
  if (scan->left.rows == 0) scan->dims = value_dims(scan, scan->right, right_shape);
  check_same_srid(scan, left_shape.srid, right_shape.srid);
  warn_of_units(scan, left, right, left_shape.srid);
}

void read_data(JoinScan* scan) {
  instr_time start, end;
  const MemoryContext caller = MemoryContextSwitchTo(scan->context);
  INSTR_TIME_SET_CURRENT(start);
  read_sides(scan);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  MemoryContextSwitchTo(caller);
  scan->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  scan->run.report.read_workers = scan->left_points.workers + scan->right_points.workers;
  scan->run.report.dims = scan->dims;
  scan->run.report.dataset_bytes = held_bytes(scan->left_points) + held_bytes(scan->right_points);
  scan->started = false;
}

void read_whole_sides(JoinScan* scan) {
  scan->reads_whole = true;
  read_sides(scan);
}

Sides wanted_sides(const JoinScan* scan) {
  const PairSelection pairs = scan->arguments.pairs;
  if (scan->self_join) return Sides::one(scan->left, pairs);
  const bool nearest = scan->arguments.function->output == Output::kNearest;
  if (pairs != (nearest ? PairSelection::kDistinct : PairSelection::kAll) &&
      pairs != PairSelection::kAll)
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("cannot specify pairs => '%s' when two tables are joined", to_string(pairs)),
             errhint("Leave pairs out, or pass the same table and columns for both sides.")));
  return Sides::two(scan->left, scan->right);
}

Output wanted_output(const JoinScan* scan) {
  switch (scan->arguments.function->output) {
    case Output::kTopPairs:
      return scan->prewarms ? Output::total() : Output::top_pairs(scan->arguments.top);
    case Output::kPairsWithDistances:
      return scan->counted ? Output::total() : Output::pairs_with_distances();
    case Output::kNearest:
      return Output::nearest(scan->arguments.top.k);
    case Output::kClusters:
      return Output::clusters(scan->arguments.min_points);
    case Output::kDuplicates:
      return Output::duplicates(scan->arguments.top.scoring.lowest_first);
    case Output::kSpanningTree:
      return Output::spanning_tree(scan->arguments.min_points);
    case Output::kStableClusters:
      return Output::stable_clusters(scan->arguments.min_points, scan->arguments.min_cluster_size);
    case Output::kCountPerRow:
      if (scan->operation->row != RowKind::kGathered) return Output::count_per_row();
      return scan->rows_counted || scan->left.file != nullptr ? Output::pairs_with_distances()
                                                              : Output::count_per_row();
    default:
      return scan->counted ? Output::total() : Output::pairs();
  }
}

JoinRequest wanted_request(const JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  const Sides sides = wanted_sides(scan);
  if (arguments.function->shape == Shape::kBoxes)
    return {sides, BoxesWithin{arguments.metric.metric, arguments.eps},
            scan->counted ? BoxOutput::kTotal : BoxOutput::kPairs};
  JoinRequest request(sides, PointsWithin{arguments.metric.metric, arguments.eps},
                      wanted_output(scan));
  request.keys = key_of_partitions(scan->left);
  return request;
}

/// Where rows are emitted a point's neighbours are its own, and rows have names that are no
/// other's; the same ones in both joins.
void ask_for_rows(JoinScan* scan) {
  JoinRequest* const request = &scan->run.request;
  request->knobs.access_pattern = AccessPattern::kFull;
  if (!scan->rows_counted) scan->by_id = scan->kept[0].kept;
  if (scan->by_id) return;
  request->sides = Sides::one(unnamed(request->left()), request->pairs());
  const auto rows = static_cast<std::int64_t>(scan->left.rows);
  limit_ids(&scan->run, {rows, 0}, {rows, 0});
}

/// Whether what the engine returns with a pair is the distance of places on the Earth.
bool has_chords(const JoinArguments& arguments) {
  switch (arguments.function->output) {
    case Output::kPairs:
    case Output::kClusters:
      return false;
    case Output::kTopPairs:
      return arguments.metric.on_earth &&
             arguments.top.scoring.function == ScoreFunction::kDistance;
    default:
      return arguments.metric.on_earth;
  }
}

/// Makes the request from the arguments, unless these ask for no rows.
void prepare_request(JoinScan* scan) {
  scan->cursor = {};
  scan->run.report.engine = nullptr;
  scan->has_chords = has_chords(scan->arguments);
  if (scan->arguments.no_rows) return;
  set_request(&scan->run, wanted_request(scan));
  name_radius(&scan->run, to_string(scan->arguments.metric), scan->arguments.radius);
  if (scan->operation->row == RowKind::kGathered && scan->left.file == nullptr) ask_for_rows(scan);
}

/// Whether the number of rows follows from what was read.
bool is_counted_by_rows(const JoinScan* scan) { return scan->counted && emits_rows(scan); }

/// EngineRun::read_whole
bool read_whole(EngineRun* run) {
  JoinScan* const scan = static_cast<JoinScan*>(run->reader);
  scan->reads_whole = true;
  read_data(scan);
  prepare_request(scan);
  return true;
}

/// Brings the next groups of divided rows to memory, and their request. False: there are none.
bool prepare_groups(JoinScan* scan) {
  EngineRun* const run = &scan->run;
  DividedRows* const rows = &scan->divided;
  const std::uint64_t held =
      held_bytes(scan->left_points) + rows->groups.room * sizeof(std::uint32_t);
  const std::uint64_t available = available_memory(run);
  scan->left = next_groups(rows, &scan->left_points, (available - std::min(available, held)) / 3);
  run->report.dataset_bytes = held_bytes(scan->left_points) + held_bytes(*rows);
  if (scan->left.rows == 0) return false;
  prepare_request(scan);
  return true;
}

/// Starts the engine on the next groups of divided rows. False: there are none, and the report is
/// of all.
bool start_next_groups(JoinScan* scan) {
  if (!are_in_groups(scan->divided)) return false;
  EngineRun* const run = &scan->run;
  add_work(scan->divided.before, &run->report.stats);
  scan->divided.before = {};
  if (!prepare_groups(scan)) return false;
  scan->divided.before = run->report.stats;
  restart_run(run);
  start_engine(run);
  return true;
}

void start(JoinScan* scan) {
  scan->rows_counted = false;
  if (are_in_groups(scan->divided)) {
    rewind_groups(&scan->divided);
    scan->left = scan->divided.all;
  }
  prepare_join(scan);
  if (scan->arguments.no_rows || is_counted_by_rows(scan)) return;
  begin_join(&scan->run);
  if (are_in_groups(scan->divided)) prepare_groups(scan);
  if (scan->counted)
    start_engine(&scan->run);
  else
    scan->operation->start(scan);
}

JoinScan* create_scan(MemoryContext parent, const Operation* operation) {
  const MemoryContext context = AllocSetContextCreate(parent, "gpujoin join", ALLOCSET_SMALL_SIZES);
  JoinScan* const scan = static_cast<JoinScan*>(MemoryContextAllocZero(context, sizeof(JoinScan)));
  scan->context = context;
  scan->operation = operation;
  init_engine_run(&scan->run, context, operation->function.name);
  return scan;
}

/// Whether both ask for the same rows of the same tables.
bool same_data(const JoinArguments& a, const JoinArguments& b) {
  if (a.no_rows || b.no_rows || !same_side(a.left, b.left)) return false;
  return a.function->takes_one_table() || same_side(a.right, b.right);
}

void open_scan(JoinScan* scan, Node* call, const NullableDatum* arguments) {
  const Operation* const operation = scan->operation;
  const MemoryContext caller = MemoryContextSwitchTo(scan->context);
  scan->arguments = read_arguments(&operation->function, call, arguments);
  if (!scan->arguments.no_rows) read_data(scan);
  start(scan);
  MemoryContextSwitchTo(caller);
}

}  // namespace

JoinScan* open_join_scan(MemoryContext parent, const Operation* operation, Node* call,
                         const NullableDatum* arguments, bool counted, bool warned) {
  JoinScan* const scan = create_scan(parent, operation);
  scan->counted = counted;
  scan->warned = warned;
  open_scan(scan, call, arguments);
  return scan;
}

JoinScan* prewarm_join_scan(MemoryContext parent, const Operation* operation, Node* call,
                            const NullableDatum* arguments) {
  JoinScan* const scan = create_scan(parent, operation);
  scan->counted = scan->prewarms = true;
  open_scan(scan, call, arguments);
  return scan;
}

JoinScan* reopen_join_scan(JoinScan* scan, Node* call, const NullableDatum* values) {
  const Operation* const operation = scan->operation;
  const JoinArguments wanted = read_arguments(&operation->function, call, values);
  if (!same_data(wanted, scan->arguments)) {
    const MemoryContext parent = MemoryContextGetParent(scan->context);
    const bool counted = scan->counted, warned = scan->warned;
    close_join_scan(scan);
    return open_join_scan(parent, operation, call, values, counted, warned);
  }
  stop_engine(&scan->run);
  scan->arguments.eps = wanted.eps;
  scan->arguments.radius = wanted.radius;
  scan->arguments.metric = wanted.metric;
  scan->arguments.pairs = wanted.pairs;
  scan->arguments.top = wanted.top;
  scan->arguments.min_points = wanted.min_points;
  scan->arguments.min_cluster_size = wanted.min_cluster_size;
  start(scan);
  return scan;
}

void rewind_join_scan(JoinScan* scan) {
  stop_engine(&scan->run);
  start(scan);
}

void prepare_join(JoinScan* scan) {
  if (scan->started && scan->run.read_whole != nullptr) read_data(scan);
  scan->started = true;
  prepare_request(scan);
}

bool next_join_batch(JoinScan* scan) {
  while (!next_engine_batch(&scan->run)) {
    if (start_next_groups(scan)) continue;
    scan->cursor = {};
    return false;
  }
  if (wants_pairs(scan->run.request.output()))
    scan->cursor.start(scan->run.batch, scan->run.request.orders_pairs());
  return true;
}

bool next_join_row(JoinScan* scan, Datum* values, bool* nulls) {
  std::fill_n(nulls, scan->operation->columns, false);
  return !scan->arguments.no_rows && scan->operation->next(scan, values, nulls);
}

std::uint64_t count_join_rows(JoinScan* scan) {
  if (is_counted_by_rows(scan)) return scan->left.rows;
  std::uint64_t rows = 0;
  while (next_join_batch(scan)) rows += scan->run.batch.pair_count;
  return rows;
}

void close_join_scan(JoinScan* scan) { MemoryContextDelete(scan->context); }

}  // namespace gpujoin

// Life of a JoinScan: arguments, columns, data, engine, batches, end.
#include "pg/join_scan.h"

#include "pg/errors.h"
#include "pg/reader.h"
#include "pg/relation.h"
#include "pg/settings.h"

extern "C" {
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

JoinReport last_report;

/// Stops the engine, keeping its figures. It is also what the memory context calls at its end,
/// after errors too, so it raises none.
void stop_engine(void* argument) {
  JoinScan* const scan = static_cast<JoinScan*>(argument);
  if (scan->join == nullptr) return;
  last_report = report_join(scan);
  scan->engine->close(scan->join);
  scan->join = nullptr;
  scan->cursor = {};
}

void check_same_dims(const JoinScan* scan) {
  const Dataset &left = scan->left, &right = scan->right;
  if (left.rows == 0 || right.rows == 0 || left.dims == right.dims) return;
  const char* const left_name = get_rel_name(scan->arguments.left.relation);
  const char* const right_name = get_rel_name(scan->arguments.right.relation);
  ereport(ERROR,
          (errcode(ERRCODE_DATA_EXCEPTION),
           errmsg("vectors of relations \"%s\" and \"%s\" have different numbers of dimensions",
                  left_name, right_name),
           errdetail("Row %lld of \"%s\" has %u, row %lld of \"%s\" has %u.",
                     static_cast<long long>(left.ids[0]), left_name, left.dims,
                     static_cast<long long>(right.ids[0]), right_name, right.dims),
           errhint("Name columns of the same kind with left_vector_columns and "
                   "right_vector_columns.")));
}

void read_sides(JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  const std::uint64_t limit = host_memory_limit_bytes();
  const SideColumns left = find_columns(arguments.left);
  if (arguments.function->self_join) {
    scan->left = read_points(left, scalar_of(left), limit, scan->context);
    return;
  }
  const SideColumns right = find_columns(arguments.right);
  const bool narrow =
      scalar_of(left) == ScalarType::kFloat32 && scalar_of(right) == ScalarType::kFloat32;
  const ScalarType scalar = narrow ? ScalarType::kFloat32 : ScalarType::kFloat64;
  scan->left = read_points(left, scalar, limit, scan->context);
  scan->right = read_points(right, scalar, limit - dataset_bytes(scan->left), scan->context);
  check_same_dims(scan);
}

void read_data(JoinScan* scan) {
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  read_sides(scan);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  scan->report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  scan->report.dims = scan->left.rows > 0 ? scan->left.dims : scan->right.dims;
  scan->report.dataset_bytes = dataset_bytes(scan->left) + dataset_bytes(scan->right);
}

JoinRequest make_request(const JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  const std::uint64_t limit = host_memory_limit_bytes();
  const std::uint64_t held = scan->report.dataset_bytes;
  JoinRequest request = {};
  request.left = scan->left;
  request.right = scan->right;
  request.self_join = arguments.function->self_join;
  request.metric = arguments.metric;
  request.eps = arguments.eps;
  request.pairs = arguments.pairs;
  request.output = arguments.function->distances ? Output::kPairsWithDistances : Output::kPairs;
  request.threads = thread_limit();
  request.memory_limit = limit > held ? limit - held : 1;
  request.device_memory_limit = device_memory_limit_bytes();
  request.device = device_number();
  request.interrupt = &InterruptPending;
  request.knobs = knob_settings();
  return request;
}

/// Opens an engine that is `fallback` for a reason, or "".
Status open_engine(JoinScan* scan, const EngineTable* engine, const char* fallback) {
  const JoinRequest request = make_request(scan);
  scan->engine = engine;
  scan->delivered = false;
  scan->report.engine = engine->name;
  strlcpy(scan->report.fallback, fallback, sizeof scan->report.fallback);
  const Status status = engine->open(&request, &scan->join);
  if (!status.ok()) scan->join = nullptr;
  return status;
}

/// Under `auto` the CPU serves where the device cannot, until the device has handed over pairs.
/// Returns the failure where that does not help.
Status fall_back(JoinScan* scan, const Status& failure) {
  if (scan->engine == cpu_engine() || engine_preference() != EnginePreference::kAuto ||
      scan->delivered)
    return failure;
  if (scan->join != nullptr) scan->engine->close(scan->join);
  return open_engine(scan, cpu_engine(), failure.message);
}

/// Waits for the next batch; interrupts are raised.
Status pull(JoinScan* scan, ResultBatch* batch) {
  Status status = scan->engine->next_batch(scan->join, batch);
  while (status.code == StatusCode::kInterrupted) {
    CHECK_FOR_INTERRUPTS();
    status = scan->engine->next_batch(scan->join, batch);
  }
  return status;
}

/// Opens the engine that the session prefers.
void start_engine(JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  scan->cursor = {};
  scan->report.metric = arguments.metric;
  scan->report.pairs = arguments.pairs;
  scan->report.eps = arguments.eps;
  scan->report.complete = false;
  scan->report.stats = {};
  if (arguments.no_rows) return;
  const EngineChoice choice = choose_engine(make_request(scan));
  Status status = open_engine(scan, choice.engine, choice.fallback);
  if (!status.ok()) status = fall_back(scan, status);
  if (!status.ok()) raise_status(status);
}

JoinScan* create_scan(MemoryContext parent, const JoinFunction* function) {
  const MemoryContext context = AllocSetContextCreate(parent, "gpujoin join", ALLOCSET_SMALL_SIZES);
  JoinScan* const scan = static_cast<JoinScan*>(MemoryContextAllocZero(context, sizeof(JoinScan)));
  scan->context = context;
  scan->report.function = function;
  MemoryContextCallback* const callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
  callback->func = stop_engine;
  callback->arg = scan;
  MemoryContextRegisterResetCallback(context, callback);
  return scan;
}

/// Whether both ask for the same rows of the same tables.
bool same_data(const JoinArguments& a, const JoinArguments& b) {
  if (a.no_rows || b.no_rows || !same_side(a.left, b.left)) return false;
  return a.function->self_join || same_side(a.right, b.right);
}

}  // namespace

JoinScan* open_join_scan(MemoryContext parent, const JoinFunction* function,
                         const NullableDatum* arguments) {
  JoinScan* const scan = create_scan(parent, function);
  const MemoryContext caller = MemoryContextSwitchTo(scan->context);
  scan->arguments = read_arguments(function, arguments);
  if (!scan->arguments.no_rows) read_data(scan);
  start_engine(scan);
  MemoryContextSwitchTo(caller);
  return scan;
}

JoinScan* reopen_join_scan(JoinScan* scan, const NullableDatum* values) {
  const JoinFunction* const function = scan->arguments.function;
  const JoinArguments wanted = read_arguments(function, values);
  if (!same_data(wanted, scan->arguments)) {
    const MemoryContext parent = MemoryContextGetParent(scan->context);
    close_join_scan(scan);
    return open_join_scan(parent, function, values);
  }
  stop_engine(scan);
  scan->arguments.eps = wanted.eps;
  scan->arguments.metric = wanted.metric;
  scan->arguments.pairs = wanted.pairs;
  start_engine(scan);
  return scan;
}

void rewind_join_scan(JoinScan* scan) {
  stop_engine(scan);
  start_engine(scan);
}

bool next_join_batch(JoinScan* scan) {
  if (scan->join == nullptr || scan->report.complete) return false;
  ResultBatch batch;
  Status status = pull(scan, &batch);
  if (!status.ok() && status.code != StatusCode::kEnd) {
    status = fall_back(scan, status);
    if (status.ok()) status = pull(scan, &batch);
  }
  if (status.code == StatusCode::kEnd) {
    scan->cursor = {};
    scan->report.complete = true;
    stop_engine(scan);
    return false;
  }
  if (!status.ok()) raise_status(status);
  scan->delivered = true;
  scan->cursor.start(batch, scan->arguments.pairs);
  return true;
}

void close_join_scan(JoinScan* scan) { MemoryContextDelete(scan->context); }

const JoinReport& report_join(JoinScan* scan) {
  if (scan->join != nullptr) scan->engine->stats(scan->join, &scan->report.stats);
  return scan->report;
}

const JoinReport* last_join_report() {
  return last_report.function != nullptr ? &last_report : nullptr;
}

}  // namespace gpujoin

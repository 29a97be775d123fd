// Life of a JoinScan: arguments, columns, data, engine, batches, end.
#include "pg/function_scan.h"

#include "pg/reader.h"
#include "pg/relation.h"
#include "pg/settings.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

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
  scan->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  scan->run.report.dims = scan->left.rows > 0 ? scan->left.dims : scan->right.dims;
  scan->run.report.dataset_bytes = dataset_bytes(scan->left) + dataset_bytes(scan->right);
}

/// Asks for what the arguments say, unless that is nothing.
void prepare_request(JoinScan* scan) {
  const JoinArguments& arguments = scan->arguments;
  scan->cursor = {};
  scan->run.report.engine = nullptr;
  if (arguments.no_rows) return;
  JoinRequest request = default_request(scan->run.report.dataset_bytes);
  request.left = scan->left;
  request.right = scan->right;
  request.self_join = arguments.function->self_join;
  request.metric = arguments.metric;
  request.eps = arguments.eps;
  request.pairs = arguments.pairs;
  request.output = scan->output;
  scan->run.request = request;
}

void start(JoinScan* scan) {
  prepare_request(scan);
  if (!scan->arguments.no_rows) start_engine(&scan->run);
}

JoinScan* create_scan(MemoryContext parent, const JoinFunction* function) {
  const MemoryContext context = AllocSetContextCreate(parent, "gpujoin join", ALLOCSET_SMALL_SIZES);
  JoinScan* const scan = static_cast<JoinScan*>(MemoryContextAllocZero(context, sizeof(JoinScan)));
  scan->context = context;
  init_engine_run(&scan->run, context, function->name);
  return scan;
}

/// Whether both ask for the same rows of the same tables.
bool same_data(const JoinArguments& a, const JoinArguments& b) {
  if (a.no_rows || b.no_rows || !same_side(a.left, b.left)) return false;
  return a.function->self_join || same_side(a.right, b.right);
}

}  // namespace

JoinScan* prepare_join_scan(MemoryContext parent, const JoinFunction* function,
                            const NullableDatum* arguments, Output output) {
  JoinScan* const scan = create_scan(parent, function);
  scan->output = output;
  const MemoryContext caller = MemoryContextSwitchTo(scan->context);
  scan->arguments = read_arguments(function, arguments);
  if (!scan->arguments.no_rows) read_data(scan);
  prepare_request(scan);
  MemoryContextSwitchTo(caller);
  return scan;
}

JoinScan* open_join_scan(MemoryContext parent, const JoinFunction* function,
                         const NullableDatum* arguments, Output output) {
  JoinScan* const scan = prepare_join_scan(parent, function, arguments, output);
  if (!scan->arguments.no_rows) start_engine(&scan->run);
  return scan;
}

JoinScan* reopen_join_scan(JoinScan* scan, const NullableDatum* values) {
  const JoinFunction* const function = scan->arguments.function;
  const JoinArguments wanted = read_arguments(function, values);
  if (!same_data(wanted, scan->arguments)) {
    const MemoryContext parent = MemoryContextGetParent(scan->context);
    const Output output = scan->output;
    close_join_scan(scan);
    return open_join_scan(parent, function, values, output);
  }
  stop_engine(&scan->run);
  scan->arguments.eps = wanted.eps;
  scan->arguments.metric = wanted.metric;
  scan->arguments.pairs = wanted.pairs;
  start(scan);
  return scan;
}

void rewind_join_scan(JoinScan* scan) {
  stop_engine(&scan->run);
  start(scan);
}

bool next_join_batch(JoinScan* scan) {
  if (!next_engine_batch(&scan->run)) {
    scan->cursor = {};
    return false;
  }
  if (scan->output != Output::kTotal) scan->cursor.start(scan->run.batch, scan->arguments.pairs);
  return true;
}

void close_join_scan(JoinScan* scan) { MemoryContextDelete(scan->context); }

}  // namespace gpujoin

#include "pg/reading/row_values.h"

#include "core/hamming.h"
#include "pg/types/number_datum.h"
#include "pg/types/sphere.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

const char* relation_name(const RowCollector* rows) {
  return get_rel_name(rows->columns->relation);
}

const char* noun(const RowCollector* rows) { return noun(rows->columns->shape); }

[[noreturn]] void raise_too_many_dims(const RowCollector* rows, std::int64_t id,
                                      std::uint32_t dims) {
  const ValueType* const type = rows->columns->value_type;
  const std::uint32_t most = rows->columns->shape == Shape::kBoxes  ? kMaxBoxDimensions
                             : type != nullptr && is_of_bits(*type) ? kMaxDimensions * kBitsPerWord
                                                                    : kMaxDimensions;
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("the %s of row %lld of relation \"%s\" has %u dimensions", noun(rows),
                         static_cast<long long>(id), relation_name(rows), dims),
                  errhint("A %s has at most %u dimensions.", noun(rows), most)));
  pg_unreachable();
}

[[noreturn]] void raise_mismatch(const RowCollector* rows, std::int64_t id, std::uint32_t dims) {
  ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                  errmsg("%s of relation \"%s\" have different numbers of dimensions",
                         plural(rows->columns->shape), relation_name(rows)),
                  errdetail("Row %lld has %u, row %lld has %u.",
                            static_cast<long long>(rows->points->ids[0]), rows->shape.dims,
                            static_cast<long long>(id), dims),
                  errhint("Join rows of one number of dimensions, for example through a view.")));
  pg_unreachable();
}

/// Raises the error for a value that is no longitude and latitude, of so many dimensions.
[[noreturn]] void raise_no_place(const RowCollector* rows, std::int64_t id, std::uint32_t dims) {
  const char* const name = relation_name(rows);
  if (dims != 2)
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("the vector of row %lld of relation \"%s\" has %u dimensions",
                    static_cast<long long>(id), name, dims),
             errhint("By the metric haversine it is a longitude and a latitude, in degrees.")));
  ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                  errmsg("the vector of row %lld of relation \"%s\" is no place on the Earth",
                         static_cast<long long>(id), name),
                  errhint("%s", kDegreesHint)));
  pg_unreachable();
}

/// Raises the error for a value that is no vector or box, or does not fit the values before it.
[[noreturn]] void raise_problem(const RowCollector* rows, std::int64_t id, ValueFinding found) {
  const char *const name = relation_name(rows), *const what = noun(rows);
  const long long row = id;
  if (is_on_earth(rows->columns->form) && found.problem == ValueProblem::kIncomparable)
    raise_no_place(rows, id, found.dims);
  switch (found.problem) {
    case ValueProblem::kTooManyDimensions:
      raise_too_many_dims(rows, id, found.dims);
    case ValueProblem::kMismatch:
      raise_mismatch(rows, id, found.dims);
    case ValueProblem::kEmpty:
      ereport(ERROR,
              (errcode(ERRCODE_DATA_EXCEPTION),
               errmsg("the %s of row %lld of relation \"%s\" has no dimensions", what, row, name),
               errhint("Rows without a %s hold NULL, which matches nothing.", what)));
      break;
    case ValueProblem::kMultidimensional:
      ereport(ERROR,
              (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
               errmsg("the %s of row %lld of relation \"%s\" is an array of %u dimensions", what,
                      row, name, found.dims),
               errhint("A %s is a one-dimensional array.",
                       rows->columns->shape == Shape::kBoxes ? "corner of a box" : "vector")));
      break;
    case ValueProblem::kOtherSrid:
      ereport(ERROR,
              (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
               errmsg("the %s of row %lld of relation \"%s\" has another SRID than those before it",
                      what, row, name),
               errhint("Transform the geometries to one SRID, for example in a view.")));
      break;
    case ValueProblem::kNoDegrees:
      ereport(ERROR,
              (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
               errmsg("the %s of row %lld of relation \"%s\" is not in degrees", what, row, name),
               errhint("%s", kGeometryDegreesHint)));
      break;
    default:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("the value of row %lld of relation \"%s\" is no point", row, name),
                      errhint("Join points only, or the values' boxes by gpu_box_join().")));
  }
  pg_unreachable();
}

/// Before an error for a row that cannot take part: whether the row is passed over instead.
bool passes_over(const RowCollector* rows) {
  if (rows->has_odd != nullptr) *rows->has_odd = true;
  return rows->has_odd != nullptr;
}

/// Whether a value takes part in the join: one with a NULL in it matches nothing, as NULL does.
bool takes_part(const RowCollector* rows, std::int64_t id, ValueFinding found) {
  if (found.problem == ValueProblem::kNullElement) return false;
  if (found.problem == ValueProblem::kNone) return true;
  if (!passes_over(rows)) raise_problem(rows, id, found);
  return false;
}

bool add_numbers(RowCollector* rows, std::int64_t id, const Datum* values) {
  const SideColumns& columns = *rows->columns;
  if (is_on_earth(columns.form))
    return takes_part(
        rows, id,
        add_degrees(rows->points, &rows->shape, id, machine_number(columns.types[0], values[0]),
                    machine_number(columns.types[1], values[1]), rows->shape.as_stored));
  if (!takes_part(rows, id,
                  fit_point(rows->points, &rows->shape, static_cast<std::uint32_t>(columns.count))))
    return false;
  char* const target = add_point(rows->points, id);
  for (int d = 0; d < columns.count; ++d)
    set_number(rows->points, target, static_cast<std::uint32_t>(d),
               machine_number(columns.types[d], values[d]));
  note_size(*rows->points, &rows->shape);
  return true;
}

[[noreturn]] void raise_uneven_corners(const RowCollector* rows, std::int64_t id, int low,
                                       int high) {
  ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                  errmsg("the corners of the box of row %lld of relation \"%s\" have different "
                         "numbers of dimensions",
                         static_cast<long long>(id), relation_name(rows)),
                  errdetail("The low corner has %d, the high corner has %d.", low, high),
                  errhint("Both corners are arrays of one length.")));
  pg_unreachable();
}

[[noreturn]] void raise_upside_down(const RowCollector* rows, std::int64_t id, int d, double low,
                                    double high) {
  const SideColumns& columns = *rows->columns;
  ereport(ERROR,
          (errcode(ERRCODE_DATA_EXCEPTION),
           errmsg("the low corner of the box of row %lld of relation \"%s\" is above its high one",
                  static_cast<long long>(id), relation_name(rows)),
           errdetail("In dimension %d column \"%s\" has %g, column \"%s\" has %g.", d + 1,
                     get_attname(columns.relation, columns.attributes[0], false), low,
                     get_attname(columns.relation, columns.attributes[1], false), high),
           errhint("Name the column of low corners first; rows whose box is not known can hold "
                   "NULL, which matches nothing.")));
  pg_unreachable();
}

double element(const VectorView& view, Oid type, int d) {
  if (type == FLOAT4ARRAYOID) return reinterpret_cast<const Unaligned<float>*>(view.data)[d];
  return reinterpret_cast<const Unaligned<double>*>(view.data)[d];
}

void start_dividing(RowCollector* rows) {
  const SideColumns& columns = *rows->columns;
  const MemoryContext context =
      AllocSetContextCreate(rows->points->context, "gpujoin partitions", ALLOCSET_DEFAULT_SIZES);
  RankFunctions functions;
  if (!find_rank_functions(columns.partition_type, columns.partition_collation, &functions))
    elog(ERROR, "the type of a partition has no equality");
  if (rows->groups != nullptr)
    rows->runs = new (MemoryContextAlloc(context, sizeof(ValueRuns))) ValueRuns(context, functions);
  else
    rows->ranks =
        new (MemoryContextAlloc(context, sizeof(ValueRanks))) ValueRanks(context, functions);
  rows->scratch =
      AllocSetContextCreate(context, "gpujoin values of partitions", ALLOCSET_DEFAULT_SIZES);
}

void note_group(RowCollector* rows, NullableDatum partition) {
  GroupEnds* const groups = rows->groups;
  if (rows->runs->begins(partition)) {
    reserve_next(rows->points->context, &groups->ends, groups->count, &groups->room);
    ++groups->count;
  }
  groups->ends[groups->count - 1] = static_cast<std::uint32_t>(rows->points->rows);
}

/// Whether one more row would not fit.
bool is_full(const PointBuffer& points) {
  return points.rows > 0 && affordable_rows(points, points.limit) <= points.rows;
}

/// Notes the number of the value that the partition of the row that was added last is known by.
void note_partition(RowCollector* rows, NullableDatum partition) {
  const std::uint64_t row = rows->points->rows - 1;
  reserve_next(rows->points->context, &rows->partitions, row, &rows->partition_room);
  rows->partitions[row] =
      partition.isnull ? rows->ranks->rank_of_null() : rows->ranks->rank_of(partition.value);
}

/// Notes what value the row that was added last has.
void divide_row(RowCollector* rows, NullableDatum partition) {
  const MemoryContext caller = MemoryContextSwitchTo(rows->scratch);
  if (rows->runs != nullptr)
    note_group(rows, partition);
  else
    note_partition(rows, partition);
  MemoryContextSwitchTo(caller);
  MemoryContextReset(rows->scratch);
  const std::uint64_t bytes = rows->runs != nullptr
                                  ? rows->groups->room * sizeof(std::uint32_t)
                                  : rows->ranks->bytes() + rows->partition_room * sizeof(double);
  if (bytes <= rows->points->limit) return;
  if (rows->is_full != nullptr)
    *rows->is_full = true;
  else
    ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                    errmsg("the values of the partitions of relation \"%s\" do not fit in memory",
                           relation_name(rows)),
                    errhint("Raise gpujoin.host_memory_limit.")));
}

struct varlena* detoast(Datum value) {
  return pg_detoast_datum_packed(reinterpret_cast<struct varlena*>(DatumGetPointer(value)));
}

/// The box between a low corner and a high one, both without NULLs.
bool add_box(RowCollector* rows, std::int64_t id, const VectorView* corners) {
  const Oid* const types = rows->columns->types;
  const int dims = corners[0].dims;
  if (corners[1].dims != dims) {
    if (passes_over(rows)) return false;
    raise_uneven_corners(rows, id, dims, corners[1].dims);
  }
  double bounds[2][kMaxBoxDimensions];
  for (int d = 0; d < std::min(dims, static_cast<int>(kMaxBoxDimensions)); ++d) {
    for (int corner = 0; corner < 2; ++corner)
      bounds[corner][d] = element(corners[corner], types[corner], d);
    if (bounds[0][d] > bounds[1][d]) {
      if (passes_over(rows)) return false;
      raise_upside_down(rows, id, d, bounds[0][d], bounds[1][d]);
    }
  }
  return takes_part(rows, id,
                    add_corners(rows->points, &rows->shape, id, bounds[0], bounds[1],
                                static_cast<std::uint32_t>(dims)));
}

/// The low corner and the high one, each an array.
bool add_arrays(RowCollector* rows, std::int64_t id, const Datum* values) {
  struct varlena* const arrays[2] = {detoast(values[0]), detoast(values[1])};
  const VectorView corners[2] = {view_vector(arrays[0]), view_vector(arrays[1])};
  bool known = true;
  for (const VectorView& corner : corners)
    known =
        known && takes_part(rows, id, {corner.problem, static_cast<std::uint32_t>(corner.dims)});
  if (known) known = add_box(rows, id, corners);
  for (int corner = 0; corner < 2; ++corner)
    if (PointerGetDatum(arrays[corner]) != values[corner]) pfree(arrays[corner]);
  return known;
}

}  // namespace

Oid asked_type(const SideColumns& columns, Oid type) {
  return reads_as_box(columns) ? BOXOID : type_read(type);
}

RowCollector start_collecting(const SideColumns* columns, PointBuffer* points, GroupEnds* groups) {
  RowCollector rows = {columns, points, {}, columns->form};
  rows.groups = groups;
  rows.shape.as_stored = true;
  points->source = psprintf("relation \"%s\"", relation_name(&rows));
  points->scored = columns->score != InvalidAttrNumber;
  if (divides(*columns)) start_dividing(&rows);
  return rows;
}

void end_dividing(RowCollector* rows) {
  if (rows->scratch != nullptr) MemoryContextDelete(MemoryContextGetParent(rows->scratch));
  rows->scratch = nullptr;
  rows->ranks = nullptr;
  rows->runs = nullptr;
}

bool add_row(RowCollector* rows, std::int64_t id, const Datum* values) {
  const SideColumns& columns = *rows->columns;
  if (columns.value_type == nullptr)
    return columns.shape == Shape::kBoxes ? add_arrays(rows, id, values)
                                          : add_numbers(rows, id, values);
  const ValueType& type = reads_as_box(columns) ? kBoxType : *columns.value_type;
  return takes_part(rows, id,
                    add_value(type, rows->form, rows->points, &rows->shape, id, values[0]));
}

bool add_scored_row(RowCollector* rows, std::int64_t id, const Datum* values, Datum score) {
  if (!add_row(rows, id, values)) return false;
  const double number = machine_number(rows->columns->score_type, score);
  if (!std::isfinite(number) && !passes_over(rows))
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                    errmsg("the score of row %lld of relation \"%s\" is %g",
                           static_cast<long long>(id), relation_name(rows), number),
                    errhint("Scores are finite numbers. Rows with a NULL score are left out.")));
  set_score(rows->points, number);
  return true;
}

void collect_row(RowCollector* rows, const Datum* values, const bool* nulls) {
  const SideColumns& columns = *rows->columns;
  if (nulls[0] && passes_over(rows)) return;
  if (nulls[0])
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("a row of relation \"%s\" has a NULL id", relation_name(rows)),
                    errhint("Name an id column without NULLs, or leave such rows out, for example "
                            "through a view.")));
  const int last = columns.count + (rows->points->scored ? 1 : 0);
  for (int i = 1; i <= last; ++i)
    if (nulls[i]) return;
  if (rows->is_full != nullptr && (*rows->is_full = *rows->is_full || is_full(*rows->points)))
    return;
  const std::int64_t id = integer_of(columns.id_type, values[0]);
  const bool added = rows->points->scored ? add_scored_row(rows, id, values + 1, values[last])
                                          : add_row(rows, id, values + 1);
  if (added && divides(columns)) divide_row(rows, {values[last + 1], nulls[last + 1]});
}

}  // namespace gpujoin

#include "pg/reading/row_values.h"

#include "core/box.h"
#include "pg/types/cube_datum.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/geo_decls.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

const char* relation_name(const RowCollector* rows) {
  return get_rel_name(rows->columns->relation);
}

const char* noun(const RowCollector* rows) { return noun(rows->columns->shape); }

[[noreturn]] void raise_bad_array(const RowCollector* rows, std::int64_t id,
                                  const VectorView& view) {
  const char* const name = relation_name(rows);
  const long long row = id;
  switch (view.problem) {
    case VectorProblem::kEmpty:
      ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                      errmsg("the %s of row %lld of relation \"%s\" has no dimensions", noun(rows),
                             row, name),
                      errhint("Rows without a %s hold NULL, which matches nothing.", noun(rows))));
      break;
    case VectorProblem::kMultidimensional:
      ereport(ERROR,
              (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
               errmsg("the %s of row %lld of relation \"%s\" is an array of %d dimensions",
                      noun(rows), row, name, view.dims),
               errhint("A %s is a one-dimensional array.",
                       rows->columns->shape == Shape::kBoxes ? "corner of a box" : "vector")));
      break;
    default:
      ereport(ERROR,
              (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
               errmsg("the %s of row %lld of relation \"%s\" holds a NULL", noun(rows), row, name),
               errhint("A %s whose coordinates are not all known can be NULL as a whole, "
                       "which matches nothing.",
                       noun(rows))));
  }
  pg_unreachable();
}

[[noreturn]] void raise_too_many_dims(const RowCollector* rows, std::int64_t id, int dims,
                                      std::uint32_t most) {
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("the %s of row %lld of relation \"%s\" has %d dimensions", noun(rows),
                         static_cast<long long>(id), relation_name(rows), dims),
                  errhint("A %s has at most %u dimensions.", noun(rows), most)));
  pg_unreachable();
}

/// Settles the number of dimensions with the first row, and holds the others to it.
void check_dims(RowCollector* rows, std::int64_t id, int dims) {
  const bool boxes = rows->columns->shape == Shape::kBoxes;
  PointBuffer& points = rows->points;
  const std::uint32_t numbers = static_cast<std::uint32_t>(dims) * (boxes ? 2 : 1);
  if (points.dims == numbers && dims > 0) return;
  const std::uint32_t most = boxes ? kMaxBoxDimensions : kMaxDimensions;
  if (dims == 0) raise_bad_array(rows, id, {VectorProblem::kEmpty, 0, nullptr});
  if (static_cast<std::uint32_t>(dims) > most) raise_too_many_dims(rows, id, dims, most);
  if (points.dims != 0)
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("%s of relation \"%s\" have different numbers of dimensions",
                    plural(rows->columns->shape), relation_name(rows)),
             errdetail("Row %lld has %u, row %lld has %d.", static_cast<long long>(points.ids[0]),
                       points.dims / (boxes ? 2 : 1), static_cast<long long>(id), dims),
             errhint("Join rows of one number of dimensions, for example through a view.")));
  points.dims = numbers;
}

/// Returns where the numbers of the next row go.
char* start_row(RowCollector* rows, std::int64_t id, int dims) {
  check_dims(rows, id, dims);
  return add_point(&rows->points, id);
}

struct varlena* detoast(Datum value) {
  return pg_detoast_datum_packed(reinterpret_cast<struct varlena*>(DatumGetPointer(value)));
}

/// Frees what detoast() made of the value, if that is a copy.
void free_copy(struct varlena* detoasted, Datum value) {
  if (PointerGetDatum(detoasted) != value) pfree(detoasted);
}

void add_array(RowCollector* rows, std::int64_t id, Datum value) {
  struct varlena* const array = detoast(value);
  const VectorView view = view_vector(array);
  if (view.problem != VectorProblem::kNone) raise_bad_array(rows, id, view);
  check_dims(rows, id, view.dims);
  add_vector(&rows->points, id, view, rows->columns->kind == ColumnKind::kFloat4Array);
  free_copy(array, value);
}

void add_point_value(RowCollector* rows, std::int64_t id, Datum value) {
  const Point* const point = DatumGetPointP(value);
  const double coordinates[2] = {point->x, point->y};
  std::memcpy(start_row(rows, id, 2), coordinates, sizeof coordinates);
}

void add_numbers(RowCollector* rows, std::int64_t id, const Datum* values) {
  const SideColumns& columns = *rows->columns;
  char* const target = start_row(rows, id, columns.count);
  for (int d = 0; d < columns.count; ++d) {
    const double number = machine_number(columns.types[d], values[d]);
    if (rows->points.scalar == ScalarType::kFloat32)
      reinterpret_cast<float*>(target)[d] = static_cast<float>(number);
    else
      reinterpret_cast<double*>(target)[d] = number;
  }
}

/// PostgreSQL's box. One with a NaN has corners in any order.
void add_box(RowCollector* rows, std::int64_t id, Datum value) {
  const BOX* const box = DatumGetBoxP(value);
  const double bounds[4] = {box->low.x, box->low.y, box->high.x, box->high.y};
  std::memcpy(start_row(rows, id, 2), bounds, sizeof bounds);
}

void add_cube(RowCollector* rows, std::int64_t id, Datum value) {
  struct varlena* const detoasted = detoast(value);
  const CubeView cube = view_cube(VARDATA_ANY(detoasted));
  auto* const low = reinterpret_cast<double*>(start_row(rows, id, static_cast<int>(cube.dims)));
  double* const high = low + cube.dims;
  for (std::uint32_t d = 0; d < cube.dims; ++d) {
    const double one = cube.at(cube.corner, d), other = cube.at(cube.opposite, d);
    low[d] = cube.has_nan ? NAN : std::fmin(one, other);
    high[d] = cube.has_nan ? NAN : std::fmax(one, other);
  }
  free_copy(detoasted, value);
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

/// The low corner and the high one, each an array.
void add_corners(RowCollector* rows, std::int64_t id, const Datum* values) {
  const Oid* const types = rows->columns->types;
  struct varlena* const arrays[2] = {detoast(values[0]), detoast(values[1])};
  const VectorView corners[2] = {view_vector(arrays[0]), view_vector(arrays[1])};
  for (const VectorView& corner : corners)
    if (corner.problem != VectorProblem::kNone) raise_bad_array(rows, id, corner);
  const int dims = corners[0].dims;
  if (corners[1].dims != dims) raise_uneven_corners(rows, id, dims, corners[1].dims);
  char* const target = start_row(rows, id, dims);
  for (int d = 0; d < dims; ++d) {
    const double bounds[2] = {element(corners[0], types[0], d), element(corners[1], types[1], d)};
    if (bounds[0] > bounds[1]) raise_upside_down(rows, id, d, bounds[0], bounds[1]);
    for (int corner = 0; corner < 2; ++corner) {
      if (rows->points.scalar == ScalarType::kFloat32)
        reinterpret_cast<float*>(target)[corner * dims + d] = static_cast<float>(bounds[corner]);
      else
        reinterpret_cast<double*>(target)[corner * dims + d] = bounds[corner];
    }
  }
  for (int corner = 0; corner < 2; ++corner) free_copy(arrays[corner], values[corner]);
}

}  // namespace

void add_row(RowCollector* rows, std::int64_t id, const Datum* values) {
  switch (rows->columns->kind) {
    case ColumnKind::kPoint:
      add_point_value(rows, id, values[0]);
      break;
    case ColumnKind::kNumbers:
      add_numbers(rows, id, values);
      break;
    case ColumnKind::kBox:
      add_box(rows, id, values[0]);
      break;
    case ColumnKind::kCube:
      add_cube(rows, id, values[0]);
      break;
    case ColumnKind::kCorners:
      add_corners(rows, id, values);
      break;
    default:
      add_array(rows, id, values[0]);
  }
}

void add_scored_row(RowCollector* rows, std::int64_t id, const Datum* values, Datum score) {
  const double number = machine_number(rows->columns->score_type, score);
  if (!std::isfinite(number))
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                    errmsg("the score of row %lld of relation \"%s\" is %g",
                           static_cast<long long>(id), relation_name(rows), number),
                    errhint("Scores are finite numbers. Rows with a NULL score are left out.")));
  add_row(rows, id, values);
  rows->points.scores[rows->points.rows - 1] = number;
}

}  // namespace gpujoin

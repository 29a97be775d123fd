// gpu_cell() and gpu_halo(): cells to partition and distribute points by, so that a join on equal
// cells finds each pair within a radius once (pg/geometry/partition_cell.h).
#include "pg/geometry/partition_cell.h"
#include "pg/types/number_datum.h"
#include "pg/types/value_type.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// A point of a value. Of its coordinates only the leading ones matter to cells.
struct LeadingPoint {
  std::uint32_t dims;   ///< of the cells
  std::uint32_t whole;  ///< of the value
  double at[kMaxPartitionDimensions];
};

/// What a call site knows of its values, and room for one point. Arrays of other numbers than
/// float4 and float8 have no entry among the types.
struct PointReader {
  const ValueType* known;  ///< null: an array of `element`
  Oid element;
  char* row;  ///< [kMaxDimensions] numbers
  std::int64_t id;
  // The radius and the dimensions that it was last asked for, and how far coordinates differ then.
  double eps;
  std::uint32_t dims;  ///< 0: none
  double reach;
};

bool is_number(Oid type) { return is_integer_type(type) || type == NUMERICOID; }

PointReader* new_reader(FunctionCallInfo fcinfo) {
  const Oid type = getBaseType(get_fn_expr_argtype(fcinfo->flinfo, 0));
  const ValueType* const known = find_value_type(type);
  const Oid element = get_element_type(type);
  const bool points = known != nullptr ? has_form(*known, ValueForm::kPoint) && !is_of_bits(*known)
                                       : is_number(element);
  if (!points)
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("values of type %s are no points", format_type_be(type)),
             errhint("Pass an array of numbers, as ARRAY[x, y], a point, or a point of cube, "
                     "pgvector or PostGIS.")));
  const MemoryContext context = fcinfo->flinfo->fn_mcxt;
  PointReader* const reader =
      static_cast<PointReader*>(MemoryContextAllocZero(context, sizeof(PointReader)));
  reader->known = known;
  reader->element = element;
  reader->row = static_cast<char*>(MemoryContextAlloc(context, kMaxDimensions * sizeof(double)));
  fcinfo->flinfo->fn_extra = reader;
  return reader;
}

[[noreturn]] void raise_problem(const ValueFinding& found) {
  check_form(found.problem, static_cast<int>(found.dims));
  switch (found.problem) {
    case ValueProblem::kTooManyDimensions:
      ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                      errmsg("a vector has %u dimensions", found.dims),
                      errhint("A vector has at most %u dimensions.", kMaxDimensions)));
      break;
    default:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a value is no point"),
                      errhint("Cells are of points; a value with an extent may lie in several.")));
  }
  pg_unreachable();
}

/// Reads a value of a type that has an entry, which adds the point to a buffer with room for it.
ValueFinding read_known(PointReader* reader, Datum value, LeadingPoint* point) {
  PointBuffer buffer = {};
  buffer.scalar = scalar_of(*reader->known, ValueForm::kPoint);
  buffer.chunks = &reader->row;
  buffer.ids = &reader->id;
  buffer.room = buffer.named = 1;
  ValueShape shape = {};
  shape.as_stored = true;
  const ValueFinding found =
      add_value(*reader->known, ValueForm::kPoint, &buffer, &shape, 0, value);
  if (found.problem != ValueProblem::kNone) return found;
  point->whole = buffer.dims;
  if (point->whole < point->dims) return found;
  const Dataset row = {reader->row, nullptr, 1, buffer.dims, buffer.scalar};
  for (std::uint32_t d = 0; d < point->dims; ++d) point->at[d] = coordinate(row, 0, d);
  return found;
}

/// Reads an array of integers or numerics, which distances compare as float8.
ValueFinding read_numbers(const PointReader* reader, Datum value, LeadingPoint* point) {
  ArrayType* const array = DatumGetArrayTypeP(value);
  if (ARR_NDIM(array) == 0) return {ValueProblem::kEmpty, 0};
  if (ARR_NDIM(array) != 1)
    return {ValueProblem::kMultidimensional, static_cast<std::uint32_t>(ARR_NDIM(array))};
  if (array_contains_nulls(array)) return {ValueProblem::kNullElement, 0};
  const auto dims = static_cast<std::uint32_t>(ARR_DIMS(array)[0]);
  if (dims > kMaxDimensions) return {ValueProblem::kTooManyDimensions, dims};
  int16 length;
  bool by_value;
  char align;
  get_typlenbyvalalign(reader->element, &length, &by_value, &align);
  Datum* numbers;
  int count;
  deconstruct_array(array, reader->element, length, by_value, align, &numbers, nullptr, &count);
  point->whole = dims;
  for (std::uint32_t d = 0; d < std::min(point->dims, dims); ++d)
    point->at[d] = number_of(reader->element, numbers[d]);
  return {ValueProblem::kNone, dims};
}

/// Cubes of different numbers of dimensions have distances, as if they were at 0 in the others: so
/// fewer dimensions would not do for such values alone.
[[noreturn]] void raise_too_few_dims(const LeadingPoint& point) {
  ereport(
      ERROR,
      (errcode(ERRCODE_DATA_EXCEPTION),
       errmsg("a point of %u dimensions has no cell of %u", point.whole, point.dims),
       errhint("Pass the fewest dimensions that points have, dimensions => %u, for all of them.",
               point.whole)));
  pg_unreachable();
}

PointReader* reader_of(FunctionCallInfo fcinfo) {
  PointReader* const reader = static_cast<PointReader*>(fcinfo->flinfo->fn_extra);
  return reader != nullptr ? reader : new_reader(fcinfo);
}

/// The point of argument 0, with as many leading coordinates as argument `dims_argument` says;
/// false where a coordinate is NULL.
bool read_point(FunctionCallInfo fcinfo, int dims_argument, LeadingPoint* point) {
  const int32 dims = PG_GETARG_INT32(dims_argument);
  if (dims < 1 || dims > static_cast<int32>(kMaxPartitionDimensions))
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("cells have 1 to %u dimensions, not %d", kMaxPartitionDimensions, dims),
             errhint("Cells are of the leading dimensions; distances compare all of them.")));
  point->dims = static_cast<std::uint32_t>(dims);
  PointReader* const reader = reader_of(fcinfo);
  const Datum value = PG_GETARG_DATUM(0);
  const ValueFinding found = reader->known != nullptr ? read_known(reader, value, point)
                                                      : read_numbers(reader, value, point);
  if (found.problem == ValueProblem::kNullElement) return false;
  if (found.problem != ValueProblem::kNone) raise_problem(found);
  if (point->whole < point->dims) raise_too_few_dims(*point);
  return true;
}

double width_argument(FunctionCallInfo fcinfo) {
  const double width = PG_GETARG_FLOAT8(1);
  if (!(width > 0) || std::isinf(width))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the width of a cell must be a finite number above 0, not %g", width),
                    errhint("A width of several times eps keeps halos small.")));
  return width;
}

/// How far coordinates may differ where any distance of the type is at most eps, in the type's own
/// arithmetic.
double reach_of(const ValueType* type, double eps, std::uint32_t dims) {
  double select = eps;
  for (int i = 0; type != nullptr && i < type->test_count; ++i) {
    const TestFunction& test = type->tests[i];
    if (test.compared != ValueForm::kPoint || test.widen == nullptr) continue;
    EpsBand band = {true, false, false, eps, eps};
    test.widen(eps, dims, &band);
    select = std::fmax(select, band.select);
  }
  return partition_reach(std::fmin(select, DBL_MAX));
}

/// The same, found once as long as both stay the same.
double cached_reach(PointReader* reader, double eps, std::uint32_t dims) {
  if (reader->dims != dims || reader->eps != eps) {
    reader->eps = eps;
    reader->dims = dims;
    reader->reach = reach_of(reader->known, eps, dims);
  }
  return reader->reach;
}

double eps_argument(FunctionCallInfo fcinfo) {
  const double eps = PG_GETARG_FLOAT8(2);
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("eps must be a finite number that is not negative, not %g", eps),
                    errhint("Pass the largest distance that two values may have.")));
  return eps;
}

void check_cells(double cells, double eps, double width) {
  if (cells <= kMaxHaloCells) return;
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("a halo of radius %g has %g cells of width %g", eps, cells, width),
                  errdetail("A halo has at most %g cells.", kMaxHaloCells),
                  errhint("Pass wider cells, several times as wide as eps.")));
}

/// The keys of a halo as an array.
ArrayType* make_keys(const PartitionHalo& halo, std::uint64_t cells) {
  const Size size = ARR_OVERHEAD_NONULLS(1) + cells * sizeof(std::int64_t);
  ArrayType* const array = static_cast<ArrayType*>(palloc0(size));
  SET_VARSIZE(array, size);
  array->ndim = 1;
  array->elemtype = INT8OID;
  ARR_DIMS(array)[0] = static_cast<int>(cells);
  ARR_LBOUND(array)[0] = 1;
  auto* const keys = reinterpret_cast<std::int64_t*>(ARR_DATA_PTR(array));
  for (std::uint64_t i = 0; i < cells; ++i) keys[i] = halo_key(halo, i);
  return array;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_cell);
PG_FUNCTION_INFO_V1(gpujoin_halo);

PGDLLEXPORT Datum gpujoin_cell(PG_FUNCTION_ARGS) {
  gpujoin::LeadingPoint point = {};
  const double width = gpujoin::width_argument(fcinfo);
  if (!gpujoin::read_point(fcinfo, 2, &point)) PG_RETURN_NULL();
  PG_RETURN_INT64(gpujoin::partition_key(point.at, point.dims, width));
}

PGDLLEXPORT Datum gpujoin_halo(PG_FUNCTION_ARGS) {
  gpujoin::LeadingPoint point = {};
  const double width = gpujoin::width_argument(fcinfo), eps = gpujoin::eps_argument(fcinfo);
  if (!gpujoin::read_point(fcinfo, 3, &point)) PG_RETURN_NULL();
  const double reach = gpujoin::cached_reach(gpujoin::reader_of(fcinfo), eps, point.whole);
  const auto halo = gpujoin::partition_halo(point.at, point.dims, width, reach);
  const double cells = gpujoin::halo_cells(halo);
  gpujoin::check_cells(cells, eps, width);
  PG_RETURN_ARRAYTYPE_P(gpujoin::make_keys(halo, static_cast<std::uint64_t>(cells)));
}
}

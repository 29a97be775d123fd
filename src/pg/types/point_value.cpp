// The layouts of other extensions' types stand here in our own words. Each extension promises its
// own to files on disk, so they do not change.
#include "pg/types/point_value.h"

#include "core/box.h"
#include "pg/types/cube_datum.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "utils/geo_decls.h"
}

namespace gpujoin {
namespace {

/// Whether points of so many dimensions fit what was seen before.
bool fits(PointBuffer* buffer, PointShape* shape, std::uint32_t dims) {
  if (dims == 0 || dims > kMaxDimensions) return false;
  if (shape->dims == 0) shape->dims = dims;
  buffer->dims = shape->dims;
  return dims == shape->dims;
}

bool add_doubles(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data,
                 std::uint32_t dims) {
  if (!fits(buffer, shape, dims)) return false;
  std::memcpy(add_point(buffer, id), data, dims * sizeof(double));
  return true;
}

bool add_array(PointBuffer* buffer, PointShape* shape, bool float4, std::int64_t id,
               const struct varlena* array) {
  const VectorView view = view_vector(array);
  if (view.problem != VectorProblem::kNone ||
      !fits(buffer, shape, static_cast<std::uint32_t>(view.dims)))
    return false;
  add_vector(buffer, id, view, float4);
  return true;
}

/// PostgreSQL's own distance raises an error where the difference of two coordinates overflows.
bool add_geometric_point(PointBuffer* buffer, PointShape* shape, std::int64_t id,
                         const Point* point) {
  constexpr double kMost = 1e150;
  if ((std::isfinite(point->x) && std::fabs(point->x) > kMost) ||
      (std::isfinite(point->y) && std::fabs(point->y) > kMost))
    return false;
  const double coordinates[2] = {point->x, point->y};
  return add_doubles(buffer, shape, id, reinterpret_cast<const char*>(coordinates), 2);
}

bool add_cube(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data) {
  const CubeView cube = view_cube(data);
  if (!cube.is_finite || std::memcmp(cube.corner, cube.opposite, cube.dims * sizeof(double)) != 0)
    return false;
  return add_doubles(buffer, shape, id, cube.corner, cube.dims);
}

float from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : exponent == 31
                              ? (fraction == 0 ? INFINITY : NAN)
                              : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

/// pgvector: the number of dimensions and a word that is unused, in 16 bits each, then floats of 32
/// or 16 bits. A direction that has none, the zero vector, is near nothing: NaN. pgvector sums
/// squares in single precision: what may leave its range there has no direction that is known.
bool add_pgvector(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id,
                  const char* data) {
  const bool half = kind == PointKind::kHalfvec || kind == PointKind::kHalfvecDirection;
  const bool direction = is_direction(kind);
  const auto dims = static_cast<std::uint32_t>(load<std::int16_t>(data));
  const char* const elements = data + 2 * sizeof(std::int16_t);
  if (!fits(buffer, shape, dims)) return false;
  const auto element = [&](std::uint32_t d) {
    return half ? from_half(load<std::uint16_t>(elements + d * sizeof(std::uint16_t)))
                : load<float>(elements + d * sizeof(float));
  };
  double length = 0;
  for (std::uint32_t d = 0; direction && d < dims; ++d)
    length += static_cast<double>(element(d)) * element(d);
  if (length != 0 && !(length >= 1e-30 && length <= 1e38)) return false;
  length = std::sqrt(length);
  char* const target = add_point(buffer, id);
  for (std::uint32_t d = 0; d < dims; ++d) {
    if (direction)
      reinterpret_cast<double*>(target)[d] = element(d) / length;
    else
      reinterpret_cast<float*>(target)[d] = element(d);
  }
  return true;
}

/// PostGIS: the SRID in three bytes, a byte of flags, maybe a word of more flags and a bounding box
/// of single-precision numbers, rounded outwards; then the type and the number of its coordinates'
/// tuples or of its parts.
struct GeometryView {
  std::int32_t srid;
  std::uint32_t dims;  ///< of a tuple; distances look at the first two
  const char* box;     ///< null: none
  const char* body;
};

enum GeometryType : std::uint32_t {
  kPointType = 1,
  kLineType = 2,
  kFirstMultiType = 4,
  kLastMultiType = 7,
};

GeometryView view_geometry(const char* data) {
  constexpr std::uint8_t kHasZ = 0x01, kHasM = 0x02, kHasBox = 0x04, kExtended = 0x10,
                         kSecondVersion = 0x40;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
  const std::uint8_t flags = bytes[3];
  GeometryView view = {};
  view.srid = (bytes[0] & 0x1f) << 16 | bytes[1] << 8 | bytes[2];
  view.dims = 2 + ((flags & kHasZ) != 0) + ((flags & kHasM) != 0);
  view.body = data + 4;
  if ((flags & kSecondVersion) != 0 && (flags & kExtended) != 0) view.body += 8;
  if ((flags & kHasBox) != 0) {
    view.box = view.body;
    view.body += 2 * view.dims * sizeof(float);
  }
  return view;
}

/// Whether the geometry has the SRID of those before: PostGIS raises an error for two of them.
bool has_same_srid(PointShape* shape, const GeometryView& view) {
  if (shape->dims == 0) shape->srid = view.srid;
  return view.srid == shape->srid;
}

/// Where a point is empty no distance is within anything.
constexpr double kNowhere[2] = {NAN, NAN};

bool add_geometry(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data) {
  const GeometryView view = view_geometry(data);
  if (load<std::uint32_t>(view.body) != kPointType || !has_same_srid(shape, view)) return false;
  const bool empty = load<std::uint32_t>(view.body + 4) == 0;
  return add_doubles(buffer, shape, id,
                     empty ? reinterpret_cast<const char*>(kNowhere) : view.body + 8, 2);
}

/// Adds a box, at 0 in the dimensions that it lacks.
void add_corners(PointBuffer* buffer, PointShape* shape, std::int64_t id, const double* low,
                 const double* high, std::uint32_t dims) {
  shape->dims = std::max(shape->dims, dims);
  widen_boxes(buffer, shape->dims);
  double* const target = reinterpret_cast<double*>(add_point(buffer, id));
  for (std::uint32_t d = 0; d < shape->dims; ++d) {
    target[d] = d < dims ? low[d] : 0;
    target[shape->dims + d] = d < dims ? high[d] : 0;
  }
}

/// Boxes overlap to PostgreSQL if a low bound is at most the other's high one plus EPSILON,
/// rounded.
bool add_geometric_box(PointBuffer* buffer, PointShape* shape, std::int64_t id, const BOX* box) {
  const double low[] = {box->low.x, box->low.y};
  const double high[] = {box->high.x + EPSILON, box->high.y + EPSILON};
  add_corners(buffer, shape, id, low, high, 2);
  return true;
}

/// A cube of no dimensions is one of 0 in any.
bool add_cube_box(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data) {
  const CubeView cube = view_cube(data);
  if (cube.has_nan) return false;
  double low[kMaxBoxDimensions] = {}, high[kMaxBoxDimensions] = {};
  const std::uint32_t dims = std::min(cube.dims, kMaxBoxDimensions);
  if (shape->exact && dims < cube.dims) return false;
  shape->approximate = shape->approximate || dims < cube.dims;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double one = cube.at(cube.corner, d), other = cube.at(cube.opposite, d);
    low[d] = std::fmin(one, other);
    high[d] = std::fmax(one, other);
  }
  add_corners(buffer, shape, id, low, high, std::max(dims, 1U));
  return true;
}

/// The bound, further out than the one in single precision that PostGIS makes of it where a
/// geometry has no box of its own.
double rounded_outwards(double bound, float out) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return std::nextafter(static_cast<float>(std::fmax(-kMost, std::fmin(bound, kMost))), out);
}

/// The box of one point, or of a line between two.
bool add_tuples_box(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* tuples,
                    std::uint32_t count, std::uint32_t dims) {
  double low[2], high[2];
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t d = 0; d < 2; ++d) {
      const double x = load<double>(tuples + (std::size_t{i} * dims + d) * sizeof(double));
      if (!std::isfinite(x)) return false;
      low[d] = i == 0 ? x : std::fmin(low[d], x);
      high[d] = i == 0 ? x : std::fmax(high[d], x);
    }
  }
  for (std::uint32_t d = 0; d < 2; ++d) {
    low[d] = rounded_outwards(low[d], -INFINITY);
    high[d] = rounded_outwards(high[d], INFINITY);
  }
  shape->approximate = true;
  add_corners(buffer, shape, id, low, high, 2);
  return true;
}

/// `data` are the first bytes, up to `end`, of a geometry.
bool add_geometry_box(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data,
                      const char* end) {
  const GeometryView view = view_geometry(data);
  if (!has_same_srid(shape, view)) return false;
  if (view.box != nullptr) {
    const auto bound = [&](int i) -> double { return load<float>(view.box + i * sizeof(float)); };
    const double low[2] = {bound(0), bound(2)}, high[2] = {bound(1), bound(3)};
    for (int d = 0; d < 2; ++d)
      if (!std::isfinite(low[d]) || !std::isfinite(high[d])) return false;
    add_corners(buffer, shape, id, low, high, 2);
    return true;
  }
  // Points, lines of two points, what is made of one of these, and what is empty have no box.
  const char* body = view.body;
  const auto type = [&] { return load<std::uint32_t>(body); };
  const auto count = [&] { return load<std::uint32_t>(body + 4); };
  while (type() >= kFirstMultiType && type() <= kLastMultiType && count() == 1 && end - body >= 16)
    body += 8;
  if (count() == 0) {
    add_corners(buffer, shape, id, kNowhere, kNowhere, 2);
    return true;
  }
  const std::uint64_t bytes = std::uint64_t{count()} * view.dims * sizeof(double);
  return (type() == kPointType || type() == kLineType) &&
         bytes <= static_cast<std::uint64_t>(end - body - 8) &&
         add_tuples_box(buffer, shape, id, body + 8, count(), view.dims);
}

/// add(what the value holds), which is freed if it is a copy.
template <class Add>
bool with_detoasted(Datum value, const Add& add) {
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const detoasted = pg_detoast_datum_packed(stored);
  const bool added = add(detoasted);
  if (detoasted != stored) pfree(detoasted);
  return added;
}

}  // namespace

ScalarType scalar_of(PointKind kind) {
  return kind == PointKind::kFloat4Array || kind == PointKind::kVector ||
                 kind == PointKind::kHalfvec
             ? ScalarType::kFloat32
             : ScalarType::kFloat64;
}

bool add_value(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id,
               Datum value) {
  if (kind == PointKind::kPoint)
    return add_geometric_point(buffer, shape, id, DatumGetPointP(value));
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const char* const data = VARDATA_ANY(detoasted);
    switch (kind) {
      case PointKind::kFloat4Array:
      case PointKind::kFloat8Array:
        return add_array(buffer, shape, kind == PointKind::kFloat4Array, id, detoasted);
      case PointKind::kCube:
        return add_cube(buffer, shape, id, data);
      case PointKind::kGeometry:
        return add_geometry(buffer, shape, id, data);
      default:
        return add_pgvector(buffer, shape, kind, id, data);
    }
  });
}

Datum make_value(PointKind kind, const Dataset& points, std::uint64_t position) {
  const Size bytes = points.dims * scalar_bytes(points.scalar);
  const Size size = ARR_OVERHEAD_NONULLS(1) + bytes;
  ArrayType* const array = static_cast<ArrayType*>(palloc0(size));
  SET_VARSIZE(array, size);
  array->ndim = 1;
  array->elemtype = kind == PointKind::kFloat4Array ? FLOAT4OID : FLOAT8OID;
  ARR_DIMS(array)[0] = static_cast<int>(points.dims);
  ARR_LBOUND(array)[0] = 1;
  std::memcpy(ARR_DATA_PTR(array), static_cast<const char*>(points.coordinates) + position * bytes,
              bytes);
  return PointerGetDatum(array);
}

bool add_box(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id, Datum value) {
  if (kind == PointKind::kBox) return add_geometric_box(buffer, shape, id, DatumGetBoxP(value));
  if (kind == PointKind::kCube)
    return with_detoasted(value, [&](const struct varlena* detoasted) {
      return add_cube_box(buffer, shape, id, VARDATA_ANY(detoasted));
    });
  constexpr std::int32_t kHeadBytes = 1024;  // the box, or all that has none
  struct varlena* const head = PG_DETOAST_DATUM_SLICE(value, 0, kHeadBytes);
  const char* const data = VARDATA_ANY(head);
  const bool added = add_geometry_box(buffer, shape, id, data, data + VARSIZE_ANY_EXHDR(head));
  pfree(head);
  return added;
}

}  // namespace gpujoin

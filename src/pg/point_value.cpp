// The layouts of other extensions' types stand here in our own words. Each extension promises its
// own to files on disk, so they do not change.
#include "pg/point_value.h"

#include "core/distance.h"

extern "C" {
#include "utils/geo_decls.h"
}

namespace gpujoin {
namespace {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

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

/// cube: a word of flags, whose highest bit says that it is a point and whose others count the
/// dimensions; then the coordinates, of a box those of two corners. To cube a NaN lies within any
/// interval.
bool add_cube(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data) {
  constexpr std::uint32_t kIsPoint = std::uint32_t{1} << 31;
  const auto header = load<std::uint32_t>(data);
  const std::uint32_t dims = header & ~kIsPoint;
  const char* const corner = data + sizeof header;
  if ((header & kIsPoint) == 0 &&
      std::memcmp(corner, corner + dims * sizeof(double), dims * sizeof(double)) != 0)
    return false;
  for (std::uint32_t d = 0; d < dims; ++d)
    if (std::isnan(load<double>(corner + d * sizeof(double)))) return false;
  return add_doubles(buffer, shape, id, corner, dims);
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
/// or 16 bits. A direction that has none, the zero vector, is near nothing: NaN.
bool add_pgvector(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id,
                  const char* data) {
  const bool half = kind == PointKind::kHalfvec || kind == PointKind::kHalfvecDirection;
  const bool direction =
      kind == PointKind::kVectorDirection || kind == PointKind::kHalfvecDirection;
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

/// PostGIS: the SRID in three bytes, a byte of flags, maybe a word of more flags and a bounding
/// box, the type and the number of coordinates' tuples. Only points in the plane are taken. Where a
/// point is empty no distance is within anything.
bool add_geometry(PointBuffer* buffer, PointShape* shape, std::int64_t id, const char* data) {
  constexpr std::uint8_t kMoreDimensions = 0x01 | 0x02, kBox = 0x04, kGeodetic = 0x08,
                         kExtended = 0x10, kSecondVersion = 0x40;
  constexpr std::uint32_t kPointType = 1;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
  const std::int32_t srid = (bytes[0] & 0x1f) << 16 | bytes[1] << 8 | bytes[2];
  const std::uint8_t flags = bytes[3];
  if ((flags & (kMoreDimensions | kBox | kGeodetic)) != 0) return false;
  if (buffer->rows == 0 && shape->dims == 0) shape->srid = srid;
  if (srid != shape->srid) return false;
  const bool extended = (flags & kSecondVersion) != 0 && (flags & kExtended) != 0;
  const char* const body = data + 4 + (extended ? 8 : 0);
  if (load<std::uint32_t>(body) != kPointType) return false;
  const double nowhere[2] = {NAN, NAN};
  const bool empty = load<std::uint32_t>(body + 4) == 0;
  return add_doubles(buffer, shape, id, empty ? reinterpret_cast<const char*>(nowhere) : body + 8,
                     2);
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
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const detoasted = pg_detoast_datum_packed(stored);
  const char* const data = VARDATA_ANY(detoasted);
  bool added;
  switch (kind) {
    case PointKind::kFloat4Array:
    case PointKind::kFloat8Array:
      added = add_array(buffer, shape, kind == PointKind::kFloat4Array, id, detoasted);
      break;
    case PointKind::kCube:
      added = add_cube(buffer, shape, id, data);
      break;
    case PointKind::kGeometry:
      added = add_geometry(buffer, shape, id, data);
      break;
    default:
      added = add_pgvector(buffer, shape, kind, id, data);
  }
  if (detoasted != stored) pfree(detoasted);
  return added;
}

}  // namespace gpujoin

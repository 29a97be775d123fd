// Values of the types that a similarity clause compares, as points.
#pragma once

#include "pg/point_buffer.h"

namespace gpujoin {

enum class PointKind {
  kFloat4Array,
  kFloat8Array,
  kPoint,
  kCube,
  kVector,
  kHalfvec,
  kVectorDirection,   ///< a vector of length 1
  kHalfvecDirection,  ///< likewise
  kGeometry,          ///< of PostGIS
};

inline bool is_direction(PointKind kind) {
  return kind == PointKind::kVectorDirection || kind == PointKind::kHalfvecDirection;
}

/// float32 where no coordinate of such a value needs more.
ScalarType scalar_of(PointKind kind);

/// What the points of both sides of a join have in common, found with the first ones.
struct PointShape {
  std::uint32_t dims;  ///< 0: none was seen
  std::int32_t srid;   ///< of geometries
};

/// Adds a value to the buffer, whose `dims` follow the shape. False, with nothing added, for what
/// is no point of this shape or would make the clause raise an error: a NULL coordinate, another
/// number of dimensions, a box, a line.
bool add_value(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id,
               Datum value);

/// Whether values of this kind may be boxes, or lie within some.
inline bool has_boxes(PointKind kind) {
  return kind == PointKind::kCube || kind == PointKind::kGeometry;
}

/// Adds the centre of the value's bounding box, and raises *extent to the longest way from a centre
/// to its box's side. False, with nothing added, for what has no such box.
bool add_box(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id, Datum value,
             double* extent);

}  // namespace gpujoin

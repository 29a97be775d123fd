// Values of the types that a similarity clause compares, as points or as boxes.
#pragma once

#include "pg/store/point_buffer.h"

namespace gpujoin {

enum class PointKind {
  kFloat4Array,
  kFloat8Array,
  kPoint,
  kBox,  ///< PostgreSQL's own
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

/// What the points or boxes of both sides of a join have in common: found with the first one, but
/// that the dimensions of boxes may rise.
struct PointShape {
  std::uint32_t dims;  ///< 0: none was seen
  std::int32_t srid;   ///< of geometries
  bool approximate;    ///< some boxes are larger than those that the type compares
  bool exact;          ///< no such box is wanted
};

/// Adds a value to the buffer, whose `dims` follow the shape. False, with nothing added, for what
/// is no point of this shape or would make the clause raise an error: a NULL coordinate, another
/// number of dimensions, a box, a line.
bool add_value(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id,
               Datum value);

/// Whether make_value() gives back the values that a test compares, bit for bit.
inline bool can_make_value(PointKind kind) {
  return kind == PointKind::kFloat4Array || kind == PointKind::kFloat8Array;
}

/// The value that a point was made from: the reverse of add_value(), for kinds for which
/// can_make_value() holds. In the current memory context.
Datum make_value(PointKind kind, const Dataset& points, std::uint64_t position);

/// Whether values of this kind are boxes, or lie within some.
inline bool has_boxes(PointKind kind) {
  return kind == PointKind::kBox || kind == PointKind::kCube || kind == PointKind::kGeometry;
}

/// Adds the value's bounding box. Two of them meet if the values overlap by the type's own
/// operator, and unless the shape says `approximate` only if they do. Cubes of fewer dimensions
/// than the widest so far are at 0 in those they lack. False, with nothing added, for what has no
/// such box or would make the clause raise an error.
bool add_box(PointBuffer* buffer, PointShape* shape, PointKind kind, std::int64_t id, Datum value);

}  // namespace gpujoin

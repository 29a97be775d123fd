// Geometries as shapes in the plane, for functions of PostGIS over many of them: what is compared
// by PostGIS where their boxes leave it open.
#pragma once

#include "pg/compat.h"
#include "pg/geometry/plane_box.h"
#include "pg/geometry/shape_bounds.h"

namespace gpujoin {

enum class ShapeKind {
  kStraight,  ///< points, lines and areas between straight lines, or several of these
  kEmpty,     ///< it has no place
  kOther,  ///< it has arcs, faces, or a hole beyond its box; or is too far for PostGIS to measure
};

struct PlaneShape {
  ShapeKind kind;
  std::int32_t srid;
  Span box;        ///< of kStraight: the one that PostGIS knows it by, in two dimensions
  bool has_holes;  ///< it has an area with one
};

/// The value, detoasted, of the type that is PostGIS's geometry. Raises an error where parts are
/// nested too deeply.
PlaneShape read_plane_shape(const struct varlena* geometry);

/// The bounds of the distance of two values, both of kStraight, as pg/geometry/shape_bounds.h has
/// them; without holes, of the lines around areas and of the rest.
DistanceBounds bound_distance(const struct varlena* one, const struct varlena* other,
                              bool with_holes, const Corner& hint);

}  // namespace gpujoin

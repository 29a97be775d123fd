// Geometries as points of the plane, for functions of PostGIS over many of them that gpujoin serves
// where all are points, and the arithmetic that PostGIS compares such points by.
#pragma once

#include "engine/request/dataset.h"
#include "pg/compat.h"

namespace gpujoin {

enum class PlaneKind {
  kPoint,
  kEmpty,  ///< it has no place
  kOther,  ///< no point, or one that is too far for PostGIS to measure, or nowhere
};

struct PlanePoint {
  PlaneKind kind;
  double x[2];  ///< of kPoint
};

/// A value of the type that is PostGIS's geometry, of any SRID; its first two coordinates.
PlanePoint read_plane_point(Datum geometry);

/// The greatest magnitude of coordinates, and of radii, that PostGIS surely measures.
inline constexpr double kFarthest = 1e30;

/// Whether PostGIS finds the same neighbours for a point as the definition of distance does, for
/// each of these points of the plane, which are finite or NaN. It looks for them in a box, whose
/// sides are rounded, so that a point at a distance that rounds to eps may lie beyond it: a
/// neighbour of another one that is none of its own. False where that may be so.
bool finds_neighbors_by_definition(const Dataset& points, double eps);

/// Whether the distances of points, by PostGIS's function st_distance() of the schema, are those of
/// the definition, in a number of samples: a compiler may fuse multiplication and addition.
bool measures_by_definition(Oid schema, Oid geometry);

}  // namespace gpujoin

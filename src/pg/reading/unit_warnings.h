// Warnings about arguments that are no errors, but probably in other units than meant.
#pragma once

#include "pg/reading/relation.h"

namespace gpujoin {

/// Warns where a radius in metres meets geometries in degrees, and where a radius by cosine looks
/// like a similarity. `srid` is that of the geometries.
void warn_of_radius(PointMetric metric, double radius, bool has_geometries, std::int32_t srid);

/// Warns where a latitude comes before its longitude.
void warn_of_latitude_first(const SideArguments& side, const SideColumns& columns);

}  // namespace gpujoin

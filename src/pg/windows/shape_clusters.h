// Clusters of geometries that are not all points. An engine joins their boxes, PostGIS decides the
// pairs that boxes leave open, and pg/geometry/pair_clusters.h makes clusters of them.
#pragma once

#include "pg/store/row_store.h"
#include "pg/types/plane_shape.h"
#include "pg/windows/cluster_work.h"

namespace gpujoin {

/// The geometries of a partition that has begun; their boxes are in the work's points. The creator
/// zeroes it.
struct ClusterShapes {
  MemoryContext context;  ///< below that of the work
  MemoryContext scratch;  ///< for one call of PostGIS's
  double eps;
  FmgrInfo within;  ///< st_dwithin()
  RowBudget budget;
  RowStore* values;  ///< [rows] the geometry, and whether it has holes
  bool some;         ///< there is one that has a place
  std::int32_t srid;
  double farthest;      ///< the greatest magnitude of a coordinate
  std::uint64_t asked;  ///< pairs that it was called for
  bool unsure;          ///< PostGIS may find one of two from the other, and not from either side
};

/// Begins with geometries of the type. False: PostGIS's schema has no function that decides.
bool begin_shapes(ClusterSite* site, double eps, Oid schema, Oid type, ClusterShapes* shapes);

/// Adds the geometry of the next row, or NULL. Returns why PostGIS has to find the clusters; null:
/// it need not.
const char* add_shape(ClusterSite* site, ClusterShapes* shapes, std::int64_t row,
                      NullableDatum geometry);

/// Sets the numbers of the rows, or returns why PostGIS has to find them. Raises errors of engines
/// and of PostGIS, and interrupts.
const char* find_shape_clusters(ClusterSite* site, ClusterShapes* shapes, std::int64_t rows,
                                std::uint32_t min_points);

/// Forgets the geometries.
void end_shapes(ClusterShapes* shapes);

}  // namespace gpujoin

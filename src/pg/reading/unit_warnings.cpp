#include "pg/reading/unit_warnings.h"

#include <cfloat>

extern "C" {
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// The numbers that EPSG has for coordinate systems of longitude and latitude.
bool is_geographic(std::int32_t srid) { return srid >= 4001 && srid <= 4999; }

bool is_called(const char* name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* known) { return pg_strcasecmp(name, known) == 0; });
}

}  // namespace

void warn_of_radius(PointMetric metric, double radius, bool has_geometries, std::int32_t srid) {
  if (radius >= DBL_MAX) return;  // no radius was given
  if (has_geometries && is_geographic(srid) && !metric.on_earth && radius > 180)
    ereport(
        WARNING,
        (errmsg("the radius %g is in degrees, as geometries of SRID %d are", radius, srid),
         errhint("For metres pass metric => 'haversine', or write ST_DWithin(a.geom::geography, "
                 "b.geom::geography, %g) in SQL.",
                 radius)));
  if (metric.metric == Metric::kCosine && radius >= 0.5)
    ereport(NOTICE, (errmsg("the radius %g is a cosine distance, not a similarity", radius),
                     errhint("The distance is 1 - cos: for a similarity of at least %g pass %g.",
                             radius <= 1 ? radius : 0.95, radius <= 1 ? 1 - radius : 0.05)));
}

void warn_of_latitude_first(const SideArguments& side, const SideColumns& columns) {
  if (!is_on_earth(columns.form) || columns.count != 2) return;
  const char* const first = get_attname(columns.relation, columns.attributes[0], false);
  const char* const second = get_attname(columns.relation, columns.attributes[1], false);
  if (!is_called(first, {"lat", "latitude", "dec", "decl", "declination"}) ||
      !is_called(second, {"lon", "lng", "long", "longitude", "ra"}))
    return;
  ereport(WARNING,
          (errmsg("column \"%s\" of relation \"%s\" is taken for a longitude, column \"%s\" for a "
                  "latitude",
                  first, get_rel_name(columns.relation), second),
           errhint("The longitude comes first: %svector_columns => %s.", side.prefix,
                   quote_literal_cstr(psprintf("%s,%s", pstrdup(quote_identifier(second)),
                                               pstrdup(quote_identifier(first)))))));
}

}  // namespace gpujoin

// The extension PostGIS: geometry, as a point, or as the bounding box that it is stored with; and
// geography, the same on a sphere.
#include <bit>

#include "pg/types/geometry_view.h"
#include "pg/types/plane_box.h"
#include "pg/types/plane_point.h"
#include "pg/types/plane_shape.h"
#include "pg/types/sphere.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

/// Whether the geometry has the SRID of the geometries before it: PostGIS raises an error for two
/// of them.
bool has_same_srid(ValueShape* shape, const GeometryView& view) {
  if (shape->dims == 0) shape->srid = view.srid;
  return view.srid == shape->srid;
}

/// The coordinates of an empty point, which has no distance to anything.
constexpr double kNowhere[2] = {NAN, NAN};
/// Stands for the SRID of a box: a dataset of boxes does not keep them.
constexpr std::int32_t kSeveralSrids = -1;

bool is_empty(const GeometryView& view) { return load<std::uint32_t>(view.body + 4) == 0; }

/// Conditions hold for no pair with an empty value, whatever its SRID.
bool is_left_out(const ValueShape& shape, const GeometryView& view) {
  return !shape.as_stored && is_empty(view);
}

ValueFinding add_geometry_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    if (is_left_out(*shape, view)) return finding(ValueProblem::kNullElement);
    if (load<std::uint32_t>(view.body) != kPointKind) return finding(ValueProblem::kNotAPoint);
    if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
    return add_doubles(buffer, shape, id,
                       is_empty(view) ? reinterpret_cast<const char*>(kNowhere) : view.body + 8, 2);
  });
}

/// The finite bound, further out than the one in single precision that PostGIS makes of it where a
/// geometry has no box of its own. In line: every point of a table comes here.
double rounded_outwards(double bound, bool up) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto rounded = static_cast<float>(bound > kMost ? kMost : bound < -kMost ? -kMost : bound);
  if (rounded == 0)
    return up ? std::numeric_limits<float>::denorm_min()
              : -std::numeric_limits<float>::denorm_min();
  const std::int32_t step = (rounded > 0) == up ? 1 : -1;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(rounded) + step);
}

/// The tuples of coordinates of a value that is stored without a box: of a point, of a line of two
/// points, of what is made of one of these; none of what is empty. False where it is another value,
/// or does not end before `end`.
struct BoxlessTuples {
  const char* first;
  std::uint32_t count;
};

bool find_boxless(const GeometryView& view, const char* end, BoxlessTuples* tuples) {
  const char* body = view.body;
  const auto kind = [&] { return load<std::uint32_t>(body); };
  const auto count = [&] { return load<std::uint32_t>(body + 4); };
  while (kind() >= kFirstMultiKind && kind() <= kLastMultiKind && count() == 1 && end - body >= 16)
    body += 8;
  *tuples = {body + 8, count()};
  const std::uint64_t bytes = std::uint64_t{count()} * view.dims * sizeof(double);
  return count() == 0 || ((kind() == kPointKind || kind() == kLineKind) &&
                          bytes <= static_cast<std::uint64_t>(end - body - 8));
}

/// The bounds of the tuples' first two coordinates; one that is not a number reaches everywhere.
void find_bounds(const GeometryView& view, const BoxlessTuples& tuples, double* low, double* high) {
  for (std::uint32_t d = 0; d < 2; ++d) {
    low[d] = INFINITY;
    high[d] = -INFINITY;
    for (std::uint32_t i = 0; i < tuples.count; ++i) {
      const double x =
          load<double>(tuples.first + (std::size_t{i} * view.dims + d) * sizeof(double));
      low[d] = x >= low[d] ? low[d] : std::isnan(x) ? -INFINITY : x;
      high[d] = x <= high[d] ? high[d] : std::isnan(x) ? INFINITY : x;
    }
  }
}

/// `data` are the first bytes, up to `end`, of a geometry. Conditions compare boxes of any SRID:
/// where two of them meet, the condition itself decides, or raises its error.
ValueFinding add_geometry_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                              const char* data, const char* end) {
  const GeometryView view = view_geometry(data);
  if (shape->as_stored && !has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
  double low[2], high[2];
  BoxlessTuples tuples;
  if (view.box != nullptr) {
    load_box(view.box, 2, 1, low, high);
  } else {
    if (!find_boxless(view, end, &tuples)) return finding(ValueProblem::kIncomparable, 2);
    if (tuples.count == 0) return add_corners(buffer, shape, id, kNowhere, kNowhere, 2);
    find_bounds(view, tuples, low, high);
  }
  for (int d = 0; d < 2; ++d) {
    if (!std::isfinite(low[d]) || !std::isfinite(high[d]))
      return finding(ValueProblem::kIncomparable, 2);
    if (view.box != nullptr) continue;
    low[d] = rounded_outwards(low[d], false);
    high[d] = rounded_outwards(high[d], true);
    shape->has_approximate = true;
  }
  return add_corners(buffer, shape, id, low, high, 2);
}

/// add(the first bytes of a value).
template <auto kAdd, std::int32_t kBytes>
ValueFinding add_head(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const head = is_plain(stored) ? stored : PG_DETOAST_DATUM_SLICE(value, 0, kBytes);
  const char* const data = VARDATA_ANY(head);
  const ValueFinding found = kAdd(buffer, shape, id, data, data + VARSIZE_ANY_EXHDR(head));
  if (head != stored) pfree(head);
  return found;
}

constexpr std::int32_t kBoxBytes = 1024;    // the box, or all that has none
constexpr std::int32_t kMiddleBytes = 256;  // the box, or a point, or a line between two

/// The extent of a value that consists of straight lines and the areas between them, or
/// kNoPlaneBox: what is computed of arcs may lie outside their box.
PlaneBox straight_box(const GeometryView& view, std::uint32_t kind) {
  if (kind > kLastStraightKind || view.box == nullptr) return kNoPlaneBox;
  const auto bound = [&](int i) { return load<float>(view.box + i * sizeof(float)); };
  const PlaneBox box = {{bound(0), bound(2)}, {bound(1), bound(3)}};
  constexpr auto kMost = static_cast<float>(kFarthest);
  for (int d = 0; d < 2; ++d)
    if (!(box.low[d] >= -kMost && box.high[d] <= kMost && box.low[d] <= box.high[d]))
      return kNoPlaneBox;
  return box;
}

/// The extent of a line of two points, which is stored without its box.
PlaneBox line_box(const GeometryView& view, const char* end) {
  PlaneBox box = kNoPlaneBox;
  const std::size_t tuple = view.dims * sizeof(double);
  if (end - view.body < static_cast<std::ptrdiff_t>(8 + 2 * tuple)) return kNoPlaneBox;
  for (std::size_t d = 0; d < 2; ++d) {
    const auto one = load<double>(view.body + 8 + d * sizeof(double));
    const auto other = load<double>(view.body + 8 + tuple + d * sizeof(double));
    if (!(std::fabs(one) <= kFarthest && std::fabs(other) <= kFarthest)) return kNoPlaneBox;
    box.low[d] = static_cast<float>(rounded_outwards(std::fmin(one, other), false));
    box.high[d] = static_cast<float>(rounded_outwards(std::fmax(one, other), true));
  }
  return box;
}

/// Whether PostGIS has distances of its own for the point: beyond the range of single precision
/// they are NULL, and a point of NaN is in every area.
bool is_too_far(const char* tuple) {
  return !(std::fabs(load<double>(tuple)) <= kFarthest &&
           std::fabs(load<double>(tuple + sizeof(double))) <= kFarthest);
}

/// The middle of what is no point, whose extent goes to the buffer. What is empty has no distance
/// to anything, as NULL.
ValueFinding add_geometry_middle(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                 const char* data, const char* end) {
  const GeometryView view = view_geometry(data);
  const auto kind = load<std::uint32_t>(view.body), count = load<std::uint32_t>(view.body + 4);
  if (is_empty(view)) return finding(ValueProblem::kNullElement);
  if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
  if (kind == kPointKind)
    return is_too_far(view.body + 8) ? finding(ValueProblem::kIncomparable, 2)
                                     : add_doubles(buffer, shape, id, view.body + 8, 2);
  const PlaneBox box = kind == kLineKind && count == 2 && view.box == nullptr
                           ? line_box(view, end)
                           : straight_box(view, kind);
  if (!is_box(box)) return finding(ValueProblem::kIncomparable, 2);
  if (buffer->plane_boxes == nullptr) return finding(ValueProblem::kNotAPoint, 2);
  const double middle[2] = {middle_of(box, 0), middle_of(box, 1)};
  const ValueFinding found =
      add_doubles(buffer, shape, id, reinterpret_cast<const char*>(middle), 2);
  if (found.problem == ValueProblem::kNone)
    note_box(buffer->plane_boxes, static_cast<std::uint64_t>(id), box);
  return found;
}

/// Returns the box that an index of PostGIS knows the value by: a bound that is not finite lies at
/// the end of single precision.
ValueExtent geometry_extent(Datum value) {
  ValueExtent extent = {};
  with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    extent.srid = view.srid;
    BoxlessTuples tuples;
    if (view.box != nullptr) {
      load_box(view.box, 2, 1, extent.low, extent.high);
    } else if (read_plane_shape(detoasted).kind == ShapeKind::kEmpty) {
      extent.kind = ValueExtent::kEmpty;
      return finding(ValueProblem::kNone);
    } else if (find_boxless(view, VARDATA_ANY(detoasted) + VARSIZE_ANY_EXHDR(detoasted), &tuples)) {
      find_bounds(view, tuples, extent.low, extent.high);
    } else {
      return finding(ValueProblem::kNone);
    }
    extent.kind = ValueExtent::kBox;
    for (int d = 0; d < 2; ++d) {
      extent.low[d] =
          std::isfinite(extent.low[d]) ? rounded_outwards(extent.low[d], false) : -FLT_MAX;
      extent.high[d] =
          std::isfinite(extent.high[d]) ? rounded_outwards(extent.high[d], true) : FLT_MAX;
    }
    return finding(ValueProblem::kNone);
  });
  return extent;
}

ValueExtent plane_extent(ValueForm form, const double* numbers, std::int32_t srid) {
  const bool is_box = form == ValueForm::kBox;
  if (std::isnan(numbers[0]) || std::isnan(numbers[1]))
    return {is_box ? ValueExtent::kEmpty : ValueExtent::kUnknown, srid, {}, {}};
  const double* const high = is_box ? numbers + 2 : numbers;
  return {ValueExtent::kBox,
          is_box ? kSeveralSrids : srid,
          {numbers[0], numbers[1], 0},
          {high[0], high[1], 0}};
}

/// A distance beyond the range of single precision is NULL.
void widen_distance(double eps, std::uint32_t dims, EpsBand* band) {
  constexpr double kMost = std::numeric_limits<float>::max();
  widen_double(std::fmin(eps, kMost), dims, band);
}

/// A relation that is false where one value is empty, or where they have no point in common.
constexpr TestFunction touches(const char* name, BoxRule boxes = BoxRule::kMeet) {
  return {"postgis",       name,          InvalidOid,   TestForm::kTouch,
          ValueForm::kBox, Metric::kLInf, widen_double, nullptr,
          false,           false,         boxes};
}

/// One that may be true of two empty values, or of any beyond single precision, too.
constexpr TestFunction equals(const char* name, BoxRule boxes = BoxRule::kSame) {
  TestFunction test = touches(name, boxes);
  test.of_empty = true;
  return test;
}

/// A distance that is no less than the one in the plane.
constexpr TestFunction exceeds(const char* name, TestForm form) {
  return {"postgis",   name,           InvalidOid, form, ValueForm::kPoint,
          Metric::kL2, widen_distance, nullptr,    true};
}

constexpr TestFunction kTests[] = {
    {"postgis", "st_distance", InvalidOid, TestForm::kDistance, ValueForm::kPoint, Metric::kL2,
     widen_distance},
    {"postgis", "geometry_distance_centroid", InvalidOid, TestForm::kDistance, ValueForm::kPoint,
     Metric::kL2, widen_distance},
    {"postgis", "st_dwithin", InvalidOid, TestForm::kWithin, ValueForm::kPoint, Metric::kL2,
     widen_double},
    {"postgis", "geometry_overlaps", InvalidOid, TestForm::kOverlap, ValueForm::kBox, Metric::kLInf,
     widen_double},
    touches("st_intersects"),
    touches("st_contains", BoxRule::kFirstContains),
    touches("st_containsproperly", BoxRule::kFirstContains),
    touches("st_within", BoxRule::kSecondContains),
    touches("st_covers", BoxRule::kFirstContains),
    touches("st_coveredby", BoxRule::kSecondContains),
    touches("st_crosses"),
    touches("st_overlaps"),
    touches("st_touches"),
    touches("st_3dintersects"),
    touches("st_intersection"),  // which is empty then
    touches("st_relate"),        // with a pattern of what they have in common
    equals("geometry_overlaps_nd", BoxRule::kMeet),
    equals("st_equals"),
    equals("st_orderingequals"),
    equals("geometry_same"),
    {"postgis", "st_disjoint", InvalidOid, TestForm::kApart, ValueForm::kBox, Metric::kLInf,
     widen_double},
    exceeds("st_dfullywithin", TestForm::kWithin),
    exceeds("st_3ddwithin", TestForm::kWithin),
    exceeds("st_3ddfullywithin", TestForm::kWithin),
    exceeds("st_3ddistance", TestForm::kDistance),
    exceeds("_st_maxdistance", TestForm::kDistance),
    exceeds("st_hausdorffdistance", TestForm::kDistance)};

// ---- Geography

void widen_spheroid(double eps, std::uint32_t, EpsBand* band) { widen_by_geodesic(eps, band); }

void widen_either(double eps, std::uint32_t, EpsBand* band) {
  widen_by_radii(eps, kLeastRadius, kLargestRadius, kUsualSlack, band);
}

void widen_sphere(double eps, std::uint32_t, EpsBand* band) {
  widen_by_radii(eps, kMeanRadius, kMeanRadius, kUsualSlack, band);
}

/// Coordinate systems whose spheroid is that of WGS 84, or GRS 80, which differs by 0.1 mm.
bool is_on_known_spheroid(const GeometryView& view) {
  return view.srid == 4326 || view.srid == 4258 || view.srid == 4269;
}

using ToPlace = bool (*)(double longitude, double latitude, double* place);

/// The place of a point in degrees. A geography that is empty has no distance to anything; a
/// geometry has, to ST_DistanceSpheroid().
template <ToPlace kToPlace, bool kGeography>
ValueFinding add_place(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    const bool empty = is_empty(view);
    if (kGeography && empty) return finding(ValueProblem::kNullElement);
    if (load<std::uint32_t>(view.body) != kPointKind) return finding(ValueProblem::kNotAPoint);
    if ((kGeography && !is_on_known_spheroid(view)) || !has_same_srid(shape, view))
      return finding(ValueProblem::kOtherSrid);
    const char* const tuple = view.body + 8;
    double place[3];
    if (empty || !kToPlace(load<double>(tuple), load<double>(tuple + sizeof(double)), place))
      return finding(ValueProblem::kIncomparable, 3);
    return add_doubles(buffer, shape, id, reinterpret_cast<const char*>(place), 3);
  });
}

/// The place of a geometry in degrees, for the metric "haversine". An empty point is near nothing.
ValueFinding add_geometry_place(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    if (load<std::uint32_t>(view.body) != kPointKind) return finding(ValueProblem::kNotAPoint);
    if (!is_on_known_spheroid(view)) return finding(ValueProblem::kNoDegrees);
    if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
    const bool empty = load<std::uint32_t>(view.body + 4) == 0;
    const char* const tuple = empty ? reinterpret_cast<const char*>(kNowhere) : view.body + 8;
    return add_degrees(buffer, shape, id, load<double>(tuple), load<double>(tuple + sizeof(double)),
                       true);
  });
}

/// Boxes lie about the sphere of the least radius, where no chord exceeds a distance on sphere or
/// spheroid.
constexpr double kBoxRadius = kLeastRadius;

/// The point on that sphere of a tuple of degrees. False where they are none.
bool tuple_to_sphere(const char* tuple, double* point) {
  if (!to_sphere(load<double>(tuple), load<double>(tuple + sizeof(double)), point)) return false;
  for (int d = 0; d < 3; ++d) point[d] *= kBoxRadius / kMeanRadius;
  return true;
}

/// A box of metres about the sphere.
struct SurfaceBox {
  double low[3], high[3];
  bool is_approximate;  ///< it is larger than the one that PostGIS computes
};

/// Finds the box of a value that is not empty. PostGIS stores a box in space, on a sphere of radius
/// 1. False for a box that is longer than an arc of 29 degrees: PostGIS may find that such a line
/// or polygon touches what lies outside of its box.
bool find_surface_box(const GeometryView& view, const char* end, SurfaceBox* box) {
  BoxlessTuples tuples;
  box->is_approximate = view.box == nullptr;
  if (view.box != nullptr) {
    load_box(view.box, 3, kBoxRadius, box->low, box->high);
  } else {
    if (!find_boxless(view, end, &tuples) || tuples.count > 2) return false;
    double one[3], other[3], squares = 0;
    const char* const last = tuples.first + (tuples.count - 1) * view.dims * sizeof(double);
    if (!tuple_to_sphere(tuples.first, one) || !tuple_to_sphere(last, other)) return false;
    for (int d = 0; d < 3; ++d) squares += (one[d] - other[d]) * (one[d] - other[d]);
    // The arc rises above its chord c by r - sqrt(r^2 - c^2 / 4), at most c^2 / 4 r.
    const double margin = squares / (4 * kBoxRadius) + 1;  // metre, for what was rounded
    for (int d = 0; d < 3; ++d) {
      box->low[d] = std::fmin(one[d], other[d]) - margin;
      box->high[d] = std::fmax(one[d], other[d]) + margin;
    }
  }
  for (int d = 0; d < 3; ++d)
    if (!(box->high[d] - box->low[d] <= kBoxRadius / 2)) return false;
  return true;
}

/// Whether the value is empty, or consists of one that is.
bool holds_nothing(const GeometryView& view, const char* end) {
  BoxlessTuples tuples;
  return view.box == nullptr && find_boxless(view, end, &tuples) && tuples.count == 0;
}

/// `data` are the first bytes, up to `end`, of a geography. Boxes on a known spheroid are compared
/// whatever their SRIDs, as those of geometries are.
ValueFinding add_geography_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                               const char* data, const char* end) {
  const GeometryView view = view_geometry(data);
  if (holds_nothing(view, end)) return finding(ValueProblem::kNullElement);
  if (!is_on_known_spheroid(view)) return finding(ValueProblem::kOtherSrid);
  SurfaceBox box;
  if (!find_surface_box(view, end, &box)) return finding(ValueProblem::kIncomparable, 3);
  shape->has_approximate = shape->has_approximate || box.is_approximate;
  return add_corners(buffer, shape, id, box.low, box.high, 3);
}

ValueExtent geography_extent(Datum value) {
  ValueExtent extent = {};
  with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    const char* const end = VARDATA_ANY(detoasted) + VARSIZE_ANY_EXHDR(detoasted);
    SurfaceBox box;
    extent.srid = view.srid;
    if (holds_nothing(view, end)) {
      extent.kind = ValueExtent::kEmpty;
    } else if (find_surface_box(view, end, &box)) {
      extent.kind = ValueExtent::kBox;
      std::copy_n(box.low, 3, extent.low);
      std::copy_n(box.high, 3, extent.high);
    }
    return finding(ValueProblem::kNone);
  });
  return extent;
}

/// A place on the spheroid lies on the sphere where its vertical points.
ValueExtent surface_extent(ValueForm form, const double* numbers, std::int32_t srid) {
  ValueExtent extent = {ValueExtent::kBox, srid, {}, {}};
  if (form == ValueForm::kBox) {
    extent.srid = kSeveralSrids;
    std::copy_n(numbers, 3, extent.low);
    std::copy_n(numbers + 3, 3, extent.high);
    return extent;
  }
  const double north =
      form == ValueForm::kSpheroidPlace ? numbers[2] / (1 - kSquaredEccentricity) : numbers[2];
  const double length =
      std::sqrt(numbers[0] * numbers[0] + numbers[1] * numbers[1] + north * north);
  const double place[3] = {numbers[0], numbers[1], north};
  for (int d = 0; d < 3; ++d) extent.low[d] = extent.high[d] = kBoxRadius * place[d] / length;
  return extent;
}

constexpr TestFunction kGeographyTests[] = {
    {"postgis", "st_dwithin", InvalidOid, TestForm::kWithin, ValueForm::kSpheroidPlace, Metric::kL2,
     widen_spheroid, "true"},
    {"postgis", "st_dwithin", InvalidOid, TestForm::kWithin, ValueForm::kPlace, Metric::kL2,
     widen_sphere, "false"},
    {"postgis", "st_distance", InvalidOid, TestForm::kDistance, ValueForm::kSpheroidPlace,
     Metric::kL2, widen_spheroid, "true"},
    {"postgis", "st_distance", InvalidOid, TestForm::kDistance, ValueForm::kPlace, Metric::kL2,
     widen_sphere, "false"},
    // on the sphere or the spheroid, by PostGIS's release
    {"postgis", "geography_distance_knn", InvalidOid, TestForm::kDistance, ValueForm::kPlace,
     Metric::kL2, widen_either},
    touches("st_intersects"),
    touches("st_covers"),
    touches("st_coveredby"),
    touches("geography_overlaps")};

constexpr TestFunction kLonLatTests[] = {{"postgis", "st_distancespheroid", InvalidOid,
                                          TestForm::kDistance, ValueForm::kSpheroidPlace,
                                          Metric::kL2, widen_spheroid}};

}  // namespace

PlanePoint read_plane_point(Datum geometry) {
  PlanePoint found = {PlaneKind::kOther, {0, 0}};
  with_detoasted(geometry, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    if (load<std::uint32_t>(view.body + 4) == 0) {
      found.kind = PlaneKind::kEmpty;
    } else if (load<std::uint32_t>(view.body) == kPointKind) {
      for (std::size_t d = 0; d < 2; ++d) found.x[d] = load<double>(view.body + 8 + 8 * d);
      if (std::fabs(found.x[0]) <= kFarthest && std::fabs(found.x[1]) <= kFarthest)
        found.kind = PlaneKind::kPoint;
    }
    return finding(ValueProblem::kNone);
  });
  return found;
}

const ValueType kGeometryType = {.extension = "postgis",
                                 .name = "geometry",
                                 .type = InvalidOid,
                                 .scalar = ScalarType::kFloat64,
                                 .box_scalar = ScalarType::kFloat32,
                                 .add = {.point = add_geometry_point,
                                         .box = add_head<add_geometry_box, kBoxBytes>,
                                         .middle = add_head<add_geometry_middle, kMiddleBytes>,
                                         .place = add_geometry_place},
                                 .extent = geometry_extent,
                                 .added_extent = plane_extent,
                                 .fixed_numbers = 4,
                                 .casts_to_box = true,
                                 .tests = kTests,
                                 .test_count = lengthof(kTests)};

const ValueType kGeographyType = {.extension = "postgis",
                                  .name = "geography",
                                  .type = InvalidOid,
                                  .scalar = ScalarType::kFloat64,
                                  .add = {.box = add_head<add_geography_box, kBoxBytes>,
                                          .place = add_place<to_sphere, true>,
                                          .spheroid_place = add_place<to_spheroid, true>},
                                  .extent = geography_extent,
                                  .added_extent = surface_extent,
                                  .fixed_numbers = 6,
                                  .tests = kGeographyTests,
                                  .test_count = lengthof(kGeographyTests),
                                  .only_in_conditions = true};

/// Geometry once more, as longitude and latitude: what functions take that measure on the spheroid.
const ValueType kLonLatType = {.extension = "postgis",
                               .name = "geometry",
                               .type = InvalidOid,
                               .scalar = ScalarType::kFloat64,
                               .add = {.spheroid_place = add_place<to_spheroid, false>},
                               .fixed_numbers = 3,
                               .tests = kLonLatTests,
                               .test_count = lengthof(kLonLatTests),
                               .only_in_conditions = true};

}  // namespace gpujoin

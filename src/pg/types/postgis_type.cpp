// The extension PostGIS: geometry, as a point, or as the bounding box that it is stored with.
// PostGIS promises the layout of its values to files on disk, so it does not change; it stands here
// in our own words.
#include <bit>

#include "pg/types/plane_box.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

/// The SRID in three bytes, a byte of flags, maybe a word of more flags and a bounding box of
/// single-precision numbers, rounded outwards; then the type and the number of its coordinates'
/// tuples or of its parts.
struct GeometryView {
  std::int32_t srid;
  std::uint32_t dims;  ///< of a tuple; distances compare the first two
  const char* box;     ///< null: none
  const char* body;
};

enum GeometryKind : std::uint32_t {
  kPointKind = 1,
  kLineKind = 2,
  kFirstMultiKind = 4,
  kLastStraightKind = 6,
  kLastMultiKind = 7,
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

/// Whether the geometry has the SRID of the geometries before it: PostGIS raises an error for two
/// of them.
bool has_same_srid(ValueShape* shape, const GeometryView& view) {
  if (shape->dims == 0) shape->srid = view.srid;
  return view.srid == shape->srid;
}

/// Where a point is empty no distance is within anything.
constexpr double kNowhere[2] = {NAN, NAN};

ValueFinding add_geometry_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const GeometryView view = view_geometry(VARDATA_ANY(detoasted));
    if (load<std::uint32_t>(view.body) != kPointKind) return finding(ValueProblem::kNotAPoint);
    if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
    const bool empty = load<std::uint32_t>(view.body + 4) == 0;
    return add_doubles(buffer, shape, id,
                       empty ? reinterpret_cast<const char*>(kNowhere) : view.body + 8, 2);
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

/// The box of one point, or of a line between two.
ValueFinding add_tuples_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                            const char* tuples, std::uint32_t count, std::uint32_t dims) {
  double low[2], high[2];
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t d = 0; d < 2; ++d) {
      const double x = load<double>(tuples + (std::size_t{i} * dims + d) * sizeof(double));
      if (!std::isfinite(x)) return finding(ValueProblem::kIncomparable, 2);
      low[d] = i == 0 || x < low[d] ? x : low[d];
      high[d] = i == 0 || x > high[d] ? x : high[d];
    }
  }
  for (std::uint32_t d = 0; d < 2; ++d) {
    low[d] = rounded_outwards(low[d], false);
    high[d] = rounded_outwards(high[d], true);
  }
  shape->has_approximate = true;
  return add_corners(buffer, shape, id, low, high, 2);
}

/// `data` are the first bytes, up to `end`, of a geometry.
ValueFinding add_head_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id, const char* data,
                          const char* end) {
  const GeometryView view = view_geometry(data);
  if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
  if (view.box != nullptr) {
    const auto bound = [&](int i) -> double { return load<float>(view.box + i * sizeof(float)); };
    const double low[2] = {bound(0), bound(2)}, high[2] = {bound(1), bound(3)};
    for (int d = 0; d < 2; ++d)
      if (!std::isfinite(low[d]) || !std::isfinite(high[d]))
        return finding(ValueProblem::kIncomparable, 2);
    return add_corners(buffer, shape, id, low, high, 2);
  }
  // Points, lines of two points, what is made of one of these, and what is empty have no box.
  const char* body = view.body;
  const auto kind = [&] { return load<std::uint32_t>(body); };
  const auto count = [&] { return load<std::uint32_t>(body + 4); };
  while (kind() >= kFirstMultiKind && kind() <= kLastMultiKind && count() == 1 && end - body >= 16)
    body += 8;
  if (count() == 0) return add_corners(buffer, shape, id, kNowhere, kNowhere, 2);
  const std::uint64_t bytes = std::uint64_t{count()} * view.dims * sizeof(double);
  if ((kind() != kPointKind && kind() != kLineKind) ||
      bytes > static_cast<std::uint64_t>(end - body - 8))
    return finding(ValueProblem::kIncomparable, 2);
  return add_tuples_box(buffer, shape, id, body + 8, count(), view.dims);
}

ValueFinding add_geometry_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                              Datum value) {
  constexpr std::int32_t kHeadBytes = 1024;  // the box, or all that has none
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const head =
      is_plain(stored) ? stored : PG_DETOAST_DATUM_SLICE(value, 0, kHeadBytes);
  const char* const data = VARDATA_ANY(head);
  const ValueFinding found = add_head_box(buffer, shape, id, data, data + VARSIZE_ANY_EXHDR(head));
  if (head != stored) pfree(head);
  return found;
}

/// The extent of a value that consists of straight lines and the areas between them, or
/// kNoPlaneBox: what is computed of arcs may lie outside their box.
PlaneBox straight_box(const GeometryView& view, std::uint32_t kind) {
  if (kind > kLastStraightKind || view.box == nullptr) return kNoPlaneBox;
  const auto bound = [&](int i) { return load<float>(view.box + i * sizeof(float)); };
  const PlaneBox box = {{bound(0), bound(2)}, {bound(1), bound(3)}};
  constexpr float kMost = 1e30F;
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
    if (!(std::fabs(one) <= 1e30 && std::fabs(other) <= 1e30)) return kNoPlaneBox;
    box.low[d] = static_cast<float>(rounded_outwards(std::fmin(one, other), false));
    box.high[d] = static_cast<float>(rounded_outwards(std::fmax(one, other), true));
  }
  return box;
}

/// Beyond the range of single precision distances are NULL.
bool is_too_far(const char* tuple) {
  constexpr double kMost = 1e30;
  return std::fabs(load<double>(tuple)) > kMost ||
         std::fabs(load<double>(tuple + sizeof(double))) > kMost;
}

/// The middle of what is no point, whose extent goes to the buffer. What is empty has no distance
/// to anything, as NULL.
ValueFinding add_head_middle(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                             const char* data, const char* end) {
  const GeometryView view = view_geometry(data);
  const auto kind = load<std::uint32_t>(view.body), count = load<std::uint32_t>(view.body + 4);
  if (count == 0) return finding(ValueProblem::kNullElement);
  if (!has_same_srid(shape, view)) return finding(ValueProblem::kOtherSrid);
  if (kind == kPointKind)
    return is_too_far(view.body + 8) ? finding(ValueProblem::kIncomparable, 2)
                                     : add_doubles(buffer, shape, id, view.body + 8, 2);
  const PlaneBox box = kind == kLineKind && count == 2 && view.box == nullptr
                           ? line_box(view, end)
                           : straight_box(view, kind);
  if (!is_box(box)) return finding(ValueProblem::kIncomparable, 2);
  const double middle[2] = {middle_of(box, 0), middle_of(box, 1)};
  const ValueFinding found =
      add_doubles(buffer, shape, id, reinterpret_cast<const char*>(middle), 2);
  if (found.problem == ValueProblem::kNone)
    note_box(buffer->plane_boxes, static_cast<std::uint64_t>(id), box);
  return found;
}

ValueFinding add_geometry_middle(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                 Datum value) {
  constexpr std::int32_t kHeadBytes = 256;  // the box, or a point, or a line between two
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const head =
      is_plain(stored) ? stored : PG_DETOAST_DATUM_SLICE(value, 0, kHeadBytes);
  const char* const data = VARDATA_ANY(head);
  const ValueFinding found =
      add_head_middle(buffer, shape, id, data, data + VARSIZE_ANY_EXHDR(head));
  if (head != stored) pfree(head);
  return found;
}

/// A distance beyond the range of single precision is NULL.
void widen_distance(double eps, std::uint32_t dims, EpsBand* band) {
  constexpr double kMost = std::numeric_limits<float>::max();
  widen_double(std::fmin(eps, kMost), dims, band);
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
    {"postgis", "st_intersects", InvalidOid, TestForm::kTouch, ValueForm::kBox, Metric::kLInf,
     widen_double}};

}  // namespace

const ValueType kGeometryType = {
    .extension = "postgis",
    .name = "geometry",
    .type = InvalidOid,
    .scalar = ScalarType::kFloat64,
    .box_scalar = ScalarType::kFloat32,
    .add = {add_geometry_point, nullptr, add_geometry_box, add_geometry_middle},
    .rebuild = nullptr,
    .fixed_numbers = 4,
    .head_bytes = 0,
    .coordinate_bytes = 0,
    .is_in_statistics = false,
    .casts_to_box = true,
    .tests = kTests,
    .test_count = lengthof(kTests)};

}  // namespace gpujoin

#include "pg/types/plane_shape.h"

#include "pg/types/geometry_view.h"
#include "pg/types/plane_point.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// Goes over the lines of a value that consists of straight ones and the areas between them, rings
/// and points among them, from *body on. Calls take(tuples, count, whether it is a hole's). False:
/// it is another value, or take() says so.
template <class Take>
bool walk_lines(const char** body, const char* end, std::uint32_t dims, const Take& take) {
  check_stack_depth();
  if (end - *body < 8) return false;
  const auto kind = load<std::uint32_t>(*body), count = load<std::uint32_t>(*body + 4);
  *body += 8;
  if (kind >= kFirstMultiKind && kind <= kLastMultiKind) {
    for (std::uint32_t part = 0; part < count; ++part)
      if (!walk_lines(body, end, dims, take)) return false;
    return true;
  }
  if (kind < kPointKind || kind > kAreaKind) return false;
  const std::size_t bytes = dims * sizeof(double);
  const auto take_line = [&](std::uint32_t tuples, bool hole) {
    if (tuples * bytes > static_cast<std::uint64_t>(end - *body)) return false;
    const char* const first = *body;
    *body += tuples * bytes;
    return take(first, std::uint64_t{tuples}, hole);
  };
  if (kind != kAreaKind) return take_line(count, false);
  const char* const lengths = *body;  // of its rings, padded to a word of eight bytes
  const std::uint64_t length_bytes = (std::uint64_t{count} + 1) / 2 * 8;
  if (length_bytes > static_cast<std::uint64_t>(end - *body)) return false;
  *body += length_bytes;
  for (std::uint32_t ring = 0; ring < count; ++ring)
    if (!take_line(load<std::uint32_t>(lengths + std::size_t{ring} * 4), ring > 0)) return false;
  return true;
}

constexpr Span kNoSpan = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};

bool contains(const Span& box, const Span& other) {
  for (int d = 0; d < 2; ++d)
    if (!(box.low[d] <= other.low[d] && box.high[d] >= other.high[d])) return false;
  return true;
}

/// Widens the box, whose low bounds are above the high ones before the first tuple. False: a
/// coordinate is too far out, or none.
bool widen_box(Span* box, const char* tuples, std::uint64_t count, std::uint32_t dims) {
  for (std::uint64_t i = 0; i < count; ++i)
    for (std::size_t d = 0; d < 2; ++d) {
      const double x = load<double>(tuples + (i * dims + d) * sizeof(double));
      if (!(std::fabs(x) <= kFarthest)) return false;
      box->low[d] = std::fmin(box->low[d], x);
      box->high[d] = std::fmax(box->high[d], x);
    }
  return true;
}

/// A shape's lines, for bound_distance().
class ShapeLines {
 public:
  ShapeLines(const struct varlena* geometry, bool with_holes)
      : with_holes_(with_holes),
        view_(view_geometry(VARDATA_ANY(geometry))),
        end_(VARDATA_ANY(geometry) + VARSIZE_ANY_EXHDR(geometry)) {}

  struct Line {
    const char* tuples;
    std::uint64_t count;
    std::size_t bytes;  ///< of a tuple

    Corner at(std::uint64_t i) const {
      const char* const tuple = tuples + i * bytes;
      return {load<double>(tuple), load<double>(tuple + sizeof(double))};
    }
  };

  template <class Take>
  void walk(const Take& take) const {
    const char* body = view_.body;
    walk_lines(&body, end_, view_.dims, [&](const char* tuples, std::uint64_t count, bool hole) {
      if (count > 0 && (with_holes_ || !hole))
        take(Line{tuples, count, view_.dims * sizeof(double)});
      return true;
    });
  }

 private:
  bool with_holes_;
  GeometryView view_;
  const char* end_;
};

}  // namespace

PlaneShape read_plane_shape(const struct varlena* geometry) {
  const GeometryView view = view_geometry(VARDATA_ANY(geometry));
  const char* const end = VARDATA_ANY(geometry) + VARSIZE_ANY_EXHDR(geometry);
  PlaneShape shape = {ShapeKind::kOther, view.srid, kNoSpan, false};
  const char* body = view.body;
  const bool straight =
      walk_lines(&body, end, view.dims, [&](const char* tuples, std::uint64_t count, bool hole) {
        shape.has_holes = shape.has_holes || hole;
        return widen_box(&shape.box, tuples, count, view.dims);
      });
  if (!straight) return shape;
  shape.kind = shape.box.low[0] <= shape.box.high[0] ? ShapeKind::kStraight : ShapeKind::kEmpty;
  const bool is_point = load<std::uint32_t>(view.body) == kPointKind;
  if (view.box == nullptr || is_point || shape.kind == ShapeKind::kEmpty) return shape;
  const Span corners = shape.box;
  load_box(view.box, 2, 1, shape.box.low, shape.box.high);
  if (!contains(shape.box, corners)) shape.kind = ShapeKind::kOther;
  return shape;
}

DistanceBounds bound_distance(const struct varlena* one, const struct varlena* other,
                              bool with_holes, const Corner& hint) {
  return bound_distance(ShapeLines(one, with_holes), ShapeLines(other, with_holes), hint);
}

}  // namespace gpujoin

// What surrounds the comparison of points by PostGIS. postgis_type.cpp reads them.
#include "pg/types/plane_point.h"

#include "core/distance.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint32_t kDims = 2;

/// Below such magnitudes squares of differences may underflow.
constexpr double kTiny = 1e-130;

/// A point that lies near 0 in one dimension.
struct StripPoint {
  double x;  ///< there
  std::uint32_t row;
};

const double* coordinates(const Dataset& points, std::uint32_t row) {
  return static_cast<const double*>(point(points, row));
}

/// PostGIS's box around a point, and whether another one lies in it.
bool is_in_box(const double* center, const double* other, double eps) {
  for (std::uint32_t d = 0; d < kDims; ++d)
    if (!(other[d] >= center[d] - eps && other[d] <= center[d] + eps)) return false;
  return true;
}

bool are_neighbors(const double* a, const double* b, double eps) {
  return sqrt(raw_distance<Metric::kL2>(a, b, kDims)) <= eps;
}

/// The points whose coordinate is so small, in its order.
std::uint64_t find_strip(const Dataset& points, std::uint32_t dimension, double most,
                         StripPoint** strip) {
  std::uint64_t count = 0, room = 0;
  for (std::uint64_t row = 0; row < points.rows; ++row) {
    const double x = coordinates(points, static_cast<std::uint32_t>(row))[dimension];
    if (!(std::fabs(x) <= most)) continue;
    reserve_next(CurrentMemoryContext, strip, count, &room);
    (*strip)[count++] = {x, static_cast<std::uint32_t>(row)};
  }
  std::sort(*strip, *strip + count,
            [](const StripPoint& a, const StripPoint& b) { return a.x < b.x; });
  return count;
}

/// A pair is at stake only where the difference of its coordinates in one dimension is rounded, and
/// is eps but for that. The difference of two coordinates of magnitude eps or more is a multiple of
/// eps's last place, and exact if it is no more than 2 * eps: then both sides of a box around one
/// point take in the other, for rounding is monotone. So one of the two is smaller than eps, and
/// the other one no larger than twice that. Where coordinates and eps are tiny, squares may
/// underflow, and all different ones are at stake.
bool is_sure_along(const Dataset& points, double eps, std::uint32_t dimension) {
  constexpr double kUp = 1 + 0x1p-40, kDown = 1 - 0x1p-40;
  StripPoint* strip = nullptr;
  const std::uint64_t count = find_strip(points, dimension, 2 * kUp * std::max(eps, kTiny), &strip);
  std::uint64_t first = 0, looks = 0;
  bool sure = true;
  for (std::uint64_t at = 0; sure && at < count; ++at) {
    const StripPoint& one = strip[at];
    if (eps < kTiny) {
      sure = one.x == strip[0].x;
      continue;
    }
    while (strip[first].x < one.x - eps * kUp) ++first;
    for (std::uint64_t i = first; sure && i < at && strip[i].x <= one.x - eps * kDown; ++i) {
      const double *const a = coordinates(points, one.row), *const b =
                                                                coordinates(points, strip[i].row);
      if (are_neighbors(a, b, eps) && !(is_in_box(a, b, eps) && is_in_box(b, a, eps))) sure = false;
      if (++looks > 64 * points.rows) sure = false;  // it takes too long to know
    }
  }
  if (strip != nullptr) pfree(strip);
  return sure;
}

}  // namespace

bool finds_neighbors_by_definition(const Dataset& points, double eps) {
  return is_sure_along(points, eps, 0) && is_sure_along(points, eps, 1);
}

bool measures_by_definition(Oid schema, Oid geometry) {
  constexpr int kSamples = 40;
  const Oid types[] = {geometry, geometry};
  const char* const schema_name = get_namespace_name(schema);
  if (schema_name == nullptr) return false;
  const Oid function = LookupFuncName(
      list_make2(makeString(pstrdup(schema_name)), makeString(pstrdup("st_distance"))), 2, types,
      true);
  if (!OidIsValid(function) || get_func_rettype(function) != FLOAT8OID) return false;
  Oid input, parameter;
  getTypeInputInfo(geometry, &input, &parameter);
  std::uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 40) / 3000;  // of so few digits that a text has all
  };
  for (int i = 0; i < kSamples; ++i) {
    double points[2][kDims];
    Datum values[2];
    for (int p = 0; p < 2; ++p) {
      for (double& x : points[p]) x = next();
      values[p] = OidInputFunctionCall(
          input, psprintf("POINT(%.17g %.17g)", points[p][0], points[p][1]), parameter, -1);
    }
    const double theirs = DatumGetFloat8(OidFunctionCall2(function, values[0], values[1]));
    if (theirs != sqrt(raw_distance<Metric::kL2>(points[0], points[1], kDims))) return false;
  }
  return true;
}

}  // namespace gpujoin

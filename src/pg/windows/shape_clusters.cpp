#include "pg/windows/shape_clusters.h"

#include "engine/request/pair_cursor.h"
#include "pg/geometry/pair_clusters.h"
#include "pg/store/huge_array.h"
#include "pg/types/extension_object.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr const char* kNoMemory = "the rows do not fit in memory";

// ---- Whether two geometries are neighbours

Span span_at(const Dataset& boxes, std::uint32_t row) {
  const double* const box = point<double>(boxes, row);
  return {{box[0], box[1]}, {box[2], box[3]}};
}

/// Whether PostGIS, looking for neighbours of the one, compares the other with it.
bool compares(const Span& one, const Span& other, double eps) {
  for (int d = 0; d < 2; ++d)
    if (!(other.low[d] <= one.high[d] + eps && other.high[d] >= one.low[d] - eps)) return false;
  return true;
}

bool are_apart(const Span& a, const Span& b) {
  for (int d = 0; d < 2; ++d)
    if (a.low[d] > b.high[d] || b.low[d] > a.high[d]) return true;
  return false;
}

struct StoredShape {
  const struct varlena* value;
  bool has_holes;
};

StoredShape shape_at(ClusterShapes* shapes, std::uint32_t row) {
  const bool* nulls;
  const Datum* const values = fetch_row(shapes->values, row, &nulls);
  return {reinterpret_cast<const struct varlena*>(DatumGetPointer(values[0])),
          DatumGetBool(values[1])};
}

bool is_within(ClusterShapes* shapes, const struct varlena* one, const struct varlena* other,
               double eps) {
  const MemoryContext caller = MemoryContextSwitchTo(shapes->scratch);
  const bool within = DatumGetBool(FunctionCall3(&shapes->within, PointerGetDatum(one),
                                                 PointerGetDatum(other), Float8GetDatum(eps)));
  MemoryContextSwitchTo(caller);
  MemoryContextReset(shapes->scratch);
  return within;
}

/// What PostGIS's distance of two values may differ from theirs: places on segments are rounded as
/// coordinates are, and squares of tiny differences may underflow. Some hundred roundings.
double distance_slack(const Span& a, const Span& b) {
  constexpr double kSlack = 3e-14, kTiny = 1e-150;
  double size = 0;
  for (int d = 0; d < 2; ++d)
    size += std::fmax(std::fabs(a.low[d]), std::fabs(a.high[d])) +
            std::fmax(std::fabs(b.low[d]), std::fabs(b.high[d]));
  return kSlack * size + kTiny;
}

/// Whether two geometries are neighbours, by their boxes, by their corners, and by PostGIS where
/// these leave it open. It looks for the neighbours of each of them, in a box whose sides are
/// rounded, and what it computes for a distance may depend on which comes first: it is asked from
/// both sides, and where the answers differ it has to find the clusters. Of areas it takes the
/// outer rings where the boxes are apart; else maybe that of a hole, even of one that reaches
/// beyond its outer ring, and corners prove no neighbour.
bool are_neighbors(ClusterShapes* shapes, const Dataset& boxes, std::uint32_t p, std::uint32_t q) {
  CHECK_FOR_INTERRUPTS();
  const Span a = span_at(boxes, p), b = span_at(boxes, q);
  const double eps = shapes->eps;
  if (greatest_distance(a, b) <= eps) return true;
  if (least_distance(a, b) > eps) return false;
  const StoredShape one = shape_at(shapes, p), other = shape_at(shapes, q);
  const Corner middle = {(b.low[0] + b.high[0]) / 2, (b.low[1] + b.high[1]) / 2};
  const double slack = distance_slack(a, b);
  const bool apart = are_apart(a, b), has_holes = one.has_holes || other.has_holes;
  const DistanceBounds bounds = bound_distance(one.value, other.value, !apart, middle);
  if (bounds.least - slack > eps) return false;
  if ((apart || !has_holes) && (bounds.touch || bounds.greatest + slack <= eps)) return true;
  ++shapes->asked;
  if (!has_holes) {  // then either order gives the same, but for rounding
    if (eps > slack && is_within(shapes, one.value, other.value, eps - slack)) return true;
    if (!is_within(shapes, one.value, other.value, eps + slack)) return false;
  }
  const bool near = is_within(shapes, one.value, other.value, eps);
  if (is_within(shapes, other.value, one.value, eps) != near ||
      (near && !(compares(a, b, eps) && compares(b, a, eps))))
    shapes->unsure = true;
  return near;
}

// ---- Rounds

enum class Round { kCandidates, kNeighbors, kClusters };  // PairClusters's

/// Pairs of rows whose boxes are near each other. If they fit, later rounds need no join.
struct NearPairs {
  struct Pair {
    std::uint32_t p, q;
  };
  Pair* pairs;  ///< [count]
  std::uint64_t count, room;
  bool complete;
};
constexpr std::uint64_t kMostNearPairs = 1 << 18;  // 2 MB

struct ShapeJoin {
  ClusterSite* site;
  ClusterShapes* shapes;
  Dataset boxes;
  PairClusters clusters;
  NearPairs near;
};

/// least_distance() of boxes that are further apart is more than eps: their size is at most eight
/// times the greatest coordinate and as much again for gaps.
double radius_of_boxes(const ClusterShapes& shapes) {
  return (shapes.eps + 16 * kBoxSlack * shapes.farthest) * (1 + 1e-12);
}

void take_pair(ShapeJoin* join, Round round, std::uint32_t p, std::uint32_t q) {
  const auto are_near = [&](std::uint32_t one, std::uint32_t other) {
    return are_neighbors(join->shapes, join->boxes, one, other);
  };
  if (round == Round::kCandidates)
    join->clusters.take_candidate(p, q);
  else if (round == Round::kNeighbors)
    join->clusters.count(p, q, are_near);
  else
    join->clusters.connect(p, q, are_near);
}

/// Whether the round needs another pair.
bool goes_on(const ShapeJoin* join, Round round) {
  return !join->shapes->unsure && (round != Round::kNeighbors || join->clusters.open() > 0);
}

void keep_pair(ShapeJoin* join, std::uint32_t p, std::uint32_t q) {
  NearPairs& near = join->near;
  near.complete = near.complete && near.count < kMostNearPairs;
  if (!near.complete) return;
  reserve_next(join->shapes->context, &near.pairs, near.count, &near.room);
  near.pairs[near.count++] = {p, q};
}

/// Takes all candidates, or as many as the round needs. False: memory does not suffice.
bool run_round(ShapeJoin* join, Round round) {
  EngineRun* const run = &join->site->work->run;
  NearPairs& near = join->near;
  for (std::uint64_t i = 0; near.complete && i < near.count && goes_on(join, round); ++i)
    take_pair(join, round, near.pairs[i].p, near.pairs[i].q);
  if (near.complete) return true;
  near.complete = round == Round::kCandidates;  // which takes all pairs
  restart_run(run);
  start_clusters_engine(join->site, static_cast<std::int64_t>(join->boxes.rows));
  PairCursor cursor = {};
  IdPair pair = {};
  bool more = true;
  while (more && next_engine_batch(run)) {
    cursor.start(run->batch, true);
    while (more && cursor.next(&pair)) {
      const auto p = static_cast<std::uint32_t>(pair.id1), q = static_cast<std::uint32_t>(pair.id2);
      take_pair(join, round, p, q);
      keep_pair(join, p, q);
      more = goes_on(join, round);
    }
  }
  stop_engine(run);
  return !run->exhausted;
}

bool run_rounds(ShapeJoin* join, std::uint32_t min_points) {
  PairClusters& clusters = join->clusters;
  if (min_points > 1) {
    if (!run_round(join, Round::kCandidates)) return false;
    if (clusters.begin_counting() > 0 && !run_round(join, Round::kNeighbors)) return false;
    if (clusters.begin_connecting() == 0) return true;
  }
  return join->shapes->unsure || run_round(join, Round::kClusters);
}

}  // namespace

bool begin_shapes(ClusterSite* site, double eps, Oid schema, Oid type, ClusterShapes* shapes) {
  const Oid types[] = {type, type, FLOAT8OID};
  const char* const schema_name = get_namespace_name(schema);
  if (schema_name == nullptr) return false;
  const Oid function = LookupFuncName(
      list_make2(makeString(pstrdup(schema_name)), makeString(pstrdup("st_dwithin"))), 3, types,
      true);
  if (!OidIsValid(function) || get_func_rettype(function) != BOOLOID ||
      !is_compiled_function_of(function, "postgis"))
    return false;
  ClusterWork* const work = site->work;
  shapes->context = AllocSetContextCreate(work->context, "gpujoin shapes", ALLOCSET_DEFAULT_SIZES);
  shapes->scratch = AllocSetContextCreate(shapes->context, "gpujoin shape", ALLOCSET_DEFAULT_SIZES);
  shapes->eps = eps;
  fmgr_info_cxt(function, &shapes->within, shapes->context);
  shapes->budget.limit = MaxAllocHugeSize;  // add_shape() looks after it
  const MemoryContext caller = MemoryContextSwitchTo(shapes->context);
  const TupleDesc row = CreateTemplateTupleDesc(2);
  TupleDescInitEntry(row, 1, "shape", type, -1, 0);
  TupleDescInitEntry(row, 2, "has_holes", BOOLOID, -1, 0);
  constexpr AttrNumber kColumns[] = {1, 2};
  shapes->values = create_row_store(shapes->context, &shapes->budget, row, kColumns, 2);
  MemoryContextSwitchTo(caller);
  begin_points(work, ScalarType::kFloat64);
  work->points.dims = 4;
  return true;
}

const char* add_shape(ClusterSite* site, ClusterShapes* shapes, std::int64_t row,
                      NullableDatum geometry) {
  PointBuffer* const boxes = &site->work->points;
  Span box = {{NAN, NAN}, {NAN, NAN}};
  Datum values[] = {0, BoolGetDatum(false)};
  const bool nulls[] = {geometry.isnull, false};
  if (!geometry.isnull) {
    struct varlena* const value = PG_DETOAST_DATUM(geometry.value);
    const PlaneShape shape = read_plane_shape(value);
    if (shape.kind == ShapeKind::kOther) return "a geometry has arcs or faces, or lies too far out";
    if (shape.kind == ShapeKind::kStraight) {
      if (shapes->some && shapes->srid != shape.srid) return "geometries have different SRIDs";
      shapes->some = true;
      shapes->srid = shape.srid;
      box = shape.box;
      for (int d = 0; d < 2; ++d)
        shapes->farthest =
            std::fmax(shapes->farthest, std::fmax(std::fabs(box.low[d]), std::fabs(box.high[d])));
    }
    values[0] = PointerGetDatum(value);
    values[1] = BoolGetDatum(shape.has_holes);
  }
  const double numbers[] = {box.low[0], box.low[1], box.high[0], box.high[1]};
  std::memcpy(add_point(boxes, row), numbers, sizeof numbers);
  store_row(shapes->values, values, nulls);
  return shapes->budget.taken > boxes->limit ? kNoMemory : nullptr;
}

const char* find_shape_clusters(ClusterSite* site, ClusterShapes* shapes, std::int64_t rows,
                                std::uint32_t min_points) {
  EngineRun* const run = &site->work->run;
  const auto count = static_cast<std::uint32_t>(rows);
  std::uint32_t* states = nullptr;
  resize_array(shapes->context, &states, count);
  trim_row_store(shapes->values);
  const Dataset boxes = finish_points(&site->work->points);
  ShapeJoin join = {site, shapes, boxes, {site->numbers, states, count, min_points}, {}};
  const bool* nulls;
  for (std::uint32_t row = 0; row < count; ++row) {
    fetch_row(shapes->values, row, &nulls);
    if (*nulls) join.clusters.leave_out(row);
  }
  const JoinRequest request(Sides::one(boxes, PairSelection::kUnordered),
                            BoxesWithin{Metric::kL2, radius_of_boxes(*shapes)}, BoxOutput::kPairs);
  begin_clusters(site, rows, request, shapes->budget.taken + count * sizeof *states, true);
  name_radius(run, to_string(Metric::kL2), shapes->eps);
  if (!run_rounds(&join, min_points))
    return "the join needs more memory than gpujoin.host_memory_limit leaves";
  if (shapes->unsure) return "two geometries are so nearly at the radius that rounding decides";
  join.clusters.number();
  run->report.stats.rechecked = shapes->asked;
  return nullptr;
}

void end_shapes(ClusterShapes* shapes) {
  if (shapes->context == nullptr) return;
  MemoryContextDelete(shapes->context);
  *shapes = {};
}

}  // namespace gpujoin

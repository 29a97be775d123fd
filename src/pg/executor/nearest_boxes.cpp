// Nearest rows whose values are more than points: lines and areas. The engine finds the neighbours
// of the middles of their boxes. A value lies within its reach of the middle, half the box's
// diagonal, so what is further off by more than both reaches than the k-th distance so far is not
// among the first k. A few right rows that reach far beyond the others would make the engine look
// for too many neighbours: these wide rows are compared with each left row by their boxes. The
// type's own distance is evaluated for each row whose box comes near enough, and decides.
#include <functional>

#include "pg/executor/join_extents.h"
#include "pg/executor/join_nearest.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// What the errors of distances may be of what they are computed from, as in least_distance().
constexpr double kSlack = 3e-14;

/// The area of the plane in which the middles of the right rows lie.
double area_of(const Dataset& points) {
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (std::uint64_t i = 0; i < points.rows; ++i) {
    if (!is_finite_row(points, i)) continue;
    const double* const middle = point<double>(points, i);
    for (int d = 0; d < 2; ++d) {
      low[d] = std::fmin(low[d], middle[d]);
      high[d] = std::fmax(high[d], middle[d]);
    }
  }
  return std::fmax(high[0] - low[0], 0) * std::fmax(high[1] - low[1], 0);
}

/// How many of the rows, whose reaches descend, are wide: so that the work for a left row is least.
std::uint64_t count_wide(const double* reaches, std::uint64_t count, double rows, double k,
                         double area) {
  constexpr double kBoxNs = 3, kNeighborNs = 60;  // measured, roughly
  const double density = rows / std::fmax(area, 1e-300);
  const double nearest = std::sqrt(k / (M_PI * density));
  std::uint64_t best = 0;
  double least = INFINITY;
  for (std::uint64_t wide = 0; wide <= count; wide = wide == 0 ? 1 : 2 * wide) {
    const double radius = nearest + (wide < count ? reaches[wide] : 0);
    const double neighbors = std::fmin(rows, M_PI * density * radius * radius);
    const double cost = kBoxNs * static_cast<double>(wide) + kNeighborNs * neighbors;
    if (cost < least) best = wide;
    least = std::fmin(least, cost);
  }
  return best;
}

/// Divides the right rows that have extents into wide ones and others.
void find_wide(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const PlaneBoxes& side = node->right.plane_boxes;
  double* reaches = nullptr;
  std::uint64_t count = 0;
  resize_array(work->context, &reaches, side.count);
  for (std::uint64_t row = 0; row < side.count; ++row)
    if (is_box(side.boxes[row])) reaches[count++] = reach_of(side.boxes[row]);
  std::sort(reaches, reaches + count, std::greater<double>());
  const std::uint64_t wide = count_wide(reaches, count, static_cast<double>(work->points),
                                        static_cast<double>(work->k), area_of(node->right.points));
  work->boxes.reach = wide < count ? reaches[wide] : 0;
  pfree(reaches);
  std::uint64_t room = 0;
  for (std::uint64_t row = 0; row < side.count; ++row) {
    if (reach_of(side.boxes[row]) <= work->boxes.reach) continue;
    reserve_next(work->context, &work->boxes.wide, work->boxes.wide_count, &room);
    work->boxes.wide[work->boxes.wide_count++] = row;
  }
}

/// Evaluates the distance of a row, if it can be among the first. False where it has none.
bool weigh(JoinNode* node, std::uint64_t right, double least) {
  NearestWork* const work = node->nearest;
  if (cannot_come(work, least) || !is_candidate(node, work->ranks.left, right, false)) return true;
  const double distance = measure(node, work->ranks.left, right);
  if (distance == kUnknown) return false;
  add_to_heap(work, {distance, right});
  return true;
}

}  // namespace

void prepare_boxes(JoinNode* node) {
  NearestWork* const work = node->nearest;
  work->boxes.any = node->left.plane_boxes.count > 0 || node->right.plane_boxes.count > 0;
  if (!work->boxes.any) return;
  work->by_radius = false;  // the engine's is one of middles
  find_wide(node);
}

void span_left(JoinNode* node) {
  NearestWork* const work = node->nearest;
  const Dataset* points = &node->left.points;
  std::uint64_t position = work->ranks.left;
  if (points->file != nullptr ||
      points->rows != row_count(node, node->left))  // some rows are no points
    points = find_point(&node->left.buffer, *points, static_cast<std::int64_t>(work->ranks.left),
                        &position);
  work->boxes.left_spans = points != nullptr && is_finite_row(*points, position);
  if (!work->boxes.left_spans) return;
  const PlaneBox box = box_of(node->left.plane_boxes, work->ranks.left);
  work->boxes.left_span = span_of(box, point<double>(*points, position));
  work->boxes.left_reach = reach_of(box);
}

double least_of(JoinNode* node, std::uint64_t right) {
  const PlaneBox box = box_of(node->right.plane_boxes, right);
  if (!node->nearest->boxes.left_spans || !is_box(box)) return -INFINITY;
  return least_distance(node->nearest->boxes.left_span, span_of(box, nullptr));
}

bool rank_boxes(JoinNode* node, const std::uint32_t* neighbors, const double* distances,
                std::uint64_t count, bool all, bool* complete) {
  NearestWork* const work = node->nearest;
  *complete = all;
  for (std::uint64_t i = 0; i < count; ++i) {
    // Both reaches off the distance of the middles, and the slack.
    const double reaches = work->boxes.left_reach + work->boxes.reach;
    if (cannot_come(work, distances[i] - reaches - kSlack * (distances[i] + reaches))) {
      *complete = true;
      break;
    }
    const auto right = static_cast<std::uint64_t>(node->pairs.run->batch.right_ids[neighbors[i]]);
    const PlaneBox box = box_of(node->right.plane_boxes, right);
    if (is_box(box) && reach_of(box) > work->boxes.reach) continue;
    const double least = is_box(box) ? least_distance(work->boxes.left_span, span_of(box, nullptr))
                                     : distances[i] - work->boxes.left_reach -
                                           kSlack * (distances[i] + work->boxes.left_reach);
    if (!weigh(node, right, least)) return false;
  }
  if (!*complete) return true;
  for (std::uint64_t i = 0; i < work->boxes.wide_count; ++i) {
    CHECK_FOR_INTERRUPTS();
    if (!weigh(node, work->boxes.wide[i], least_of(node, work->boxes.wide[i]))) return false;
  }
  for (std::uint64_t i = 0; i < work->odd_count; ++i) {
    CHECK_FOR_INTERRUPTS();
    const std::uint64_t odd = work->odd[i];
    if (!weigh(node, odd, gap_between_srids(node, work->ranks.left, odd))) return false;
  }
  std::sort_heap(work->ranks.rows, work->ranks.rows + work->ranks.count, is_nearer);
  return true;
}

}  // namespace gpujoin

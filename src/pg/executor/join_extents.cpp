// Values of several SRIDs. PostGIS raises an error for a pair of them, but its indexes leave out
// pairs whose boxes are farther apart than the radius. So pairs of odd rows are compared by their
// boxes first, where their SRIDs differ.
#include "pg/executor/join_extents.h"

#include <cfloat>

#include "pg/executor/join_inputs.h"

namespace gpujoin {
namespace {

/// The extent of a row; empty where it has none, as a value that is NULL.
const ValueExtent& extent_of_row(JoinNode* node, Side* side, std::uint64_t row) {
  if (const OddRow* const odd = find_odd(side->odd, row)) return odd->extent;
  if (side->extent_row == row) return side->extent;
  std::uint64_t position;
  const Dataset* const points = find_row_point(side, row, &position);
  side->extent = points == nullptr
                     ? ValueExtent{ValueExtent::kEmpty, node->inputs.srid, {}, {}}
                     : extent_of_point(node, *side, *points, position, node->inputs.srid);
  side->extent_row = row;
  return side->extent;
}

}  // namespace

ValueExtent extent_of_value(const JoinNode* node, Datum value) {
  const auto extent = node->data.test.type->extent;
  return extent == nullptr ? ValueExtent{} : extent(value);
}

ValueExtent extent_of_point(const JoinNode* node, const Side& side, const Dataset& points,
                            std::uint64_t position, std::int32_t srid) {
  const auto added = node->data.test.type->added_extent;
  if (added == nullptr) return {};
  double numbers[6] = {};
  const std::uint32_t count = std::min<std::uint32_t>(points.dims, lengthof(numbers));
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = coordinate(points, position, i);
  ValueExtent extent = added(node->inputs.form, numbers, srid);
  const PlaneBox box = box_of(side.plane_boxes, static_cast<std::uint64_t>(points.ids[position]));
  for (int d = 0; d < 2 && is_box(box); ++d) {
    extent.low[d] = static_cast<double>(box.low[d]);
    extent.high[d] = static_cast<double>(box.high[d]);
  }
  return extent;
}

void note_srid(JoinNode* node, std::int32_t srid) {
  node->inputs.srid = srid;
  node->inputs.tests_srids = node->data.test.type->extent != nullptr &&
                             (node->left.odd.count > 0 || node->right.odd.count > 0);
}

double gap_between_srids(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  if (!node->inputs.tests_srids) return -INFINITY;
  const ValueExtent& a = extent_of_row(node, &node->left, left);
  const ValueExtent& b = extent_of_row(node, &node->right, right);
  if (a.kind == ValueExtent::kEmpty || b.kind == ValueExtent::kEmpty) return INFINITY;
  if (a.kind == ValueExtent::kUnknown || b.kind == ValueExtent::kUnknown || a.srid == b.srid)
    return -INFINITY;
  double squares = 0;
  for (int d = 0; d < 3; ++d) {
    const double gap = std::fmax(std::fmax(a.low[d] - b.high[d], b.low[d] - a.high[d]), 0);
    squares += gap * gap;
  }
  return std::sqrt(squares);
}

namespace {

/// Whether one box contains the other, either of which may be rounded to single precision.
bool contains(const ValueExtent& outer, const ValueExtent& inner) {
  constexpr double kRounding = 0x1p-22;
  for (int d = 0; d < 3; ++d) {
    const double slack = kRounding * (std::fabs(inner.low[d]) + std::fabs(inner.high[d])) + FLT_MIN;
    if (outer.low[d] > inner.low[d] + slack || inner.high[d] - slack > outer.high[d]) return false;
  }
  return true;
}

/// Whether the boxes, which meet, lie otherwise than the rule has it.
bool breaks(BoxRule rule, const ValueExtent& left, const ValueExtent& right) {
  switch (rule) {
    case BoxRule::kFirstContains:
      return !contains(left, right);
    case BoxRule::kSecondContains:
      return !contains(right, left);
    case BoxRule::kSame:
      return !contains(left, right) || !contains(right, left);
    default:
      return false;
  }
}

}  // namespace

bool breaks_box_rule(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  const BoxRule rule = node->data.boxes;
  if (rule == BoxRule::kNone || rule == BoxRule::kMeet || node->data.test.type->extent == nullptr)
    return false;
  const ValueExtent& a = extent_of_row(node, &node->left, left);
  const ValueExtent& b = extent_of_row(node, &node->right, right);
  return a.kind == ValueExtent::kBox && b.kind == ValueExtent::kBox && breaks(rule, a, b);
}

bool are_srids_apart(JoinNode* node, std::uint64_t left, std::uint64_t right, double radius) {
  const double least = node->data.boxes == BoxRule::kNone ? radius : std::fmin(radius, 0);
  return node->inputs.tests_srids && gap_between_srids(node, left, right) > least;
}

}  // namespace gpujoin

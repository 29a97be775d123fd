// Pairs with radii of their own: `a.v <-> b.v <= a.r + b.r`. The engine finds the pairs within the
// largest radius of any row of either side, and those of both rows decide about each of these. A
// row whose radius is no finite number of moderate size is odd: the condition decides about its
// pairs.
#include "pg/executor/join_node.h"
#include "pg/store/huge_array.h"

namespace gpujoin {
namespace {

/// Beyond it squares overflow, and every arithmetic goes its own way.
constexpr double kMostRadius = 1e149;

double radius_of(const Side& side, std::uint64_t row) {
  return side.radius > 0 ? side.row_radii[row] : 0;
}

/// How far a sum of radii may be from the one that the condition computes. Two numbers have one
/// sum in double precision.
double rounding_of(const JoinNode* node, double left, double right) {
  const double all = std::fabs(left) + std::fabs(right) + std::fabs(node->eps_of_all);
  if (node->data.rounds_radii) return 0x1p-21 * all;
  return left != 0 && right != 0 && node->eps_of_all != 0 ? 0x1p-50 * all : 0;
}

/// A row that the engine joins.
struct WideRow {
  double radius;
  std::int64_t row;
};

/// The rows of the largest radii, largest first, at most so many.
std::uint64_t find_widest(const Side& side, WideRow* widest, std::uint64_t most) {
  const auto wider = [](const WideRow& a, const WideRow& b) { return a.radius > b.radius; };
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < side.points.rows; ++i) {
    const std::int64_t row = side.points.ids[i];
    const WideRow candidate = {side.row_radii[row], row};
    if (count == most && !wider(candidate, widest[0])) continue;
    if (count == most) std::pop_heap(widest, widest + count--, wider);
    widest[count++] = candidate;
    std::push_heap(widest, widest + count, wider);
  }
  std::sort_heap(widest, widest + count, wider);
  return count;
}

/// Puts a point where it is near nothing.
void remove_point(const Dataset& points, std::uint64_t position) {
  if (points.scalar == ScalarType::kFloat32)
    std::fill_n(const_cast<float*>(point<float>(points, position)), points.dims, NAN);
  else
    std::fill_n(const_cast<double*>(point<double>(points, position)), points.dims, NAN);
}

}  // namespace

void set_wide_rows_aside(JoinNode* node, Side* side) {
  constexpr std::uint64_t kFewPairs = 1000, kFewPerRow = 4;
  constexpr double kMuchLarger = 1.5, kAboutAsLarge = 1.1;
  const Side& other = side == &node->left ? node->right : node->left;
  if (side->radius == 0 || side->points.file != nullptr ||
      (side->odd.values != nullptr && node->form == ValueForm::kBox))
    return;
  const std::uint64_t pairs = kFewPairs + kFewPerRow * (row_count(*side) + row_count(other));
  const std::uint64_t most =
      std::min(pairs / std::max<std::uint64_t>(row_count(other), 1), side->points.rows / 2);
  if (most == 0) return;
  WideRow* const widest = static_cast<WideRow*>(palloc(sizeof(WideRow) * (most + 1)));
  const std::uint64_t found = find_widest(*side, widest, most + 1);
  // The first of these that stays has the largest radius then.
  const double least = std::fmax(widest[found - 1].radius, 0);
  const bool differ = widest[0].radius > kMuchLarger * least;
  for (std::uint64_t i = 0; differ && widest[i].radius > kAboutAsLarge * least; ++i) {
    std::uint64_t position;
    const Dataset& points = *find_point(&side->buffer, side->points, widest[i].row, &position);
    add_odd(node, side, widest[i].row,
            side->odd.values != nullptr ? node->data.test.type->rebuild(points, position) : 0);
    remove_point(points, position);
    side->most_radius = widest[i + 1].radius;
  }
  pfree(widest);
}

bool keep_radius(JoinNode* node, Side* side, TupleTableSlot* slot) {
  if (side->radius == 0) return true;
  const std::uint64_t row = row_count(*side);
  reserve_next(node->rows, &side->row_radii, row, &side->radius_room);
  const bool is_null = slot->tts_isnull[side->radius - 1];
  const double radius = is_null ? kNoRadius : DatumGetFloat8(slot->tts_values[side->radius - 1]);
  // A radius of -infinity is odd, as NaN is: the other row's may be infinity.
  side->row_radii[row] = !is_null && radius == kNoRadius ? NAN : radius;
  return !is_null;
}

bool has_odd_radius(const JoinNode* node, const Side& side, std::uint64_t row) {
  if (side.radius == 0) return false;
  const double radius = side.row_radii[row];
  const bool raises = node->data.test.by->form == TestForm::kWithin && radius < 0;
  return !(std::fabs(radius) <= kMostRadius) || raises;
}

void note_radius(Side* side, std::uint64_t row) {
  if (side->radius > 0) side->most_radius = std::fmax(side->most_radius, side->row_radii[row]);
}

EpsBand widest_band(JoinNode* node, double eps) {
  const double left = node->left.radius > 0 ? node->left.most_radius : 0;
  const double right = node->right.radius > 0 ? node->right.most_radius : 0;
  node->largest_radius = eps + left + right;
  EpsBand band = eps_band(node->data.test, node->largest_radius + rounding_of(node, left, right),
                          node->run->report.dims);
  band.all = false;
  band.accept = -1;
  return band;
}

Verdict compare_radii(const JoinNode* node, std::uint64_t left, std::uint64_t right,
                      double distance) {
  const double of_left = radius_of(node->left, left), of_right = radius_of(node->right, right);
  const double eps = of_left + of_right + node->eps_of_all;
  const double rounding = rounding_of(node, of_left, of_right);
  const std::uint32_t dims = node->run->report.dims;
  const EpsBand least = eps_band(node->data.test, eps - rounding, dims);
  const EpsBand most = rounding > 0 ? eps_band(node->data.test, eps + rounding, dims) : least;
  if (!least.engine_serves || !most.engine_serves) return Verdict::kOpen;
  if (most.none || distance > most.select) return Verdict::kBeyond;
  return !least.none && distance <= least.accept ? Verdict::kWithin : Verdict::kOpen;
}

}  // namespace gpujoin

// Pairs with radii of their own: `a.v <-> b.v <= a.r + b.r`. The engine finds the pairs within the
// largest radius of any row of either side, and those of both rows decide about each of these. A
// row whose radius is no finite number of moderate size is odd: the condition decides about its
// pairs.
#include "pg/executor/join_radii.h"

#include "pg/executor/join_inputs.h"
#include "pg/store/huge_array.h"

namespace gpujoin {
namespace {

/// Beyond it squares overflow, and every arithmetic goes its own way.
constexpr double kMostRadius = 1e149;

double radius_of(const Side& side, std::uint64_t row) {
  return side.radii.value > 0 ? side.radii.of_rows[row] : 0;
}

/// How far a sum of radii may be from the one that the condition computes. Two numbers have one
/// sum in double precision.
double rounding_of(const JoinNode* node, double left, double right) {
  const double all = std::fabs(left) + std::fabs(right) + std::fabs(node->pairs.eps_of_all);
  if (node->data.rounds_radii) return 0x1p-21 * all;
  return left != 0 && right != 0 && node->pairs.eps_of_all != 0 ? 0x1p-50 * all : 0;
}

/// Puts a point where it is near nothing.
void remove_point(const Dataset& points, std::uint64_t position) {
  if (points.scalar == ScalarType::kFloat32)
    std::fill_n(const_cast<float*>(point<float>(points, position)), points.dims, NAN);
  else
    std::fill_n(const_cast<double*>(point<double>(points, position)), points.dims, NAN);
}

/// Whether the point is near nothing, as a removed one is.
bool is_nowhere(const Dataset& points, std::uint64_t position) {
  return std::isnan(coordinate(points, position, 0));
}

}  // namespace

bool keep_radius(JoinNode* node, Side* side, TupleTableSlot* slot) {
  if (side->radii.value == 0) return true;
  const std::uint64_t row = row_count(node, *side);
  reserve_next(node->rows, &side->radii.of_rows, row, &side->radii.room);
  const bool is_null = slot->tts_isnull[side->radii.value - 1];
  const double radius =
      is_null ? kNoRadius : DatumGetFloat8(slot->tts_values[side->radii.value - 1]);
  // A radius of -infinity is odd, as NaN is: the other row's may be infinity.
  side->radii.of_rows[row] = !is_null && radius == kNoRadius ? NAN : radius;
  return !is_null;
}

bool has_odd_radius(const JoinNode* node, const Side& side, std::uint64_t row) {
  if (side.radii.value == 0) return false;
  const double radius = side.radii.of_rows[row];
  const bool raises = node->data.test.by->form == TestForm::kWithin && radius < 0;
  return !(std::fabs(radius) <= kMostRadius) || raises;
}

void note_radius(Side* side, std::uint64_t row) {
  if (side->radii.value > 0)
    side->radii.most = std::fmax(side->radii.most, side->radii.of_rows[row]);
}

namespace {

constexpr int kMostClasses = lengthof(RadiusClasses{}.most);
constexpr double kClassRatio = 4;

/// Rows by how often their radius can be multiplied with kClassRatio to reach the largest.
struct RadiusCounts {
  std::uint64_t rows[kMostClasses];
  double most[kMostClasses];
};

RadiusCounts count_radii(const Side& side) {
  RadiusCounts counts = {};
  for (std::uint64_t i = 0; i < side.points.rows; ++i) {
    if (is_nowhere(side.points, i)) continue;
    const double radius = side.radii.of_rows[side.points.ids[i]];
    int number = 0;
    for (double bound = side.radii.most / kClassRatio; number < kMostClasses - 1 && radius <= bound;
         bound /= kClassRatio)
      ++number;
    counts.most[number] =
        counts.rows[number] == 0 ? radius : std::fmax(counts.most[number], radius);
    ++counts.rows[number];
  }
  return counts;
}

/// Ends a class where no fewer rows than it has are left, whose radii are much smaller.
int divide(const RadiusCounts& counts, std::uint64_t rows, double* most) {
  int classes = 0;
  std::uint64_t in_class = 0;
  for (int i = 0; i < kMostClasses; ++i) {
    if (counts.rows[i] == 0) continue;
    if (in_class == 0) most[classes++] = counts.most[i];
    in_class += counts.rows[i];
    rows -= counts.rows[i];
    if (rows >= in_class) in_class = 0;
  }
  return classes;
}

/// The class of a row.
int class_of(const RadiusClasses& classes, double radius) {
  int number = 0;
  while (number + 1 < classes.count && radius <= classes.most[number + 1]) ++number;
  return number;
}

}  // namespace

void find_radius_classes(JoinNode* node) {
  constexpr std::uint64_t kFewRows = 100;
  RadiusClasses& classes = node->pairs.classes;
  classes = {};
  const bool may_raise =
      node->data.test.by->form == TestForm::kWithin && node->pairs.eps_of_all < 0;
  const bool of_bits = is_of_bits(node->data.test.by->metric);  // passes take no smaller radii
  if (!has_row_radii(node) || of_bits || may_raise || !node->pairs.band.engine_serves ||
      node->pairs.keys != nullptr)
    return;
  Side* const side = node->left.radii.most > node->right.radii.most ? &node->left : &node->right;
  if (side->radii.value == 0 || side->points.file != nullptr || side->points.rows < kFewRows ||
      !(side->radii.most > 0) || 2 * held_bytes(side->buffer) > dataset_share(node->pairs.run, 2))
    return;
  classes.count = divide(count_radii(*side), side->points.rows, classes.most);
  if (classes.count > 1) classes.side = side;
}

bool next_radius_class(JoinNode* node) {
  RadiusClasses& classes = node->pairs.classes;
  Side& side = *classes.side;
  forget_points(&classes.buffer);
  if (classes.next == classes.count) return false;
  if (classes.next > 0) add_work(node->pairs.run->report.stats, &classes.before);
  const int number = classes.next++;
  classes.buffer = {};
  classes.buffer.context = node->rows;
  classes.buffer.source = side.buffer.source;
  classes.buffer.limit = dataset_share(node->pairs.run, 2);
  classes.buffer.scalar = side.points.scalar;
  classes.buffer.dims = side.points.dims;
  for (std::uint64_t i = 0; i < side.points.rows; ++i) {
    const std::int64_t row = side.points.ids[i];
    if (!is_nowhere(side.points, i) && class_of(classes, side.radii.of_rows[row]) == number)
      std::memcpy(add_point(&classes.buffer, row), point(side.points, i), point_bytes(side.points));
  }
  classes.points = finish_points(&classes.buffer);
  const double largest = side.radii.most;
  side.radii.most = classes.most[number];
  const double shown = node->report.largest_radius;
  node->pairs.band = widest_band(node, node->pairs.eps_of_all);
  node->report.largest_radius = shown;
  side.radii.most = largest;
  return true;
}

void set_classes_aside(JoinNode* node) {
  RadiusClasses& classes = node->pairs.classes;
  Side& side = *classes.side;
  const int first = classes.next - 1;
  for (std::uint64_t i = 0; i < side.points.rows; ++i) {
    const std::int64_t row = side.points.ids[i];
    if (is_nowhere(side.points, i) || class_of(classes, side.radii.of_rows[row]) < first) continue;
    add_odd_point(node, &side, side.points, i, node->inputs.srid);
    remove_point(side.points, i);
  }
  sort_odd(&side);
  classes.next = classes.count;
}

double pair_radius(const JoinNode* node, std::uint64_t left, std::uint64_t right) {
  return radius_of(node->left, left) + radius_of(node->right, right) + node->pairs.eps_of_all;
}

EpsBand widest_band(JoinNode* node, double eps) {
  const double left = node->left.radii.value > 0 ? node->left.radii.most : 0;
  const double right = node->right.radii.value > 0 ? node->right.radii.most : 0;
  node->report.largest_radius = eps + left + right;
  EpsBand band =
      eps_band(node->data.test, node->report.largest_radius + rounding_of(node, left, right),
               node->pairs.run->report.dims);
  band.all = false;
  band.accept = -1;
  return band;
}

Verdict compare_radii(const JoinNode* node, std::uint64_t left, std::uint64_t right,
                      double distance) {
  const double of_left = radius_of(node->left, left), of_right = radius_of(node->right, right);
  const double eps = pair_radius(node, left, right);
  const double rounding = rounding_of(node, of_left, of_right);
  const std::uint32_t dims = node->pairs.run->report.dims;
  const EpsBand least = eps_band(node->data.test, eps - rounding, dims);
  const EpsBand most = rounding > 0 ? eps_band(node->data.test, eps + rounding, dims) : least;
  if (!least.engine_serves || !most.engine_serves) return Verdict::kOpen;
  if (most.none || distance > most.select) return Verdict::kBeyond;
  return !least.none && distance <= least.accept ? Verdict::kWithin : Verdict::kOpen;
}

}  // namespace gpujoin

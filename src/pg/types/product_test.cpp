#include "pg/types/product_test.h"

#include "pg/geometry/inner_product.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

float* coordinates(const Dataset& points, std::uint64_t row) {
  return const_cast<float*>(point<float>(points, row));
}

double squares_of(const Dataset& points, std::uint64_t row) {
  const float* const x = point<float>(points, row);
  double squares = 0;
  for (std::uint32_t d = 0; d + kLiftedDims < points.dims; ++d)
    squares += static_cast<double>(x[d]) * x[d];
  return squares;
}

/// Multiplies a left point, and returns the sum of its squares then.
double scale_point(const Dataset& points, std::uint64_t row, LiftedSides* sides) {
  const double squares = squares_of(points, row);
  const double scale =
      lifting_scale(sides->in_order ? std::sqrt(squares) : sides->left, sides->right);
  float* const x = coordinates(points, row);
  if (scale != 1)
    for (std::uint32_t d = 0; d + kLiftedDims < points.dims; ++d)
      x[d] = static_cast<float>(x[d] * scale);
  sides->lifted = std::fmax(sides->lifted, std::sqrt(squares) * scale);
  sides->scales[0] = std::fmin(sides->scales[0], scale);
  sides->scales[1] = std::fmax(sides->scales[1], scale);
  return squares * scale * scale;
}

}  // namespace

double largest_norm(const Dataset& points) {
  double most = 0;
  for (std::uint64_t row = 0; row < points.rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    most = std::fmax(most, squares_of(points, row));
  }
  return std::sqrt(most);
}

LiftedSides begin_lifting(double left, double right, bool in_order) {
  if (in_order) return {true, left, right, 0, {INFINITY, 0}};
  const double scale = lifting_scale(left, right);
  return {false, left, right, left * scale, {scale, scale}};
}

void lift_points(const Dataset& points, bool left, LiftedSides* sides) {
  for (std::uint64_t row = 0; row < points.rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    float* const added = coordinates(points, row) + points.dims - kLiftedDims;
    added[0] = added[1] = 0;
    if (!left)
      added[1] = lifted_coordinate(squares_of(points, row), sides->right);
    else if (const double squares = scale_point(points, row, sides); !sides->in_order)
      added[0] = lifted_coordinate(squares, sides->left * sides->scales[0]);
  }
}

bool lift_rows(const Dataset& points, double* norm) {
  constexpr double kRoom = 1.001;  // for rows that come later, of vectors that are about as long
  const double most = largest_norm(points);
  if (*norm == 0) *norm = most > 0 ? most * kRoom : 1;
  if (most > *norm) return false;
  LiftedSides sides = begin_lifting(0, *norm, true);
  lift_points(points, false, &sides);
  return true;
}

LiftedSides lift_value(const Dataset& point, double norm) {
  LiftedSides sides = begin_lifting(largest_norm(point), norm, true);
  lift_points(point, true, &sides);
  return sides;
}

EpsBand product_band(const LiftedSides& sides, double most, std::uint32_t dims) {
  EpsBand band = {true, false, false, -1, 0};
  if (!(std::fabs(most) <= 1e150)) {
    band.none = most < 0;
    band.engine_serves = band.none;  // and NaN is more than any number
    return band;
  }
  const double slack = lifting_slack(sides.lifted, sides.right, dims);
  const double scale = most > 0 ? sides.scales[1] : sides.scales[0];
  const double squares = sides.lifted * sides.lifted + sides.right * sides.right + 2 * scale * most;
  band.none = squares + slack < 0;
  band.select = std::sqrt(std::fmax(squares + slack, 0));
  if (!sides.in_order && squares - slack > 0) band.accept = std::sqrt(squares - slack);
  return band;
}

EpsBand band_within(const SimilarityTest& test, const LiftedSides& sides, double eps,
                    std::uint32_t dims) {
  if (!is_product(test)) return eps_band(test, eps, dims);
  EpsBand band = product_band(sides, eps, dims);
  if (test.open) band.accept = -1;
  return band;
}

double surely_beyond(const SimilarityTest& test, const LiftedSides& sides, double distance,
                     std::uint32_t dims) {
  if (!is_product(test)) return surely_beyond(test, distance, dims);
  constexpr double kRounding = 1e-12, kMargin = 1e-9;
  const double squares = distance * distance + 2 * lifting_slack(sides.lifted, sides.right, dims);
  const double norms = sides.lifted * sides.lifted + sides.right * sides.right;
  const double rounded = kRounding * (norms + squares) + 2 * sides.scales[1] * kMargin;
  return std::sqrt(squares + (test.open ? rounded : 0));
}

}  // namespace gpujoin

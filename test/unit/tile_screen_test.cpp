// Thresholds of the low-precision screen: whatever the data, no pair that the definition finds
// within eps is rejected, and none accepted that it does not.

#include "core/tile_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/threshold.h"
#include "oracle.h"
#include "points.h"

namespace gpujoin::test {
namespace {

enum class Precision { kSingle, kHalf };

/// The nearest number of 11 significant bits, or multiple of 2^-24, that half precision has.
double round_to_half(double x) {
  if (x == 0) return 0;
  int exponent;
  std::frexp(x, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - 11, -24));
  return std::nearbyint(x / step) * step;
}

struct RoundedPoint {
  std::vector<float> values;
  double norm_sq = 0;
  double error = 0;
  bool cut = false;
};

/// Centre and scale as an engine finds them: means, and halves whose differences do not overflow.
struct Frame {
  std::vector<double> center;
  double scale = 1;

  Frame(const std::vector<double>& values, std::uint32_t dims) : center(dims) {
    const double rows = static_cast<double>(values.size() / dims);
    for (std::size_t i = 0; i < values.size(); ++i) center[i % dims] += values[i] / rows;
    double half = 0, largest = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      half = std::max(half, std::fabs(values[i] / 2 - center[i % dims] / 2));
      largest = std::max(largest, std::fabs(values[i]));
    }
    scale = centred_scale(half, largest);
  }
};

RoundedPoint round_point(const double* point, const Frame& frame, Precision precision) {
  RoundedPoint rounded;
  double squares = 0;
  for (std::size_t d = 0; d < frame.center.size(); ++d) {
    const double whole = centred(point[d], frame.center[d], frame.scale);
    const double y = cut_to_screen(whole);
    rounded.cut = rounded.cut || y != whole;
    const auto value = static_cast<float>(precision == Precision::kHalf ? round_to_half(y) : y);
    const double lost = y - static_cast<double>(value);
    rounded.values.push_back(value);
    rounded.norm_sq += static_cast<double>(value) * static_cast<double>(value);
    squares += lost * lost;
  }
  rounded.error = quantization_error(squares, rounded.norm_sq);
  return rounded;
}

enum class Sums { kRounded, kFused, kTensor };

/// A number cut off, towards 0, below 2^lowest.
double cut(double x, int lowest) { return std::ldexp(std::trunc(std::ldexp(x, -lowest)), lowest); }

/// Tensor cores: of 16 products and the sum before them 23 bits below the largest are kept, and
/// rounding is towards 0.
float tensor_dot(const RoundedPoint& a, const RoundedPoint& b, float start) {
  double sum = -start;
  for (std::size_t begin = 0; begin < a.values.size(); begin += 16) {
    const std::size_t columns = std::min<std::size_t>(16, a.values.size() - begin);
    double addends[17] = {};
    double largest = std::fabs(sum);
    for (std::size_t k = 0; k < columns; ++k) {
      addends[k] =
          static_cast<double>(a.values[begin + k]) * static_cast<double>(b.values[begin + k]);
      largest = std::max(largest, std::fabs(addends[k]));
    }
    if (largest == 0) continue;
    addends[16] = sum;
    sum = 0;
    for (const double addend : addends)
      if (addend != 0) sum += cut(addend, std::ilogb(largest) - 23);
    if (sum != 0) sum = cut(sum, std::ilogb(sum) - 23);
  }
  return static_cast<float>(sum);
}

/// A dot product in single precision that starts at -start.
float dot(const RoundedPoint& a, const RoundedPoint& b, float start, Sums sums) {
  if (sums == Sums::kTensor) return tensor_dot(a, b, start);
  const bool fused = sums == Sums::kFused;
  float sum = -start;
  for (std::size_t d = 0; d < a.values.size(); ++d)
    sum = fused ? std::fma(a.values[d], b.values[d], sum) : sum + a.values[d] * b.values[d];
  return sum;
}

class TileScreen : public testing::TestWithParam<Precision> {
 protected:
  /// Screens all pairs at some radii, most of them next to the distance of a pair.
  void expect_right(const std::vector<double>& values, std::uint32_t dims, Random& random) {
    expect_right(values, Frame(values, dims), random);
  }

  void expect_right(const std::vector<double>& values, const Frame& frame, Random& random) {
    const auto dims = static_cast<std::uint32_t>(frame.center.size());
    const std::size_t rows = values.size() / dims;
    std::vector<RoundedPoint> points;
    for (std::size_t i = 0; i < rows; ++i)
      points.push_back(round_point(values.data() + i * dims, frame, GetParam()));
    for (int round = 0; round < 6; ++round) {
      const double distance =
          definition_of_distance(Metric::kL2, values.data() + random.index(rows) * dims,
                                 values.data() + random.index(rows) * dims, dims);
      const double beside = random.pick<double>({1, 1, 1 - 1e-12, 1 + 1e-12, 0.5, 2});
      const double eps = distance * beside;
      if (std::isfinite(eps)) expect_right_at(eps, values, dims, frame.scale, points, random);
    }
  }

  std::uint64_t decided = 0, all = 0;

 private:
  void expect_right_at(double eps, const std::vector<double>& values, std::uint32_t dims,
                       double scale, const std::vector<RoundedPoint>& points, Random& random) {
    const double accumulation =
        GetParam() == Precision::kHalf ? tensor_accumulation(dims) : single_accumulation(dims);
    const ScreenRadius radius = make_screen_radius(eps, dims, scale);
    std::vector<ScreenThresholds> thresholds;
    for (const RoundedPoint& point : points)
      thresholds.push_back(screen_thresholds(radius_of_point(radius, point.cut), point.norm_sq,
                                             point.error, accumulation));
    const bool tensor = GetParam() == Precision::kHalf && random.index(2) == 0;
    const Sums sums = tensor ? Sums::kTensor : random.index(2) == 0 ? Sums::kFused : Sums::kRounded;
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (std::size_t j = 0; j < points.size(); ++j) {
        const bool within = definition_of_distance(Metric::kL2, values.data() + i * dims,
                                                   values.data() + j * dims, dims) <= eps;
        const ScreenThresholds& a = thresholds[i];
        const ScreenThresholds& b = thresholds[j];
        const float started = dot(points[i], points[j], a.reject, sums);
        const float whole = dot(points[i], points[j], 0, sums);
        const bool rejected = started < b.reject || whole < a.reject + b.reject;
        const bool accepted = !rejected && (started - b.reject >= a.accept + b.accept ||
                                            whole - (a.reject + b.reject) >= a.accept + b.accept);
        ASSERT_FALSE(within && rejected) << "dims " << dims << ", eps " << eps;
        ASSERT_FALSE(!within && accepted) << "dims " << dims << ", eps " << eps;
        decided += rejected || accepted;
        ++all;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(In, TileScreen, testing::Values(Precision::kSingle, Precision::kHalf),
                         [](const testing::TestParamInfo<Precision>& info) {
                           return info.param == Precision::kSingle ? "single" : "half";
                         });

const std::vector<std::uint32_t> kDims = {1, 2, 3, 8, 17, 64, 300};

TEST_P(TileScreen, is_right_for_every_shape_offset_and_scale) {
  Random random(121);
  for (const Shape shape : kShapes) {
    for (const std::uint32_t dims : kDims) {
      const std::vector<double> values = make_values(shape, random, 24, dims);
      for (const double scale : {1.0, 1e-3, 1e-160, 1e-200, 1e-310, 1e150, 1e160, 1e306}) {
        for (const double offset : {0.0, 1e3, 1e9, 1e14}) {
          std::vector<double> moved;
          for (const double x : values) moved.push_back((x + offset) * scale);
          if (std::any_of(moved.begin(), moved.end(), [](double x) { return !std::isfinite(x); }))
            continue;
          expect_right(moved, dims, random);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(TileScreen, is_right_next_to_overflow_and_among_denormals) {
  Random random(122);
  for (const std::uint32_t dims : kDims) {
    std::vector<double> values(20 * dims);
    for (const double most : {kMax, kMax / 2, 0x1p511, 0x1p512, 4 * kDenormal, 1e-308}) {
      for (double& x : values) x = most * random.between(-1, 1);
      expect_right(values, dims, random);
      if (HasFatalFailure()) return;
    }
    for (double& x : values) x = random.any_finite();
    expect_right(values, dims, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TileScreen, is_right_where_columns_differ_in_scale) {
  Random random(123);
  for (const std::uint32_t dims : kDims) {
    for (const double first : {1e300, 1e20, 1e5}) {
      for (const double rest : {1e-300, 1e-20, 1.0}) {
        std::vector<double> values(20 * dims);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = i % dims == 0 ? first : rest * random.between(-1, 1);
        expect_right(values, dims, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(TileScreen, is_right_on_a_shell_around_a_point) {
  // All distances from the first point within some 1e-12 of one another.
  Random random(124);
  for (const std::uint32_t dims : kDims) {
    std::vector<double> values(30 * dims);
    for (std::uint32_t d = 0; d < dims; ++d) values[d] = random.between(-3, 3);
    for (std::size_t row = 1; row < 30; ++row) {
      const std::vector<double> way = random_direction(random, dims);
      const double radius = 1 + random.between(-2e-12, 2e-12);
      for (std::uint32_t d = 0; d < dims; ++d) values[row * dims + d] = values[d] + way[d] * radius;
    }
    expect_right(values, dims, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TileScreen, is_right_where_rows_lie_far_outside_the_frame) {
  // The frame is that of the first rows; others are cut, in some columns or in all, and some of
  // them lie within the radius of one another.
  Random random(127);
  for (const std::uint32_t dims : kDims) {
    for (const double far : {3.0, 20.0, 40.0, 1e3, 1e6, 1e20, 1e155, 1e300, kMax / 128}) {
      std::vector<double> values = make_values(Shape::kUniform, random, 16, dims);
      const Frame frame(values, dims);
      for (int row = 0; row < 12; ++row) {
        const std::size_t twin = values.size() - dims;
        for (std::uint32_t d = 0; d < dims; ++d) {
          const bool near = row % 3 == 1;  // the row before
          const double x =
              near ? values[twin + d] * (1 + random.between(-1e-9, 1e-9)) : random.between(-50, 50);
          const bool moved = !near && (row % 2 == 0 || d == 0);
          values.push_back(moved ? x * far : x);
        }
      }
      expect_right(values, frame, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(TileScreen, rejects_rows_far_outside_the_frame) {
  Random random(128);
  for (const std::uint32_t dims : {1u, 16u, 64u}) {
    const std::vector<double> values = make_values(Shape::kUniform, random, 50, dims);
    const Frame frame(values, dims);
    const double accumulation =
        GetParam() == Precision::kHalf ? tensor_accumulation(dims) : single_accumulation(dims);
    const ScreenRadius radius = make_screen_radius(20, dims, frame.scale);
    const auto screened = [&](const std::vector<double>& point) {
      RoundedPoint rounded = round_point(point.data(), frame, GetParam());
      return std::pair(rounded, screen_thresholds(radius_of_point(radius, rounded.cut),
                                                  rounded.norm_sq, rounded.error, accumulation));
    };
    for (const double far : {1e5, 1e9, 1e20, 3.4e38, 1e300, -kMax}) {
      for (const bool all : {false, true}) {
        std::vector<double> outlier(values.begin(), values.begin() + dims);
        std::fill(outlier.begin(), all ? outlier.end() : outlier.begin() + 1, far);
        const auto [a, a_thresholds] = screened(outlier);
        EXPECT_TRUE(a.cut);
        for (std::size_t row = 0; row < 50; ++row) {
          const auto [b, b_thresholds] =
              screened({values.begin() + static_cast<std::ptrdiff_t>(row * dims),
                        values.begin() + static_cast<std::ptrdiff_t>((row + 1) * dims)});
          EXPECT_FALSE(b.cut);
          EXPECT_LT(dot(a, b, a_thresholds.reject, Sums::kFused), b_thresholds.reject)
              << "dims " << dims << ", far " << far << (all ? " in all columns" : "");
        }
      }
    }
  }
}

TEST_P(TileScreen, decides_most_pairs) {
  Random random(125);
  expect_right(make_values(Shape::kUniform, random, 100, 64), 64, random);
  EXPECT_GT(static_cast<double>(decided),
            (GetParam() == Precision::kHalf ? 0.9 : 0.995) * static_cast<double>(all));
}

TEST(TileBoxes, points_within_eps_are_never_in_boxes_too_far_apart) {
  Random random(126);
  for (int round = 0; round < 20000; ++round) {
    const auto dims = static_cast<std::uint32_t>(1 + random.index(8));
    const double scale = random.pick<double>({1, 1e-200, 1e-161, 1e150, 1e-310});
    std::vector<double> a(dims), b(dims);
    double squares = 0;
    for (std::uint32_t d = 0; d < dims; ++d) {
      a[d] = random.between(-1, 1) * scale;
      b[d] = random.index(3) == 0 ? a[d] : random.between(-1, 1) * scale;
      const double gap = interval_gap(a[d], a[d], b[d], b[d]);
      squares += gap * gap;
    }
    const double eps = definition_of_distance(Metric::kL2, a.data(), b.data(), dims);
    ASSERT_TRUE(boxes_may_meet(squares, true_reach(eps, dims))) << eps;
  }
}

TEST(TileBoxes, that_surely_match_hold_no_pair_beyond_eps) {
  Random random(129);
  int proven = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto dims = static_cast<std::uint32_t>(1 + random.index(8));
    const double scale = random.pick<double>({1, 1e-200, 1e-161, 1e150, 1e-310, 1e306});
    const double offset = random.pick<double>({0, 0, 1e8});
    // Corners of boxes, some of which are flat.
    std::vector<double> a(2 * dims), b(2 * dims), x(dims), y(dims);
    double squares = 0;
    for (std::uint32_t d = 0; d < dims; ++d) {
      for (double* const box : {a.data(), b.data()}) {
        box[2 * d] = scale * (offset + random.between(-1, 1));
        box[2 * d + 1] =
            random.index(4) == 0 ? box[2 * d] : scale * (offset + random.between(-1, 1));
        if (box[2 * d + 1] < box[2 * d]) std::swap(box[2 * d], box[2 * d + 1]);
      }
      const double span = interval_span(a[2 * d], a[2 * d + 1], b[2 * d], b[2 * d + 1]);
      squares += span * span;
      const bool up = b[2 * d + 1] - a[2 * d] > a[2 * d + 1] - b[2 * d];
      x[d] = up ? a[2 * d] : a[2 * d + 1];
      y[d] = up ? b[2 * d + 1] : b[2 * d];
    }
    const double farthest = definition_of_distance(Metric::kL2, x.data(), y.data(), dims);
    const double eps =
        farthest * random.pick<double>({1, 1 - 1e-15, 1 - 1e-16, 1 + 1e-14, 0.9, 1.1});
    if (!std::isfinite(eps)) continue;
    const ScreenBounds bounds =
        make_screen_bounds(Metric::kL2, make_threshold(Metric::kL2, eps).raw, dims);
    if (!boxes_surely_match(squares, bounds.accept)) continue;
    ++proven;
    ASSERT_LE(farthest, eps);
    for (int pair = 0; pair < 4; ++pair) {
      for (std::uint32_t d = 0; d < dims; ++d) {
        x[d] = std::clamp(a[2 * d] + random.unit() * (a[2 * d + 1] - a[2 * d]), a[2 * d],
                          a[2 * d + 1]);
        y[d] = std::clamp(b[2 * d] + random.unit() * (b[2 * d + 1] - b[2 * d]), b[2 * d],
                          b[2 * d + 1]);
      }
      ASSERT_LE(definition_of_distance(Metric::kL2, x.data(), y.data(), dims), eps);
    }
  }
  EXPECT_GT(proven, 2000);
}

TEST(TileBoxes, gaps_are_between_the_nearer_ends) {
  EXPECT_EQ(interval_gap(0, 1, 3, 4), 2);
  EXPECT_EQ(interval_gap(3, 4, 0, 1), 2);
  EXPECT_EQ(interval_gap(0, 2, 1, 3), 0);
  EXPECT_EQ(interval_gap(0, 5, 1, 2), 0);
  EXPECT_EQ(interval_gap(0, 1, 1, 2), 0);
  EXPECT_EQ(interval_span(0, 1, 3, 4), 4);
  EXPECT_EQ(interval_span(3, 4, 0, 1), 4);
  EXPECT_EQ(interval_span(0, 5, 1, 2), 4);
  EXPECT_FALSE(boxes_may_meet(4.1, 2));
  EXPECT_TRUE(boxes_may_meet(4, 2));
  EXPECT_TRUE(boxes_may_meet(kInf, 1e200)) << "squares that overflow decide nothing";
}

}  // namespace
}  // namespace gpujoin::test

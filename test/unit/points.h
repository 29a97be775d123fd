// Points for the tests: a container that owns coordinates and ids, a seeded random source that
// gives the same numbers everywhere, and generators of data shapes. No expectations here.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/request/dataset.h"

namespace gpujoin::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kMax = std::numeric_limits<double>::max();
inline constexpr double kDenormal = std::numeric_limits<double>::denorm_min();

inline double above(double x) { return std::nextafter(x, kInf); }
inline double below(double x) { return std::nextafter(x, -kInf); }

/// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  /// An integer in [0, n).
  std::uint64_t index(std::uint64_t n) { return bits() % n; }
  /// In [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  double exponential() { return -std::log1p(-unit()); }
  /// Any finite double: every sign, exponent and mantissa alike.
  double any_finite() {
    for (;;) {
      const double x = std::bit_cast<double>(bits());
      if (std::isfinite(x)) return x;
    }
  }
  template <class T>
  const T& pick(const std::vector<T>& choices) {
    return choices[index(choices.size())];
  }

 private:
  std::uint64_t state_;
};

/// One side of a join. Its arrays are exactly as long as the view says, so that a sanitizer sees
/// any read beyond.
class Points {
 public:
  /// `values` is row-major; for kFloat32 it is rounded to float, and what was rounded to is what
  /// counts.
  Points(std::uint32_t dims, const std::vector<double>& values,
         ScalarType scalar = ScalarType::kFloat64)
      : dims_(dims), rows_(dims == 0 ? 0 : values.size() / dims), scalar_(scalar) {
    if (scalar == ScalarType::kFloat32) {
      floats_.reserve(values.size());
      for (const double x : values) floats_.push_back(static_cast<float>(x));
    } else {
      doubles_ = values;
    }
  }

  Points& with_ids(std::vector<std::int64_t> ids) {
    ids_ = std::move(ids);
    return *this;
  }

  Points& with_scores(std::vector<double> scores) {
    scores_ = std::move(scores);
    return *this;
  }

  std::uint64_t rows() const { return rows_; }
  std::uint32_t dims() const { return dims_; }
  ScalarType scalar() const { return scalar_; }
  std::int64_t id(std::uint64_t row) const {
    return ids_.empty() ? static_cast<std::int64_t>(row) : ids_[row];
  }
  double score(std::uint64_t row) const { return scores_[row]; }

  /// Pointer to a row's coordinates as doubles, in `buffer` of dims() numbers.
  const double* row(std::uint64_t row, std::vector<double>& buffer) const {
    if (scalar_ == ScalarType::kFloat64) return doubles_.data() + row * dims_;
    for (std::uint32_t d = 0; d < dims_; ++d) buffer[d] = floats_[row * dims_ + d];
    return buffer.data();
  }

  Dataset view() const {
    const void* const coordinates = scalar_ == ScalarType::kFloat32
                                        ? static_cast<const void*>(floats_.data())
                                        : static_cast<const void*>(doubles_.data());
    return {coordinates, ids_.empty() ? nullptr : ids_.data(),      rows_, dims_,
            scalar_,     scores_.empty() ? nullptr : scores_.data()};
  }

 private:
  std::uint32_t dims_;
  std::uint64_t rows_;
  ScalarType scalar_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::int64_t> ids_;
  std::vector<double> scores_;
};

/// Different ids in no order, about half of them negative.
inline std::vector<std::int64_t> shuffled_ids(std::uint64_t rows) {
  std::vector<std::int64_t> ids(rows);
  std::uint64_t step = 77;
  while (std::gcd(step, rows) != 1) ++step;
  for (std::uint64_t i = 0; i < rows; ++i)
    ids[i] = static_cast<std::int64_t>(i * step % rows) - static_cast<std::int64_t>(rows / 2);
  return ids;
}

enum class Shape { kUniform, kExponential, kClustered, kLattice, kOffset };

inline const std::vector<Shape> kShapes = {Shape::kUniform, Shape::kExponential, Shape::kClustered,
                                           Shape::kLattice, Shape::kOffset};

inline const char* to_string(Shape shape) {
  switch (shape) {
    case Shape::kUniform:
      return "uniform";
    case Shape::kExponential:
      return "exponential";
    case Shape::kClustered:
      return "clustered";
    case Shape::kLattice:
      return "lattice";
    default:
      return "offset";
  }
}

/// Row-major values. kLattice: few integers, so many ties and duplicates. kOffset: a small cloud
/// far from the origin, where differences cancel.
inline std::vector<double> make_values(Shape shape, Random& random, std::uint64_t rows,
                                       std::uint32_t dims) {
  std::vector<double> values(rows * dims);
  std::vector<double> centers(5 * dims);
  for (double& x : centers) x = random.between(-10, 10);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t cluster = random.index(5);
    for (std::uint32_t d = 0; d < dims; ++d) {
      double& x = values[row * dims + d];
      switch (shape) {
        case Shape::kUniform:
          x = random.between(-50, 50);
          break;
        case Shape::kExponential:
          x = random.exponential() * 7;
          break;
        case Shape::kClustered:
          x = centers[cluster * dims + d] + random.between(-1, 1) * random.unit();
          break;
        case Shape::kLattice:
          x = static_cast<double>(random.index(dims < 3 ? 9 : 4)) - 2;
          break;
        case Shape::kOffset:
          x = 1e8 + random.between(0, 1);
          break;
      }
    }
  }
  return values;
}

/// A vector of length 1, up to rounding.
inline std::vector<double> random_direction(Random& random, std::uint32_t dims) {
  std::vector<double> way(dims);
  double squares = 0;
  for (double& x : way) {
    x = random.between(-1, 1);
    squares += x * x;
  }
  for (double& x : way) x /= std::sqrt(squares);
  return way;
}

}  // namespace gpujoin::test

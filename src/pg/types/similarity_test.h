// What a similarity condition compares, and which distances of the points that its values become it
// accepts.
#pragma once

#include "core/distance.h"
#include "pg/types/point_value.h"

namespace gpujoin {

enum class TestForm {
  kDistance,  ///< a distance is compared with a radius
  kWithin,    ///< a function of values and radius, which may refuse a radius
  kOverlap,   ///< holds if and only if the values' boxes have a point in common
  kTouch,     ///< holds for no values whose boxes have none
};

/// What a condition compares, and how. Where that is boxes, their radius is 0.
struct SimilarityTest {
  PointKind kind;
  Metric metric;  ///< over the points or boxes that a kind's values become
  TestForm form;
  bool strict;  ///< distance < radius
};

inline bool tests_boxes(const SimilarityTest& test) {
  return test.form == TestForm::kOverlap || test.form == TestForm::kTouch;
}

/// The distances of points that a clause accepts, in the engine's terms.
struct EpsBand {
  bool engine_serves;  ///< false: only the condition itself can tell
  bool none;           ///< no pair is within
  double accept;       ///< up to this distance a pair is in
  double select;       ///< and beyond this one out; between them the condition decides
};

/// `dims` is the number of dimensions of the points.
EpsBand eps_band(const SimilarityTest& test, double eps, std::uint32_t dims);

/// Whether the engine's arithmetic is that of the condition, so that accept equals select.
inline bool is_exact(const SimilarityTest& test) {
  switch (test.kind) {
    case PointKind::kFloat4Array:
    case PointKind::kFloat8Array:
    case PointKind::kBox:
      return true;
    case PointKind::kPoint:
      return test.form == TestForm::kWithin;
    default:
      return test.kind == PointKind::kCube && test.form == TestForm::kOverlap;
  }
}

/// The test of the bare distance that the test compares with its radius.
inline SimilarityTest distance_test(const SimilarityTest& test) {
  return {test.kind, test.metric, TestForm::kDistance, false};
}

}  // namespace gpujoin

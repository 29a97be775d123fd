// Which conditions of a query are similarity joins: `a.v <-> b.v <= e`, `a.box && b.box` and their
// like, for the types of gpujoin, of PostgreSQL and of other extensions. Functions are known by the
// extension that owns them, never by an operator's name alone: two extensions mean different things
// by one symbol.
#pragma once

#include "core/distance.h"
#include "pg/compat.h"
#include "pg/point_value.h"

extern "C" {
#include "nodes/pathnodes.h"
}

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

/// A condition on two values that holds if and only if their distance is at most, or less than, a
/// radius; or one that only values whose boxes meet can fulfil.
struct SimilarityClause {
  Expr* condition;  ///< as the query has it
  Expr* left;       ///< value of the outer side
  Expr* right;      ///< value of the inner side
  Expr* eps;        ///< float8, the same for all pairs
  SimilarityTest test;
};

inline bool tests_boxes(const SimilarityTest& test) {
  return test.form == TestForm::kOverlap || test.form == TestForm::kTouch;
}

/// Sets *clause if the condition is one, whatever its values come from.
bool match_similarity(Expr* condition, SimilarityClause* clause);

/// Sets *clause if the condition is one between columns of `left` and columns of `right`.
bool match_similarity(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                      SimilarityClause* clause);

/// Whether the value comes from the relations alone and is the same whenever it is asked for.
bool comes_from(PlannerInfo* root, Expr* value, Relids relations);

/// Whether the expression is the distance that the clause tests.
bool is_distance_of(Expr* expression, const SimilarityClause& clause);

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

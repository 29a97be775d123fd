// Which conditions of a query are similarity joins: `a.v <-> b.v <= e` and its like, for the types
// of gpujoin, of PostgreSQL and of other extensions. Functions are known by the extension that owns
// them, never by an operator's name alone: two extensions mean different things by one symbol.
#pragma once

#include "core/distance.h"
#include "pg/compat.h"
#include "pg/point_value.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// What a condition compares, and how.
struct SimilarityTest {
  PointKind kind;
  Metric metric;  ///< over the points that a kind's values become
  bool within;    ///< a function of values and radius, which may refuse a radius
  bool strict;    ///< distance < radius
};

/// A condition on two values that holds if and only if their distance is at most, or less than, a
/// radius.
struct SimilarityClause {
  Expr* condition;  ///< as the query has it
  Expr* left;       ///< value of the outer side
  Expr* right;      ///< value of the inner side
  Expr* eps;        ///< float8, the same for all pairs
  SimilarityTest test;
};

/// Sets *clause if the condition is one, whatever its values come from.
bool match_similarity(Expr* condition, SimilarityClause* clause);

/// Sets *clause if the condition is one between columns of `left` and columns of `right`.
bool match_similarity(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                      SimilarityClause* clause);

/// Whether the expression is the distance that the clause tests.
bool is_distance_of(Expr* expression, const SimilarityClause& clause);

/// The distances that a clause accepts, in the engine's terms.
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
  return test.kind == PointKind::kFloat4Array || test.kind == PointKind::kFloat8Array ||
         (test.kind == PointKind::kPoint && test.within);
}

/// The test of the bare distance that the test compares with its radius.
inline SimilarityTest distance_test(SimilarityTest test, bool strict) {
  return {test.kind, test.metric, false, strict};
}

}  // namespace gpujoin

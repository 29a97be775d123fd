// Inner products as a condition or an order has them: points of the form ValueForm::kProduct become
// points whose distances are in the order of their inner products, the largest first, once all of
// both sides are known (pg/geometry/inner_product.h).
#pragma once

#include "pg/types/similarity_test.h"

namespace gpujoin {

/// What the points of both sides have in common.
struct LiftedSides {
  bool in_order;       ///< the order of each left point's distances is all that counts
  double left, right;  ///< the largest norms of points as they come
  double lifted;       ///< and of left points once multiplied, without the dimensions added
  double scales[2];    ///< the least and the largest number that left points are multiplied with
};

inline bool is_product(const SimilarityTest& test) {
  return test.by->compared == ValueForm::kProduct;
}

/// The largest norm of points that are not lifted yet. All functions are for points in memory.
double largest_norm(const Dataset& points);

/// Prepares the lifting of sides whose largest norms are known.
LiftedSides begin_lifting(double left, double right, bool in_order);

/// Lifts points of a side where they lie. Notes the factors of left points in *sides.
void lift_points(const Dataset& points, bool left, LiftedSides* sides);

/// Lifts rows of a table that is searched to *norm. Sets *norm if it is 0, for the first rows of
/// the table. Returns false if a row is longer than *norm.
bool lift_rows(const Dataset& points, double* norm);

/// Lifts the point that is searched for in such rows.
LiftedSides lift_value(const Dataset& point, double norm);

/// The distances of lifted points, of so many dimensions before, whose negative inner product is
/// at most `most`. Where only the order counts, no pair is known to be within.
EpsBand product_band(const LiftedSides& sides, double most, std::uint32_t dims);

/// Returns eps_band() of the test, or of a test of products of the lifted sides product_band().
/// `dims` are those of the values.
EpsBand band_within(const SimilarityTest& test, const LiftedSides& sides, double eps,
                    std::uint32_t dims);

/// Returns surely_beyond() of the test, also of a test of products of the lifted sides.
double surely_beyond(const SimilarityTest& test, const LiftedSides& sides, double distance,
                     std::uint32_t dims);

}  // namespace gpujoin

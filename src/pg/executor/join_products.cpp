// Inner products: `a.v <#> b.v <= -0.8`, and the nearest rows by `<#>`. The engine joins points
// whose distances are in the order of their inner products; what they are depends on the largest
// norms of both sides, so all rows are read before.
#include "pg/executor/join_products.h"

namespace gpujoin {
namespace {

double norm_of(Side* side) {
  double most = 0;
  const auto visit = [](const Dataset& points, void* norm) {
    double* const most = static_cast<double*>(norm);
    *most = std::fmax(*most, largest_norm(points));
  };
  visit_points(&side->buffer, side->points, false, visit, &most);
  return most;
}

}  // namespace

void lift_sides(JoinNode* node) {
  if (!is_product(node->data.test)) return;
  Side &left = node->left, &right = node->right;
  node->pairs.lifted = begin_lifting(norm_of(&left), norm_of(&right), node->nearest != nullptr);
  visit_points(
      &left.buffer, left.points, true,
      [](const Dataset& points, void* sides) {
        lift_points(points, true, static_cast<LiftedSides*>(sides));
      },
      &node->pairs.lifted);
  visit_points(
      &right.buffer, right.points, true,
      [](const Dataset& points, void* sides) {
        lift_points(points, false, static_cast<LiftedSides*>(sides));
      },
      &node->pairs.lifted);
}

EpsBand band_within(const JoinNode* node, const SimilarityTest& test, double eps) {
  return band_within(test, node->pairs.lifted, eps, node->pairs.run->report.dims);
}

}  // namespace gpujoin

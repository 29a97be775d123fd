#include "cpu/walk/leaf_scan.h"

#include "core/threshold.h"

namespace gpujoin::cpu {

double TreePoints::most_tree_raw(double raw) const {
  if (!by_directions()) return raw;
  return any_direction ? kAnyDirection * kAnyDirection : most_direction_raw(raw, tree->dims);
}

LeafScan::LeafScan(const TreePoints& points, const WalkTools& tools)
    : points_(points),
      pool_(tools.pool),
      query_(tools.budget, points.tree->dims),
      positions_(tools.budget, kMostLeafPoints + kCollectPadding),
      raws_(tools.budget, kMostLeafPoints + kCollectPadding) {}

void LeafScan::load(std::uint32_t position) {
  const KdTree& tree = *points_.tree;
  position_ = position;
  if (tree.scalar == ScalarType::kFloat32)
    load_from_tile<float>();
  else
    load_from_tile<double>();
  scan_ = {tree.tiles.data(), query_.data(), tree.dims, 0, true};
}

/// Rows lie anywhere, tiles in the order of positions.
template <class T>
void LeafScan::load_from_tile() {
  const std::uint32_t dims = points_.tree->dims;
  const T* const place =
      tile_place(reinterpret_cast<const T*>(points_.tree->tiles.data()), position_, dims);
  for (std::uint32_t d = 0; d < dims; ++d)
    query_[d] = static_cast<double>(place[std::size_t{d} * kTilePoints]);
}

void LeafScan::set_bound(double raw) {
  most_raw_ = raw;
  most_tree_raw_ = points_.most_tree_raw(raw);
  scan_.threshold =
      points_.screened
          ? make_screen_bounds(points_.indexed_metric, most_tree_raw_, points_.tree->dims).reject
          : most_tree_raw_;
}

/// The definition decides: the raw distances of a screen, or of directions, only select.
std::size_t LeafScan::look_at(Window leaf) {
  if (leaf.begin == leaf.end) return 0;
  pool_.throw_if_stopped();
  const std::size_t passed =
      points_.kernel.collect(scan_, &leaf, 1, positions_.data(), raws_.data());
  if (!points_.screened && !points_.by_directions()) return passed;
  std::size_t within = 0;
  for (std::size_t i = 0; i < passed; ++i) {
    const std::uint32_t other = positions_[i];
    const double raw = raw_of(other);
    if (!(raw <= most_raw_)) continue;
    positions_[within] = other;
    raws_[within++] = raw;
  }
  return within;
}

double LeafScan::raw_of(std::uint32_t other) const {
  const Dataset& points = *points_.points;
  const std::uint64_t a = points_.tree->rows[position_], b = points_.tree->rows[other];
  if (points.scalar == ScalarType::kFloat32)
    return raw_distance(points_.metric, point<float>(points, a), point<float>(points, b),
                        points.dims);
  return raw_distance(points_.metric, point<double>(points, a), point<double>(points, b),
                      points.dims);
}

}  // namespace gpujoin::cpu

// The tree of boxes that the device searches, built on the host: for the tests.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/box_tree.h"
#include "core/curve_order.h"

namespace gpujoin::test {

/// A tree over values[rows][dims], with its points in the order of the curve.
struct HostTree {
  HostTree(const std::vector<double>& values, std::uint32_t dims, std::uint32_t stride,
           std::uint32_t leaf_points)
      : order(values.size() / dims) {
    std::vector<double> low(dims, DBL_MAX), high(dims, -DBL_MAX);
    for (std::size_t i = 0; i < values.size(); ++i) {
      low[i % dims] = std::min(low[i % dims], values[i]);
      high[i % dims] = std::max(high[i % dims], values[i]);
    }
    const CurveFrame frame = make_curve_frame(low.data(), high.data(), dims);
    std::vector<CurveKey> keys;
    for (std::size_t row = 0; row < order.size(); ++row) {
      std::uint32_t cell[kMostCurveColumns];
      for (std::uint32_t c = 0; c < frame.columns; ++c)
        cell[c] = curve_cell(frame, c, values[row * dims + c]);
      keys.push_back(curve_key(frame, cell));
    }
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return keys[a].high != keys[b].high ? keys[a].high < keys[b].high : keys[a].low < keys[b].low;
    });
    coordinates.assign(order.size() * stride, 0);
    for (std::size_t p = 0; p < order.size(); ++p)
      std::copy_n(&values[order[p] * dims], dims, &coordinates[p * stride]);
    const auto points = static_cast<std::uint32_t>(order.size());
    tree = {points, tree_levels(points, leaf_points), stride, coordinates.data(), nullptr};
    boxes.assign((std::size_t{2} << tree.levels) * 2 * stride, 0);
    for (std::uint32_t node = 2 * tree.leaves() - 1; node > 0; --node)
      for (std::uint32_t d = 0; d < stride; ++d) {
        float& least = boxes[node * 2 * stride + d];
        float& most = boxes[(node * 2 + 1) * stride + d];
        least = HUGE_VALF;
        most = -HUGE_VALF;
        if (node < tree.leaves()) {
          for (const std::uint32_t child : {2 * node, 2 * node + 1}) {
            least = std::min(least, boxes[child * 2 * stride + d]);
            most = std::max(most, boxes[(child * 2 + 1) * stride + d]);
          }
          continue;
        }
        const std::uint32_t leaf = node - tree.leaves();
        for (std::uint32_t p = tree.begin(leaf); p < tree.begin(leaf + 1); ++p) {
          const double x = coordinates[p * stride + d];
          const auto rounded = static_cast<float>(x);
          least = std::min(least, rounded <= x ? rounded : std::nextafterf(rounded, -HUGE_VALF));
          most = std::max(most, rounded >= x ? rounded : std::nextafterf(rounded, HUGE_VALF));
        }
      }
    tree.boxes = boxes.data();
  }

  std::vector<std::uint32_t> order;
  std::vector<double> coordinates;
  std::vector<float> boxes;
  BoxTree tree{};
};

}  // namespace gpujoin::test

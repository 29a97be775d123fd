#include "engine/strategy/box_strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "engine/strategy/outliers.h"
#include "engine/strategy/sample.h"

namespace gpujoin {
namespace {

constexpr double kWorthAnIndexMs = 3;
constexpr int kMethods = 4;  // BoxMethod, by number

struct Estimate {
  double candidates;
  double ms;
};

/// Sampled boxes of one side, without rows that are no boxes.
struct SampledBoxes {
  std::uint32_t dims;
  std::vector<double> rows;  ///< [count()][2 * dims]

  std::size_t count() const { return rows.size() / (2 * dims); }
  const double* box(std::size_t i) const { return rows.data() + i * 2 * dims; }
};

SampledBoxes boxes_of(const Dataset& data, const std::vector<std::uint64_t>& rows) {
  SampledBoxes boxes{data.dims / 2, {}};
  std::vector<double> box(data.dims);
  for (const std::uint64_t row : rows) {
    for (std::uint32_t i = 0; i < data.dims; ++i) box[i] = coordinate(data, row, i);
    if (is_box(box.data(), boxes.dims)) boxes.rows.insert(boxes.rows.end(), box.begin(), box.end());
  }
  return boxes;
}

/// The mean length of the shorter nine tenths, for a few boxes may be as long as they like.
double typical_length(std::vector<double>& lengths) {
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t count = std::max<std::size_t>(1, lengths.size() * 9 / 10);
  double mean = 0;
  for (std::size_t i = 0; i < count; ++i) mean += lengths[i] / static_cast<double>(count);
  return mean;
}

BoxSpread spread_of(const SampledBoxes& boxes, std::uint32_t d) {
  BoxSpread spread{kNoExtent, 0};
  std::vector<double> lows, highs, lengths;
  for (std::size_t i = 0; i < boxes.count(); ++i) {
    lows.push_back(boxes.box(i)[d]);
    highs.push_back(boxes.box(i)[boxes.dims + d]);
    const double length = highs.back() - lows.back();
    if (std::isfinite(length)) lengths.push_back(length);
  }
  const Extent range = ordinary_range(lows, &highs);
  for (const std::vector<double>* const bounds : {&lows, &highs}) {
    for (const double bound : *bounds) {
      if (!std::isfinite(bound) || !range.holds(bound)) continue;
      include(spread.extent, {bound, bound});
    }
  }
  spread.length = typical_length(lengths);
  return spread.extent.low <= spread.extent.high ? spread : BoxSpread{{0, 0}, 0};
}

/// The bounds of boxes along one dimension, widened by `reach`.
struct WidenedBounds {
  std::uint32_t dimension;
  std::vector<double> lows, highs;

  WidenedBounds(const SampledBoxes& boxes, std::uint32_t d, double reach) : dimension(d) {
    for (std::size_t i = 0; i < boxes.count(); ++i) {
      lows.push_back(widened_low(boxes.box(i)[d], reach));
      highs.push_back(widened_high(boxes.box(i)[boxes.dims + d], reach));
    }
  }
};

class Chooser {
 public:
  Chooser(const JoinRequest& request, const BoxCosts& costs, BoxStrategy& strategy)
      : request_(request),
        strategy_(strategy),
        costs_(costs),
        test_(make_box_test(request.metric(), request.eps())),
        dims_(request.left().dims / 2) {
    left_rows_ = static_cast<double>(request.left().rows);
    right_rows_ = static_cast<double>(request.right().rows);
    estimates_[index_of(BoxMethod::kNone)] = walk(1);
  }

  double brute_force_ms() const { return estimate(BoxMethod::kNone).ms; }

  /// Weighs the methods, and finds what they need to know.
  void look_at_sample() {
    const JoinRequest rows = in_memory(request_);
    const Sample sample = take_sample(rows);
    left_ = boxes_of(rows.left(), sample.left);
    right_ = boxes_of(rows.right(), sample.right);
    const SampledBoxes& indexed = strategy_.left_indexed ? left_ : right_;
    for (std::uint32_t d = 0; d < dims_; ++d) strategy_.spreads[d] = spread_of(indexed, d);
    weigh_sweep();
    weigh_grid();
  }

  BoxMethod cheapest() const {
    BoxMethod best = BoxMethod::kNone;
    for (const BoxMethod method : {BoxMethod::kSortSweep, BoxMethod::kLayeredGrid})
      if (estimate(method).ms < estimate(best).ms) best = method;
    return best;
  }

  const Estimate& estimate(BoxMethod method) const { return estimates_[index_of(method)]; }

 private:
  static int index_of(BoxMethod method) { return static_cast<int>(method); }

  /// `count` as a share of all pairs of sampled boxes; in a self-join, of pairs of different boxes.
  double share_of(std::uint64_t count) const {
    const std::size_t all = left_.count() * (right_.count() - (request_.self_join() ? 1 : 0));
    return all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all);
  }

  /// The share of pairs that overlap along a dimension.
  double share_along(std::uint32_t d) const {
    WidenedBounds bounds(right_, d, test_.reach);
    std::sort(bounds.lows.begin(), bounds.lows.end());
    std::sort(bounds.highs.begin(), bounds.highs.end());
    std::int64_t count = 0;
    for (std::size_t i = 0; i < left_.count(); ++i) {
      const double low = left_.box(i)[d], high = left_.box(i)[dims_ + d];
      const auto begun = std::upper_bound(bounds.lows.begin(), bounds.lows.end(), high);
      const auto ended = std::lower_bound(bounds.highs.begin(), bounds.highs.end(), low);
      count += (begun - bounds.lows.begin()) - (ended - bounds.highs.begin());
      if (request_.self_join()) --count;
    }
    return share_of(static_cast<std::uint64_t>(count));
  }

  /// The right boxes that overlap left box `i` along all of `bounds`; in a self-join without box
  /// `i`.
  void find_near(std::size_t i, const std::vector<WidenedBounds>& bounds,
                 std::vector<std::uint32_t>& near) const {
    near.resize(right_.count());
    std::iota(near.begin(), near.end(), 0u);
    for (const WidenedBounds& along : bounds) {
      const double low = left_.box(i)[along.dimension];
      const double high = left_.box(i)[dims_ + along.dimension];
      std::size_t kept = 0;
      for (const std::uint32_t j : near) {  // without branches, which would be guessed wrong
        near[kept] = j;
        kept += static_cast<std::size_t>((low <= along.highs[j]) & (along.lows[j] <= high));
      }
      near.resize(kept);
    }
    if (request_.self_join()) std::erase(near, static_cast<std::uint32_t>(i));
  }

  /// The cost of comparing a share of all pairs; a self-join compares each pair once.
  Estimate walk(double share) const {
    const double each = (test_.meet ? costs_.candidate : costs_.distance) * 2 * dims_;
    const double candidates = left_rows_ * right_rows_ * share / (request_.self_join() ? 2 : 1);
    return {candidates, candidates * each * 1e-6};
  }

  void weigh_sweep() {
    double least = 2;
    for (std::uint32_t d = 0; d < dims_; ++d) {
      const double part = share_along(d);
      if (!(part < least)) continue;
      least = part;
      strategy_.dimension = d;
    }
    Estimate& sweep = estimates_[index_of(BoxMethod::kSortSweep)];
    sweep = walk(least);
    const double rows = request_.self_join() ? left_rows_ : left_rows_ + right_rows_;
    sweep.ms += rows * (costs_.sort + costs_.search) * 1e-6;
  }

  /// A box is compared with the blocks of boxes whose surrounding box it meets along the dimensions
  /// of the grid. A block is taken to be as large as if the boxes were evenly spread, with any box
  /// in its middle. Pairs are among these.
  void weigh_grid() {
    const double indexed_rows = strategy_.left_indexed ? left_rows_ : right_rows_;
    const double probes = strategy_.left_indexed ? right_rows_ : left_rows_;
    const LayeredGrid grid = make_layered_grid(static_cast<std::uint64_t>(indexed_rows), dims_,
                                               strategy_.spreads, test_.reach, kMostTableWords);
    const double block = std::min(1.0, costs_.block / std::max(1.0, indexed_rows));
    const double side = grid.cell.dims == 0 ? 1 : std::pow(block, 1.0 / grid.cell.dims);
    std::vector<WidenedBounds> bounds;
    for (std::uint32_t i = 0; i < grid.cell.dims; ++i) {
      const Extent extent = strategy_.spreads[grid.cell.column[i]].extent;
      const double around = (extent.high - extent.low) * side / 2;
      bounds.emplace_back(right_, grid.cell.column[i], test_.reach + around);
    }
    std::uint64_t candidates = 0, pairs = 0;
    std::vector<std::uint32_t> near;
    for (std::size_t i = 0; i < left_.count(); ++i) {
      find_near(i, bounds, near);
      candidates += near.size();
      for (const std::uint32_t j : near) pairs += passes(test_, left_.box(i), right_.box(j), dims_);
    }
    strategy_.pairs = left_rows_ * right_rows_ * share_of(pairs);
    Estimate& layered = estimates_[index_of(BoxMethod::kLayeredGrid)];
    layered = walk(std::min(1.0, share_of(candidates) + block));
    const double cells = 1u << grid.cell.dims;  // of a typical box, two along each dimension
    layered.ms +=
        (indexed_rows * costs_.sort + (indexed_rows + probes) * cells * costs_.probe) * 1e-6;
  }

  const JoinRequest& request_;
  BoxStrategy& strategy_;
  const BoxCosts& costs_;
  BoxTest test_;
  std::uint32_t dims_;
  double left_rows_, right_rows_;
  SampledBoxes left_{1, {}}, right_{1, {}};
  Estimate estimates_[kMethods] = {};
};

}  // namespace

BoxStrategy choose_box_strategy(const JoinRequest& request, const BoxCosts& costs) {
  BoxStrategy strategy{};
  strategy.left_indexed = request.self_join() || request.left().rows < request.right().rows;
  Chooser chooser(request, costs, strategy);
  const BoxMethod asked = request.knobs.box_method;
  const bool short_join = chooser.brute_force_ms() < kWorthAnIndexMs;
  strategy.method = asked != BoxMethod::kAuto ? asked : BoxMethod::kNone;
  if (asked != BoxMethod::kNone && (asked != BoxMethod::kAuto || !short_join)) {
    chooser.look_at_sample();
    if (asked == BoxMethod::kAuto) strategy.method = chooser.cheapest();
  }
  strategy.candidates = chooser.estimate(strategy.method).candidates;
  strategy.ms = chooser.estimate(strategy.method).ms;
  if (asked != BoxMethod::kAuto)
    std::snprintf(strategy.reason, sizeof strategy.reason, "as gpujoin.box_method asks");
  else if (short_join)
    std::snprintf(strategy.reason, sizeof strategy.reason, "too few boxes for an index");
  else
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  "about %.3g of %.3g pairs of boxes to be compared", strategy.candidates,
                  chooser.estimate(BoxMethod::kNone).candidates);
  return strategy;
}

const char* to_string(BoxMethod method) {
  switch (method) {
    case BoxMethod::kLayeredGrid:
      return "layered_grid";
    case BoxMethod::kSortSweep:
      return "sort_sweep";
    case BoxMethod::kNone:
      return "none";
    default:
      return "auto";
  }
}

}  // namespace gpujoin

#include "cpu/walk/lane_search.h"

#include <cmath>

#include "cpu/scan/instruction_sets.h"
#include "engine/strategy/choose_strategy.h"

// The rest of this file is compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/walk/lane_search.cpp"
#include "hwy/foreach_target.h"
// Behind it, for each instruction set again:
#include "cpu/scan/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<double, kMostLanes>;
using Words = hn::RebindToUnsigned<Lanes>;
using Vector = hn::Vec<Lanes>;
using Mask = hn::Mask<Lanes>;

/// Puts so many keys that passed into the lists, each by a comparison with every place. Returns the
/// bounds of raw distances: what lies beyond surely follows the k-th. Out of line, for all
/// searches.
HWY_NOINLINE Vector insert_passed(const LaneSearch& search, std::size_t count) {
  constexpr std::size_t kTogether = 4;  // that go through the lists together
  const Lanes lanes;
  const std::size_t step = hn::Lanes(lanes);
  const Vector none = hn::Set(lanes, HUGE_VAL);
  for (std::size_t at = 0; at < count; at += kTogether) {
    Vector keys[kTogether];
    for (std::size_t i = 0; i < kTogether; ++i)
      keys[i] = at + i < count ? hn::Load(lanes, search.passed + (at + i) * step) : none;
    double* place = search.found;
    for (std::uint32_t rank = 0; rank <= search.k; ++rank, place += step) {
      Vector least = hn::Load(lanes, place);
      for (std::size_t i = 0; i < kTogether; ++i) {
        const Vector larger = hn::Max(least, keys[i]);
        least = hn::Min(least, keys[i]);
        keys[i] = larger;
      }
      hn::Store(least, lanes, place);
    }
  }
  const Words words;
  const Vector last = hn::Load(lanes, search.found + (search.k - 1) * step);
  const Vector next = hn::Load(lanes, search.found + search.k * step);
  const Vector beyond = hn::Add(hn::Mul(last, hn::Set(lanes, 1 + 0x1p-18)),
                                hn::Set(lanes, 0x1p-1040));  // two steps of a key, and more
  const Vector bound = hn::Min(hn::Set(lanes, search.most_raw), beyond);
  // Where the next one does not surely follow the k-th, another that is no nearer than that leaves
  // it so: of the neighbours that come in its place the k-th may be the next.
  const auto last_raw = hn::ShiftRight<32>(hn::BitCast(words, last));
  const auto next_raw = hn::ShiftRight<32>(hn::BitCast(words, next));
  const auto nowhere = hn::Set(words, NeighborKey::kNoPosition);
  const auto is_none = hn::Eq(hn::And(hn::BitCast(words, next), nowhere), nowhere);
  const auto follows = hn::Lt(hn::Add(last_raw, hn::Set(words, 1)), next_raw);
  const Vector nearer = hn::BitCast(
      lanes, hn::Sub(hn::ShiftLeft<32>(last_raw), hn::Set(words, 1)));  // NaN where it is 0
  return hn::IfThenElse(hn::RebindMask(lanes, hn::Or(is_none, follows)), bound, nearer);
}

/// The keys of the searched points themselves, among so many that passed, become none.
HWY_NOINLINE void leave_out_own(const LaneSearch& search, std::size_t count) {
  const Lanes lanes;
  const Words words;
  const auto own = hn::Iota(words, search.own), position = hn::Set(words, NeighborKey::kNoPosition);
  double* place = search.passed;
  for (std::size_t i = 0; i < count; ++i, place += hn::Lanes(lanes)) {
    const Vector keys = hn::Load(lanes, place);
    const auto is_own = hn::Eq(hn::And(hn::BitCast(words, keys), position), own);
    hn::Store(hn::IfThenElse(hn::RebindMask(lanes, is_own), hn::Set(lanes, HUGE_VAL), keys), lanes,
              place);
  }
}

template <Metric M, std::uint32_t D>
class LaneSearcher {
 public:
  explicit HWY_INLINE LaneSearcher(LaneSearch& search)
      : search_(search), tree_(*search.tree), step_(hn::Lanes(Lanes())) {
    const Lanes lanes;
    for (std::uint32_t d = 0; d < D; ++d) query_[d] = hn::Load(lanes, search.queries + d * step_);
    const double none = NeighborKey::of(search.most_raw, NeighborKey::kNoPosition);
    for (std::uint32_t i = 0; i <= search.k; ++i)
      hn::Store(hn::Set(lanes, none), lanes, search.found + i * step_);
    bound_ = hn::Set(lanes, search.most_raw);
  }

  /// From the leaf of the first lane's point upwards, so that all but the nearest nodes are met
  /// with a bound.
  HWY_INLINE void run() {
    std::uint32_t node = leaf_node(), leaves = 1;
    const std::uint32_t leaf_points = tree_.points >> tree_.levels;
    for (; node > 1 && leaves * leaf_points <= search_.k; node /= 2) leaves *= 2;
    const std::uint32_t first = node * leaves - tree_.leaves();
    for (std::uint32_t leaf = first; leaf < first + leaves; ++leaf)
      look_at(leaf, hn::Zero(Lanes()));
    for (; node > 1; node /= 2) descend(node ^ 1);
  }

 private:
  HWY_INLINE bool some_within(Vector raws) const {
    return !hn::AllFalse(Lanes(), hn::Le(raws, bound_));
  }

  std::uint32_t leaf_node() const {
    std::uint32_t node = 1;
    while (node < tree_.leaves()) {
      const KdTree::Split& split = tree_.splits[node];
      node = 2 * node + (search_.queries[split.column * step_] >= split.value ? 1 : 0);
    }
    return node;
  }

  /// As raw_distance_of_box().
  HWY_INLINE Vector raws_of_node(std::uint32_t node) const {
    const Lanes lanes;
    const double* const low = tree_.low(node);
    Vector raws = hn::Zero(lanes);
    for (std::uint32_t d = 0; d < D; ++d) {
      const Vector below = hn::Sub(hn::Set(lanes, low[d]), query_[d]);
      const Vector above = hn::Sub(query_[d], hn::Set(lanes, low[D + d]));
      raws = add_difference<M>(raws, hn::Max(hn::Max(below, above), hn::Zero(lanes)));
    }
    return raws;
  }

  /// A node and all below it, of two children the one first that is nearer to most lanes.
  HWY_INLINE void descend(std::uint32_t node) {
    const Lanes lanes;
    LaneVisit* top = search_.visits;
    Vector raws = raws_of_node(node);
    for (;;) {
      bool within = some_within(raws);
      while (within && node < tree_.leaves()) {
        const Vector first = raws_of_node(2 * node), second = raws_of_node(2 * node + 1);
        const bool by_first = some_within(first), by_second = some_within(second);
        const bool swaps =
            !by_first || (by_second && 2 * hn::CountTrue(lanes, hn::Lt(second, first)) > step_);
        node = 2 * node + (swaps ? 1 : 0);
        raws = swaps ? second : first;
        within = by_first || by_second;
        if (by_first && by_second) {
          top->node = node ^ 1;
          hn::Store(swaps ? first : second, lanes, top->raws);
          ++top;
        }
      }
      if (within) look_at(node - tree_.leaves(), raws);
      if (top == search_.visits) return;
      --top;
      node = top->node;
      raws = hn::Load(lanes, top->raws);
    }
  }

  /// `raws` are lower bounds. Out of line: the compiler takes minutes otherwise.
  HWY_NOINLINE void look_at(std::uint32_t leaf, Vector raws) {
    constexpr bool kByLane = D > 3;  // where most lanes need other leaves
    const Window window = tree_.leaf(leaf);
    const Mask needing = hn::Le(raws, bound_);
    const std::size_t count = hn::CountTrue(Lanes(), needing);
    const bool among = search_.own < window.end && search_.own + step_ > window.begin;
    const auto compare = [&]<class T>(const T* tiles) HWY_ATTR {
      if (kByLane && !among && 2 * count <= step_) {
        search_.candidates += (window.end - window.begin) * count;
        return compare_each(tiles, window, bits_of(Lanes(), needing));
      }
      search_.candidates += (window.end - window.begin) * step_;
      return compare_all(tiles, window);
    };
    const std::size_t passed = tree_.scalar == ScalarType::kFloat32
                                   ? compare(reinterpret_cast<const float*>(tree_.tiles.data()))
                                   : compare(reinterpret_cast<const double*>(tree_.tiles.data()));
    if (among) leave_out_own(search_, passed);
    if (passed > 0) bound_ = insert_passed(search_, passed);
  }

  /// One point after the other with all lanes. Puts the keys of those that some lane needs in
  /// `passed`, infinite for other lanes, and returns their number.
  template <class T>
  HWY_INLINE std::size_t compare_all(const T* tiles, Window window) const {
    const Lanes lanes;
    const Words words;
    const Vector none = hn::Set(lanes, HUGE_VAL);
    const auto upper = hn::Set(words, ~NeighborKey::kNoPosition);
    double* place = search_.passed;
    for (std::size_t position = window.begin; position < window.end; ++position) {
      const T* const column = tile_place(tiles, position, D);
      Vector raws = hn::Zero(lanes);
      for (std::uint32_t d = 0; d < D; ++d)
        raws = add_coordinate<M>(raws, query_[d],
                                 hn::Set(lanes, static_cast<double>(column[d * kTilePoints])));
      const Mask pass = hn::Le(raws, bound_);
      const auto here = hn::Set(words, position);
      const auto keys = hn::Or(hn::And(hn::BitCast(words, raws), upper), here);
      hn::Store(hn::IfThenElse(pass, hn::BitCast(lanes, keys), none), lanes, place);
      place += hn::AllFalse(lanes, pass) ? 0 : step_;
    }
    return static_cast<std::size_t>(place - search_.passed) / step_;
  }

  /// One lane after the other with vectors of points: the same.
  template <class T>
  HWY_INLINE std::size_t compare_each(const T* tiles, Window window, std::uint32_t needing) const {
    const Lanes lanes;
    const Vector none = hn::Set(lanes, HUGE_VAL);
    alignas(64) double bounds[kMostLanes], raws[kMostLanes];
    hn::Store(bound_, lanes, bounds);
    double* place = search_.passed;
    for (; needing != 0; needing &= needing - 1) {
      const int lane = std::countr_zero(needing);
      for (std::size_t first = window.begin; first < window.end; first += step_) {
        const T* const column = tile_place(tiles, first, D);
        Vector sums = hn::Zero(lanes);
        for (std::uint32_t d = 0; d < D; ++d)
          sums = add_coordinate<M>(sums, hn::Set(lanes, search_.queries[d * step_ + lane]),
                                   load_column(lanes, column + d * kTilePoints));
        std::uint32_t pass = bits_of(lanes, hn::Le(sums, hn::Set(lanes, bounds[lane])));
        if (pass == 0) continue;
        hn::Store(sums, lanes, raws);
        for (; pass != 0; pass &= pass - 1, place += step_) {
          const int at = std::countr_zero(pass);
          hn::Store(none, lanes, place);
          place[lane] = NeighborKey::of(raws[at], first + at);
        }
      }
    }
    return static_cast<std::size_t>(place - search_.passed) / step_;
  }

  LaneSearch& search_;
  const KdTree& tree_;
  const std::size_t step_;
  Vector query_[D];
  Vector bound_;
};

template <Metric M, std::uint32_t D>
void search(LaneSearch& search) {
  LaneSearcher<M, D>(search).run();
}

LaneKernel choose(Metric metric, std::uint32_t dims) {
  static_assert(kMaxDirectDimensions == 8);
  LaneKernel kernel{static_cast<std::uint32_t>(hn::Lanes(Lanes())), nullptr};
  by_indexed_metric(metric, [&]<Metric M>() {
    constexpr decltype(kernel.search) kSearches[] = {search<M, 1>, search<M, 2>, search<M, 3>,
                                                     search<M, 4>, search<M, 5>, search<M, 6>,
                                                     search<M, 7>, search<M, 8>};
    kernel.search = kSearches[dims - 1];
  });
  return kernel;
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpujoin::cpu {

HWY_EXPORT(choose);

LaneKernel choose_lane_kernel(Metric metric, std::uint32_t dims) {
  return HWY_DYNAMIC_DISPATCH(choose)(metric, dims);
}

}  // namespace gpujoin::cpu
#endif  // HWY_ONCE

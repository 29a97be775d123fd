#include <cstdio>

#include "core/box_tree.h"
#include "core/nearest.h"
#include "core/neighbor_lists.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/nearest/box_search.h"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kSearchThreads = 128;
constexpr std::uint32_t kShortList = 8;  ///< neighbours that registers hold
constexpr std::uint32_t kList = 32;      ///< and a thread's memory
constexpr std::uint32_t kMostSlicePoints = 1u << 19;

struct SearchView {
  BoxTree tree;
  const double* queries;            ///< [left points][stride]
  const std::uint32_t* left_rows;   ///< by position
  const std::uint32_t* right_rows;  ///< likewise
  const void* left_originals;       ///< for cosine
  const void* right_originals;
  ScalarType scalar;  ///< of them
  bool any_direction;
  NeighborQuestion question;
  SearchReport* report;
};

/// What only ids tell, or roots: rare, and not to be compiled in many places.
template <Metric M>
__device__ __noinline__ bool tie_comes_before(double a, std::uint32_t p, double b, std::uint32_t q,
                                              const std::uint32_t* rows, const std::int64_t* ids) {
  return NeighborOrder<M>{rows, ids}(a, p, b, q);
}

template <Metric M>
struct DeviceOrder {
  const std::uint32_t* rows;
  const std::int64_t* ids;

  __device__ bool operator()(double a, std::uint32_t p, double b, std::uint32_t q) const {
    const RawOrder order = order_of_raws<M>(a, b);
    if (order != RawOrder::kUnclear) return order == RawOrder::kFirst;
    return tie_comes_before<M>(a, p, b, q, rows, ids);
  }
};

__device__ double cosine_of_rows(const SearchView& view, std::uint32_t left, std::uint32_t right) {
  const std::uint32_t dims = view.question.dims;
  const auto raw = [&](const auto* a, const auto* b) {
    return raw_distance<Metric::kCosine>(a + std::uint64_t{left} * dims,
                                         b + std::uint64_t{right} * dims, dims);
  };
  return view.scalar == ScalarType::kFloat32
             ? raw(static_cast<const float*>(view.left_originals),
                   static_cast<const float*>(view.right_originals))
             : raw(static_cast<const double*>(view.left_originals),
                   static_cast<const double*>(view.right_originals));
}

/// Gives a list what the search finds.
template <Metric M, class List>
class Taker {
 public:
  __device__ Taker(const SearchView& view, std::uint32_t position, List& list)
      : view_(view),
        list_(list),
        order_{view.right_rows, view.question.right_ids},
        position_(position) {
    set_bound(view.question.most_raw);
  }

  __device__ double bound() const { return most_indexed_raw_; }
  __device__ bool goes_on(std::uint32_t points) {
    constexpr unsigned kLooks = 64;
    looked_at_ += points;
    if (++leaves_ % kLooks != 0) return true;
    return *static_cast<const volatile unsigned*>(view_.question.stop) == 0;
  }
  __device__ void take(std::uint32_t position, double raw) {
    if (!(raw <= most_indexed_raw_)) return;
    if (view_.question.without_itself && position == position_) return;
    if constexpr (M == Metric::kCosine) {
      raw = cosine_of_rows(view_, view_.left_rows[position_], view_.right_rows[position]);
      ++rechecked_;
      if (!(raw <= most_raw_)) return;
    }
    list_.offer(raw, position, order_);
    if (!list_.is_full()) return;
    const double most = most_raw_beside(M, list_.last_raw());
    if (most < most_raw_) set_bound(most);
  }

  __device__ const DeviceOrder<M>& order() const { return order_; }
  __device__ unsigned looked_at() const { return looked_at_; }
  __device__ unsigned rechecked() const { return rechecked_; }

 private:
  __device__ void set_bound(double raw) {
    most_raw_ = most_indexed_raw_ = raw;
    if constexpr (M == Metric::kCosine)
      most_indexed_raw_ = view_.any_direction ? kAnyDirection * kAnyDirection
                                              : most_direction_raw(raw, view_.question.dims);
  }

  const SearchView& view_;
  List& list_;
  DeviceOrder<M> order_;
  std::uint32_t position_;
  double most_raw_;          ///< of the join's metric: beyond it nothing is a neighbour
  double most_indexed_raw_;  ///< likewise, of the tree's
  unsigned leaves_ = 0, looked_at_ = 0, rechecked_ = 0;
};

/// One left point a thread. K: the room of its list; 0: a heap in the place of the result.
template <Metric M, std::uint32_t D, std::uint32_t K>
__global__ void __launch_bounds__(kSearchThreads)
    search_kernel(SearchView view, NeighborSlice slice) {
  constexpr Metric kIndexed = M == Metric::kCosine ? Metric::kL2 : M;
  const std::uint64_t place = global_thread();
  const std::uint32_t k = view.question.k;
  unsigned looked_at = 0, rechecked = 0, is_short = 0;
  if (place < slice.count && *static_cast<const volatile unsigned*>(view.question.stop) == 0) {
    const std::uint32_t position = slice.first + static_cast<std::uint32_t>(place);
    const double* query = view.queries + std::uint64_t{position} * view.tree.stride;
    double coordinates[D > 0 ? D : 1];
    if constexpr (D > 0) {
#pragma unroll
      for (std::uint32_t d = 0; d < D; ++d) coordinates[d] = query[d];
      query = coordinates;
    }
    std::uint32_t* const neighbors = slice.neighbors + place * k;
    double* const distances = slice.distances + place * k;
    std::uint32_t found = 0;
    const auto run = [&](auto& list) {
      Taker<M, std::remove_reference_t<decltype(list)>> taker(view, position, list);
      search_box_tree<kIndexed, D>(view.tree, query, taker);
      looked_at = taker.looked_at();
      rechecked = taker.rechecked();
      if constexpr (K > 0) {
#pragma unroll
        for (std::uint32_t i = 0; i < K; ++i) {
          if (i < K - k || !(list.raw(i) < INFINITY)) continue;
          distances[i - (K - k)] = list.raw(i);
          neighbors[i - (K - k)] = list.position(i);
          ++found;
        }
      } else {
        found = list.sort(taker.order());
      }
    };
    if constexpr (K > 0) {
      ShortNeighborList<K> list(k);
      run(list);
    } else {
      NeighborHeap list(distances, neighbors, k);
      run(list);
    }
    for (std::uint32_t i = 0; i < found; ++i) {
      distances[i] = distance_from_raw(M, distances[i]);
      neighbors[i] = view.right_rows[neighbors[i]];
    }
    slice.rows[place] = view.left_rows[position];
    slice.counts[place] = found;
    is_short = found < k;
  }
  add_over_block<kSearchThreads>(looked_at, &view.report->candidates);
  if constexpr (M == Metric::kCosine)
    add_over_block<kSearchThreads>(rechecked, &view.report->rechecked);
  add_over_block<kSearchThreads>(is_short, &view.report->short_rows);
}

using Kernel = void (*)(SearchView, NeighborSlice);

template <Metric M>
Kernel kernel_of_any(std::uint32_t k) {
  return k <= kList ? search_kernel<M, 0, kList> : search_kernel<M, 0, 0>;
}

template <std::uint32_t D>
Kernel kernel_of_columns(std::uint32_t k) {
  return k <= kShortList ? search_kernel<Metric::kL2, D, kShortList>
                         : search_kernel<Metric::kL2, D, kList>;
}

Kernel choose_kernel(Metric metric, std::uint32_t dims, std::uint32_t k) {
  switch (metric) {
    case Metric::kL1:
      return kernel_of_any<Metric::kL1>(k);
    case Metric::kLInf:
      return kernel_of_any<Metric::kLInf>(k);
    case Metric::kCosine:
      return kernel_of_any<Metric::kCosine>(k);
    default:
      break;
  }
  const std::uint32_t columns = tree_columns(metric, dims, k);
  if (columns > 8) return kernel_of_any<Metric::kL2>(k);
  if (k > kList)
    return columns == 4 ? search_kernel<Metric::kL2, 4, 0> : search_kernel<Metric::kL2, 8, 0>;
  switch (columns) {
    case 2:
      return kernel_of_columns<2>(k);
    case 3:
      return kernel_of_columns<3>(k);
    case 4:
      return kernel_of_columns<4>(k);
    case 6:
      return kernel_of_columns<6>(k);
    default:
      return kernel_of_columns<8>(k);
  }
}

class BoxSearch final : public NeighborSearch {
 public:
  BoxSearch(const NeighborQuestion& question, const NearestSide& left, const NearestSide& right,
            bool any_direction, MemoryBudget& budget, cudaStream_t stream)
      : points_(left.points()),
        kernel_(choose_kernel(question.metric, question.dims, question.k)),
        report_(budget, 1, stream),
        view_{right.tree(),
              left.ordered().coordinates.data(),
              left.ordered().order.data(),
              right.ordered().order.data(),
              left.originals().data(),
              right.originals().data(),
              right.originals().scalar,
              any_direction,
              question,
              report_.data()},
        stream_(stream) {
    check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream), "clearing counts");
  }

  std::uint32_t points() const override { return points_; }
  std::uint32_t most_slice_points() const override { return kMostSlicePoints; }
  bool start(const NeighborSlice& slice) override {
    kernel_<<<blocks_for(slice.count, kSearchThreads), kSearchThreads, 0, stream_>>>(view_, slice);
    check_launch("looking for neighbors");
    return true;
  }
  bool proceed() override { return true; }
  const SearchReport* report() const override { return report_.data(); }
  void describe(JoinStats* stats) const override {
    stats->strategy.index = IndexMethod::kKdTree;
    std::snprintf(stats->strategy.reason, sizeof stats->strategy.reason, "%u leaves",
                  view_.tree.leaves());
  }

 private:
  std::uint32_t points_;
  Kernel kernel_;
  DeviceBuffer<SearchReport> report_;
  SearchView view_;
  cudaStream_t stream_;
};

}  // namespace

std::uint32_t tree_columns(Metric metric, std::uint32_t dims, std::uint32_t k) {
  if (metric != Metric::kL2 || dims > 8) return dims;
  if (k > kList) return dims <= 4 ? 4 : 8;
  return dims <= 2 ? 2 : dims == 3 ? 3 : (dims + 1) / 2 * 2;
}

std::unique_ptr<NeighborSearch> make_box_search(const NeighborQuestion& question,
                                                const NearestSide& left, const NearestSide& right,
                                                bool any_direction, MemoryBudget& budget,
                                                cudaStream_t stream) {
  return std::make_unique<BoxSearch>(question, left, right, any_direction, budget, stream);
}

}  // namespace gpujoin::cuda

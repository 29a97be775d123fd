#include <cmath>

#include "core/nearest.h"
#include "core/nearest_screen.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/nearest/screened_kernels.h"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = ~0u;

/// One warp for each point.
template <class T>
__global__ void round_kernel(const T* coordinates, SpreadRows spread, std::uint32_t points,
                             std::uint32_t padded_points, Rounding how, __half* values,
                             float* reject, float* norms, float* errors, unsigned* most_error) {
  const auto p = static_cast<std::uint32_t>(global_thread() / kWarp);
  const std::uint32_t lane = threadIdx.x % kWarp;
  if (p >= padded_points) return;
  const T* const point =
      p < points ? coordinates + std::uint64_t{spread.row(p)} * how.dims : nullptr;
  bool finite = point != nullptr;
#pragma unroll 4
  for (std::uint32_t k = lane; k < (finite ? how.dims : 0); k += kWarp)
    finite = isfinite(point[k]) && finite;
  finite = __all_sync(kAllLanes, finite);
  __half* const out = values + std::uint64_t{p} * how.padded_dims;
  double norm_sq = 0, squares = 0;
#pragma unroll 4
  for (std::uint32_t k = lane; k < how.padded_dims; k += kWarp) {
    const double y = finite && k < how.dims
                         ? cut_to_screen(centred(static_cast<double>(point[how.order[k]]),
                                                 how.center[k], how.scale))
                         : 0;
    const __half rounded = __double2half(y);
    const auto value = static_cast<double>(__half2float(rounded));
    out[k] = rounded;
    norm_sq += value * value;
    squares += (y - value) * (y - value);
  }
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) {
    norm_sq += __shfl_xor_sync(kAllLanes, norm_sq, offset);
    squares += __shfl_xor_sync(kAllLanes, squares, offset);
  }
  if (lane != 0) return;
  const float error = finite ? __double2float_ru(quantization_error(squares, norm_sq)) : 0;
  reject[p] =
      finite ? nearest_right_threshold(norm_sq, tensor_accumulation(how.padded_dims)) : HUGE_VALF;
  norms[p] = finite ? static_cast<float>(norm_sq) : NAN;
  errors[p] = error;
  atomicMax(most_error, __float_as_uint(error));  // bits of positive numbers are in their order
}

constexpr std::uint32_t kBandRows = 16;

__global__ void list_all_kernel(TileRectangle rectangle, TileList list) {
  const std::uint32_t rows = rectangle.end_row - rectangle.first_row;
  const std::uint32_t columns = rectangle.end_column - rectangle.first_column;
  const std::uint64_t index = global_thread();
  if (index == 0) *list.size = rows * columns;
  if (index >= std::uint64_t{rows} * columns) return;
  const auto band = static_cast<std::uint32_t>(index / (std::uint64_t{kBandRows} * columns));
  const auto within = static_cast<std::uint32_t>(index % (std::uint64_t{kBandRows} * columns));
  const std::uint32_t band_rows = min(kBandRows, rows - band * kBandRows);
  list.tiles[index] = {rectangle.first_row + band * kBandRows + within % band_rows,
                       rectangle.first_column + within / band_rows};
}

__device__ std::uint32_t left_of(std::uint64_t candidate) {
  return static_cast<std::uint32_t>(candidate);
}

__global__ void segments_kernel(const std::uint64_t* candidates, std::uint64_t size,
                                std::uint32_t first, std::uint32_t* begins, std::uint32_t* ends) {
  const std::uint64_t c = global_thread();
  if (c >= size) return;
  const std::uint32_t left = left_of(candidates[c]);
  if (c == 0 || left_of(candidates[c - 1]) != left)
    begins[left - first] = static_cast<std::uint32_t>(c);
  if (c + 1 == size || left_of(candidates[c + 1]) != left)
    ends[left - first] = static_cast<std::uint32_t>(c + 1);
}

__host__ __device__ NeighborLists lists_of(const NeighborSlice& slice) {
  return {slice.counts, slice.neighbors, slice.distances};
}

void clear_counts(const NeighborLists& lists, std::uint64_t count, cudaStream_t stream) {
  check(cudaMemsetAsync(lists.counts, 0, count * sizeof *lists.counts, stream), "clearing counts");
}

/// The definition, for rows whose coordinates lie one after another. Reads pieces of 16 bytes, and
/// `Ahead` pieces of b at once, because a few warps cannot hide how long a read takes.
template <Metric M, unsigned Ahead, class T>
__device__ double raw_of_rows(const T* a, const T* b, std::uint32_t dims) {
  constexpr unsigned kNumbers = 16 / sizeof(T);
  struct alignas(16) Piece {
    T numbers[kNumbers];
  };
  if (dims % kNumbers != 0) return raw_distance<M>(a, b, dims);
  const auto* const lefts = reinterpret_cast<const Piece*>(a);
  const auto* const rights = reinterpret_cast<const Piece*>(b);
  const std::uint32_t pieces = dims / kNumbers;
  RawSum<M> sum;
  for (std::uint32_t first = 0; first < pieces; first += Ahead) {
    Piece ahead[Ahead];
#pragma unroll
    for (unsigned i = 0; i < Ahead; ++i)
      if (first + i < pieces) ahead[i] = rights[first + i];
#pragma unroll
    for (unsigned i = 0; i < Ahead; ++i) {
      if (first + i >= pieces) break;
      const Piece left = lefts[first + i];
#pragma unroll
      for (unsigned n = 0; n < kNumbers; ++n) sum.add(left.numbers[n], ahead[i].numbers[n]);
    }
  }
  return sum.raw();
}

/// The order of right points by position.
template <Metric M>
struct SpreadOrder {
  SpreadRows rows;
  const std::int64_t* ids;

  __device__ bool operator()(double a, std::uint32_t p, double b, std::uint32_t q) const {
    return neighbor_comes_before<M>(Neighbor{a, p}, Neighbor{b, q}, [this](std::uint32_t position) {
      const std::uint32_t row = rows.row(position);
      return ids != nullptr ? ids[row] : static_cast<std::int64_t>(row);
    });
  }
};

/// The neighbours of a left point, up to 32, of which each lane of a warp has one, in order.
template <Metric M>
class LaneList {
 public:
  static constexpr std::uint32_t kMost = kWarp;

  __device__ LaneList(const Merge& merge, const NeighborLists& lists, std::uint64_t number)
      : order_{merge.right_rows, merge.question.right_ids},
        k_(merge.question.k),
        size_(lists.counts[number]),
        lane_(threadIdx.x % kWarp),
        raws_(lists.raws + number * k_),
        positions_(lists.positions + number * k_) {
    if (lane_ < size_) {
      raw_ = raws_[lane_];
      position_ = positions_[lane_];
    }
    read_last();
  }

  __device__ std::uint32_t size() const { return size_; }
  __device__ bool wants(double raw, std::uint32_t position) const {
    return size_ < k_ || order_(raw, position, last_raw_, last_position_);
  }

  /// On all lanes, of one that is wanted.
  __device__ void insert(double raw, std::uint32_t position) {
    const bool before = lane_ >= size_ || order_(raw, position, raw_, position_);
    const unsigned place = __ffs(static_cast<int>(__ballot_sync(kAllLanes, before))) - 1;
    const double moved_raw = __shfl_up_sync(kAllLanes, raw_, 1);
    const std::uint32_t moved_position = __shfl_up_sync(kAllLanes, position_, 1);
    if (lane_ >= place) {
      raw_ = lane_ == place ? raw : moved_raw;
      position_ = lane_ == place ? position : moved_position;
    }
    if (size_ < k_) ++size_;
    read_last();
  }

  __device__ void finish() const {
    if (lane_ >= size_) return;
    raws_[lane_] = raw_;
    positions_[lane_] = position_;
  }

 private:
  __device__ void read_last() {
    last_raw_ = __shfl_sync(kAllLanes, raw_, static_cast<int>(k_ - 1));
    last_position_ = __shfl_sync(kAllLanes, position_, static_cast<int>(k_ - 1));
  }

  SpreadOrder<M> order_;
  std::uint32_t k_, size_;
  unsigned lane_;
  double* raws_;
  std::uint32_t* positions_;
  double raw_ = 0, last_raw_ = 0;
  std::uint32_t position_ = 0, last_position_ = 0;
};

/// Any number of them, which a warp keeps in order in the place of the result.
template <Metric M>
class WarpList {
 public:
  __device__ WarpList(const Merge& merge, const NeighborLists& lists, std::uint64_t number)
      : order_{merge.right_rows, merge.question.right_ids},
        raws_(lists.raws + number * merge.question.k),
        positions_(lists.positions + number * merge.question.k),
        k_(merge.question.k),
        size_(lists.counts[number]),
        lane_(threadIdx.x % kWarp) {
    read_last();
  }

  __device__ std::uint32_t size() const { return size_; }
  __device__ bool wants(double raw, std::uint32_t position) const {
    return size_ < k_ || order_(raw, position, last_raw_, last_position_);
  }

  /// On all lanes, of one that is wanted.
  __device__ void insert(double raw, std::uint32_t position) {
    std::uint32_t low = 0, high = size_;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (order_(raw, position, raws_[middle], positions_[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    const std::uint32_t moved_end = size_ < k_ ? size_ : k_ - 1;
    __syncwarp();
    for (std::uint32_t end = moved_end; end > low;) {
      const std::uint32_t count = min(kWarp, end - low), begin = end - count;
      double moved_raw = 0;
      std::uint32_t moved_position = 0;
      if (lane_ < count) {
        moved_raw = raws_[begin + lane_];
        moved_position = positions_[begin + lane_];
      }
      __syncwarp();
      if (lane_ < count) {
        raws_[begin + lane_ + 1] = moved_raw;
        positions_[begin + lane_ + 1] = moved_position;
      }
      __syncwarp();
      end = begin;
    }
    if (lane_ == 0) {
      raws_[low] = raw;
      positions_[low] = position;
    }
    if (size_ < k_) ++size_;
    __syncwarp();
    read_last();
  }

  __device__ void finish() const {}

 private:
  __device__ void read_last() {
    if (size_ < k_) return;
    last_raw_ = raws_[k_ - 1];
    last_position_ = positions_[k_ - 1];
  }

  SpreadOrder<M> order_;
  double* raws_;
  std::uint32_t* positions_;
  std::uint32_t k_, size_;
  unsigned lane_;
  double last_raw_ = 0;
  std::uint32_t last_position_ = 0;
};

/// Puts what some lanes of a warp want into the list, one after another.
template <class List>
__device__ void insert_wanted(List& list, bool wanted, double raw, std::uint32_t position) {
  for (unsigned lanes = __ballot_sync(kAllLanes, wanted); lanes != 0; lanes &= lanes - 1) {
    const int from = __ffs(static_cast<int>(lanes)) - 1;
    const double offered = __shfl_sync(kAllLanes, raw, from);
    const std::uint32_t at = __shfl_sync(kAllLanes, position, from);
    if (list.wants(offered, at)) list.insert(offered, at);
  }
}

__device__ bool is_stopped(const Merge& merge) {
  return *static_cast<const volatile unsigned*>(merge.question.stop) != 0;
}

/// One warp for each list, which has a share of a left point's candidates. If the warps are few,
/// each is a thread block of its own.
template <Metric M, class T, template <Metric> class List, bool Few>
__global__ void __launch_bounds__(Few ? kWarp : kBlockThreads)
    merge_kernel(Merge merge, NeighborLists lists, std::uint32_t shares) {
  const std::uint64_t number = global_thread() / kWarp;
  const std::uint64_t place = number / shares;
  const unsigned lane = threadIdx.x % kWarp;
  unsigned rechecked = 0;
  if (place < merge.slice.count && !is_stopped(merge)) {
    const std::uint32_t dims = merge.question.dims;
    const std::uint32_t left = merge.slice.first + static_cast<std::uint32_t>(place);
    const T* const rights = static_cast<const T*>(merge.right_coordinates);
    const T* const a = static_cast<const T*>(merge.left_coordinates) +
                       std::uint64_t{merge.left_rows.row(left)} * dims;
    const bool listed = merge.candidates != nullptr;
    const std::uint64_t from = listed ? merge.begins[place] : 0;
    const std::uint64_t count = listed ? merge.ends[place] - from : merge.candidates_end;
    const std::uint64_t share = number % shares;
    const std::uint64_t begin = from + count * share / shares;
    const std::uint64_t end = from + count * (share + 1) / shares;
    List<M> list(merge, lists, number);
    for (std::uint64_t first = begin; first < end; first += kWarp) {
      const std::uint64_t c = first + lane;
      std::uint32_t right = 0;
      bool wanted = c < end;
      if (wanted) {
        right = static_cast<std::uint32_t>(listed ? merge.candidates[c] >> 32 : c);
        wanted = !(merge.question.without_itself && right == left);
      }
      double raw = 0;
      if (wanted) {
        raw = raw_of_rows < M,
        Few ? 8 : 1 > (a, rights + std::uint64_t{merge.right_rows.row(right)} * dims, dims);
        ++rechecked;
        wanted = raw <= merge.question.most_raw && list.wants(raw, right);
      }
      insert_wanted(list, wanted, raw, right);
    }
    list.finish();
    if (lane == 0) lists.counts[number] = list.size();
  }
  add_over_block<Few ? kWarp : kBlockThreads>(rechecked, &merge.report->rechecked);
}

/// One warp for each left point, which puts the lists of its shares into its own: the first of each
/// of them, the second of each, and so on, until none is wanted.
template <Metric M, template <Metric> class List>
__global__ void __launch_bounds__(kBlockThreads)
    gather_kernel(Merge merge, NeighborLists parts, std::uint32_t shares) {
  const std::uint64_t place = global_thread() / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  if (place >= merge.slice.count || is_stopped(merge)) return;
  const std::uint32_t k = merge.question.k;
  List<M> list(merge, lists_of(merge.slice), place);
  bool any = true;
  for (std::uint32_t rank = 0; any && rank < k; ++rank) {
    any = false;
    for (std::uint32_t first = 0; first < shares; first += kWarp) {
      const std::uint64_t part = place * shares + first + lane;
      bool wanted = first + lane < shares && rank < parts.counts[part];
      const double raw = wanted ? parts.raws[part * k + rank] : 0;
      const std::uint32_t position = wanted ? parts.positions[part * k + rank] : 0;
      wanted = wanted && list.wants(raw, position);
      any = __any_sync(kAllLanes, wanted) || any;
      insert_wanted(list, wanted, raw, position);
    }
  }
  list.finish();
  if (lane == 0) merge.slice.counts[place] = list.size();
}

__global__ void thresholds_kernel(LeftThresholds to) {
  const std::uint64_t place = global_thread();
  if (place >= to.slice.count) return;
  const NeighborQuestion& question = to.question;
  const std::uint32_t left = to.slice.first + static_cast<std::uint32_t>(place);
  const float norm = to.norms[left];
  if (!(norm >= 0)) return;  // it passes nothing
  double raw = question.most_raw;
  if (to.slice.counts[place] == question.k) {
    const double most =
        most_raw_beside(question.metric, to.slice.distances[(place + 1) * question.k - 1]);
    if (most < raw) raw = most;
  }
  const double reach = nearest_reach(question.metric, raw, question.dims, to.scale) +
                       static_cast<double>(to.errors[left]) +
                       static_cast<double>(__uint_as_float(*to.right_most_error));
  to.reject[left] = nearest_started_threshold(static_cast<double>(norm), reach, to.accumulation);
}

__global__ void finish_kernel(Merge merge) {
  const std::uint64_t entry = global_thread();
  const std::uint32_t k = merge.question.k;
  unsigned is_short = 0;
  if (entry < std::uint64_t{merge.slice.count} * k) {
    const std::uint64_t place = entry / k;
    const auto number = static_cast<std::uint32_t>(entry % k);
    const std::uint32_t count = merge.slice.counts[place];
    if (number < count) {
      double& distance = merge.slice.distances[entry];
      distance = distance_from_raw(merge.question.metric, distance);
      std::uint32_t& neighbor = merge.slice.neighbors[entry];
      neighbor = merge.right_rows.row(neighbor);
    }
    if (number == 0) {
      merge.slice.rows[place] =
          merge.left_rows.row(merge.slice.first + static_cast<std::uint32_t>(place));
      is_short = count < k;
    }
  }
  add_over_block(is_short, &merge.report->short_rows);
}

/// Warps that share a left point's candidates begin with lists of their own, which are empty.
template <Metric M, class T, template <Metric> class List>
void merge_of(const Merge& merge, cudaStream_t stream) {
  const std::uint64_t points = merge.slice.count, warps = points * merge.shares;
  if (merge.shares == 1) {
    merge_kernel<M, T, List, false>
        <<<blocks_for(warps * kWarp), kBlockThreads, 0, stream>>>(merge, lists_of(merge.slice), 1);
    return;
  }
  clear_counts(merge.parts, warps, stream);
  merge_kernel<M, T, List, true>
      <<<static_cast<unsigned>(warps), kWarp, 0, stream>>>(merge, merge.parts, merge.shares);
  check_launch("choosing neighbors");
  gather_kernel<M, List>
      <<<blocks_for(points * kWarp), kBlockThreads, 0, stream>>>(merge, merge.parts, merge.shares);
}

template <Metric M, template <Metric> class List>
void merge_with(const Merge& merge, cudaStream_t stream) {
  if (merge.scalar == ScalarType::kFloat32)
    merge_of<M, float, List>(merge, stream);
  else
    merge_of<M, double, List>(merge, stream);
}

template <Metric M>
void merge_as(const Merge& merge, cudaStream_t stream) {
  if (merge.question.k <= LaneList<M>::kMost)
    merge_with<M, LaneList>(merge, stream);
  else
    merge_with<M, WarpList>(merge, stream);
}

}  // namespace

RoundedPoints round_points(MemoryBudget& budget, const DevicePoints& data, const Rounding& how,
                           cudaStream_t stream) {
  RoundedPoints side;
  side.spread = spread_rows_of(data.rows);
  side.points = static_cast<std::uint32_t>(data.rows);
  side.tiles = (side.points + kScreenTile - 1) / kScreenTile;
  const std::uint32_t padded_points = side.tiles * kScreenTile;
  side.values = DeviceBuffer<__half>(budget, std::size_t{padded_points} * how.padded_dims, stream);
  side.reject = DeviceBuffer<float>(budget, padded_points, stream);
  side.norms = DeviceBuffer<float>(budget, padded_points, stream);
  side.errors = DeviceBuffer<float>(budget, padded_points, stream);
  side.most_error = DeviceBuffer<unsigned>(budget, 1, stream);
  check(cudaMemsetAsync(side.most_error.data(), 0, side.most_error.bytes(), stream),
        "rounding points");
  const auto round = [&](const auto* coordinates) {
    round_kernel<<<padded_points / (kBlockThreads / kWarp), kBlockThreads, 0, stream>>>(
        coordinates, side.spread, side.points, padded_points, how, side.values.data(),
        side.reject.data(), side.norms.data(), side.errors.data(), side.most_error.data());
  };
  if (data.scalar == ScalarType::kFloat32)
    round(static_cast<const float*>(data.data()));
  else
    round(static_cast<const double*>(data.data()));
  check_launch("rounding points");
  return side;
}

void launch_list_all(const TileRectangle& rectangle, const TileList& list, cudaStream_t stream) {
  list_all_kernel<<<blocks_for(rectangle.size()), kBlockThreads, 0, stream>>>(rectangle, list);
  check_launch("listing tiles");
}

void launch_segments(const std::uint64_t* candidates, std::uint64_t size, std::uint32_t first,
                     std::uint32_t* begins, std::uint32_t* ends, cudaStream_t stream) {
  segments_kernel<<<blocks_for(size), kBlockThreads, 0, stream>>>(candidates, size, first, begins,
                                                                  ends);
  check_launch("ordering candidates");
}

void launch_merge(const Merge& merge, cudaStream_t stream) {
  if (merge.candidates == nullptr) clear_counts(lists_of(merge.slice), merge.slice.count, stream);
  if (merge.question.metric == Metric::kCosine)
    merge_as<Metric::kCosine>(merge, stream);
  else
    merge_as<Metric::kL2>(merge, stream);
  check_launch("choosing neighbors");
}

void reject_all(const DeviceBuffer<float>& thresholds, cudaStream_t stream) {
  constexpr std::uint32_t kInfinity = 0x7f800000;  // its bits
  fill_counts(reinterpret_cast<std::uint32_t*>(thresholds.data()), thresholds.size(), kInfinity,
              stream);
}

void launch_thresholds(const LeftThresholds& thresholds, cudaStream_t stream) {
  thresholds_kernel<<<blocks_for(thresholds.slice.count), kBlockThreads, 0, stream>>>(thresholds);
  check_launch("finding thresholds");
}

void launch_finish(const Merge& merge, cudaStream_t stream) {
  const std::uint64_t entries = std::uint64_t{merge.slice.count} * merge.question.k;
  finish_kernel<<<blocks_for(entries), kBlockThreads, 0, stream>>>(merge);
  check_launch("writing neighbors");
}

}  // namespace gpujoin::cuda

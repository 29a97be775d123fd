#include "cpu/small_clusters.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/disjoint_sets.h"
#include "core/threshold.h"
#include "cpu/scan/scan.h"
#include "engine/stopwatch.h"

namespace gpujoin::cpu {
namespace {

/// Coordinates that are compared at most: more of them are worth a screen.
constexpr std::uint64_t kMostCompared = 1 << 18;
constexpr std::uint32_t kNone = ~std::uint32_t{0};

}  // namespace

bool are_small_clusters(const JoinRequest& request) {
  const Dataset& data = request.left();
  return data.rows <= SmallClusters::kMostRows && data.file == nullptr &&
         data.rows * data.rows * data.dims <= kMostCompared;
}

SmallClusters::SmallClusters(const JoinRequest& request)
    : request_(request), rows_(static_cast<std::uint32_t>(request.left().rows)) {
  for (std::uint32_t row = 0; row < rows_; ++row) ids_[row] = id_of(request.left(), row);
  std::iota(links_.begin(), links_.end(), 0u);
  std::iota(positions_.begin(), positions_.end(), 0u);
  stats_.left_rows = stats_.right_rows = rows_;
  stats_.strategy.index = IndexMethod::kNone;
  stats_.strategy.sort_column = kNoColumn;
  stats_.strategy.access_pattern = AccessPattern::kLinearId;
  std::snprintf(stats_.strategy.reason, sizeof stats_.strategy.reason,
                "few points: each is compared with each");
  stats_.threads = 1;
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "%s", instruction_set());
}

double SmallClusters::raw(std::uint32_t a, std::uint32_t b) const {
  const Dataset& data = request_.left();
  return data.scalar == ScalarType::kFloat32
             ? raw_distance(request_.metric(), point<float>(data, a), point<float>(data, b),
                            data.dims)
             : raw_distance(request_.metric(), point<double>(data, a), point<double>(data, b),
                            data.dims);
}

/// Whose neighbours they are, and which rows are core rows. Rows that are not finite have
/// themselves alone.
void SmallClusters::find_neighbors() {
  const double most = make_threshold(request_.metric(), request_.eps()).raw;
  std::bitset<kMostRows> finite;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    near_[row].set(row);
    finite[row] = is_finite_row(request_.left(), row);
  }
  for (std::uint32_t a = 0; a < rows_; ++a)
    for (std::uint32_t b = a + 1; b < rows_; ++b)
      if (finite[a] && finite[b] && raw(a, b) <= most) {
        near_[a].set(b);
        near_[b].set(a);
      }
  stats_.candidates = std::uint64_t{rows_} * (rows_ - 1) / 2;
  for (std::uint32_t row = 0; row < rows_; ++row)
    cores_[row] = near_[row].count() >= request_.min_points();
}

void SmallClusters::unite_cores() {
  const DisjointSets sets(links_.data());
  for (std::uint32_t a = 0; a < rows_; ++a) {
    if (!cores_[a]) continue;
    for (std::uint32_t b = a + 1; b < rows_; ++b)
      if (cores_[b] && near_[a][b]) sets.unite(a, b);
  }
}

/// The one that a row which is none follows; kNone: it is noise.
std::uint32_t SmallClusters::nearest_core(std::uint32_t row) const {
  Neighbor nearest{0, kNone};
  for (std::uint32_t core = 0; core < rows_; ++core) {
    if (!cores_[core] || !near_[row][core]) continue;
    const Neighbor found{raw(row, core), core};
    if (nearest.position == kNone || comes_before(request_.metric(), found, nearest, ids_.data()))
      nearest = found;
  }
  return nearest.position;
}

/// By the first row of each, by id and then by place.
void SmallClusters::number_clusters() {
  const DisjointSets sets(links_.data());
  std::array<std::uint32_t, kMostRows> order = positions_, roots, numbers;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const std::uint32_t core = cores_[row] ? row : nearest_core(row);
    roots[row] = core == kNone ? kNone : sets.root(core);
  }
  std::sort(order.begin(), order.begin() + rows_, [this](std::uint32_t a, std::uint32_t b) {
    return ids_[a] != ids_[b] ? ids_[a] < ids_[b] : a < b;
  });
  numbers.fill(kNone);
  std::uint32_t clusters = 0;
  for (std::uint32_t at = 0; at < rows_; ++at) {
    const std::uint32_t row = order[at], root = roots[row];
    if (root == kNone) {
      words_[row] = pack_cluster({ClusterRole::kNoise, 0});
      continue;
    }
    if (numbers[root] == kNone) numbers[root] = clusters++;
    words_[row] =
        pack_cluster({cores_[row] ? ClusterRole::kCore : ClusterRole::kBorder, numbers[root]});
  }
}

Status SmallClusters::next_batch(ResultBatch* batch) {
  if (done_ || rows_ == 0) return {StatusCode::kEnd};
  const Stopwatch watch;
  find_neighbors();
  unite_cores();
  number_clusters();
  done_ = true;
  stats_.join_ms = watch.milliseconds();
  stats_.batches = 1;
  *batch = {};
  batch->row_count = rows_;
  batch->rows = positions_.data();
  batch->counts = words_.data();
  batch->set_ids(ids_.data(), rows_, ids_.data(), rows_);
  return {};
}

void SmallClusters::stats(JoinStats* stats) const { *stats = stats_; }

}  // namespace gpujoin::cpu

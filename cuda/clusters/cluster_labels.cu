#include "core/ordered_bits.h"
#include "cuda/clusters/cluster_labels.h"
#include "cuda/clusters/labels.cuh"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/sort.h"

namespace gpujoin::cuda {
namespace {

/// By row: its id as an unsigned integer in the same order, and its position.
__global__ void places_kernel(LabelledRows rows, std::uint64_t* keys, std::uint32_t* positions) {
  const std::uint64_t position = global_thread();
  if (position >= rows.count) return;
  const std::uint32_t row = rows.order[position];
  if (keys != nullptr) keys[row] = static_cast<std::uint64_t>(rows.ids[position]) ^ kSignBit;
  positions[row] = static_cast<std::uint32_t>(position);
}

/// first[root] becomes the least place, in the order `positions`, of a point of the root's cluster.
__global__ void first_kernel(Labels labels, const std::uint32_t* positions, std::uint32_t* first) {
  const std::uint64_t place = global_thread();
  if (place >= labels.rows) return;
  const std::uint32_t position = positions[place];
  if (labels.roles[position] == ClusterRole::kNoise) return;
  const std::uint32_t root = find_root(labels, position);
  if (place < *static_cast<volatile std::uint32_t*>(first + root))
    atomicMin(first + root, static_cast<std::uint32_t>(place));
}

/// flags[place] = 1 where a cluster has its first point, else 0.
__global__ void heads_kernel(Labels labels, const std::uint32_t* positions,
                             const std::uint32_t* first, std::uint32_t* flags) {
  const std::uint64_t place = global_thread();
  if (place >= labels.rows) return;
  const std::uint32_t position = positions[place];
  flags[place] = labels.roles[position] != ClusterRole::kNoise &&
                 first[find_root(labels, position)] == static_cast<std::uint32_t>(place);
}

/// numbers[place] = clusters before that place.
__global__ void words_kernel(Labels labels, const std::uint32_t* first,
                             const std::uint32_t* numbers, std::uint64_t* words) {
  const std::uint64_t position = global_thread();
  if (position >= labels.rows) return;
  const ClusterRole role = labels.roles[position];
  const std::uint64_t cluster =
      role == ClusterRole::kNoise
          ? 0
          : numbers[first[find_root(labels, static_cast<std::uint32_t>(position))]];
  words[position] = pack_cluster({role, cluster});
}

}  // namespace

ClusterLabels::ClusterLabels(const LabelledRows& rows, MemoryBudget& budget, cudaStream_t stream)
    : rows_(rows),
      budget_(budget),
      stream_(stream),
      links_(budget, rows.count, stream),
      roles_(budget, rows.count, stream),
      labels_{rows.count, links_.data(), roles_.data()} {}

/// positions[place] = the position of the row that comes at that place by id, and of equal ids by
/// its number.
void ClusterLabels::order_rows(DeviceBuffer<std::uint32_t>& positions) {
  const std::uint32_t rows = rows_.count;
  const unsigned blocks = blocks_for(rows);
  positions = DeviceBuffer<std::uint32_t>(budget_, rows, stream_);
  if (!rows_.has_ids) {
    places_kernel<<<blocks, kBlockThreads, 0, stream_>>>(rows_, nullptr, positions.data());
    return check_launch("ordering rows");
  }
  DeviceBuffer<std::uint64_t> keys(budget_, rows, stream_), sorted_keys(budget_, rows, stream_);
  DeviceBuffer<std::uint32_t> by_row(budget_, rows, stream_);
  places_kernel<<<blocks, kBlockThreads, 0, stream_>>>(rows_, keys.data(), by_row.data());
  check_launch("ordering rows");
  sort_pairs<std::uint32_t>(
      budget_, {keys.data(), sorted_keys.data(), by_row.data(), positions.data(), rows}, {},
      stream_);
}

void ClusterLabels::number() {
  const std::uint32_t rows = rows_.count;
  const unsigned blocks = blocks_for(rows);
  DeviceBuffer<std::uint32_t> positions;
  order_rows(positions);
  DeviceBuffer<std::uint32_t> first(budget_, rows, stream_), numbers(budget_, rows, stream_);
  check(cudaMemsetAsync(first.data(), 0xff, first.bytes(), stream_), "numbering clusters");
  first_kernel<<<blocks, kBlockThreads, 0, stream_>>>(labels_, positions.data(), first.data());
  heads_kernel<<<blocks, kBlockThreads, 0, stream_>>>(labels_, positions.data(), first.data(),
                                                      numbers.data());
  check_launch("numbering clusters");
  add_up(budget_, numbers.data(), rows, false, stream_);
  words_ = DeviceBuffer<std::uint64_t>(budget_, rows, stream_);
  words_kernel<<<blocks, kBlockThreads, 0, stream_>>>(labels_, first.data(), numbers.data(),
                                                      words_.data());
  check_launch("numbering clusters");
}

Buffer<std::uint64_t> ClusterLabels::words(HostBudget& budget) const {
  Buffer<std::uint64_t> words(budget, words_.size());
  if (words.size() == 0) return words;
  copy_to_host(words.data(), words_.data(), words.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying clusters");
  return words;
}

}  // namespace gpujoin::cuda

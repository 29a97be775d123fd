#include "engine/request/check_batch.h"

#include <algorithm>

#include "core/cluster.h"

namespace gpujoin {
namespace {

/// Whether all numbers are below `end`.
bool are_below(const std::uint32_t* numbers, std::uint64_t count, std::uint64_t end) {
  std::uint32_t most = 0;
  for (std::uint64_t i = 0; i < count; ++i) most = std::max(most, numbers[i]);
  return count == 0 || most < end;
}

bool has_counts(Output::Kind output) {
  return output == Output::kCountPerRow || output == Output::kSums || output == Output::kClusters;
}

}  // namespace

const char* problem_of_batch(const ResultBatch& batch, Output::Kind output, std::uint64_t groups) {
  const std::uint64_t rows = batch.row_count;
  if (output == Output::kTotal || rows == 0) return nullptr;
  const bool named = batch.left_ids != nullptr;
  if (batch.rows == nullptr || (!named && groups == 0)) return "rows are missing";
  const std::uint64_t lefts = named ? batch.left_id_count : groups;
  const std::uint64_t rights = batch.right_ids != nullptr ? batch.right_id_count : 0;
  if (!are_below(batch.rows, rows, batch.transposed ? rights : lefts))
    return "a row is none of the join's";
  if (has_counts(output)) {
    if (batch.counts == nullptr || (output == Output::kSums && batch.sums == nullptr))
      return "numbers of rows are missing";
    if (output == Output::kClusters &&
        std::any_of(batch.counts, batch.counts + rows, [](std::uint64_t word) {
          return unpack_cluster(word).role > ClusterRole::kCore;
        }))
      return "a row has no role in its cluster";
    return nullptr;
  }
  if (batch.offsets == nullptr) return "pairs are missing";
  if (!std::is_sorted(batch.offsets, batch.offsets + rows + 1)) return "pairs are out of order";
  const std::uint64_t entries = batch.entry(rows);
  if (entries == 0) return nullptr;
  if (batch.neighbors == nullptr || (output != Output::kPairs && batch.distances == nullptr))
    return "pairs are missing";
  return are_below(batch.neighbors, entries, batch.transposed ? lefts : rights)
             ? nullptr
             : "a neighbor is none of the join's rows";
}

bool are_in_range(const std::int64_t* ids, std::uint64_t count, const IdRange& range) {
  if (ids == nullptr || (range.end == 0 && range.most_offset == 0)) return true;
  constexpr std::int64_t kOffset = 0xffff;
  bool all = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    all &= ids[i] >= 0 && (range.end == 0 || ids[i] < range.end);
    all &= range.most_offset == 0 || (ids[i] & kOffset) <= range.most_offset;
  }
  return all;
}

}  // namespace gpujoin

#include "cpu/walk/bit_nearest_walker.h"

#include <algorithm>

#include "core/hamming.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint32_t kBlockGroups = 64;  // right groups that stay in the cache
constexpr std::uint32_t kSpanGroups = 16;   // that are compared before radii shrink

/// Returns the distance of two rows if all ones of the row with fewer ones are common. No two rows
/// with these numbers of ones are nearer.
double least_distance_of(Metric metric, std::uint32_t fewer, std::uint32_t more) {
  return metric == Metric::kJaccard ? jaccard_distance(fewer, fewer + more)
                                    : static_cast<double>(more - fewer);
}

}  // namespace

BitNearestWalker::BitNearestWalker(const BitNearestPlan& plan, MemoryBudget& budget,
                                   const WorkerPool& pool, BatchWriter writer,
                                   WalkProgress& progress)
    : plan_(plan),
      pool_(pool),
      writer_(writer),
      progress_(progress),
      most_rows_(std::min<std::uint64_t>(plan.k, plan.right->rows())),
      heaps_(budget, most_rows_ * kGroupPoints),
      queries_(budget, std::size_t{plan.words()} * kGroupPoints),
      found_(budget, kSpanGroups * kGroupPoints + kBitPadding) {}

void BitNearestWalker::walk(std::uint32_t group) {
  progress_.begin();
  first_ = group * kGroupPoints;
  const std::uint32_t rows = std::min(kGroupPoints, plan_.left->rows() - first_);
  for (std::uint32_t place = 0; place < rows; ++place) {
    sizes_[place] = 0;
    radii_[place] = plan_.radius;
    const std::uint64_t* const row = plan_.left->row(first_ + place);
    for (std::uint32_t w = 0; w < plan_.words(); ++w)
      queries_[place * plan_.words() + w] = row[w * kGroupPoints];
  }
  order_visits(plan_.left->ones[first_], plan_.left->ones[first_ + rows - 1]);
  for (const Visit& visit : visits_) {
    pool_.throw_if_stopped();
    if (visit.least > *std::max_element(radii_, radii_ + rows)) break;
    for (std::uint32_t place = 0; place < rows; ++place) look_at(place, visit);
  }
  for (std::uint32_t place = 0; place < rows; ++place)
    if (sizes_[place] > 0) write(place);
  progress_.report();
  writer_.serve_caller();
}

/// Returns a lower bound on the distance of a left row with `fewest` to `most` ones from right rows
/// `first` to `end` - 1.
double BitNearestWalker::least_distance(std::uint32_t fewest, std::uint32_t most,
                                        std::uint32_t first, std::uint32_t end) const {
  const std::uint32_t low = plan_.right->ones[first], high = plan_.right->ones[end - 1];
  if (most < low) return least_distance_of(plan_.metric, most, low);
  return fewest > high ? least_distance_of(plan_.metric, high, fewest) : 0;
}

/// Returns how many bits of a left row and of a right row within its radius may differ. Negative if
/// the block cannot have such a row.
std::int64_t BitNearestWalker::most_differing_within(std::uint32_t place,
                                                     const Visit& visit) const {
  if (plan_.metric == Metric::kHamming) return static_cast<std::int64_t>(radii_[place]);
  // most_differing() rises with the number of ones, because at most half of them are common. It
  // falls by a few in between.
  constexpr std::int64_t kFall = 6;
  const std::uint32_t ones = plan_.left->ones[first_ + place] + plan_.right->ones[visit.end - 1];
  return most_differing(ones, radii_[place]) + kFall;
}

/// Sorts the blocks of right rows by their bounds for left rows with `fewest` to `most` ones.
void BitNearestWalker::order_visits(std::uint32_t fewest, std::uint32_t most) {
  constexpr std::uint32_t kBlockRows = kBlockGroups * kGroupPoints;
  const std::uint32_t rows = plan_.right->rows();
  visits_.clear();
  for (std::uint64_t at = 0; at < rows; at += kBlockRows) {
    const auto first = static_cast<std::uint32_t>(at);
    const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, at + kBlockRows));
    visits_.push_back({least_distance(fewest, most, first, end), first, end});
  }
  std::stable_sort(visits_.begin(), visits_.end(),
                   [](const Visit& a, const Visit& b) { return a.least < b.least; });
}

/// Rows of one word lie one after the other in all groups, those of several in one group alone.
void BitNearestWalker::look_at(std::uint32_t place, const Visit& visit) {
  const BitIndex& right = *plan_.right;
  const std::uint32_t ones = plan_.left->ones[first_ + place];
  if (least_distance(ones, ones, visit.first, visit.end) > radii_[place]) return;
  const std::uint32_t span = plan_.words() == 1 ? kSpanGroups * kGroupPoints : kGroupPoints;
  const std::uint64_t* const query = queries_.data() + std::size_t{place} * plan_.words();
  progress_.candidates += visit.end - visit.first;
  for (std::uint32_t first = visit.first; first < visit.end; first += span) {
    const std::int64_t most = most_differing_within(place, visit);
    if (most < 0) return;
    const std::size_t near = plan_.scan.collect(
        query, {right.row(first), kGroupPoints}, plan_.words(), static_cast<std::uint32_t>(most),
        {0, std::min(span, visit.end - first)}, found_.data());
    for (std::size_t i = 0; i < near; ++i) add(place, first + found_[i]);
  }
}

void BitNearestWalker::add(std::uint32_t place, std::uint32_t right) {
  if (plan_.without_itself && right == first_ + place) return;
  const std::int64_t* const ids = plan_.right->names.ids.data();
  const auto comes_first = [&](const Neighbor& a, const Neighbor& b) {
    return comes_before(plan_.metric, a, b, ids);
  };
  const Neighbor found = {distance(place, right), right};
  if (!(found.raw <= radii_[place])) return;
  Neighbor* const heap = heaps_.data() + place * most_rows_;
  std::uint64_t& size = sizes_[place];
  if (size == most_rows_) {
    if (!comes_first(found, heap[0])) return;
    std::pop_heap(heap, heap + size--, comes_first);
  }
  heap[size++] = found;
  std::push_heap(heap, heap + size, comes_first);
  if (size == most_rows_) radii_[place] = heap[0].raw;
}

double BitNearestWalker::distance(std::uint32_t place, std::uint32_t right) const {
  const std::uint64_t* const query = queries_.data() + std::size_t{place} * plan_.words();
  const std::uint32_t differing =
      hamming_distance(query, 1, plan_.right->row(right), kGroupPoints, plan_.words());
  if (plan_.metric == Metric::kHamming) return differing;
  const std::uint32_t ones = plan_.left->ones[first_ + place] + plan_.right->ones[right];
  return jaccard_distance((ones - differing) / 2, ones);
}

void BitNearestWalker::write(std::uint32_t place) {
  Neighbor* const heap = heaps_.data() + place * most_rows_;
  const std::uint64_t size = sizes_[place];
  const std::int64_t* const ids = plan_.right->names.ids.data();
  std::sort_heap(heap, heap + size, [&](const Neighbor& a, const Neighbor& b) {
    return comes_before(plan_.metric, a, b, ids);
  });
  BatchBuffer& batch = writer_.make_room(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    batch.neighbors[batch.entry_count + i] = heap[i].position;
    batch.distances[batch.entry_count + i] = heap[i].raw;
  }
  writer_.add_row(batch, first_ + place, size, size);
}

}  // namespace gpujoin::cpu

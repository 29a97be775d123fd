#include "cpu/walk/bit_nearest_walker.h"

#include <algorithm>

#include "core/hamming.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint32_t kBlockGroups = 64;  // right groups that stay in the cache
constexpr std::uint32_t kSpanGroups = 16;   // that are compared before radii shrink

/// How far a number lies outside of an interval.
std::uint32_t gap_to(std::uint32_t number, std::uint32_t low, std::uint32_t high) {
  return number < low ? low - number : number > high ? number - high : 0;
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
    most_bits_[place] = plan_.most;
    const std::uint64_t* const row = plan_.left->row(first_ + place);
    for (std::uint32_t w = 0; w < plan_.words(); ++w)
      queries_[place * plan_.words() + w] = row[w * kGroupPoints];
  }
  order_visits(plan_.left->ones[first_], plan_.left->ones[first_ + rows - 1]);
  for (const Visit& visit : visits_) {
    pool_.throw_if_stopped();
    if (visit.gap > *std::max_element(most_bits_, most_bits_ + rows)) break;
    for (std::uint32_t place = 0; place < rows; ++place) look_at(place, visit);
  }
  for (std::uint32_t place = 0; place < rows; ++place)
    if (sizes_[place] > 0) write(place);
  progress_.report();
  writer_.serve_caller();
}

/// The blocks of right rows by how far their ones are from those of left rows with so many.
void BitNearestWalker::order_visits(std::uint32_t fewest, std::uint32_t most) {
  const BitIndex& right = *plan_.right;
  constexpr std::uint32_t kBlockRows = kBlockGroups * kGroupPoints;
  visits_.clear();
  for (std::uint64_t first = 0; first < right.rows(); first += kBlockRows) {
    const auto end =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(right.rows(), first + kBlockRows));
    const std::uint32_t low = right.ones[first], high = right.ones[end - 1];
    const std::uint32_t gap = std::min(gap_to(fewest, low, high), gap_to(most, low, high));
    const bool overlap = fewest <= low && high <= most;
    visits_.push_back({overlap ? 0 : gap, static_cast<std::uint32_t>(first), end});
  }
  std::stable_sort(visits_.begin(), visits_.end(),
                   [](const Visit& a, const Visit& b) { return a.gap < b.gap; });
}

/// Rows of one word lie one after the other in all groups, those of several in one group alone.
void BitNearestWalker::look_at(std::uint32_t place, const Visit& visit) {
  const BitIndex& right = *plan_.right;
  if (gap_to(plan_.left->ones[first_ + place], right.ones[visit.first], right.ones[visit.end - 1]) >
      most_bits_[place])
    return;
  const std::uint32_t span = plan_.words() == 1 ? kSpanGroups * kGroupPoints : kGroupPoints;
  const std::uint64_t* const query = queries_.data() + std::size_t{place} * plan_.words();
  progress_.candidates += visit.end - visit.first;
  for (std::uint32_t first = visit.first; first < visit.end; first += span) {
    const std::size_t near = plan_.scan.collect(
        query, {right.row(first), kGroupPoints}, plan_.words(), most_bits_[place],
        {0, std::min(span, visit.end - first)}, found_.data());
    for (std::size_t i = 0; i < near; ++i) add(place, first + found_[i]);
  }
}

void BitNearestWalker::add(std::uint32_t place, std::uint32_t right) {
  if (plan_.without_itself && right == first_ + place) return;
  const std::int64_t* const ids = plan_.right->names.ids.data();
  const auto comes_first = [ids](const Neighbor& a, const Neighbor& b) {
    return comes_before(Metric::kHamming, a, b, ids);
  };
  const std::uint64_t* const query = queries_.data() + std::size_t{place} * plan_.words();
  const Neighbor found = {static_cast<double>(hamming_distance(query, 1, plan_.right->row(right),
                                                               kGroupPoints, plan_.words())),
                          right};
  Neighbor* const heap = heaps_.data() + place * most_rows_;
  std::uint64_t& size = sizes_[place];
  if (size == most_rows_) {
    if (!comes_first(found, heap[0])) return;
    std::pop_heap(heap, heap + size--, comes_first);
  }
  heap[size++] = found;
  std::push_heap(heap, heap + size, comes_first);
  if (size == most_rows_) most_bits_[place] = static_cast<std::uint32_t>(heap[0].raw);
}

void BitNearestWalker::write(std::uint32_t place) {
  Neighbor* const heap = heaps_.data() + place * most_rows_;
  const std::uint64_t size = sizes_[place];
  const std::int64_t* const ids = plan_.right->names.ids.data();
  std::sort_heap(heap, heap + size, [ids](const Neighbor& a, const Neighbor& b) {
    return comes_before(Metric::kHamming, a, b, ids);
  });
  BatchBuffer& batch = writer_.make_room(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    batch.neighbors[batch.entry_count + i] = heap[i].position;
    batch.distances[batch.entry_count + i] = heap[i].raw;
  }
  writer_.add_row(batch, first_ + place, size, size);
}

}  // namespace gpujoin::cpu

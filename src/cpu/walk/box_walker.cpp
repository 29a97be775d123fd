#include "cpu/walk/box_walker.h"

#include <algorithm>
#include <bit>

#include "core/box_sweep.h"

namespace gpujoin::cpu {
namespace {

/// The first place from `first` on whose value is not in front; the search begins at `first`.
/// `in_front` is true of some places from `first` on and then of none.
template <class InFront>
std::uint32_t search_from(const Buffer<double>& values, std::uint32_t first,
                          const InFront& in_front) {
  const std::size_t size = values.size();
  std::size_t low = first, step = 1;
  while (low + step < size && in_front(values[low + step])) {
    low += step;
    step *= 2;
  }
  return static_cast<std::uint32_t>(
      std::partition_point(values.begin() + low, values.begin() + std::min(size, low + step),
                           in_front) -
      values.begin());
}

}  // namespace

template <class Scan>
void WindowList::add(std::uint32_t begin, std::uint32_t end, const Scan& scan) {
  while (begin < end) {
    const std::uint32_t size = std::min(end - begin, kMostCandidates - candidates);
    if (count > 0 && windows[count - 1].end == begin)
      windows[count - 1].end += size;
    else
      windows[count++] = {begin, begin + size};
    begin += size;
    candidates += size;
    if (count == kMostWindows || candidates == kMostCandidates) scan();
  }
}

template <class T, class Sink>
void BoxWalker<T, Sink>::walk(std::uint32_t first, std::uint32_t end, Window within) {
  constexpr std::uint64_t kReported = 1 << 22;  // candidates after which a waiting caller is served
  const bool in_cells = walk_.method == BoxMethod::kLayeredGrid;
  progress_.begin();
  entered_ = false;
  std::uint32_t ahead = first;
  for (std::uint32_t position = first; position < end; ++position) {
    pool_.throw_if_stopped();
    for (; in_cells && ahead < end && ahead - position < kAhead; ++ahead) look_ahead(ahead);
    if (!load(position)) continue;
    look_up(position, within);
    if (progress_.candidates >= kReported) end_piece(progress_, sink);
  }
  end_piece(progress_, sink);
}

/// Returns false where there is no box.
template <class T, class Sink>
bool BoxWalker<T, Sink>::load(std::uint32_t position) {
  if (walk_.sorted == nullptr) {
    query_ = box_of_row<T>(*walk_.rows, position);
    return is_box(query_, index_.dims);
  }
  walk_.sorted->load_box(position, loaded_);
  query_ = loaded_;
  return true;
}

/// In a self-join a box is compared with later positions only, so that each pair is met once. All
/// pairs include (p, p).
template <class T, class Sink>
void BoxWalker<T, Sink>::look_up(std::uint32_t position, Window within) {
  position_ = position;
  from_ = within.begin;
  if (walk_.self_join)
    from_ = std::max(from_, walk_.pairs == PairSelection::kAll ? position : position + 1);
  switch (walk_.method) {
    case BoxMethod::kLayeredGrid:
      look_up_parts();
      scan_blocks();
      break;
    case BoxMethod::kSortSweep:
      within = sweep_window(within);
      [[fallthrough]];
    default:
      add_boxes(std::max(within.begin, from_), within.end);
  }
  scan_boxes();
}

/// boxes_above(), by searches from where the last ones ended: positions ascend, and so do the
/// places where windows begin. A self-join is sorted by low bounds, so that the box at the earlier
/// position finds the other one.
template <class T, class Sink>
Window BoxWalker<T, Sink>::sweep_window(Window within) {
  const auto low = static_cast<double>(query_[walk_.sweep_dimension]);
  const double high = widened_high(static_cast<double>(query_[index_.dims + walk_.sweep_dimension]),
                                   walk_.test.reach);
  if (walk_.self_join) {
    within.begin = position_;
  } else if (!entered_) {
    within.begin = first_above(index_.lows.data(), 0, index_.boxes, low, walk_.first_side);
  } else {
    within.begin = search_from(index_.lows, sweep_begin_,
                               [&](double x) { return walk_.first_side ? x < low : x <= low; });
  }
  entered_ = true;
  sweep_begin_ = within.begin;
  within.end = search_from(index_.lows, within.begin, [&](double x) { return x <= high; });
  return within;
}

/// Finds the cells of a box that comes soon, and has their records fetched ahead: boxes come in any
/// order, so that a walk would wait for the records.
template <class T, class Sink>
void BoxWalker<T, Sink>::look_ahead(std::uint32_t position) {
  constexpr std::uint32_t kMostFetched = 8;
  if (!load(position)) return;
  const LayeredGrid& grid = index_.grid;
  CellRectangle& cells = cells_[position % kAhead];
  cells = cells_of_box(grid, query_, index_.dims, walk_.test.reach);
  for (std::uint32_t i = 0; i < std::min(cells.cells, kMostFetched); ++i)
    __builtin_prefetch(index_.table.data() +
                       cell_of_rectangle(grid, cells, i) * grid.record_words());
}

/// Finds the parts that have a bit in one of the cells of the box.
template <class T, class Sink>
void BoxWalker<T, Sink>::look_up_parts() {
  const LayeredGrid& grid = index_.grid;
  const CellRectangle& cells = cells_[position_ % kAhead];
  if (cells.cells > kMostCellsOfBox) {
    for (std::uint32_t first = 0; first < grid.parts; first += kWordBits)
      add_parts(~std::uint64_t{0} >> (kWordBits - std::min(kWordBits, grid.parts - first)), first);
    return;
  }
  const std::uint64_t* records[kMostCellsOfBox + 1];
  std::uint32_t count = 0;
  std::uint64_t words = 0;
  const auto visit = [&](std::uint32_t cell) {
    const std::uint64_t* const record = index_.table.data() + cell * grid.record_words();
    if (record[0] == 0) return;
    words |= record[0];
    records[count++] = record;
  };
  for (std::uint32_t i = 0; i < cells.cells; ++i) visit(cell_of_rectangle(grid, cells, i));
  visit(grid.cells);
  for (; words != 0; words &= words - 1) {
    const auto word = static_cast<std::uint32_t>(std::countr_zero(words));
    std::uint64_t bits = 0;
    for (std::uint32_t i = 0; i < count; ++i) bits |= records[i][1 + word];
    add_parts(bits, word * kWordBits);
  }
}

/// Scans the blocks of the parts from `first` on whose bits are set.
template <class T, class Sink>
void BoxWalker<T, Sink>::add_parts(std::uint64_t bits, std::uint32_t first) {
  const std::uint32_t part_blocks = index_.grid.part_boxes / kBlockBoxes;
  const std::uint32_t all_blocks = (index_.boxes + kBlockBoxes - 1) / kBlockBoxes;
  for (; bits != 0; bits &= bits - 1) {
    const std::uint32_t part = first + static_cast<std::uint32_t>(std::countr_zero(bits));
    const std::uint32_t begin = std::max(part * part_blocks, from_ / kBlockBoxes);
    const std::uint32_t end = std::min(part * part_blocks + part_blocks, all_blocks);
    blocks_.add(begin, end, [this] { scan_blocks(); });
  }
}

template <class T, class Sink>
void BoxWalker<T, Sink>::add_boxes(std::uint32_t begin, std::uint32_t end) {
  boxes_.add(begin, end, [this] { scan_boxes(); });
}

/// Scans only blocks whose surrounding box passes: passes() is monotone.
template <class T, class Sink>
void BoxWalker<T, Sink>::scan_blocks() {
  if (blocks_.count == 0) return;
  const BoxScan scan{index_.bounds.data(), query_, index_.dims, walk_.test.threshold};
  const std::size_t found =
      walk_.kernel.collect(scan, blocks_.windows, blocks_.count, found_blocks_.data());
  blocks_.clear();
  for (std::size_t i = 0; i < found; ++i) {
    const std::uint32_t begin = found_blocks_[i] * kBlockBoxes;
    add_boxes(std::max(begin, from_), std::min(begin + kBlockBoxes, index_.boxes));
  }
}

template <class T, class Sink>
void BoxWalker<T, Sink>::scan_boxes() {
  if (boxes_.count == 0) return;
  pool_.throw_if_stopped();
  progress_.candidates += boxes_.candidates;
  const BoxScan scan{index_.tiles.data(), query_, index_.dims, walk_.test.threshold};
  // The first candidate may be the box itself.
  if constexpr (TakesNumbers<Sink>) {
    const std::uint64_t found = walk_.kernel.count(scan, boxes_.windows, boxes_.count);
    sink.take_number(position_, found, walk_.self_join && boxes_.windows[0].begin == position_);
    boxes_.clear();
  } else {
    std::uint32_t* const partners = found_boxes_.data();
    const std::size_t found = walk_.kernel.collect(scan, boxes_.windows, boxes_.count, partners);
    boxes_.clear();
    for (std::size_t at = 0; at < found; at += walk_.batch_entries)
      give_copy(sink, {position_, partners + at, nullptr,
                       std::min<std::uint64_t>(walk_.batch_entries, found - at),
                       walk_.self_join && partners[at] == position_});
  }
}

template class BoxWalker<float, TotalSink>;
template class BoxWalker<double, TotalSink>;
template class BoxWalker<float, BoxPairSink>;
template class BoxWalker<double, BoxPairSink>;

}  // namespace gpujoin::cpu

#include "cpu/walk/cluster_cells.h"

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "core/cluster.h"
#include "cpu/walk/cluster_table.h"
#include "engine/request/buffer.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint32_t kPiece = 256;      // candidates that are compared at a time
constexpr std::uint32_t kManyPoints = 32;  // of a cell: its box is looked at for each point
constexpr std::uint32_t kFewPoints =
    96;  // around a cell: they are compared at once, kPiece at most
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Calls visit(piece) for pieces of a window, kPiece points at most, until it returns false.
template <class Visit>
void for_pieces(Window window, const Visit& visit) {
  while (window.begin < window.end) {
    const std::uint32_t points = std::min(kPiece, window.end - window.begin);
    if (!visit(Window{window.begin, window.begin + points})) return;
    window.begin += points;
  }
}

/// What boxes tell of the cells of an index.
struct CellBoxes {
  CellBoxes(MemoryBudget& budget, std::size_t cells, std::uint32_t grid_dims)
      : columns(grid_dims),
        ends(budget, cells * 2 * grid_dims),
        whole(budget, cells),
        first_core(budget, cells) {}

  double* at(std::size_t cell) { return ends.data() + cell * 2 * columns; }
  const double* at(std::size_t cell) const { return ends.data() + cell * 2 * columns; }

  std::uint32_t columns;             ///< of the grid
  Buffer<double> ends;               ///< [cells][2 * columns]: low, high of each, columns ascending
  Buffer<std::uint8_t> whole;        ///< all points of the cell are neighbours
  Buffer<std::uint32_t> first_core;  ///< kNone: there is none
};

/// What all workers know.
struct CellWalk {
  const JoinPlan& plan;
  WorkerPool& pool;
  std::vector<std::uint32_t> columns;  ///< of the grid, ascending
  bool proves;                         ///< the grid has all columns, and boxes prove pairs
  CellBoxes& boxes;
  ClusterTable& table;
};

/// One worker. Boxes of the grid's columns bound raw distances: rounded differences, their squares
/// and sums of some of the terms in their order are monotone.
template <Metric M>
class CellWalker {
 public:
  CellWalker(const CellWalk& walk, const WalkTools& tools)
      : walk_(walk),
        plan_(walk.plan),
        index_(*walk.plan.left),
        progress_(tools.tally),
        query_(index_.dims),
        low_(index_.dims),
        high_(index_.dims) {
    scan_ = {index_.tiles.data(), query_.data(), index_.dims,
             plan_.strategy.screened ? plan_.screen.reject : plan_.threshold.raw,
             plan_.strategy.short_circuit};
    const std::vector<std::uint32_t>& order = plan_.layout->frame.order;
    for (const std::uint32_t column : walk.columns)
      places_.push_back(
          static_cast<std::size_t>(std::find(order.begin(), order.end(), column) - order.begin()));
  }

  WalkProgress& progress() { return progress_; }
  void measure(std::size_t first, std::size_t end) {
    for (std::size_t cell = first; cell < end; ++cell) measure_cell(cell);
  }
  void mark_cores(std::size_t first, std::size_t end) {
    progress_.begin();
    for (std::size_t cell = first; cell < end; ++cell) mark_cores_of(cell);
    progress_.report();
  }
  void unite(std::size_t first, std::size_t end) {
    progress_.begin();
    for (std::size_t cell = first; cell < end; ++cell) unite_cell(cell);
    progress_.report();
  }

 private:
  /// Neighbouring cells that follow one another.
  struct Row {
    std::size_t begin, end;
  };
  /// Places that differ in the last column of the grid alone.
  struct Line {
    std::uint64_t base;  ///< the key of the first one
    bool exists;
    Row row;  ///< the one found last
  };

  Window points_of(std::size_t cell) const {
    return {index_.cell_starts[cell], index_.cell_starts[cell + 1]};
  }
  std::uint32_t size_of(std::size_t cell) const {
    return index_.cell_starts[cell + 1] - index_.cell_starts[cell];
  }
  std::size_t row_count() const {
    std::size_t rows = 1;
    for (std::uint32_t d = 1; d < grid().dims; ++d) rows *= 2 * plan_.cell_radius + 1;
    return rows;
  }
  const GridGeometry& grid() const { return plan_.layout->order.grid; }
  Window points_of(const Row& row) const {
    return {index_.cell_starts[row.begin], index_.cell_starts[row.end]};
  }

  void measure_cell(std::size_t cell) {
    const std::vector<std::uint32_t>& order = plan_.layout->frame.order;
    const std::uint32_t dims = index_.dims;
    const Window points = points_of(cell);
    for (std::uint32_t point = points.begin; point < points.end; ++point) {
      index_.load_point(point, query_.data());
      for (std::uint32_t place = 0; place < dims; ++place) {
        const double x = query_[place];
        double &low = low_[order[place]], &high = high_[order[place]];
        low = point == points.begin || x < low ? x : low;
        high = point == points.begin || x > high ? x : high;
      }
    }
    double* const box = walk_.boxes.at(cell);
    for (std::size_t c = 0; c < walk_.columns.size(); ++c) {
      box[2 * c] = low_[walk_.columns[c]];
      box[2 * c + 1] = high_[walk_.columns[c]];
    }
    walk_.boxes.whole[cell] =
        plan_.metric != Metric::kCosine &&
        raw_distance<M>(low_.data(), high_.data(), dims) <= plan_.threshold.raw;
    walk_.boxes.first_core[cell] = kNone;
  }

  /// Finds the rows of cells around one that may have neighbours of its points, its own first.
  void find_rows(std::size_t cell) {
    const GridGeometry& grid = this->grid();
    rows_.clear();
    if (grid.dims == 0) {
      rows_.push_back({0, index_.cells()});
      return;
    }
    const Buffer<std::uint64_t>& keys = index_.cell_keys;
    const std::uint64_t key = keys[cell], mask = (std::uint64_t{1} << grid.bits) - 1;
    if (lines_.empty() || (key & ~mask) != lines_of_) find_lines(key & ~mask);
    const auto here = static_cast<std::int64_t>(key & mask);
    const auto last = static_cast<std::int64_t>(grid.cells[grid.dims - 1]) - 1;
    const auto radius = static_cast<std::int64_t>(plan_.cell_radius);
    const auto low = static_cast<std::uint64_t>(std::max<std::int64_t>(0, here - radius));
    const auto high = static_cast<std::uint64_t>(std::min(last, here + radius));
    for (Line& line : lines_) {
      if (!line.exists) continue;
      // Most cells come in the order of their keys: the row is not far beyond the last one.
      const std::uint64_t first = line.base | low, most = line.base | high;
      Row& row = line.row;
      if (row.begin > 0 && keys[row.begin - 1] >= first)
        row = {index_.find_cell(row.begin, first), 0};
      while (row.begin < keys.size() && keys[row.begin] < first) ++row.begin;
      if (row.end <= row.begin || keys[row.end - 1] > most) row.end = row.begin;
      while (row.end < keys.size() && keys[row.end] <= most) ++row.end;
      if (row.begin < row.end) rows_.push_back(row);
    }
  }

  /// Looks around for the lines of places in which the rows lie of cells whose keys begin so.
  void find_lines(std::uint64_t key) {
    const std::uint32_t span = 2 * plan_.cell_radius + 1;
    const std::size_t count = row_count();
    lines_.resize(count);
    lines_of_ = key;
    for (std::size_t i = 0; i < count; ++i) {
      Line& line = lines_[i];
      line.base = 0;
      line.exists = find_base(key, (count / 2 + i) % count, span, &line.base);
      if (line.exists) line.row = {index_.find_cell(line.row.begin, line.base), 0};
    }
  }

  /// The key of a neighbouring line's first place; false: it lies outside the grid.
  bool find_base(std::uint64_t key, std::size_t number, std::uint32_t span,
                 std::uint64_t* base) const {
    const std::uint32_t bits = grid().bits;
    for (std::uint32_t d = grid().dims - 1; d-- > 0; number /= span) {
      const std::uint32_t shift = bits * (grid().dims - 1 - d);
      const std::uint64_t there =
          (key >> shift & ((std::uint64_t{1} << bits) - 1)) + number % span - plan_.cell_radius;
      if (there >= grid().cells[d]) return false;  // below 0 it wraps
      *base |= there << shift;
    }
    return true;
  }

  void load(std::uint32_t point) {
    point_ = point;
    index_.load_point(point, query_.data());
  }

  /// The points of windows, kPiece at most, within eps of the loaded one: in found_, with raw
  /// distances in raws_, which are the definition's where `exact`.
  std::size_t collect(std::span<const Window> windows, bool exact) {
    look_at(windows);
    const std::size_t passed =
        plan_.kernel.collect(scan_, windows.data(), windows.size(), found_, raws_);
    if (!plan_.strategy.screened) return passed;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < passed; ++i) {
      const bool sure = raws_[i] <= plan_.screen.accept;
      if (!sure || exact) plan_.exact_raws(point_, &found_[i], 1, &raws_[i]);
      progress_.rechecked += sure ? 0 : 1;
      if (!sure && !(raws_[i] <= plan_.threshold.raw)) continue;
      found_[kept] = found_[i];
      raws_[kept++] = raws_[i];
    }
    return kept;
  }

  void look_at(std::span<const Window> windows) {
    walk_.pool.throw_if_stopped();
    for (const Window& window : windows) progress_.candidates += window.end - window.begin;
  }

  /// How many points of windows, kPiece at most, are within eps of the loaded one.
  std::uint64_t count(std::span<const Window> windows) {
    if (plan_.strategy.screened) return collect(windows, false);
    look_at(windows);
    return plan_.kernel.count(scan_, windows.data(), windows.size());
  }

  /// The same of a window of any size; it may stop at `enough`.
  std::uint64_t count(Window window, std::uint64_t enough) {
    std::uint64_t found = 0;
    for_pieces(window, [&](Window piece) {
      found += count({&piece, 1});
      return found < enough;
    });
    return found;
  }

  /// A lower bound on raw distances of the loaded point and points of a cell.
  double raw_gap(std::size_t cell) const {
    const double* box = walk_.boxes.at(cell);
    double raw = 0;
    for (std::size_t c = 0; c < places_.size(); ++c, box += 2) {
      const double x = query_[places_[c]];
      raw = add_coordinate<M>(raw, x, x < box[0] ? box[0] : std::min(x, box[1]));
    }
    return raw;
  }
  /// The same of the points of two cells.
  double raw_gap(std::size_t a, std::size_t b) const {
    const double *x = walk_.boxes.at(a), *y = walk_.boxes.at(b);
    double raw = 0;
    for (std::size_t c = 0; c < walk_.columns.size(); ++c, x += 2, y += 2)
      raw = add_gap<M>(raw, x[0], x[1], y[0], y[1]);
    return raw;
  }
  /// An upper bound, where the grid has all columns.
  double raw_span(std::size_t a, std::size_t b) const {
    const double *x = walk_.boxes.at(a), *y = walk_.boxes.at(b);
    double raw = 0;
    for (std::size_t c = 0; c < walk_.columns.size(); ++c, x += 2, y += 2)
      raw = add_span<M>(raw, x[0], x[1], y[0], y[1]);
    return raw;
  }
  /// Whether the loaded point may have neighbours in a cell. The cell's own points tell in less
  /// time where they are few.
  bool may_reach(std::size_t cell) const {
    return size_of(cell) < kManyPoints || !(raw_gap(cell) > scan_.threshold);
  }

  void mark(std::size_t cell, std::uint32_t point) {
    walk_.table.mark_core(point);
    std::uint32_t& first = walk_.boxes.first_core[cell];
    if (first == kNone) first = point;
  }

  void mark_cores_of(std::size_t cell) {
    const Window points = points_of(cell);
    const bool whole = walk_.boxes.whole[cell] != 0;
    if (plan_.min_points <= (whole ? points.end - points.begin : 1u)) {
      for (std::uint32_t point = points.begin; point < points.end; ++point) mark(cell, point);
      return;
    }
    find_rows(cell);
    const bool few = has_few_around(cell);
    for (std::uint32_t point = points.begin; point < points.end; ++point)
      if (few ? is_core_of_few(cell, point) : is_core(cell, point)) mark(cell, point);
  }

  bool has_few_around(std::size_t cell) const {
    if (plan_.cell_radius > 1 && walk_.boxes.whole[cell] != 0 && size_of(cell) > 1) return false;
    std::uint32_t points = 0;
    for (const Row& row : rows_) points += points_of(row).end - points_of(row).begin;
    return points <= kFewPoints;
  }

  void add_window(std::uint32_t begin, std::uint32_t end) {
    if (begin < end) windows_.push_back({begin, end});
  }

  /// is_core() where few points are around: those of the cell's own row are compared, and then all
  /// others.
  bool is_core_of_few(std::size_t cell, std::uint32_t point) {
    const Window own = walk_.boxes.whole[cell] != 0 ? points_of(cell) : Window{point, point + 1};
    std::uint64_t neighbors = own.end - own.begin;
    load(point);
    windows_.clear();
    add_window(points_of(rows_.front()).begin, own.begin);
    add_window(own.end, points_of(rows_.front()).end);
    neighbors += count(windows_);
    if (neighbors >= plan_.min_points) return true;
    windows_.clear();
    for (std::size_t row = 1; row < rows_.size(); ++row) windows_.push_back(points_of(rows_[row]));
    return neighbors + count(windows_) >= plan_.min_points;
  }

  bool is_core(std::size_t cell, std::uint32_t point) {
    const std::uint64_t enough = plan_.min_points;
    load(point);
    std::uint64_t neighbors = walk_.boxes.whole[cell] != 0 ? size_of(cell) : 1;
    for (const Row& row : rows_) {
      for (std::size_t there = row.begin; there < row.end && neighbors < enough;) {
        // Cells with few points are compared together.
        std::size_t end = there;
        std::uint32_t points = 0;
        while (end < row.end && end != cell && points + size_of(end) <= kPiece)
          points += size_of(end++);
        if (end > there) {
          neighbors +=
              count({index_.cell_starts[there], index_.cell_starts[end]}, enough - neighbors);
          there = end;
          continue;
        }
        if (there != cell)
          neighbors += may_reach(there) ? count(points_of(there), enough - neighbors) : 0;
        else if (walk_.boxes.whole[cell] == 0)
          neighbors += count({index_.cell_starts[cell], point}, enough - neighbors) +
                       count({point + 1, index_.cell_starts[cell + 1]}, enough - neighbors);
        ++there;
      }
      if (neighbors >= enough) return true;
    }
    return neighbors >= enough;
  }

  void unite_cell(std::size_t cell) {
    const Window points = points_of(cell);
    find_rows(cell);
    if (has_few_around(cell)) return unite_few(points);
    const std::uint32_t first = walk_.boxes.first_core[cell];
    if (first != kNone) {
      unite_within(cell, first);
      for (const Row& row : rows_)
        for (std::size_t there = std::max(row.begin, cell + 1); there < row.end; ++there)
          if (walk_.boxes.first_core[there] != kNone) unite_cells(cell, there);
    }
    for (std::uint32_t point = points.begin; point < points.end; ++point)
      if (!walk_.table.is_core(point)) find_core_of(point);
  }

  /// unite_cell() where few points are around.
  void unite_few(Window points) {
    for (std::uint32_t point = points.begin; point < points.end; ++point) {
      const bool core = walk_.table.is_core(point);
      windows_.clear();
      for (const Row& row : rows_) {
        const Window there = points_of(row);
        add_window(core ? std::max(there.begin, point + 1) : there.begin, there.end);
      }
      load(point);
      if (core)
        unite_found(point, collect(windows_, false));
      else
        follow_best(point, [&](Neighbor* best) { find_better(windows_, best); });
    }
  }

  /// Unites a core point with those among the points that collect() found.
  void unite_found(std::uint32_t point, std::size_t found) {
    std::uint32_t root = point;
    for (std::size_t i = 0; i < found; ++i)
      if (walk_.table.is_core(found_[i])) root = walk_.table.unite(root, found_[i]);
  }

  void unite_within(std::size_t cell, std::uint32_t first) {
    const Window points = points_of(cell);
    for (std::uint32_t point = first; point < points.end; ++point) {
      if (!walk_.table.is_core(point)) continue;
      if (walk_.boxes.whole[cell] != 0)
        walk_.table.unite(first, point);
      else
        unite_point(point, {point + 1, points.end}, false);
    }
  }

  /// Unites a core point with those in a window; whether it met any. `one`: they are one already.
  bool unite_point(std::uint32_t point, Window window, bool one) {
    if (window.begin >= window.end) return false;
    load(point);
    bool met = false;
    for_pieces(window, [&](Window piece) {
      const std::size_t found = collect({&piece, 1}, false);
      for (std::size_t i = 0; i < found && !(met && one); ++i) {
        if (!walk_.table.is_core(found_[i])) continue;
        walk_.table.unite(point, found_[i]);
        met = true;
      }
      return !(met && one);
    });
    return met;
  }

  void unite_cells(std::size_t a, std::size_t b) {
    const CellBoxes& boxes = walk_.boxes;
    ClusterTable& table = walk_.table;
    const bool whole = boxes.whole[a] != 0 && boxes.whole[b] != 0;
    if (whole && table.root(boxes.first_core[a]) == table.root(boxes.first_core[b])) return;
    if (raw_gap(a, b) > scan_.threshold) return;
    if (whole && walk_.proves && raw_span(a, b) <= plan_.threshold.raw) {
      table.unite(boxes.first_core[a], boxes.first_core[b]);
      return;
    }
    if (whole && size_of(b) < size_of(a)) std::swap(a, b);
    const Window points = points_of(a);
    for (std::uint32_t point = boxes.first_core[a]; point < points.end; ++point) {
      if (!table.is_core(point)) continue;
      if (size_of(b) >= kManyPoints) {
        load(point);
        if (!may_reach(b)) continue;
      }
      if (unite_point(point, points_of(b), boxes.whole[b] != 0) && whole) return;
    }
  }

  /// Finds the cluster of a point that is no core point: that of a core point near it.
  void find_core_of(std::uint32_t point) {
    load(point);
    follow_best(point, [&](Neighbor* best) {
      for (const Row& row : rows_) find_better(row, best);
    });
  }

  /// Makes a point follow the core point that search(best) finds, if any.
  template <class Search>
  void follow_best(std::uint32_t point, const Search& search) {
    Neighbor best{0, kNone};
    search(&best);
    if (best.position != kNone) walk_.table.follow(point, best.position);
  }

  void find_better(const Row& row, Neighbor* best) {
    for (std::size_t there = row.begin; there < row.end;) {
      std::size_t end = there;
      std::uint32_t points = 0;
      while (end < row.end && points + size_of(end) <= kPiece) points += size_of(end++);
      if (end > there) {
        const Window window{index_.cell_starts[there], index_.cell_starts[end]};
        find_better({&window, 1}, best);
        there = end;
        continue;
      }
      if (walk_.boxes.first_core[there] != kNone && may_reach(there))
        for_pieces(points_of(there), [&](Window piece) {
          find_better({&piece, 1}, best);
          return true;
        });
      ++there;
    }
  }

  /// The same among the points of windows, kPiece at most.
  void find_better(std::span<const Window> windows, Neighbor* best) {
    const std::size_t found = collect(windows, true);
    for (std::size_t i = 0; i < found; ++i) {
      if (!walk_.table.is_core(found_[i])) continue;
      const Neighbor candidate{raws_[i], found_[i]};
      if (best->position == kNone || is_better_core(plan_, candidate, *best)) *best = candidate;
    }
  }

  const CellWalk& walk_;
  const JoinPlan& plan_;
  const GridIndex& index_;
  WalkProgress progress_;
  std::vector<double> query_;  ///< the loaded point, columns as in tiles
  std::vector<double> low_, high_;
  std::vector<std::size_t> places_;  ///< of the grid's columns in it
  std::vector<Line> lines_;          ///< around the one of the cell at hand, its own first
  std::uint64_t lines_of_ = 0;       ///< its base
  std::vector<Row> rows_;
  std::vector<Window> windows_;  ///< of points
  Scan scan_{};
  std::uint32_t point_ = 0;
  std::uint32_t found_[kPiece + kCollectPadding];
  double raws_[kPiece + kCollectPadding];
};

template <Metric M>
void walk_cells_of(const CellWalk& walk, const WalkTools& tools) {
  std::deque<CellWalker<M>> walkers;
  for (unsigned worker = 0; worker < tools.pool.size(); ++worker) walkers.emplace_back(walk, tools);
  const GridIndex& index = *walk.plan.left;
  const std::uint64_t cells = index.cells(), stretch = tools.stretch_of(cells);
  const auto run = [&](auto step) {
    walk_tasks(
        tools, walkers, (cells + stretch - 1) / stretch,
        [&](std::uint64_t task) {
          const std::uint64_t end = std::min(cells, (task + 1) * stretch);
          return std::uint64_t{index.cell_starts[end]} - index.cell_starts[task * stretch];
        },
        [&](CellWalker<M>& walker, std::uint64_t task) {
          (walker.*step)(task * stretch, std::min(cells, (task + 1) * stretch));
        });
  };
  tools.tally.work.expect_walks(3);
  run(&CellWalker<M>::measure);
  run(&CellWalker<M>::mark_cores);
  run(&CellWalker<M>::unite);
}

}  // namespace

void find_clusters(const JoinPlan& plan, const WalkTools& tools) {
  const GridIndex& index = *plan.left;
  const GridGeometry& grid = plan.layout->order.grid;
  const Metric indexed = plan.metric == Metric::kCosine ? Metric::kL2 : plan.metric;
  ClusterTable table(tools.budget, index.rows.size());
  CellBoxes boxes(tools.budget, index.cells(), grid.dims);
  std::vector<std::uint32_t> columns(grid.column, grid.column + grid.dims);
  std::sort(columns.begin(), columns.end());
  const CellWalk walk{plan,    tools.pool,
                      columns, grid.dims == index.dims && plan.metric != Metric::kCosine,
                      boxes,   table};
  by_indexed_metric(indexed, [&]<Metric M>() { walk_cells_of<M>(walk, tools); });
  if (plan.min_points == 1)
    for (std::uint64_t point = index.points; point < index.rows.size(); ++point)
      table.mark_core(static_cast<std::uint32_t>(point));  // not finite: each its own
  table.write(plan, tools);
}

}  // namespace gpujoin::cpu

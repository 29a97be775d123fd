#include "cpu/index/tile_index.h"

#include <algorithm>
#include <cmath>

namespace gpujoin::cpu {
namespace {

/// Packs one group of points after the other.
class Packer {
 public:
  Packer(const IndexLayout& layout, const Dataset& data, const GridIndex& index,
         const Checkpoints& checkpoints, const ScreenRadius& radius, TileIndex& tiles)
      : layout_(layout),
        data_(data),
        index_(index),
        checkpoints_(checkpoints),
        radius_(radius),
        tiles_(tiles) {}

  template <class T>
  void pack(std::uint32_t group) {
    const T* points[kGroupPoints];
    const std::uint32_t size = tiles_.group_size(group);
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const std::size_t position = std::size_t{group} * kGroupPoints + std::min(i, size - 1);
      points[i] = point<T>(data_, index_.rows[position]);
    }
    pack_values(group, size, points);
    fill_box(group, size, points);
  }

 private:
  /// Squared norms and squared errors of the points of a group, over the columns so far.
  struct Sums {
    double norms[kGroupPoints] = {};
    double errors[kGroupPoints] = {};
    bool cut[kGroupPoints] = {};
  };

  template <class T>
  void pack_values(std::uint32_t group, std::uint32_t size, const T* const* points) {
    float* const values = tiles_.values.data() + std::size_t{group} * tiles_.dims * kGroupPoints;
    float* threshold =
        tiles_.thresholds.data() + std::size_t{group} * (checkpoints_.count + 1) * kGroupPoints;
    Sums sums;
    std::uint32_t d = 0;
    for (std::uint32_t checkpoint = 0; checkpoint < checkpoints_.count;
         ++checkpoint, threshold += kGroupPoints) {
      for (; d < checkpoints_.end[checkpoint]; ++d) {
        const std::uint32_t column = layout_.frame.order[d];
        add_column(points, column, values + std::size_t{d} * kGroupPoints, sums);
      }
      set_thresholds(sums, size, d, threshold, threshold + kGroupPoints);
    }
  }

  template <class T>
  void add_column(const T* const* points, std::uint32_t column, float* values, Sums& sums) const {
    const double center = layout_.frame.center[column], scale = layout_.frame.scale;
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const double whole = centred(static_cast<double>(points[i][column]), center, scale);
      const double y = cut_to_screen(whole);
      const float rounded = static_cast<float>(y);
      const double value = rounded, error = y - value;
      values[i] = rounded;
      sums.norms[i] += value * value;
      sums.errors[i] += error * error;
      sums.cut[i] |= y != whole;
    }
  }

  /// The distance over the first columns is at most the distance, so a pair that these columns
  /// exclude is out. Each checkpoint overwrites the thresholds to accept; the last checkpoint's
  /// stay.
  void set_thresholds(const Sums& sums, std::uint32_t size, std::uint32_t dims, float* reject,
                      float* accept) const {
    const double accumulation = single_accumulation(dims);
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const double error = quantization_error(sums.errors[i], sums.norms[i]);
      const ScreenThresholds thresholds = screen_thresholds(radius_of_point(radius_, sums.cut[i]),
                                                            sums.norms[i], error, accumulation);
      reject[i] = i < size ? thresholds.reject : HUGE_VALF;
      accept[i] = thresholds.accept;
    }
  }

  template <class T>
  void fill_box(std::uint32_t group, std::uint32_t size, const T* const* points) {
    const GridGeometry& grid = layout_.order.grid;
    double* const box = tiles_.group_boxes.at(group);
    for (std::uint32_t c = 0; c < grid.dims; ++c) {
      const auto at = [&](std::uint32_t i) {
        return static_cast<double>(points[i][grid.column[c]]);
      };
      box[2 * c] = box[2 * c + 1] = at(0);
      for (std::uint32_t i = 1; i < size; ++i) {
        box[2 * c] = std::min(box[2 * c], at(i));
        box[2 * c + 1] = std::max(box[2 * c + 1], at(i));
      }
    }
  }

  const IndexLayout& layout_;
  const Dataset& data_;
  const GridIndex& index_;
  const Checkpoints& checkpoints_;
  ScreenRadius radius_;
  TileIndex& tiles_;
};

/// The boxes around kTileGroups groups each.
void fill_tile_boxes(WorkerPool& pool, TileIndex& tiles) {
  pool.parallel_for(tiles.tiles(), [&](std::size_t tile, unsigned) {
    const auto first = static_cast<std::uint32_t>(tile) * kTileGroups;
    const std::uint32_t end = std::min(tiles.groups(), first + kTileGroups);
    double* const box = tiles.tile_boxes.at(tile);
    std::copy_n(tiles.group_boxes.at(first), 2 * tiles.group_boxes.columns, box);
    for (std::uint32_t group = first + 1; group < end; ++group) {
      const double* const other = tiles.group_boxes.at(group);
      for (std::uint32_t c = 0; c < tiles.group_boxes.columns; ++c) {
        box[2 * c] = std::min(box[2 * c], other[2 * c]);
        box[2 * c + 1] = std::max(box[2 * c + 1], other[2 * c + 1]);
      }
    }
  });
}

}  // namespace

/// A checkpoint costs about as much as five columns. So the first is after 32 columns, and each
/// next one after half as many again. The maximum number of columns has 17 checkpoints.
Checkpoints make_checkpoints(std::uint32_t dims, bool short_circuit) {
  Checkpoints checkpoints{};
  if (short_circuit)
    for (std::uint32_t end = 32; end + end / 2 <= dims; end += end / 2)
      checkpoints.end[checkpoints.count++] = end;
  checkpoints.end[checkpoints.count++] = dims;
  return checkpoints;
}

TileIndex build_tiles(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
                      const Dataset& data, const GridIndex& index, const Checkpoints& checkpoints,
                      const ScreenRadius& radius) {
  TileIndex tiles{};
  tiles.points = index.points;
  tiles.dims = data.dims;
  tiles.checkpoints = checkpoints.count;
  const std::uint32_t columns = layout.order.grid.dims;
  const std::size_t groups = tiles.groups();
  tiles.values = Buffer<float>(budget, groups * tiles.dims * kGroupPoints);
  tiles.thresholds = Buffer<float>(budget, groups * (checkpoints.count + 1) * kGroupPoints);
  tiles.group_boxes = {columns, Buffer<double>(budget, groups * 2 * columns)};
  tiles.tile_boxes = {columns, Buffer<double>(budget, std::size_t{tiles.tiles()} * 2 * columns)};

  Packer packer(layout, data, index, checkpoints, radius, tiles);
  pool.parallel_for(groups, [&](std::size_t group, unsigned) {
    if (data.scalar == ScalarType::kFloat32)
      packer.pack<float>(static_cast<std::uint32_t>(group));
    else
      packer.pack<double>(static_cast<std::uint32_t>(group));
  });
  fill_tile_boxes(pool, tiles);
  return tiles;
}

bool surely_match(std::uint32_t columns, const double* a, const double* b, double accept) {
  if (accept < 0) return false;
  double squares = 0;
  for (std::uint32_t c = 0; c < columns; ++c) {
    const double span = interval_span(a[2 * c], a[2 * c + 1], b[2 * c], b[2 * c + 1]);
    squares += span * span;
  }
  return boxes_surely_match(squares, accept);
}

bool may_meet(std::uint32_t columns, const double* a, const double* b, double reach) {
  double squares = 0;
  for (std::uint32_t c = 0; c < columns; ++c) {
    const double gap = interval_gap(a[2 * c], a[2 * c + 1], b[2 * c], b[2 * c + 1]);
    squares += gap * gap;
  }
  return boxes_may_meet(squares, reach);
}

}  // namespace gpujoin::cpu

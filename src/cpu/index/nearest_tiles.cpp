#include "cpu/index/nearest_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/nearest_screen.h"
#include "cpu/index/kd_tree.h"
#include "cpu/index/large_buffer.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

float rounded_up(double x) {
  return std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity());
}

/// Packs points that are given row by row.
class Packer {
 public:
  Packer(const NearestFrame& frame, const float* rows, const double* errors, NearestTiles& tiles)
      : frame_(frame), rows_(rows), errors_(errors), tiles_(tiles) {}

  void pack(std::uint32_t group) const {
    const float* points[kGroupPoints];
    const std::uint32_t size = tiles_.group_size(group);
    for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
      const std::uint32_t row = tiles_.rows[group * kGroupPoints + std::min(i, size - 1)];
      points[i] = rows_ + std::size_t{row} * tiles_.columns;
      tiles_.errors[std::size_t{group} * kGroupPoints + i] = rounded_up(errors_[row]);
    }
    const std::size_t places = kGroupPoints;
    float* values = tiles_.values.data() + group * tiles_.columns * places;
    float* norms = tiles_.norms.data() + group * tiles_.checkpoints * places;
    float* thresholds = tiles_.thresholds.data() + group * (tiles_.checkpoints + 1) * places;
    double squares[kGroupPoints] = {};
    std::uint32_t column = 0;
    for (std::uint32_t checkpoint = 0; checkpoint < tiles_.checkpoints; ++checkpoint) {
      for (; column < frame_.checkpoints.end[checkpoint]; ++column, values += kGroupPoints)
        for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
          values[i] = points[i][column];
          squares[i] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
      const double accumulation = single_accumulation(column);
      for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
        *norms++ = static_cast<float>(squares[i]);
        *thresholds++ = i < size ? nearest_right_threshold(squares[i], accumulation) : HUGE_VALF;
      }
    }
    std::fill_n(thresholds, kGroupPoints, HUGE_VALF);  // no pair is accepted unseen
  }

  /// The mean of a tile's points, and how far they lie from it.
  void enclose(std::uint32_t tile) const {
    const std::uint32_t tile_points = NearestTiles::kTileGroups * kGroupPoints;
    const std::uint32_t first = tile * tile_points,
                        end = std::min(tiles_.points, first + tile_points);
    double* const center = tiles_.centers.data() + std::size_t{tile} * tiles_.columns;
    std::fill_n(center, tiles_.columns, 0.0);
    const auto values = [&](std::uint32_t position) {
      return rows_ + std::size_t{tiles_.rows[position]} * tiles_.columns;
    };
    for (std::uint32_t position = first; position < end; ++position)
      for (std::uint32_t c = 0; c < tiles_.columns; ++c)
        center[c] += static_cast<double>(values(position)[c]);
    for (std::uint32_t c = 0; c < tiles_.columns; ++c) center[c] /= end - first;
    double most = 0;
    for (std::uint32_t position = first; position < end; ++position) {
      const float* const point = values(position);
      double squares = 0;
      for (std::uint32_t c = 0; c < tiles_.columns; ++c) {
        const double difference = static_cast<double>(point[c]) - center[c];
        squares += difference * difference;
      }
      most = std::max(most, squares);
    }
    tiles_.radii[tile] = std::sqrt(most);
  }

 private:
  const NearestFrame& frame_;
  const float* rows_;
  const double* errors_;
  NearestTiles& tiles_;
};

/// The columns of all rows. Returns them with bounds on their errors.
std::pair<Buffer<float>, Buffer<double>> write_rows(WorkerPool& pool, MemoryBudget& budget,
                                                    const NearestFrame& frame,
                                                    const Dataset& data) {
  std::pair<Buffer<float>, Buffer<double>> written{
      large_buffer<float>(budget, data.rows * frame.columns), Buffer<double>(budget, data.rows)};
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    Buffer<double> work(budget, frame.work_size());
    for (std::uint64_t row = first; row < end; row += kProductRows) {
      std::uint64_t rows[kProductRows];
      for (std::uint32_t i = 0; i < kProductRows; ++i) rows[i] = row + i;
      frame.write_columns(
          data, rows, static_cast<std::uint32_t>(std::min<std::uint64_t>(kProductRows, end - row)),
          work.data(), written.first.data() + row * frame.columns, written.second.data() + row);
    }
  });
  return written;
}

}  // namespace

NearestTiles build_nearest_tiles(WorkerPool& pool, MemoryBudget& budget, const NearestFrame& frame,
                                 const Dataset& data) {
  NearestTiles tiles;
  tiles.columns = frame.columns;
  tiles.checkpoints = frame.checkpoints.count;
  const auto [values, errors] = write_rows(pool, budget, frame, data);
  const Dataset view{values.data(), data.ids, data.rows, frame.columns, ScalarType::kFloat32};
  RowOrder order = order_by_splits(pool, budget, view);
  tiles.points = order.points;
  tiles.rows = std::move(order.rows);
  tiles.ids = std::move(order.ids);
  const std::size_t places = std::size_t{tiles.groups()} * kGroupPoints;
  tiles.values = large_buffer<float>(budget, places * tiles.columns);
  tiles.norms = Buffer<float>(budget, places * tiles.checkpoints);
  tiles.thresholds = Buffer<float>(budget, places * (tiles.checkpoints + 1));
  tiles.errors = Buffer<float>(budget, places);
  tiles.centers = Buffer<double>(budget, std::size_t{tiles.tiles()} * tiles.columns);
  tiles.radii = Buffer<double>(budget, tiles.tiles());
  const Packer packer(frame, values.data(), errors.data(), tiles);
  pool.parallel_for(tiles.tiles(), [&](std::size_t tile, unsigned) {
    const auto first = static_cast<std::uint32_t>(tile) * NearestTiles::kTileGroups;
    const std::uint32_t end = std::min(tiles.groups(), first + NearestTiles::kTileGroups);
    for (std::uint32_t group = first; group < end; ++group) packer.pack(group);
    packer.enclose(static_cast<std::uint32_t>(tile));
  });
  for (const float error : tiles.errors) tiles.most_error = std::max(tiles.most_error, error);
  return tiles;
}

}  // namespace gpujoin::cpu

#include "cpu/index/byte_tiles.h"

#include <algorithm>
#include <cmath>

#include "core/byte_screen.h"
#include "cpu/index/large_buffer.h"

namespace gpujoin::cpu {
namespace {

constexpr double kUp =
    1 + 0x1p-30;  // more than sums of squares of some thousand numbers round away

/// Returns the step by which the largest magnitude becomes 127, or a larger one.
double step_of(double largest) { return std::max(largest / kMaxByte, kMinByteStep); }

/// Returns the integer that stands for a value, and adds to the squared norm and the squared error.
double to_byte(double value, double step, double* norm, double* error) {
  const double byte = std::clamp(std::nearbyint(value / step), -kMaxByte, kMaxByte);
  *norm += byte * byte;
  *error += (value - step * byte) * (value - step * byte);
  return byte;
}

void pack(const NearestTiles& tiles, std::uint32_t group, ByteTiles* packed) {
  const std::size_t size = std::size_t{tiles.columns} * kGroupPoints;
  const float* const values = tiles.group(group).values;
  std::int8_t* const bytes = packed->values.data() + group * size;
  double largest = 0;
  for (std::size_t i = 0; i < size; ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
  const double step = step_of(largest);
  double norms[kGroupPoints] = {}, errors[kGroupPoints] = {};
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::int8_t>(to_byte(
        static_cast<double>(values[i]), step, &norms[i % kGroupPoints], &errors[i % kGroupPoints]));
  packed->steps[group] = step;
  packed->errors[group] = 0;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::size_t at = std::size_t{group} * kGroupPoints + i;
    packed->norms[at] = static_cast<float>(norms[i]);
    packed->errors[group] =
        std::max(packed->errors[group],
                 (std::sqrt(errors[i]) + static_cast<double>(tiles.errors[at])) * kUp);
  }
}

}  // namespace

ByteTiles build_byte_tiles(WorkerPool& pool, MemoryBudget& budget, const NearestTiles& tiles) {
  const std::uint32_t groups = tiles.groups();
  ByteTiles packed;
  packed.columns = tiles.columns;
  packed.values =
      large_buffer<std::int8_t>(budget, std::size_t{groups} * tiles.columns * kGroupPoints);
  packed.norms = Buffer<float>(budget, std::size_t{groups} * kGroupPoints);
  packed.steps = Buffer<double>(budget, groups);
  packed.errors = Buffer<double>(budget, groups);
  pool.parallel_for(groups, [&](std::size_t group, unsigned) {
    pack(tiles, static_cast<std::uint32_t>(group), &packed);
  });
  return packed;
}

BytePoint make_byte_point(MemoryBudget& budget, const NearestTiles& tiles) {
  BytePoint point;
  point.values = Buffer<float>(budget, tiles.columns);
  const auto value = [&](std::uint32_t column) {
    return static_cast<double>(tiles.values[std::size_t{column} * kGroupPoints]);
  };
  double largest = 0;
  for (std::uint32_t c = 0; c < tiles.columns; ++c)
    largest = std::max(largest, std::fabs(value(c)));
  point.step = step_of(largest);
  double error = 0;
  for (std::uint32_t c = 0; c < tiles.columns; ++c)
    point.values[c] = static_cast<float>(to_byte(value(c), point.step, &point.norm, &error));
  point.error = (std::sqrt(error) + static_cast<double>(tiles.errors[0])) * kUp;
  return point;
}

}  // namespace gpujoin::cpu

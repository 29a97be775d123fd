// The view of one side's points that an engine is given.
#pragma once

#include <cmath>
#include <cstdint>

namespace gpujoin {

enum class ScalarType : std::int32_t { kFloat32, kFloat64 };

/// Points in host memory, owned by the caller and unchanged while a join on them is open.
struct Dataset {
  const void*
      coordinates;  ///< [rows][dims], row-major, of type `scalar`; any finite or non-finite values
  const std::int64_t* ids;  ///< [rows], what results name rows by; null: their positions
  std::uint64_t rows;       ///< at most 2^32 - 64
  std::uint32_t dims;       ///< numbers a row: 1 .. kMaxDimensions, or of boxes 2 .. 2 *
                            ///< kMaxBoxDimensions; ignored when rows is 0
  ScalarType scalar;
  const double* scores = nullptr;  ///< [rows] finite; for Output::kTopPairs
};

inline constexpr std::uint64_t kMaxRows = (std::uint64_t{1} << 32) - 64;

inline std::uint64_t scalar_bytes(ScalarType scalar) {
  return scalar == ScalarType::kFloat32 ? 4 : 8;
}

/// One coordinate, widened exactly.
inline double coordinate(const Dataset& data, std::uint64_t row, std::uint32_t column) {
  const std::uint64_t at = row * data.dims + column;
  return data.scalar == ScalarType::kFloat32
             ? static_cast<double>(static_cast<const float*>(data.coordinates)[at])
             : static_cast<const double*>(data.coordinates)[at];
}

/// Rows with a NaN or infinite coordinate match nothing.
inline bool is_finite_row(const Dataset& data, std::uint64_t row) {
  for (std::uint32_t d = 0; d < data.dims; ++d)
    if (!std::isfinite(coordinate(data, row, d))) return false;
  return true;
}

}  // namespace gpujoin

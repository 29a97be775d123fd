// Rows against rows in double precision, in any order of columns: distances that select, and the
// products of rows with a matrix. No threads, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/request/dataset.h"

namespace gpujoin::cpu {

/// Rows and columns that products are computed by.
inline constexpr std::uint32_t kProductRows = 4;
inline constexpr std::uint32_t kProductColumns = 16;

struct RowScan {
  /// The sums of squared differences of a row and `count` others, of the scalar type that the scan
  /// was chosen for.
  void (*squares)(const void* row, const void* const* others, std::size_t count, std::uint32_t dims,
                  double* sums);
  /// products[i][j] = sum over d of rows[i][d] * matrix[d][j], for kProductRows rows `stride`
  /// numbers apart; `columns`, those of the matrix and of the products, is a multiple of
  /// kProductColumns, and both are aligned to cache lines.
  void (*products)(const double* rows, std::size_t stride, std::uint32_t dims, const double* matrix,
                   std::uint32_t columns, double* products);
};

RowScan choose_row_scan(ScalarType scalar);

}  // namespace gpujoin::cpu

// Tests of values that consist of several columns, whose distance a query writes out.
#pragma once

#include "pg/types/similarity_test.h"

namespace gpujoin {

/// How exactly a query's expression computes a distance.
enum class ColumnArithmetic {
  kExact,    ///< as the engine does
  kDouble,   ///< in double precision, in some order, with some power function
  kSingle,   ///< some of it in single precision
  kNumeric,  ///< of numerics, which become float8 with an error of kNumericError of the radius
};

/// Numerics up to kMostNumeric times the radius are rounded by a share 2^-53 of themselves, both of
/// a difference, in up to 64 columns: by less than this share of the radius in all.
inline constexpr double kMostNumeric = 0x1p30, kNumericError = 0x1p-16;

/// What a query compares with a radius.
enum class ColumnForm {
  kRoot,       ///< the L2 distance
  kSquares,    ///< its square
  kMagnitude,  ///< the difference of one column
  kSum,        ///< the L1 distance
};

/// The test of arrays of double precision, which these columns become; `held`: NaN stands for
/// numbers that are none of double precision, so that the condition has to decide.
SimilarityTest column_test(ColumnArithmetic arithmetic, ColumnForm form, bool held);

/// Whether the test is one of these, and whether it is of the difference of one column.
bool is_of_columns(const SimilarityTest& test);
bool is_of_one_column(const SimilarityTest& test);

}  // namespace gpujoin

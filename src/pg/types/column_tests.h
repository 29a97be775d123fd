// Tests of values that consist of several columns, whose distance a query writes out.
#pragma once

#include "pg/types/similarity_test.h"

namespace gpujoin {

/// How exactly a query's expression computes a distance.
enum class ColumnArithmetic {
  kExact,   ///< as the engine does
  kDouble,  ///< in double precision, in some order, with some power function
  kSingle,  ///< some of it in single precision
};

/// What a query compares with a radius.
enum class ColumnForm {
  kRoot,       ///< the L2 distance
  kSquares,    ///< its square
  kMagnitude,  ///< the difference of one column
};

/// The test of arrays of double precision, which these columns become.
SimilarityTest column_test(ColumnArithmetic arithmetic, ColumnForm form);

}  // namespace gpujoin

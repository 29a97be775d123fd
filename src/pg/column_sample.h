// Values that statistics keep of a column, as a sample of it: the bounds of a histogram are about a
// hundred of its values, most common ones weigh what they are worth.
#pragma once

#include "core/threshold.h"
#include "pg/compat.h"

extern "C" {
#include "access/htup.h"
}

namespace gpujoin {

/// Neighbours of a row, where there are no statistics.
inline constexpr double kDefaultNeighbors = 10;

/// Values of a column that statistics tell, each with the share of rows it stands for.
struct ColumnSample {
  Oid type;  ///< float4[], float8[] or a number's
  int count;
  int common;  ///< the first ones are common values: two rows of the same one are a pair as well
  Datum* values;
  double* weights;
};

/// The sample in a row of pg_statistic; `count` is 0 when there is none.
ColumnSample load_sample(Oid type, HeapTuple statistics);

/// The share of pairs of different rows that are within the threshold. Where no sampled pair is,
/// half of one is assumed.
double matching_share(const ColumnSample& a, const ColumnSample& b, Metric metric,
                      const Threshold& threshold);

}  // namespace gpujoin

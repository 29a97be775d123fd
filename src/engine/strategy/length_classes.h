// Classes of rows by how long the intervals of a key are. An index rests on the longest interval
// that it holds, so that a few long ones would take their column out of the index of all; rows of
// two classes meet by the longer one's length alone.
#pragma once

#include <vector>

#include "engine/strategy/choose_strategy.h"

namespace gpujoin {

struct LengthClasses {
  std::uint32_t column;  ///< the key's low ends
  /// The lengths from which on rows are of the next class, ascending; empty: there is one class.
  std::vector<double> bounds;
  double ms;  ///< what walking the indexes of all classes is expected to take one core
};

/// The classes of the interval by which a join of points in memory is quicker, if any. Reads the
/// keys of all rows only where a sample has few long intervals. Deterministic for the same request.
/// Throws std::bad_alloc.
LengthClasses choose_length_classes(const JoinRequest& request, const WalkCosts& costs);

/// The keys of a join of rows whose intervals in this column and the one after it are no longer.
PairKeys keys_of_class(PairKeys keys, std::uint32_t column, double longest);

}  // namespace gpujoin

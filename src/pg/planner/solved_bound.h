// Arithmetic around a distance, solved for the distance: `(a.v <-> b.v) * 111 <= 5`,
// `64 - bit_count(a.h # b.h) >= 60`, `round(d, 2) < 0.5`, `coalesce(d, 9) <= 2`.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpujoin {

/// A distance below arithmetic with constants, and a number that it does not exceed where the
/// condition holds. The number is rounded up, so the condition has to be asked.
struct SolvedBound {
  Expr* distance;  ///< null: the condition is no such one
  double most;
  bool holds_of_nan;  ///< the condition is true where the distance is NaN
};

SolvedBound solve_for_distance(Expr* condition);

}  // namespace gpujoin

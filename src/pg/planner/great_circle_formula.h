// Distances along the Earth's surface that a query computes by hand, of columns of degrees: by the
// haversine formula with asin or atan2, or by the law of cosines with acos, in any spelling.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpujoin {

struct GreatCircleFormula {
  double times;     ///< what the angle between the places, in radians, is multiplied with
  Expr* places[2];  ///< arrays of a longitude and a latitude in degrees
  bool of_null;     ///< it may have a value where one of these is NULL
};

/// Sets *formula if the expression, whose outermost call is of asin(), acos() or atan2(), is the
/// angle between two places. It is recognised by its values at many random places: its functions
/// are analytic, so two expressions that differ at all differ at almost all places. Returns false
/// for any other expression, and for arithmetic in single precision.
bool match_great_circle(Expr* expression, GreatCircleFormula* formula);

}  // namespace gpujoin

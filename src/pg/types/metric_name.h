// Other names of metrics.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Returns gpujoin's name of the metric that others call by this name, in any case: "l2" for
/// "Euclidean". Returns every other name as it is.
inline const char* metric_name(const char* written) {
  constexpr struct {
    const char *alias, *name;
  } kAliases[] = {{"euclidean", "l2"}, {"manhattan", "l1"},   {"taxicab", "l1"},
                  {"cityblock", "l1"}, {"chebyshev", "linf"}, {"chessboard", "linf"}};
  for (const auto& known : kAliases)
    if (pg_strcasecmp(written, known.alias) == 0) return known.name;
  return written;
}

}  // namespace gpujoin

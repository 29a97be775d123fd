// Which core row a border row of a cluster follows. For host and device.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/nearest.h"

namespace gpujoin {

/// Whether a core row comes before another one as the one that a border row follows; `ids` by
/// position.
template <Metric M>
GPUJOIN_HD inline bool is_followed_before(BorderRule rule, const Neighbor& a, const Neighbor& b,
                                          const std::int64_t* ids) {
  if (rule == BorderRule::kNearest) return comes_before<M>(a, b, ids);
  const std::int64_t p = ids[a.position], q = ids[b.position];
  return p != q ? p < q : a.position < b.position;
}

/// The same by a metric that only the caller's data tells.
inline bool is_followed_before(BorderRule rule, Metric metric, const Neighbor& a, const Neighbor& b,
                               const std::int64_t* ids) {
  return metric == Metric::kL2 ? is_followed_before<Metric::kL2>(rule, a, b, ids)
                               : is_followed_before<Metric::kL1>(rule, a, b, ids);
}

}  // namespace gpujoin

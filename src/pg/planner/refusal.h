// Why a distance in a query is not served by the node, in words for its author.
#pragma once

namespace gpujoin {

/// The later, the nearer the condition came to be served.
enum class Refusal {
  kNone,
  kDisabled,
  kNoCondition,    ///< the query computes the distance, but no condition bounds it
  kFromBelow,      ///< it has to be larger than a limit, or differ from it
  kExpression,     ///< what it stands in gives it no bound
  kAlternative,    ///< something else stands with it under OR
  kCorrelated,     ///< a subquery compares a table with one row of the query around it at a time
  kNearest,        ///< the subquery in LATERAL is more than rows of a table, an order and a limit
  kNearestLimit,   ///< its limit
  kNearestOrder,   ///< what it sorts by
  kNearestValues,  ///< conditions or results
  kSides,          ///< no join has one of its values on each side
  kJoinKind,
  kSecurity,  ///< a condition of a security barrier comes first
  kRadius,    ///< of both rows, or with errors
  kOperands,  ///< with errors
  kBand,      ///< of one column
  kForeign,
  kMemory,
  kFewRows,  ///< an index finds them
  kCost,
};

struct RefusalWords {
  const char* reason;
  const char* hint;  ///< what to write instead; "": nothing
};

RefusalWords words_of(Refusal refusal);

}  // namespace gpujoin

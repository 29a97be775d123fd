#include "pg/planner/refusal.h"

namespace gpujoin {

RefusalWords words_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kDisabled:
      return {"gpujoin.enable_customscan is off", "Set gpujoin.enable_customscan to on."};
    case Refusal::kNoCondition:
      return {"no condition bounds the distance from above",
              "Add a condition such as a.v <-> b.v <= 5, or look for nearest rows with "
              "CROSS JOIN LATERAL (SELECT ... ORDER BY a.v <-> b.v LIMIT k)."};
    case Refusal::kFromBelow:
      return {"the distance has to be larger than a limit, or to differ from it",
              "Count or exclude the pairs within the limit instead, with NOT EXISTS."};
    case Refusal::kExpression:
      return {"the expression around the distance gives it no upper bound",
              "Add a condition on the distance alone, such as a.v <-> b.v <= 5."};
    case Refusal::kAlternative:
      return {"a clause about something else stands beside the distance under OR",
              "Write two queries and UNION."};
    case Refusal::kCorrelated:
      return {
          "a subquery compares the table with one row of the outer query at a time, and no search "
          "serves it: the table is small, or the compared value cannot be computed for all its "
          "rows",
          "Write a LEFT JOIN with GROUP BY, or CROSS JOIN LATERAL (SELECT ... ORDER BY a.v <-> "
          "b.v LIMIT k)."};
    case Refusal::kNearest:
      return {
          "the subquery in LATERAL is more than the rows of one table, an order and a limit",
          "Keep to SELECT ... FROM table WHERE ... ORDER BY a.v <-> b.v LIMIT k, with what else "
          "there is in the query around it."};
    case Refusal::kNearestLimit:
      return {
          "the subquery in LATERAL has no LIMIT of 1 to 1000 rows that is the same for all rows",
          "Write LIMIT with a number up to 1000, or a parameter of type bigint."};
    case Refusal::kNearestOrder:
      return {
          "the subquery in LATERAL does not sort by a distance between values of both rows, the "
          "nearest first, or sorts by another expression after it",
          "Begin with ORDER BY a.v <-> b.v. Let columns of the table follow, if any."};
    case Refusal::kNearestValues:
      return {
          "conditions or results of the subquery in LATERAL are volatile, hold subqueries, or may "
          "raise an error where another condition would have come first",
          "Move them to the query around it."};
    case Refusal::kSides:
      return {"no join of the query has one of the distance's values on each side",
              "Let each value be computed of one side's columns alone."};
    case Refusal::kJoinKind:
      return {"the node serves no such join, as a FULL JOIN",
              "Write a LEFT JOIN, and UNION ALL the rows of the other side without a match."};
    case Refusal::kSecurity:
      return {"a security barrier's condition has to come first", ""};
    case Refusal::kRadius:
      return {
          "the radius is made of both rows' numbers in a way that cannot be taken apart, or "
          "computing it may raise an error",
          "Compute it in a column of one side, or as a sum of one term of each side."};
    case Refusal::kOperands:
      return {
          "computing a compared value may raise an error for a row that PostgreSQL would not "
          "have looked at",
          "Compute the value in a MATERIALIZED CTE, or store it in a column."};
    case Refusal::kBand:
      return {"it is a band of one column, which PostgreSQL's own joins serve",
              "Add a band of a second column, if there is one."};
    case Refusal::kForeign:
      return {"a foreign server runs the join", ""};
    case Refusal::kMemory:
      return {"the rows are not expected to fit in gpujoin.host_memory_limit",
              "Raise gpujoin.host_memory_limit."};
    case Refusal::kFewRows:
      return {"an index is expected to find the rows more quickly",
              "Set gpujoin.prefer_node to on and compare the times, if you doubt it."};
    default:
      return {"another plan is expected to be quicker",
              "Run ANALYZE on the tables. Set gpujoin.prefer_node to on and compare the times, if "
              "you doubt it."};
  }
}

}  // namespace gpujoin

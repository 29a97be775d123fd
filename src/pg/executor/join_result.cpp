#include "pg/executor/join_result.h"

#include "pg/executor/join_nearest.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_sums.h"
#include "pg/executor/join_top.h"
#include "pg/executor/join_work.h"

namespace gpujoin {
namespace {

void leave(JoinNode*) {}

bool any(const JoinPlanData&) { return true; }

/// The first one that is wanted serves.
constexpr JoinResult kResults[] = {
    {"Range Join", adds_up, begin_sums, forget_sums, start_sums, mode_of_sums, next_group,
     explain_sums},
    {"Nearest-Neighbor Join", finds_nearest, begin_nearest, forget_nearest, start_nearest,
     mode_of_rows, next_nearest_row, explain_nearest},
    {"Top-k Join", wants_first, begin_top, forget_top, start_top, mode_of_top, next_first_row,
     explain_top},
    {"Range Join", any, leave, leave, start_join, mode_of_rows, next_joined_row, explain_counts},
};

}  // namespace

const JoinResult* wanted_result(const JoinPlanData& data) {
  const JoinResult* result = kResults;
  while (!result->is_wanted(data)) ++result;
  return result;
}

}  // namespace gpujoin

// What a join makes of its pairs. Each result is one entry of a table, and has its file: rows
// (join_rows.h), first pairs (join_top.h), sums (join_sums.h) and nearest rows (join_nearest.h).
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

struct JoinResult {
  const char* method;  ///< for EXPLAIN
  bool (*is_wanted)(const JoinPlanData& data);
  /// Prepares its work. Reads nothing.
  void (*begin)(JoinNode* node);
  /// Forgets what an earlier run has left, before the inputs are read.
  void (*forget)(JoinNode* node);
  /// From the first row, with the inputs that were read.
  void (*start)(JoinNode* node);
  /// What the engine is to do, where it serves.
  Mode (*mode)(const JoinNode* node);
  /// The next row, in the scan tuple; false at the end.
  bool (*next)(JoinNode* node);
  void (*explain)(const JoinNode* node, const Words& words, ExplainState* es);
};

/// The result that a plan asks for.
const JoinResult* wanted_result(const JoinPlanData& data);

}  // namespace gpujoin

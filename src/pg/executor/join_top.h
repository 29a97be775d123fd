// What a join whose first pairs by a score are wanted keeps while it runs.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// A pair of rows that may be among the first of the query's order.
struct ScoredPair {
  double score;  ///< the engine's
  std::uint64_t left, right;
};

/// Pairs, best first.
struct ScoredPairs {
  ScoredPair* pairs;  ///< [room]
  std::uint64_t room, count;
  std::uint64_t emitted;  ///< pairs[0] .. pairs[emitted - 1]
};

struct TopWork {
  const char* problem;  ///< why all pairs are emitted; null: the first ones are
  Top wanted;           ///< what the engine is asked for
  std::uint64_t asked;  ///< pairs that it was asked for
  double score_error;   ///< see may_come_later(); 0 for distances
  ScoredPairs kept;     ///< that match, and may be among the first
  ScoredPairs own;      ///< self-pairs, where the engine leaves them out
};

/// Whether the engine is to find the first pairs.
inline bool finds_top(const JoinNode* node) {
  return node->top != nullptr && node->top->problem == nullptr;
}

/// The score in a row of one side, for an engine. Sets the problem where it cannot be one.
double read_score(JoinNode* node, Side* side, TupleTableSlot* slot);

/// Whether a pair and its reverse have the same score, so that the engine may be asked for one of
/// both and for no self-pairs. False where nothing but the distance decides, since it would gain
/// nothing.
bool may_halve_top(const JoinNode* node);

/// Decides what the engine is asked for first. Sets the problem where it can be asked for nothing.
void ask_first(JoinNode* node);

// The entries of the result: see JoinResult.
void begin_top(JoinNode* node);
void forget_top(JoinNode* node);
void start_top(JoinNode* node);
Mode mode_of_top(const JoinNode* node);
bool next_first_row(JoinNode* node);
void explain_top(const JoinNode* node, const Words& words, ExplainState* es);

}  // namespace gpujoin

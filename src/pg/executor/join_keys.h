// The keys of a join at work: which conditions the engine decides besides the distance, and what it
// is told of them.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

struct JoinKey {
  KeyPlan plan;
  bool is_used;               ///< in this run
  ExprState* values[2];       ///< of the left row and of the right one
  int columns[2];             ///< the columns of the scan tuple that they are; -1: none
  ExprState* high_values[2];  ///< likewise of an interval's high ends
  int high_columns[2];
  ExprState* offsets[kMostBounds];  ///< null: 0
};

struct KeyWork {
  int count;
  int column_count;         ///< of the engine, columns_of() each key that is used
  JoinKey* keys;            ///< [count]
  List* conditions;         ///< those that the keys stand for
  ExprState *early, *late;  ///< the other ones
  // What belongs to one run:
  MemoryContext context;  ///< null: there are no columns
  Size bytes;
  const char* problem;  ///< why the engine is told of no keys; null: it is, or nobody asked
  bool found;           ///< the engine is told of them
  bool decides;         ///< and so the conditions need not be asked
  bool same;            ///< both sides have the same keys
  PairKeys asked;
  double* columns[2];  ///< [points][column_count], of points in memory
  std::uint64_t*
      places[2];       ///< [column_count][chunks] where a chunk's keys lie, of points in the file
  Dataset samples[2];  ///< likewise the points' sample with its keys
};

/// Prepares the keys; reads nothing.
void begin_keys(JoinNode* node);

/// Computes the keys of both sides' points, where engines know them.
void find_keys(JoinNode* node);

/// Forgets them, for a reason: the conditions are asked of each pair.
void drop_keys(JoinNode* node, const char* problem);
void forget_keys(JoinNode* node);

/// Whether the engine is told of keys, and whether it decides their conditions.
inline bool has_keys(const JoinNode* node) {
  return node->pairs.keys != nullptr && node->pairs.keys->found;
}
inline bool decides_keys(const JoinNode* node) {
  return has_keys(node) && node->pairs.keys->decides;
}

/// The conditions to be evaluated for the engine's pairs, before and after its own.
inline ExprState* early_conditions(const JoinNode* node) {
  return decides_keys(node) ? node->pairs.keys->early : node->conditions.early;
}
inline ExprState* late_conditions(const JoinNode* node) {
  return decides_keys(node) ? node->pairs.keys->late : node->conditions.late;
}

/// The points with their keys.
Dataset with_keys(const JoinNode* node, bool left, Dataset points);

}  // namespace gpujoin

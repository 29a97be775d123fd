// Which pairs of rows a join makes, and how far it has come with them.
#pragma once

#include "engine/request/pair_cursor.h"
#include "pg/executor/engine_run.h"
#include "pg/executor/join_side.h"
#include "pg/types/product_test.h"

namespace gpujoin {

enum class Mode {
  kUnread,
  kPairs,   ///< the engine emits pairs
  kCounts,  ///< the engine counts the matches of each left row
  kTotal,   ///< the engine counts all matches
  kSums,    ///< the engine adds up the matches of each left row
  kTop,     ///< the engine emits the first pairs by their scores
  kLoop,    ///< a nested loop: the condition is evaluated for every pair
};

/// A nested loop over rows of two sides: the condition is evaluated for each pair.
struct PairLoop {
  const OddRow* odd_left;   ///< [left_rows], or null: from row 0 on
  const OddRow* odd_right;  ///< likewise of the right side
  std::uint64_t left_rows, right_rows;
  std::uint64_t left, right;  ///< the next pair
  bool right_outer;           ///< the right row changes last
  bool skip_odd_left;         ///< their pairs come in another step
};

/// A pair of rows on its way, where its rows have to be read from a file.
struct BatchedPair {
  double distance;
  std::uint64_t left, right;
};

/// Pairs whose rows are in memory.
struct PairBatch {
  BatchedPair* pairs;  ///< [room]
  std::uint64_t room, count;
  std::uint64_t next;    ///< pairs before it have been taken
  std::uint64_t came;    ///< pairs of all batches so far
  double last_distance;  ///< of the pair that came last; its reverse may come next
};

/// Lengths of the values that the condition reads, in a sample of pairs.
struct ValueSample {
  std::uint64_t pairs;
  double left_bytes, right_bytes;  ///< sums; 0 for pairs that the condition does not decide
};

/// Rows of one side in classes by their radii, each of which is joined by itself.
struct RadiusClasses {
  Side* side;  ///< null: all rows are joined at once
  int count;
  int next;            ///< the class that comes next
  double most[8];      ///< [count] the largest radius of each class, largest first
  PointBuffer buffer;  ///< the points of the class that is joined
  Dataset points;
  JoinStats before;  ///< sums of the classes before it
};

/// The pairs that come next. Each pair comes in one step alone.
enum class Step { kPoints, kOddLeft, kOddRight, kDone };

/// What join_order.cpp has found out about the points of both sides.
struct SidesOrder {
  bool compared, same;     ///< are_same_points() was called, and what it found
  bool ranked, has_ranks;  ///< find_ranks() was called, and what it found
  std::int64_t* ranks;     ///< [points] places in the order of their keys; null: as read
  std::int64_t* by_rank;   ///< [points] the other way round
};

struct KeyWork;

/// Which pairs come, by an engine or a loop, and how far they have come. join_work.cpp has them
/// come; the radii of pairs are those of join_radii.h, and their order is that of join_order.h.
struct PairStream {
  EngineRun* run;
  KeyWork* keys;  ///< null: no further condition is a key
  SidesOrder sides;
  Mode mode;
  EpsBand band;
  LiftedSides lifted;  ///< where is_product()
  double eps_of_all;   ///< what the radii of rows are added to
  RadiusClasses classes;
  Step step;
  bool order_by_engine;  ///< the engine leaves out what JoinConditions::order would
  PairLoop loop;
  bool looping;
  PairCursor cursor;
  IdPair pair;
  PairBatch batch;
  ValueSample sample;
  bool reverse_due;           ///< the reverse of the last pair comes next; the engine leaves it out
  std::uint64_t handed_over;  ///< pairs that the engine emitted
};

}  // namespace gpujoin

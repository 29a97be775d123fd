// What the files that look for nearest rows share: join_nearest.cpp, and nearest_boxes.cpp for
// values that are more than points.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// A right row that may be among the first of a left row.
struct NearestRow {
  double distance;  ///< the engine's, or the operator's, or one of those below
  std::uint64_t right;
};

/// Where the points of left rows are looked for that the engine is asked about.
enum class NearestStep {
  kPoints,  ///< all points of the left side
  kOpen,    ///< points whose first neighbours were too few
  kRest,    ///< left rows that the engine cannot help with
  kDone,
};

/// Columns of the scan tuple that are computed for each row.
struct NearestOutputs {
  ExprState** expressions;  ///< [count]
  int* columns;             ///< [count] of the scan tuple
  bool* is_distance;        ///< [count] it is what rows are ranked by
  int count;
  List* computed;        ///< those that are not
  bool measures;         ///< one of them is the distance
  MemoryContext values;  ///< of one row
};

/// What the engine is asked about, and how far its answer has been read.
struct NearestSearch {
  bool runs;                ///< the engine is at work
  bool begun;               ///< a search was
  bool failed;              ///< the engine could not go on
  std::uint64_t asked;      ///< neighbours that it is asked for
  std::uint64_t chunk;      ///< of left points in a file, the next one
  PointBuffer piece;        ///< points that the engine is asked about, if not all
  std::uint64_t batch_row;  ///< of the engine's batch, the next one
  std::uint64_t read_row;   ///< and the first one that read_block() has not read
  std::uint64_t came;       ///< rows of all blocks so far
};

/// The neighbours that come now.
struct NearestRanks {
  std::uint64_t left;  ///< of this row
  NearestRow* rows;    ///< [room] the nearest first
  std::uint64_t count, room, next;
  bool none_due;  ///< it has none, and still comes once
};

/// The row that came last.
struct NearestShown {
  std::uint64_t left;  ///< kNoRow: none did
  bool matched;        ///< and has been emitted
  bool pair_due;       ///< the pair after it is waiting
  std::uint64_t due_left, due_right;
  double due_distance;
};

/// Where values have extents.
struct NearestBoxes {
  bool any;
  double reach;         ///< of right rows but the wide ones, at most
  std::uint64_t* wide;  ///< [wide_count] right rows that reach further
  std::uint64_t wide_count;
  double farthest;  ///< no row beyond this distance is a candidate
  bool left_spans;  ///< the row NearestRanks::left is a point or has an extent
  Span left_span;
  double left_reach;
};

/// What the plan asks for.
struct NearestTerms {
  ExprState* distance;
  ExprState* limit;
  bool exact;  ///< the engine's distances are the operator's
  NearestOutputs outputs;
};

struct NearestWork {
  NearestTerms terms;
  // The rest belongs to a run.
  MemoryContext context;
  std::uint64_t k;
  bool by_radius;        ///< the engine leaves out what is beyond the radius
  bool beyond_radius;    ///< the radius has decided against the last pair that was no candidate
  std::uint64_t points;  ///< right ones that the engine compares
  std::uint64_t* odd;    ///< [odd_count] right rows whose distance only the operator knows
  std::uint64_t odd_count;
  std::uint64_t* unknown;  ///< [unknown_count] right rows that have no distance
  std::uint64_t unknown_count;
  NearestStep step;
  NearestSearch search;
  std::uint8_t* done;  ///< [left rows] whether their neighbours were found
  std::uint8_t* open;  ///< [left rows] whether they were too few
  std::uint64_t open_count;
  std::uint64_t rest;  ///< left rows before it are done
  NearestRanks ranks;
  NearestShown shown;
  NearestBoxes boxes;
};

// What no operator gives: distances are not negative, and inner products of single precision.
inline constexpr double kUnknown = -DBL_MAX;         // NearestRow::distance: NULL
inline constexpr double kUnmeasured = -DBL_MAX / 2;  // and: not computed yet
inline constexpr std::uint64_t kMostAsked = kMostNeighbors;

/// As PostgreSQL orders the results of the operator: numbers, NaN, NULL.
inline int order_class(double distance) {
  return distance == kUnknown ? 2 : std::isnan(distance) ? 1 : 0;
}

inline bool is_nearer(const NearestRow& a, const NearestRow& b) {
  const int p = order_class(a.distance), q = order_class(b.distance);
  if (p != q) return p < q;
  if (p == 0 && a.distance != b.distance) return a.distance < b.distance;
  return a.right < b.right;
}

/// Whether a row at this distance or further is none of the first k.
inline bool cannot_come(const NearestWork* work, double least) {
  if (least > work->boxes.farthest) return true;
  return work->ranks.count >= work->k && order_class(work->ranks.rows[0].distance) == 0 &&
         least > work->ranks.rows[0].distance;
}

// The entries of the result: see JoinResult. `mode` is asked for where there are pairs.
void begin_nearest(JoinNode* node);
void forget_nearest(JoinNode* node);
void start_nearest(JoinNode* node);
bool next_nearest_row(JoinNode* node);
void explain_nearest(const JoinNode* node, const Words& words, ExplainState* es);

/// Whether LIMIT asks for no more than so many rows of a left one.
bool is_limit_within(JoinNode* node, std::uint64_t rows);

/// The columns that are computed for each row; the distance is known.
List* computed_columns(const JoinNode* node);

/// The operator's distance of two rows.
double measure(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Whether the subquery has the pair at all; `within`: it is known to be within the radius.
bool is_candidate(JoinNode* node, std::uint64_t left, std::uint64_t right, bool within);

/// Adds a row to those of the left row.
void add_ranked(NearestWork* work, double distance, std::uint64_t right);

/// Adds a row to the first k, which are a heap; the first of them is the last in order.
void add_to_heap(NearestWork* work, const NearestRow& found);

// ---- nearest_boxes.cpp

/// Before the first search: sets NearestWork::boxes, and what else depends on them.
void prepare_boxes(JoinNode* node);

/// After begin_ranks(), where values have extents.
void span_left(JoinNode* node);

/// What the distance of the left row and this one is at least; -INFINITY: it is not known.
double least_of(JoinNode* node, std::uint64_t right);

/// Ranks neighbours by the distances of middles, nearest first; `all`: there are no more. Sets
/// *complete to false where more of them have to be known. False: all right rows have to be looked
/// at.
bool rank_boxes(JoinNode* node, const std::uint32_t* neighbors, const double* distances,
                std::uint64_t count, bool all, bool* complete);

}  // namespace gpujoin

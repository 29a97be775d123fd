// The running plan node over two inputs: a join whose condition is a distance within a radius, or
// an overlap of boxes. Both inputs are read once, to their ends: the compared values become
// datasets, and the columns that conditions and the target list need are kept (join_inputs.cpp);
// values that no input has are computed (join_operands.cpp).
// The engine finds the pairs of all values that it can take; the condition itself is evaluated for
// the pairs that the engine cannot decide: pairs of odd rows with all rows of the other side, and
// pairs within the rounding of the type's own arithmetic (join_work.cpp). Each pair that passes
// becomes a row (join_rows.cpp). Where the columns lie in a file, pairs go through a batch first
// (join_batch.cpp). Whole tables need not be read where gpujoin_service keeps their points
// (join_kept.cpp), nor all columns of large tables (join_blocks.cpp): then rows are fetched when
// their pairs are found. Further conditions may be keys, which the engine compares (join_keys.cpp).
#pragma once

#include "engine/request/pair_cursor.h"
#include "pg/executor/custom_scan.h"
#include "pg/executor/engine_run.h"
#include "pg/executor/join_plan.h"
#include "pg/reading/late_rows.h"
#include "pg/store/row_store.h"
#include "pg/types/plane_box.h"
#include "pg/types/product_test.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/resowner.h"
}

namespace gpujoin {

/// Columns of the scan tuple that are one column of the input, and kept once.
struct TwinColumns {
  int kept, twin;  ///< places in the scan tuple
};

/// Columns of the scan tuple that one input fills.
struct Columns {
  int count;
  int* targets;  ///< [count] their places in the scan tuple
  int twin_count;
  TwinColumns* twins;      ///< [twin_count]
  RowStore* rows;          ///< in the same order
  LateRows* late;          ///< rows come from here, not from `rows`; or null
  AttrNumber* attributes;  ///< [count] of late rows, in the same order
};

/// What is known of one side's scores.
struct ScoreRange {
  double most;   ///< no score is further from 0
  double least;  ///< and none but 0 nearer
};

/// A row whose value the engine cannot take: an array of another length, a NaN or an infinity where
/// the type's arithmetic differs from the engine's, another SRID.
struct OddRow {
  std::int64_t row;
  std::uint64_t value;  ///< its place in OddRows::values
  ValueExtent extent;
};

struct OddRows {
  OddRow* rows;  ///< [count] in the order of the rows
  std::uint64_t count, room;
  RowStore* values;  ///< the compared values; null where other columns give them
};

/// The radius of a row that is within no distance of anything.
inline constexpr double kNoRadius = -HUGE_VAL;

/// One input.
struct Side {
  PlanState* plan;
  AttrNumber value;              ///< the compared value in its rows; 0: `operand` computes it
  ExprState* operand;            ///< over the scan tuple
  Expr* expression;              ///< of the operand
  ErrorTrap trap;                ///< a row whose operand raises an error that is dropped is odd
  MemoryContext operand_memory;  ///< of the operand, where a subtransaction drops its errors
  ExprState* guard;  ///< rows that fail it match nothing, and have no operand; null: none
  AttrNumber score;  ///< the score in its rows; 0: no scores
  Oid score_type;
  ScoreRange scores;
  double* row_scores;  ///< [score_room] by row, where the node computes the values
  std::uint64_t score_room;
  AttrNumber radius;  ///< what its rows add to the radius, in them; 0: nothing
  double* row_radii;  ///< [radius_room] by row; kNoRadius where it is NULL
  std::uint64_t radius_room;
  double most_radius;      ///< of rows that are not odd
  bool keep_unmatched;     ///< rows that can match nothing are kept as well
  Columns shown;           ///< needed for every pair
  Columns tested;          ///< needed besides, for pairs that the condition decides
  int rebuilt;             ///< column of the scan tuple that ValueType::rebuild fills; -1: none
  PointBuffer buffer;      ///< its points or boxes; ids are numbers of rows
  PlaneBoxes plane_boxes;  ///< of ValueForm::kMiddle
  Dataset points;          ///< finished; where the service keeps them, without coordinates and ids
  OddRows odd;
  std::uint64_t extent_row;  ///< whose extent is cached; kNoRow: none is
  ValueExtent extent;
  LateRows* late;    ///< the table, where the service keeps its points and pairs are wanted
  RowPlaces places;  ///< of its rows in the stores, once all were read
  bool unkept;       ///< each row is a point, and no longer there
};

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

/// Whether some pair of the rows that were read needs the radius: see compute_eps().
enum class EpsNeed { kUnknown, kNone, kSome };

struct JoinNode;
struct KeyWork;
struct SumWork;
struct NearestWork;

/// Makes the next pair of rows; false when there are no more for now.
using PairSource = bool (*)(JoinNode* node, std::uint64_t* left, std::uint64_t* right);

/// The pairs that come next. Each pair comes in one step alone.
enum class Step { kPoints, kOddLeft, kOddRight, kDone };

struct JoinNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  JoinPlanData data;
  JoinPlanExpressions expressions;
  ExprState* where;  ///< decides which rows of the join are wanted; null: all
  ExprState* order;  ///< the condition that `data.order` describes; null: none
  ExprState* early;  ///< other conditions: before the engine's, and after it
  ExprState* late;
  ExprState* condition;  ///< the engine's, for pairs that it leaves open
  ExprState* eps;
  TupleTableSlot* direct;  ///< the result slot, where it is a beginning of the scan tuple as it is
  int direct_columns;
  bool may_forget;  ///< nobody is expected to read the rows again

  MemoryContext context;  ///< holds the run, from one reading of the inputs to the next,
  MemoryContext rows;     ///< and all that was read
  MemoryContext asked;    ///< and the values of one pair while the condition is evaluated
  EngineRun* run;
  /// Ids of the parameters in expressions that are evaluated while the inputs are read. All other
  /// expressions are evaluated after each start().
  Bitmapset* read_params;
  Bitmapset* early_params;  ///< likewise in `order` and `early`
  EpsNeed eps_need;
  ResourceOwner operand_resources;  ///< of the operands' subtransaction; null: none is open
  RowBudget budget;                 ///< of the rows kept of both sides
  Side left, right;
  ValueForm form;            ///< what becomes of the compared values
  bool approximate;          ///< some boxes are larger than what operators compare
  std::int32_t srid;         ///< of rows that are not odd
  bool tests_srids;          ///< note_srid() found odd rows, whose SRIDs may be others
  bool keeps;                ///< read_kept_inputs() has read the inputs, as far as they were
  PairSelection kept_pairs;  ///< of a table with itself, where `keeps`
  bool finished;             ///< the last row was emitted, and what was read is forgotten
  Mode mode;
  EpsBand band;
  LiftedSides lifted;  ///< where is_product()
  double eps_of_all;   ///< what the radii of rows are added to
  RadiusClasses classes;
  Step step;
  bool compared, same_points;  ///< are_same_points() was called, and what it found
  bool order_by_engine;        ///< the engine leaves out what `order` would
  bool ranked, has_ranks;      ///< find_ranks() was called, and what it found
  std::int64_t* ranks;  ///< [points] places of the points in the order of their keys; null: as read
  std::int64_t* by_rank;  ///< [points] the other way round
  PairLoop loop;
  bool looping;
  PairCursor cursor;
  IdPair pair;
  PairBatch batch;
  ValueSample sample;
  bool pairs_are_rows;       ///< rows come by next_pair_row(), the short way
  std::uint64_t left_shown;  ///< the row whose columns the scan tuple holds
  std::uint64_t empty_rows;  ///< rows still to be emitted of a batch without columns
  std::uint64_t evaluated;   ///< pairs for which the condition was evaluated
  std::uint64_t rejected;    ///< pairs that failed it, in all runs of the node
  /// [left rows] where notes_matches(). Of a side that is fetched late the rows that have some are
  /// marked instead.
  std::uint64_t* matches;
  std::uint64_t total;                  ///< matches, where they are counted
  std::uint64_t last_left, last_right;  ///< rows of the last match
  const char* top_problem;              ///< why all pairs are emitted, where the first were wanted
  Top top;                              ///< what the engine is asked for
  double score_error;                   ///< see may_come_later(); 0 for distances
  ScoredPairs kept;                     ///< of Mode::kTop
  ScoredPairs own;                      ///< self-pairs, where the engine leaves them out
  bool reverse_due;           ///< the reverse of the last pair comes next; the engine leaves it out
  std::uint64_t handed_over;  ///< pairs that the engine emitted
  SumWork* sums;              ///< null: pairs are not added up
  NearestWork* nearest;       ///< null: not the nearest rows are wanted
  KeyWork* keys;              ///< null: no further condition is a key
  bool draining;              ///< pairs are done, left rows follow
  std::uint64_t drained;      ///< left rows done
  std::int64_t late_drained;  ///< the last marked row done; -1: none

  // For EXPLAIN: the data behind these figures may be forgotten by then.
  std::uint64_t fetched_rows;  ///< late rows that were fetched one by one, but for open ones
  const char* loop_reason;     ///< why no engine joined the points; null: one did
  std::uint64_t odd_rows;      ///< of both sides
  double largest_radius;       ///< of any two rows that are not odd
  std::uint64_t top_asked;     ///< pairs that the engine was asked for
};

inline bool emits_unmatched(const JoinNode* node) {
  return node->data.join_type == JOIN_LEFT || node->data.join_type == JOIN_ANTI;
}
inline bool shows_right(const JoinNode* node) {
  return node->data.join_type == JOIN_INNER || node->data.join_type == JOIN_LEFT;
}
/// Whether the engine may find pairs that only the condition decides.
inline bool has_open_pairs(const JoinNode* node) { return node->band.accept < node->band.select; }

/// Whether the condition decides the pair that the engine emitted last.
inline bool is_open(const JoinNode* node) {
  return has_open_pairs(node) && (node->run->request.output() != Output::kPairsWithDistances ||
                                  node->pair.distance > node->band.accept);
}

/// Whether pairs have radii of their own.
inline bool has_row_radii(const JoinNode* node) {
  return node->left.radius > 0 || node->right.radius > 0;
}

/// Whether it matters how many matches a left row has, or whether it has some.
inline bool notes_matches(const JoinNode* node) {
  return node->data.join_type != JOIN_INNER || node->data.grouped;
}
inline bool has_match(const JoinNode* node, std::uint64_t left) {
  const LateRows* const late = node->left.late;
  return late != nullptr ? is_marked(*late, static_cast<std::int64_t>(left))
                         : node->matches[left] > 0;
}

/// Whether the left row has the one match that the join asks for.
inline bool is_settled(const JoinNode* node, std::uint64_t left) {
  return !shows_right(node) && has_match(node, left);
}

inline std::uint64_t row_count(const Side& side) {
  const bool stored = !side.unkept && (side.late == nullptr || side.places.rows > 0);
  return stored ? side.shown.rows->rows : side.points.rows;
}

/// Sets the request of the run, and which ids the rows of its batches have.
void ask_engine(JoinNode* node, const JoinRequest& request);

/// Whether the engine names rows by their positions in the left side.
inline bool names_positions(const JoinNode* node) {
  const JoinRequest& request = node->run->request;
  return request.self_join() && !request.sides.in_file() && !node->keeps;
}

/// Whether the rows are not here: the service keeps their points, or read_summed_inputs() has kept
/// nothing else.
inline bool lacks_rows(const JoinNode* node) { return node->keeps || node->left.unkept; }

/// Whether they are wanted after all: the inputs have to be read.
inline bool misses_rows(const JoinNode* node) { return lacks_rows(node) && node->run->exhausted; }

// ---- join_inputs.cpp

/// Reads both inputs from their beginnings, forgetting what was read before.
void read_inputs(JoinNode* node);

/// Forgets all that was read, but not what the last run did.
void forget_rows(JoinNode* node);

/// Has both inputs begin again.
void rescan_inputs(JoinNode* node);

/// Before a side is read: it has no points.
void start_side(JoinNode* node, Side* side);

/// Makes the compared value of a row, which is kept with this number, a point, a box, or odd; or
/// nothing where it holds a NULL and so matches nothing.
void add_row_value(JoinNode* node, Side* side, ValueShape* shape, std::int64_t row, Datum value,
                   TupleTableSlot* slot);

/// Ends the reading of a side.
void finish_side(JoinNode* node, Side* side, const ValueShape& shape);

/// Notes what was read, since `start`.
void report_reading(JoinNode* node, instr_time start, const ValueShape& shape);

/// Ends the fetching of a side's rows, if it was begun.
void close_late(JoinNode* node, Side* side);

/// Late rows that were fetched one by one.
std::uint64_t fetched_rows(const JoinNode* node);

/// Puts the columns that the condition needs, and that are not shown, into the scan tuple.
void show_tested(JoinNode* node, Side* side, std::uint64_t row);

/// Leaves the row's pairs to the condition.
void add_odd(JoinNode* node, Side* side, std::int64_t row, Datum value, const ValueExtent& extent);

/// Likewise of a row that is a point of these.
void add_odd_point(JoinNode* node, Side* side, const Dataset& points, std::uint64_t position,
                   std::int32_t srid);

/// Puts the odd rows in order, after some were added.
void sort_odd(Side* side);

/// A row's entry among the odd rows; null where it is not odd.
const OddRow* find_odd(const OddRows& odd, std::uint64_t row);

/// Returns the points that hold the point of a row, at *position; null if the row has none. May
/// load a chunk of the file.
const Dataset* find_row_point(Side* side, std::uint64_t row, std::uint64_t* position);

/// Begins a run in a context of its own, forgetting what was read before, and prepares the sides;
/// the service `keeps` their points, or is to.
void begin_run(JoinNode* node, bool keeps);

// ---- join_extents.cpp

/// Returns the extent of an input's value. Unknown for types without SRIDs.
ValueExtent extent_of_value(const JoinNode* node, Datum value);

/// Likewise of a row that is one of these points or boxes.
ValueExtent extent_of_point(const JoinNode* node, const Side& side, const Dataset& points,
                            std::uint64_t position, std::int32_t srid);

/// Notes the SRID of the rows that are not odd, after both sides are read.
void note_srid(JoinNode* node, std::int32_t srid);

/// Returns the distance of the boxes of two rows with different SRIDs. INFINITY where one row's
/// value is NULL or empty, so that no condition holds. -INFINITY where nothing is known, or the
/// SRIDs are the same.
double gap_between_srids(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// True if the boxes of two rows lie otherwise than JoinPlanData::boxes has it, so that some
/// condition holds for no such pair. An index of PostGIS leaves it out; the condition may raise an
/// error for it.
bool breaks_box_rule(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// True if gap_between_srids() exceeds the radius, or anything at all where boxes are to meet:
/// likewise.
bool are_srids_apart(JoinNode* node, std::uint64_t left, std::uint64_t right, double radius);

// ---- join_radii.cpp

/// Takes in what the next row of the side adds to the radius. False: it is NULL, and the row's
/// value of no use.
bool keep_radius(JoinNode* node, Side* side, TupleTableSlot* slot);

/// Whether the row's radius is one that only the condition can compare with.
bool has_odd_radius(const JoinNode* node, const Side& side, std::uint64_t row);

/// The radius of a pair, whatever its rows' radii are.
double pair_radius(const JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Notes that a row with this radius is among those that the engine joins.
void note_radius(Side* side, std::uint64_t row);

/// The band of distances that the largest radii of both sides leave.
EpsBand widest_band(JoinNode* node, double eps);

/// Where many rows have much smaller radii than others, decides on classes of them.
void find_radius_classes(JoinNode* node);

/// Prepares the join of the next class. False: there is none.
bool next_radius_class(JoinNode* node);

/// Leaves the pairs of this class and of those after it to the condition.
void set_classes_aside(JoinNode* node);

/// What the radii of both rows say about a pair that the engine found at this distance.
enum class Verdict { kWithin, kBeyond, kOpen };
Verdict compare_radii(const JoinNode* node, std::uint64_t left, std::uint64_t right,
                      double distance);

// ---- join_eps.cpp

/// Computes the radius, which is the same for all pairs, as far as some pair needs it. Returns
/// false if no pair does; else sets *eps and *is_null.
bool compute_eps(JoinNode* node, double* eps, bool* is_null);

// ---- join_products.cpp

/// Lifts the points of both sides, which were read, where they are compared by inner products.
void lift_sides(JoinNode* node);

/// The band of the engine's distances for a radius of the test, of which both sides are known.
EpsBand band_within(const JoinNode* node, const SimilarityTest& test, double eps);

// ---- join_blocks.cpp

/// The same as reading a side by its plan, where that is a scan of a large table: its values are
/// in side->buffer and its rows fetched late. False, with nothing read: the plan has to be asked.
bool read_side_blocks(JoinNode* node, Side* side, ValueShape* shape);

/// Reads the rows of those sides that are fetched late into their stores.
void store_late_rows(JoinNode* node);

// ---- join_kept.cpp

/// The same as read_inputs() where both inputs are whole tables whose points the service has, or
/// can have: of these only the blocks are read that have changed. False: the inputs have to be
/// read.
bool read_kept_inputs(JoinNode* node);

/// Before a pair is shown: reads all rows that are fetched late where fetching them one by one
/// takes longer.
void read_late_rows(JoinNode* node);

/// Has a side's rows fetched from the table that its input is a scan of. False where they have
/// values that are no columns of it.
bool open_late(JoinNode* node, Side* side);

/// Reads all rows of such a side that its points name, or all of the table, into its stores.
void store_late(JoinNode* node, Side* side);

// ---- sum_reading.cpp

/// The same as read_inputs() where the engine can add up the pairs of what is read, and of no row
/// more is wanted than that. False: the inputs have to be read, from their beginnings.
bool read_summed_inputs(JoinNode* node);

/// From now on rows are kept, and the inputs begin again.
void keep_summed_rows(JoinNode* node);

// ---- join_sums.cpp

/// Prepares what is to be added up; reads nothing.
void begin_sums(JoinNode* node);

/// Forgets what was added up, before pairs are found.
void start_sums(JoinNode* node);

/// After the rows are forgotten, and with them all that was added up.
void forget_sums(JoinNode* node);

/// Whether the engine is to find more than how many pairs each left row has.
bool needs_measures(const JoinNode* node);

/// Whether the engine can add up the points' pairs. Else pairs are made, and added up here.
bool can_engine_sum(const JoinNode* node);

/// Computes what the engine is to know of the points' rows. False: it cannot be told.
bool prepare_sums(JoinNode* node);

/// The points of a side, or of `both`, which are the same, with what is known of their rows.
Dataset with_sums(JoinNode* node, bool left, bool both, Dataset points);

/// What the engine is to do, once that is prepared.
Output wanted_sums(JoinNode* node);

/// Takes over what the engine has added up. False: it had no memory, or met a value that only
/// pairs can be asked for; nothing is taken.
bool take_sums(JoinNode* node);

/// Before the engine starts: has sums come by the groups of left rows, where that is all that is
/// wanted of these rows.
void group_sums(JoinNode* node);

/// Whether more pairs of a left row change nothing: its group has a pair, and no aggregates.
bool is_group_complete(const JoinNode* node, std::uint64_t left);

/// Why the engine has not added the pairs up; null: it has, or pairs are not added up.
const char* sums_problem(const JoinNode* node);

/// The next group in the scan tuple, after all pairs were added up.
bool next_group(JoinNode* node);

// ---- join_nearest.cpp

/// Prepares the search for nearest rows; reads nothing.
void begin_nearest(JoinNode* node);

/// From the first left row, with the inputs that were read.
void start_nearest(JoinNode* node);

/// After the rows are forgotten, and with them all that was found.
void forget_nearest(JoinNode* node);

/// The next row of the join in the scan tuple.
bool next_nearest_row(JoinNode* node);

/// The columns that are computed for each row; the distance is known.
List* computed_columns(const JoinNode* node);

// ---- join_operands.cpp

/// Prepares an operand that the node computes; null: the input has the value.
void begin_operand(Side* side, Expr* operand, ErrorTrap trap, PlanState* parent);

/// Goes through the rows of a side.
using RowConversion = void (*)(JoinNode* node, Side* side, ValueShape* shape);

/// Calls `convert`, which may compute the side's operand, if it has one. No input is asked for rows
/// meanwhile: a subtransaction may be open.
void compute_operands(JoinNode* node, Side* side, ValueShape* shape, RowConversion convert);

/// Computes the operand over the scan tuple. False where an error was dropped, or where none could
/// be: the row is odd.
bool compute_operand(JoinNode* node, Side* side, Datum* value, bool* is_null);

// ---- join_work.cpp

/// The row that the engine names: by its number, or in a self-join by the point's position or rank.
std::uint64_t row_of(const JoinNode* node, const Side& side, std::int64_t id);

/// Whether conditions other than the engine's have to be evaluated for its pairs.
bool has_filter(const JoinNode* node);

/// Prepares the engine for what was read, and sets the mode. Finds no pair yet.
void start_pairs(JoinNode* node);

/// Begins with the next pairs: starts the engine, or a loop. Where the engine counts,
/// takes its counts. False when there are no more pairs.
bool start_work(JoinNode* node);

/// The next pair that matches, in the scan tuple; in a semi or anti join one for each left row.
bool next_match(JoinNode* node);

/// The same, among the pairs that the engine emits.
bool next_engine_match(JoinNode* node);

/// The next batch of the engine's.
bool next_batch(JoinNode* node);

/// The next pair that the engine found, as numbers of rows.
bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right);

/// Whether a pair of the engine's, which the scan tuple shows, fulfils the other conditions.
bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right);

// ---- join_batch.cpp

/// Forgets the rows that were read from files together. Returns how many bytes the next ones may
/// take.
Size begin_wanting(JoinNode* node);

/// Asks for what is kept of a row, with `tested` for the condition too, and returns how much memory
/// it will take; 0 where it is in memory.
Size want_rows(const Side* side, std::uint64_t row, bool tested);

/// Reads what was asked for, each row once and in the order of its file.
void read_wanted(JoinNode* node);

/// The next pair of the source, whose rows are in memory. Of one source all pairs are taken before
/// another one's, or forget_pairs() is called.
bool next_pair(JoinNode* node, PairSource source, std::uint64_t* left, std::uint64_t* right);

/// Forgets pairs that the engine emitted and nobody has taken.
void forget_pairs(JoinNode* node);

// ---- join_order.cpp

/// Whether both sides are the same points in the same order, so that half of the work will do; in a
/// file under the same ids, too. Checks once for each reading of the inputs.
bool are_same_points(JoinNode* node);

/// Whether both sides' points, which are the same, have the same keys, each but once, so that the
/// engine can do what the condition on their order does. Sets the ranks. Checks once for each
/// reading of the inputs.
bool find_ranks(JoinNode* node);

// ---- join_rows.cpp

/// From the first row of the join, with the inputs that were read.
void start_rows(JoinNode* node);

/// Sets the matches of all left rows, which are in their store, to 0.
void clear_matches(JoinNode* node);

/// Whether each pair that the engine emits is a row as it is.
bool are_pairs_rows(const JoinNode* node);

/// Puts NULLs in the place of columns.
void show_nothing(TupleTableSlot* slot, const Columns& columns);

/// The next row of the node in the scan tuple.
bool next_row(JoinNode* node);

/// The next row of the join, whatever becomes of it: of its first pairs all, and no groups. Sets
/// `last_left`.
bool next_joined_row(JoinNode* node);

/// The same where pairs_are_rows, in the result slot, whose columns are a beginning of the scan
/// tuple's. False when the short way ends; next_row() goes on.
bool next_pair_row(JoinNode* node, TupleTableSlot* slot);

/// Puts columns of a row into a slot.
void show(TupleTableSlot* slot, const Columns& columns, std::uint64_t row);

/// Puts a pair of rows into the scan tuple.
void show_pair(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Puts a left row without a match into the scan tuple.
void show_left_alone(JoinNode* node, std::uint64_t row);

/// Whether conditions hold for the scan tuple; null: there are none.
bool holds(JoinNode* node, ExprState* conditions);

// ---- join_top.cpp

/// The score in a row of one side, for an engine. Sets top_problem where it cannot be one.
double read_score(JoinNode* node, Side* side, TupleTableSlot* slot);

/// Whether a pair and its reverse have the same score, so that the engine may be asked for one of
/// both and for no self-pairs. False where nothing but the distance decides, since it would gain
/// nothing.
bool may_halve_top(const JoinNode* node);

/// The first request for top pairs to the engine, which may hold so many bytes. Sets top_problem
/// where there can be none.
Top first_top(JoinNode* node, std::uint64_t memory_limit);

/// The next pair that may be among the first, in the scan tuple. False at their end, or with
/// top_problem when they were not found; then all pairs have to be emitted.
bool next_top(JoinNode* node);

// ---- join_explain.cpp

/// CustomExecMethods::ExplainCustomScan.
void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es);

}  // namespace gpujoin

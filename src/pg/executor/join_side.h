// One input of a join, as it was read.
#pragma once

#include "pg/executor/join_plan.h"
#include "pg/reading/late_rows.h"
#include "pg/store/point_buffer.h"
#include "pg/store/row_store.h"
#include "pg/types/plane_box.h"

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

/// A compared value that no input has.
struct SideOperand {
  ExprState* state;  ///< over the scan tuple; null: the input has the value
  Expr* expression;
  ErrorTrap trap;        ///< a row whose operand raises an error that is dropped is odd
  MemoryContext memory;  ///< where a subtransaction drops its errors
  ExprState* guard;      ///< rows that fail it match nothing, and have no operand; null: none
};

/// Numbers that the first pairs are wanted by.
struct SideScores {
  AttrNumber value;  ///< the score in the side's rows; 0: no scores
  Oid type;
  ScoreRange range;
  double* of_rows;  ///< [room] by row, where the node computes the values
  std::uint64_t room;
};

/// What rows add to the radius.
struct SideRadii {
  AttrNumber value;  ///< in the side's rows; 0: nothing
  double* of_rows;   ///< [room] by row; kNoRadius where it is NULL
  std::uint64_t room;
  double most;  ///< of rows that are not odd
};

/// One input.
struct Side {
  PlanState* plan;
  AttrNumber value;  ///< the compared value in its rows; 0: `operand` computes it
  SideOperand operand;
  SideScores scores;
  SideRadii radii;
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
};

}  // namespace gpujoin

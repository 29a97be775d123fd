// The arguments of the join functions, read from SQL: what is asked for, before any table has been
// looked at.
#pragma once

#include "engine/request.h"
#include "pg/compat.h"

namespace gpujoin {

/// One of the functions of the SQL surface that returns pairs.
struct JoinFunction {
  const char* name;
  bool self_join;
  bool distances;
  PGFunction address;  ///< what identifies it, whatever its name, schema and OID are
};

/// Null when `address` is not one of them.
const JoinFunction* find_join_function(PGFunction address);

/// One side as the caller names it. Strings are null where the default is wanted.
struct SideArguments {
  Oid relation;
  const char* prefix;  ///< of the side's argument names: "", "left_" or "right_"
  const char* id_column;
  int vector_column_count;  ///< -1: the default is wanted
  const char** vector_columns;
};

struct JoinArguments {
  const JoinFunction* function;
  bool no_rows;  ///< a required argument is NULL, so no distance is <= eps
  SideArguments left;
  SideArguments right;  ///< unset in a self-join
  double eps;
  Metric metric;
  PairSelection pairs;
};

inline constexpr int kMaxJoinArguments = 8;

/// Positions of a function's arguments; the first ones are required.
struct ArgumentPositions {
  int relation[2], eps, id_column[2], vector_columns[2], metric, pairs;  ///< -1: not an argument
  int count;
};

const ArgumentPositions& argument_positions(const JoinFunction* function);

/// Reads and checks the values of all arguments, in order. Raises an error for what can be told
/// without looking at a table. Strings are copied to the current memory context.
JoinArguments read_arguments(const JoinFunction* function, const NullableDatum* values);

/// Whether both name the same columns of the same relation.
bool same_side(const SideArguments& a, const SideArguments& b);

const char* to_string(PairSelection pairs);

}  // namespace gpujoin

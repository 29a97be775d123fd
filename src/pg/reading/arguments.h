// The arguments of the join functions, read from SQL: what is asked for, before any table is
// opened.
#pragma once

#include "engine/request/request.h"
#include "pg/compat.h"

namespace gpujoin {

/// Positions of a function's arguments; -1: it has no such argument.
struct ArgumentPositions {
  int relation[2] = {-1, -1};
  int eps = -1, k = -1, min_points = -1, min_cluster_size = -1;
  int id_column[2] = {-1, -1};
  int columns[2] = {-1, -1};  ///< of vectors, or of boxes
  int score_column[2] = {-1, -1};
  int partition_column = -1;
  int metric = -1, pairs = -1, score = -1, weights = -1, best = -1;
  int count;
};

inline constexpr int kMaxJoinArguments = 14;

/// The default of min_points and min_cluster_size, as the SQL scripts declare it.
inline constexpr int kDefaultMinPoints = 5;

/// What a call that leaves the distance out asks for.
enum class DefaultEps {
  kNone,  ///< nothing: it has to be given
  kZero,
  kAny,  ///< rows at any finite distance
};

/// One of the set-returning functions of the SQL surface.
struct JoinFunction {
  const char* name;
  Shape shape;
  Output::Kind output;  ///< what its rows are made of
  DefaultEps default_eps;
  ArgumentPositions at;
  PGFunction address;  ///< what identifies it, whatever its name, schema and OID are

  /// Whether it joins one table with itself, and knows no other.
  constexpr bool takes_one_table() const { return at.relation[1] < 0; }
};

/// The metric of a join of points, as it is named.
struct PointMetric {
  Metric metric;  ///< of the engine's points
  bool on_earth;  ///< "haversine": these are places, and distances arcs between them
};

/// One side as the caller names it. Strings are null where the default is wanted.
struct SideArguments {
  Oid relation;
  Shape shape;
  bool bits;           ///< rows are bits, by whose metrics they are joined
  const char* prefix;  ///< of the side's argument names: "", "left_" or "right_"
  const char* id_column;
  int column_count;      ///< -1: the default is wanted
  const char** columns;  ///< of vectors, or of boxes
  bool scored;           ///< rows have scores
  bool ranks;            ///< these are ranks, of Output::kDuplicates
  bool on_earth;         ///< vectors are longitudes and latitudes
  bool is_searched;      ///< vectors are of any type that plain SQL searches
  const char* score_column;
  const char* partition_column;  ///< whose values divide rows; null: none do
};

struct JoinArguments {
  const JoinFunction* function;
  bool no_rows;  ///< a required argument is NULL
  SideArguments left;
  SideArguments right;  ///< unset where there is one table
  double eps;           ///< between the engine's points
  double radius;        ///< as the caller gave it: metres where points are places on the Earth
  PointMetric metric;
  PairSelection pairs;
  Top top;                         ///< of Output::kTopPairs; its k is Output::kNearest's, too
  std::uint64_t min_points;        ///< of clusters and spanning trees
  std::uint64_t min_cluster_size;  ///< of Output::kStableClusters
};

/// Reads and checks the values of all arguments of a call, in order. Raises an error for what is
/// wrong whatever the tables hold. Strings are copied to the current memory context.
JoinArguments read_arguments(const JoinFunction* function, Node* call, const NullableDatum* values);

/// The argument itself, or an error where it is none.
double check_eps(double eps, Shape shape);
std::uint64_t check_min_points(std::int64_t min_points);

/// The metric of arrays that a text names; an error where it names none.
PointMetric read_metric(Datum name);

const char* to_string(PointMetric metric);

/// The radius of an engine's points: the straight line below an arc where these are places.
double engine_radius(PointMetric metric, double radius);

/// Whether both name the same columns of the same relation.
bool same_side(const SideArguments& a, const SideArguments& b);

const char* to_string(PairSelection pairs);

/// What the rows are, and the argument that names their columns, with an example, for messages.
inline const char* noun(Shape shape) { return shape == Shape::kBoxes ? "box" : "vector"; }
inline const char* plural(Shape shape) { return shape == Shape::kBoxes ? "boxes" : "vectors"; }
inline const char* columns_argument(Shape shape) {
  return shape == Shape::kBoxes ? "box_columns" : "vector_columns";
}
inline const char* columns_example(Shape shape) {
  return shape == Shape::kBoxes ? "'low,high'" : "'lon,lat'";
}

}  // namespace gpujoin

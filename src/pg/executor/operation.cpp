#include "pg/executor/operation.h"

extern "C" {
// The functions as PostgreSQL calls them (pg/functions/functions.cpp).
Datum gpujoin_selfjoin(PG_FUNCTION_ARGS);
Datum gpujoin_selfjoin_distance(PG_FUNCTION_ARGS);
Datum gpujoin_join(PG_FUNCTION_ARGS);
Datum gpujoin_join_distance(PG_FUNCTION_ARGS);
Datum gpujoin_neighbors(PG_FUNCTION_ARGS);
Datum gpujoin_topk_join(PG_FUNCTION_ARGS);
Datum gpujoin_box_join(PG_FUNCTION_ARGS);
}

namespace gpujoin {
namespace {

constexpr ArgumentPositions kOneTable = {.relation = {0, -1},
                                         .eps = 1,
                                         .id_column = {2, -1},
                                         .columns = {3, -1},
                                         .metric = 4,
                                         .pairs = 5,
                                         .count = 6};
constexpr ArgumentPositions kTwoTables = {
    .relation = {0, 1}, .eps = 2, .id_column = {3, 4}, .columns = {5, 6}, .metric = 7, .count = 8};
constexpr ArgumentPositions kTwoTablesOfBoxes = {.relation = {0, 1},
                                                 .eps = 2,
                                                 .id_column = {3, 4},
                                                 .columns = {5, 6},
                                                 .metric = 7,
                                                 .pairs = 8,
                                                 .count = 9};
constexpr ArgumentPositions kTwoTablesWithScores = {.relation = {0, 1},
                                                    .eps = 2,
                                                    .k = 3,
                                                    .id_column = {4, 5},
                                                    .columns = {6, 7},
                                                    .score_column = {8, 9},
                                                    .metric = 10,
                                                    .score = 11,
                                                    .weights = 12,
                                                    .best = 13,
                                                    .count = 14};

void start_pairs(JoinScan* scan) { start_engine(&scan->run); }

/// (id1, id2, distance or score)
bool next_pair(JoinScan* scan, Datum* values) {
  if (!next_join_pair(scan)) return false;
  values[0] = Int64GetDatum(scan->pair.id1);
  values[1] = Int64GetDatum(scan->pair.id2);
  values[2] = Float8GetDatum(scan->pair.distance);
  return true;
}

constexpr Operation kOperations[] = {
    {{"gpu_selfjoin", Shape::kPoints, Output::kPairs, false, kOneTable, gpujoin_selfjoin},
     "Range Self-Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair},
    {{"gpu_selfjoin_distance", Shape::kPoints, Output::kPairsWithDistances, false, kOneTable,
      gpujoin_selfjoin_distance},
     "Range Self-Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_join", Shape::kPoints, Output::kPairs, false, kTwoTables, gpujoin_join},
     "Range Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair},
    {{"gpu_join_distance", Shape::kPoints, Output::kPairsWithDistances, false, kTwoTables,
      gpujoin_join_distance},
     "Range Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_neighbors", Shape::kPoints, Output::kCountPerRow, false, kOneTable, gpujoin_neighbors},
     "Neighbors",
     RowKind::kLeftRow,
     3,
     start_neighbors,
     next_neighbors},
    {{"gpu_topk_join", Shape::kPoints, Output::kTopPairs, false, kTwoTablesWithScores,
      gpujoin_topk_join},
     "Top-k Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_box_join", Shape::kBoxes, Output::kPairs, true, kTwoTablesOfBoxes, gpujoin_box_join},
     "Box Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair}};

}  // namespace

const Operation* find_operation(PGFunction address) {
  for (const Operation& operation : kOperations)
    if (operation.function.address == address) return &operation;
  return nullptr;
}

}  // namespace gpujoin

#include "pg/executor/operation.h"

extern "C" {
// The functions as PostgreSQL calls them (pg/functions/functions.cpp).
Datum gpujoin_selfjoin(PG_FUNCTION_ARGS);
Datum gpujoin_selfjoin_distance(PG_FUNCTION_ARGS);
Datum gpujoin_join(PG_FUNCTION_ARGS);
Datum gpujoin_join_distance(PG_FUNCTION_ARGS);
Datum gpujoin_neighbors(PG_FUNCTION_ARGS);
Datum gpujoin_topk_join(PG_FUNCTION_ARGS);
Datum gpujoin_knn_join(PG_FUNCTION_ARGS);
Datum gpujoin_box_join(PG_FUNCTION_ARGS);
Datum gpujoin_components(PG_FUNCTION_ARGS);
Datum gpujoin_dbscan(PG_FUNCTION_ARGS);
Datum gpujoin_density(PG_FUNCTION_ARGS);
Datum gpujoin_dedup(PG_FUNCTION_ARGS);
Datum gpujoin_spanning_tree(PG_FUNCTION_ARGS);
Datum gpujoin_hdbscan(PG_FUNCTION_ARGS);
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
constexpr ArgumentPositions kOneTableAndPartitions = {.relation = {0, -1},
                                                      .eps = 1,
                                                      .id_column = {2, -1},
                                                      .columns = {3, -1},
                                                      .partition_column = 5,
                                                      .metric = 4,
                                                      .count = 6};
constexpr ArgumentPositions kOneTableAndMinPoints = {.relation = {0, -1},
                                                     .eps = 1,
                                                     .min_points = 2,
                                                     .id_column = {3, -1},
                                                     .columns = {4, -1},
                                                     .partition_column = 6,
                                                     .metric = 5,
                                                     .count = 7};
constexpr ArgumentPositions kOneTableOfTree = {.relation = {0, -1},
                                               .min_points = 1,
                                               .id_column = {2, -1},
                                               .columns = {3, -1},
                                               .metric = 4,
                                               .count = 5};
constexpr ArgumentPositions kOneTableAndSize = {.relation = {0, -1},
                                                .min_points = 2,
                                                .min_cluster_size = 1,
                                                .id_column = {3, -1},
                                                .columns = {4, -1},
                                                .metric = 5,
                                                .count = 6};
constexpr ArgumentPositions kOneTableAndRanks = {.relation = {0, -1},
                                                 .eps = 1,
                                                 .id_column = {4, -1},
                                                 .columns = {5, -1},
                                                 .score_column = {2, -1},
                                                 .partition_column = 7,
                                                 .metric = 6,
                                                 .best = 3,
                                                 .count = 8};
constexpr ArgumentPositions kTwoTables = {
    .relation = {0, 1}, .eps = 2, .id_column = {3, 4}, .columns = {5, 6}, .metric = 7, .count = 8};
constexpr ArgumentPositions kTwoTablesAndK = {.relation = {0, 1},
                                              .eps = 3,
                                              .k = 2,
                                              .id_column = {4, 5},
                                              .columns = {6, 7},
                                              .metric = 8,
                                              .pairs = 9,
                                              .count = 10};
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
bool next_pair(JoinScan* scan, Datum* values, bool*) {
  if (!next_join_pair(scan)) return false;
  values[0] = Int64GetDatum(scan->pair.id1);
  values[1] = Int64GetDatum(scan->pair.id2);
  values[2] = Float8GetDatum(scan->pair.distance);
  return true;
}

/// (id1, id2, distance, rank)
bool next_neighbor(JoinScan* scan, Datum* values, bool* nulls) {
  if (!next_pair(scan, values, nulls)) return false;
  const PairCursor& cursor = scan->cursor;
  values[3] =
      Int64GetDatum(static_cast<std::int64_t>(cursor.entry - cursor.batch.entry(cursor.row)));
  return true;
}

void start_nearest(JoinScan* scan) {
  if (scan->arguments.pairs == PairSelection::kUnordered)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("gpu_knn_join() does not support pairs => 'unordered'"),
                    errhint("Use \"distinct\", or \"all\" to have each row among its neighbors.")));
  start_pairs(scan);
}

/// (id, cluster, probability)
bool next_stable_cluster(JoinScan* scan, Datum* values, bool* nulls) {
  if (!next_pair(scan, values, nulls)) return false;
  nulls[1] = scan->pair.id2 == kNoCluster;
  return true;
}

void start_density(JoinScan* scan) {
  if (scan->arguments.pairs == PairSelection::kUnordered)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("gpu_density() does not support pairs => 'unordered'"),
                    errhint("Use \"all\", or \"distinct\" to count no row itself.")));
  start_row_numbers(scan);
}

constexpr Operation kOperations[] = {
    {{"gpu_selfjoin", Shape::kPoints, Output::kPairs, DefaultEps::kNone, kOneTable,
      gpujoin_selfjoin},
     "Range Self-Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair},
    {{"gpu_selfjoin_distance", Shape::kPoints, Output::kPairsWithDistances, DefaultEps::kNone,
      kOneTable, gpujoin_selfjoin_distance},
     "Range Self-Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_join", Shape::kPoints, Output::kPairs, DefaultEps::kNone, kTwoTables, gpujoin_join},
     "Range Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair},
    {{"gpu_join_distance", Shape::kPoints, Output::kPairsWithDistances, DefaultEps::kNone,
      kTwoTables, gpujoin_join_distance},
     "Range Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_neighbors", Shape::kPoints, Output::kCountPerRow, DefaultEps::kNone, kOneTable,
      gpujoin_neighbors},
     "Neighbors",
     RowKind::kGathered,
     3,
     start_neighbors,
     next_neighbors},
    {{"gpu_topk_join", Shape::kPoints, Output::kTopPairs, DefaultEps::kNone, kTwoTablesWithScores,
      gpujoin_topk_join},
     "Top-k Join",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_knn_join", Shape::kPoints, Output::kNearest, DefaultEps::kAny, kTwoTablesAndK,
      gpujoin_knn_join},
     "Nearest-Neighbor Join",
     RowKind::kNeighbor,
     4,
     start_nearest,
     next_neighbor},
    {{"gpu_box_join", Shape::kBoxes, Output::kPairs, DefaultEps::kZero, kTwoTablesOfBoxes,
      gpujoin_box_join},
     "Box Join",
     RowKind::kPair,
     2,
     start_pairs,
     next_pair},
    {{"gpu_components", Shape::kPoints, Output::kClusters, DefaultEps::kNone,
      kOneTableAndPartitions, gpujoin_components},
     "Connected Components",
     RowKind::kLeftRow,
     2,
     start_row_numbers,
     next_component},
    {{"gpu_dbscan", Shape::kPoints, Output::kClusters, DefaultEps::kNone, kOneTableAndMinPoints,
      gpujoin_dbscan},
     "DBSCAN",
     RowKind::kLeftRow,
     3,
     start_row_numbers,
     next_cluster},
    {{"gpu_density", Shape::kPoints, Output::kCountPerRow, DefaultEps::kNone, kOneTable,
      gpujoin_density},
     "Density",
     RowKind::kLeftRow,
     2,
     start_density,
     next_density},
    {{"gpu_dedup", Shape::kPoints, Output::kDuplicates, DefaultEps::kNone, kOneTableAndRanks,
      gpujoin_dedup},
     "Deduplication",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_spanning_tree", Shape::kPoints, Output::kSpanningTree, DefaultEps::kAny, kOneTableOfTree,
      gpujoin_spanning_tree},
     "Spanning Tree",
     RowKind::kPair,
     3,
     start_pairs,
     next_pair},
    {{"gpu_hdbscan", Shape::kPoints, Output::kStableClusters, DefaultEps::kAny, kOneTableAndSize,
      gpujoin_hdbscan},
     "HDBSCAN",
     RowKind::kLeftRow,
     3,
     start_pairs,
     next_stable_cluster}};

}  // namespace

const Operation* find_operation(PGFunction address) {
  for (const Operation& operation : kOperations)
    if (operation.function.address == address) return &operation;
  return nullptr;
}

}  // namespace gpujoin

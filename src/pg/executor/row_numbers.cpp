// Rows of functions that have a number for each row of a table: its neighbours, or its cluster.
#include "core/cluster.h"
#include "pg/executor/operation.h"

extern "C" {
#include "utils/builtins.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// JoinScan::rows.
struct NumberScan {
  MemoryContext context;  ///< holds this struct and what it points to
  std::uint64_t row;      ///< next row of the batch
  Datum roles[3];         ///< names, by ClusterRole
};

/// Sets (id, number) to the next row's; false at the end.
bool next_number(JoinScan* scan, std::int64_t* id, std::uint64_t* number) {
  NumberScan* const rows = static_cast<NumberScan*>(scan->rows);
  const ResultBatch& batch = scan->run.batch;
  while (rows->row >= batch.row_count) {
    if (!next_join_batch(scan)) return false;
    rows->row = 0;
  }
  *id = batch.left_ids[batch.rows[rows->row]];
  *number = batch.counts[rows->row++];
  return true;
}

}  // namespace

void start_row_numbers(JoinScan* scan) {
  forget_rows(scan);
  const MemoryContext context =
      AllocSetContextCreate(scan->context, "gpujoin row numbers", ALLOCSET_SMALL_SIZES);
  NumberScan* const rows =
      static_cast<NumberScan*>(MemoryContextAllocZero(context, sizeof(NumberScan)));
  const MemoryContext caller = MemoryContextSwitchTo(context);
  rows->context = context;
  rows->roles[static_cast<int>(ClusterRole::kNoise)] = CStringGetTextDatum("noise");
  rows->roles[static_cast<int>(ClusterRole::kBorder)] = CStringGetTextDatum("border");
  rows->roles[static_cast<int>(ClusterRole::kCore)] = CStringGetTextDatum("core");
  MemoryContextSwitchTo(caller);
  scan->rows = rows;
  start_engine(&scan->run);
}

/// (id, neighbors)
bool next_density(JoinScan* scan, Datum* values, bool*) {
  std::int64_t id;
  std::uint64_t number;
  if (!next_number(scan, &id, &number)) return false;
  values[0] = Int64GetDatum(id);
  values[1] = Int64GetDatum(static_cast<std::int64_t>(number));
  return true;
}

/// (id, component)
bool next_component(JoinScan* scan, Datum* values, bool* nulls) {
  Datum row[kMaxResultColumns];
  if (!next_cluster(scan, row, nulls)) return false;
  values[0] = row[0];
  values[1] = row[1];
  return true;
}

/// (id, cluster, kind)
bool next_cluster(JoinScan* scan, Datum* values, bool* nulls) {
  std::int64_t id;
  std::uint64_t word;
  if (!next_number(scan, &id, &word)) return false;
  const RowCluster row = unpack_cluster(word);
  values[0] = Int64GetDatum(id);
  values[1] = Int64GetDatum(static_cast<std::int64_t>(row.cluster));
  nulls[1] = row.role == ClusterRole::kNoise;
  values[2] = static_cast<NumberScan*>(scan->rows)->roles[static_cast<int>(row.role)];
  return true;
}

}  // namespace gpujoin

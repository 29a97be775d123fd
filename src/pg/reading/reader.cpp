// Reads a table's own blocks, or those of its partitions, where that gives the same rows; else runs
// a query over the relation with a receiver of its own, so that rows go straight from the executor
// into the dataset: no tuplestore, no copy of a tuple.
#include "pg/reading/reader.h"

#include "pg/reading/block_rows.h"
#include "pg/reading/resident_table.h"
#include "pg/reading/row_values.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/plannodes.h"
#include "optimizer/cost.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "partitioning/partdesc.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rls.h"
#include "utils/typcache.h"
}

namespace gpujoin {
namespace {

/// The receiver of rows, and what it makes of them.
struct Reader {
  DestReceiver receiver;  // first: the executor knows no more than this
  RowCollector rows;
};

/// DestReceiver::receiveSlot. Column 1 is the id, the vector or box follows, then the score, then
/// the partition.
bool receive_row(TupleTableSlot* slot, DestReceiver* receiver) {
  RowCollector* const rows = &reinterpret_cast<Reader*>(receiver)->rows;
  slot_getallattrs(slot);
  if (rows->columns->id == SelfItemPointerAttributeNumber)
    slot->tts_values[0] = Int64GetDatum(
        itemptr_encode(reinterpret_cast<ItemPointer>(DatumGetPointer(slot->tts_values[0]))));
  collect_row(rows, slot->tts_values, slot->tts_isnull);
  return rows->is_full == nullptr || !*rows->is_full;
}

/// DestReceiver::rStartup. The relation was found by its OID, but is read by its name, which a
/// renamed schema may have given to another one meanwhile: its values are not taken for what they
/// are not.
void check_types(DestReceiver* receiver, int, TupleDesc row) {
  const RowCollector& rows = reinterpret_cast<const Reader*>(receiver)->rows;
  const SideColumns& columns = *rows.columns;
  const auto has = [&](int column, Oid type) {
    return column < row->natts && getBaseType(TupleDescAttr(row, column)->atttypid) == type;
  };
  bool same = has(0, columns.id == SelfItemPointerAttributeNumber ? TIDOID : columns.id_type);
  for (int i = 0; i < columns.count; ++i)
    same = same && has(i + 1, asked_type(columns, columns.types[i]));
  const int last = columns.count + (rows.points->scored ? 1 : 0);
  if (rows.points->scored) same = same && has(last, asked_type(columns, columns.score_type));
  if (divides(columns)) same = same && has(last + 1, columns.partition_type);
  if (!same)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("relation \"%s\" was replaced while it was read",
                           get_rel_name(columns.relation)),
                    errhint("Try again.")));
}

void ignore_receiver(DestReceiver*) {}

/// A numeric comes as float8, and what can be cast to a box as one: a geometry's is its bounding
/// box in double precision, NULL of an empty one.
void append_column(StringInfo query, const SideColumns& columns, AttrNumber attribute, Oid type) {
  appendStringInfo(query, ", %s",
                   quote_identifier(get_attname(columns.relation, attribute, false)));
  const Oid asked = asked_type(columns, type);
  if (asked != type)
    appendStringInfo(query, "::%s", format_type_extended(asked, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

/// `SELECT id, vector, score, partition FROM schema.relation`, independent of search_path, maybe
/// `ORDER BY partition`.
char* make_query(const SideColumns& columns, bool sorted = false) {
  StringInfoData query;
  initStringInfo(&query);
  appendStringInfo(&query, "SELECT %s",
                   quote_identifier(get_attname(columns.relation, columns.id, false)));
  for (int i = 0; i < columns.count; ++i)
    append_column(&query, columns, columns.attributes[i], columns.types[i]);
  if (columns.score != InvalidAttrNumber)
    append_column(&query, columns, columns.score, columns.score_type);
  if (divides(columns)) append_column(&query, columns, columns.partition, InvalidOid);
  const char* const schema = get_namespace_name(get_rel_namespace(columns.relation));
  appendStringInfo(&query, " FROM %s",
                   quote_qualified_identifier(schema, get_rel_name(columns.relation)));
  if (sorted)
    appendStringInfo(&query, " ORDER BY %s",
                     quote_identifier(get_attname(columns.relation, columns.partition, false)));
  return query.data;
}

void connect_spi() {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
}

void run_query(const char* query, DestReceiver* receiver) {
  SPIExecuteOptions options = {};
  options.read_only = true;  // under the snapshot of the query that joins
  options.dest = receiver;
  connect_spi();
  const int result = SPI_execute_extended(query, &options);
  if (result != SPI_OK_SELECT)
    elog(ERROR, "could not read a relation: %s", SPI_result_code_string(result));
  SPI_finish();
}

void read_by_query(RowCollector* rows) {
  Reader reader = {};
  reader.receiver.receiveSlot = receive_row;
  reader.receiver.rStartup = check_types;
  reader.receiver.rShutdown = ignore_receiver;
  reader.receiver.rDestroy = ignore_receiver;
  reader.receiver.mydest = DestTuplestore;  // to SPI: rows are wanted, but not by it
  reader.rows = *rows;
  char* const query = make_query(*rows->columns, rows->groups != nullptr);
  run_query(query, &reader.receiver);
  pfree(query);
  *rows = reader.rows;
}

// ---- By blocks

/// Whether a plan scans the tables, and nothing else.
bool scans(const Plan* plan, const List* range_table, const List* tables) {
  switch (nodeTag(plan)) {
    case T_SeqScan:
    case T_IndexOnlyScan: {
      const Index number = reinterpret_cast<const Scan*>(plan)->scanrelid;
      return list_member_oid(tables, rt_fetch(number, range_table)->relid);
    }
    case T_Gather:
    case T_Result:
      return outerPlan(plan) != nullptr && scans(outerPlan(plan), range_table, tables);
    case T_Append: {
      ListCell* cell;
      foreach (cell, reinterpret_cast<const Append*>(plan)->appendplans)
        if (!scans(static_cast<const Plan*>(lfirst(cell)), range_table, tables)) return false;
      return true;
    }
    default:
      return false;
  }
}

/// Whether a partition has the columns where its parent has them.
bool has_columns_of(Relation partition, Relation parent, const SideColumns& columns) {
  bool same = columns.id != SelfItemPointerAttributeNumber;
  for_each_column(columns, [&](AttrNumber attribute, Oid) {
    if (!same || attribute > RelationGetNumberOfAttributes(partition)) {
      same = false;
      return;
    }
    const FormData_pg_attribute* const its =
        TupleDescAttr(RelationGetDescr(partition), attribute - 1);
    const FormData_pg_attribute* const theirs =
        TupleDescAttr(RelationGetDescr(parent), attribute - 1);
    same = std::strcmp(NameStr(its->attname), NameStr(theirs->attname)) == 0;
  });
  return same;
}

/// Adds the tables that hold a relation's rows, in the order of a query, to the list, and locks
/// partitions as a query does. False where some of them cannot be read by blocks.
bool find_tables(Relation relation, const SideColumns& columns, List** tables) {
  if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) {
    *tables = lappend_oid(*tables, RelationGetRelid(relation));
    return can_read_blocks(relation, columns);
  }
  if (check_enable_rls(RelationGetRelid(relation), InvalidOid, true) == RLS_ENABLED) return false;
  const PartitionDesc partitions = RelationGetPartitionDesc(relation, true);
  bool can = true;
  for (int i = 0; can && i < partitions->nparts; ++i) {
    const Relation partition = table_open(partitions->oids[i], AccessShareLock);
    can = has_columns_of(partition, relation, columns) && find_tables(partition, columns, tables);
    table_close(partition, NoLock);
  }
  return can;
}

/// Reads tables one after the other; `rows` may be those of several.
void read_tables(const List* tables, RowCollector* rows) {
  // What workers write is shared, and so what comes before it.
  if (list_length(tables) > 1 && max_parallel_workers_per_gather > 0) rows->points->shares = true;
  ListCell* cell;
  foreach (cell, tables) {
    const Relation table = table_open(lfirst_oid(cell), NoLock);
    read_blocks(table, rows, {});
    table_close(table, NoLock);
  }
}

}  // namespace

bool has_rows_here(const SideColumns& columns, const List* tables) {
  if (planner_hook == nullptr) return true;
  char* const query = make_query(columns);
  connect_spi();
  const SPIPlanPtr plan = SPI_prepare(query, 0, nullptr);
  CachedPlan* const cached = plan == nullptr ? nullptr : SPI_plan_get_cached_plan(plan);
  if (cached == nullptr)
    elog(ERROR, "could not plan to read a relation: %s", SPI_result_code_string(SPI_result));
  const PlannedStmt* const planned = linitial_node(PlannedStmt, cached->stmt_list);
  const bool here = scans(planned->planTree, planned->rtable, tables);
  ReleaseCachedPlan(cached, nullptr);
  SPI_finish();
  pfree(query);
  return here;
}

namespace {

/// Whether rows can be sorted such that equal values of the column that divides them come together.
bool can_sort(const SideColumns& columns) {
  return OidIsValid(lookup_type_cache(columns.partition_type, TYPECACHE_LT_OPR)->lt_opr);
}

/// Forgets the rows and reads them anew, sorted by the value that divides them.
Dataset read_sorted(const SideColumns& columns, PointBuffer* points, ValueShape* shape,
                    GroupEnds* groups, SpillFile* file) {
  const MemoryContext context = points->context;
  const std::uint64_t limit = points->limit;
  const ScalarType scalar = points->scalar;
  forget_points(points);
  points->context = context;
  points->limit = limit;
  points->scalar = scalar;
  points->spill = file;
  RowCollector rows = start_collecting(&columns, points, groups);
  read_by_query(&rows);
  *shape = rows.shape;
  end_dividing(&rows);
  return finish_points(points);
}

}  // namespace

Dataset read_points(const SideColumns& columns, PointBuffer* points, ValueShape* shape,
                    GroupEnds* groups, SpillFile* sorted) {
  RowCollector rows = start_collecting(&columns, points);
  bool is_full = false;
  if (divides(columns) && can_sort(columns)) rows.is_full = &is_full;
  const Relation relation = table_open(columns.relation, NoLock);  // held by find_columns()
  List* tables = NIL;
  if (find_tables(relation, columns, &tables) && has_rows_here(columns, tables)) {
    check_block_columns(columns);
    read_tables(tables, &rows);
  } else {
    read_by_query(&rows);
  }
  table_close(relation, NoLock);
  *shape = rows.shape;
  end_dividing(&rows);
  if (is_full) {
    if (rows.partitions != nullptr) pfree(rows.partitions);
    return read_sorted(columns, points, shape, groups, sorted);
  }
  Dataset data = finish_points(points);
  if (divides(columns)) {
    data.keys = rows.partitions;
    data.key_columns = 1;
  }
  return data;
}

}  // namespace gpujoin

// gpu_resident and gpu_evict(): the tables whose rows stay in the service.
#include "pg/functions/prewarmed.h"
#include "pg/functions/service_lists.h"
#include "pg/reading/resident_table.h"

extern "C" {
#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

bool make_row(const service::ListedTable& table, Row* row) {
  add(row, ObjectIdGetDatum(table.key.relation));
  add(row, named_columns(table.key));
  for (const std::uint64_t number :
       {table.rows, table.host_bytes, table.device_bytes, table.hits, table.blocks_read})
    add_count(row, number);
  return true;
}

/// Makes the service forget a relation of this database, or of all; returns how many tables it had.
std::uint64_t evict(Oid relation, bool everywhere) {
  service::EvictTables question;
  service::start_message(&question);
  question.relation = relation;
  question.everywhere = everywhere;
  service::EvictedTables answer;
  return ask_if_running(question, &answer) ? answer.tables : 0;
}

/// Evicts a relation that was dropped or that another database has, for a superuser.
std::uint64_t evict_unknown(Oid relation) {
  const std::uint64_t tables = superuser() && OidIsValid(relation) ? evict(relation, true) : 0;
  if (tables == 0)
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation with OID %u does not exist", relation)));
  return tables;
}

/// Returns how many tables the service had of a relation and those that inherit from it. They do
/// not come back with a restart, unless the transaction may change nothing.
std::uint64_t check_and_evict(Oid function, Oid relation) {
  const char* const name = get_rel_name(relation);
  if (name == nullptr) return evict_unknown(relation);
  if (!is_owner_of_table(relation, GetUserId()))
    aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)), name);
  if (!XactReadOnly) forget_prewarmed(function, relation);
  std::uint64_t tables = 0;
  ListCell* cell;
  List* const relations = find_all_inheritors(relation, AccessShareLock, nullptr);
  foreach (cell, relations) tables += evict(lfirst_oid(cell), false);
  return tables;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_resident_tables);
PG_FUNCTION_INFO_V1(gpujoin_evict);

PGDLLEXPORT Datum gpujoin_resident_tables(PG_FUNCTION_ARGS) {
  using gpujoin::service::ListedTable;
  return gpujoin::list_rows<gpujoin::service::ListTables, gpujoin::service::ListedTables,
                            ListedTable>(fcinfo, gpujoin::make_row);
}

PGDLLEXPORT Datum gpujoin_evict(PG_FUNCTION_ARGS) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("tbl must not be NULL"),
                    errhint("SELECT gpu_evict(relation) FROM gpu_resident evicts all tables.")));
  PG_RETURN_INT64(static_cast<std::int64_t>(
      gpujoin::check_and_evict(fcinfo->flinfo->fn_oid, PG_GETARG_OID(0))));
}
}

#include "pg/functions/prewarmed.h"

#include "pg/service/supervisor.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// The table's name in SQL; null before version 1.2 of the extension, which made the function.
const char* name_of_table(Oid function) {
  const Oid schema = get_func_namespace(function);
  if (!OidIsValid(get_relname_relid("gpu_prewarmed", schema))) return nullptr;
  return quote_qualified_identifier(get_namespace_name(schema), "gpu_prewarmed");
}

/// Runs a statement that changes the table, which users may only read. It names all other objects
/// by their schemas.
void change_table(const char* statement, int count, Oid* types, Datum* values, const char* nulls) {
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
                         context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  const int result = SPI_execute_with_args(statement, count, types, values, nulls, false, 0);
  if (result != SPI_OK_INSERT && result != SPI_OK_DELETE)
    elog(ERROR, "could not change gpu_prewarmed: %s", SPI_result_code_string(result));
  SPI_finish();
  SetUserIdAndSecContext(user, context);
}

/// SQL that makes names of columns a list: as they are given, an array of names or a list.
const char* listed(int parameter, Oid type) {
  if (!OidIsValid(get_element_type(type))) return psprintf("$%d::pg_catalog.text", parameter);
  return psprintf(
      "(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(c), ',' ORDER BY n) FROM "
      "pg_catalog.unnest($%d::pg_catalog.text[]) WITH ORDINALITY AS u (c, n))",
      parameter);
}

}  // namespace

void check_may_keep(Oid relation) {
  PreventCommandIfReadOnly("gpu_prewarm(keep => true)");
  if (get_rel_name(relation) != nullptr && !is_owner_of_table(relation, GetUserId()))
    aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)),
                   get_rel_name(relation));
}

void keep_prewarmed(FunctionCallInfo call) {
  Oid types[kKeep];
  Datum values[kKeep];
  char nulls[kKeep];
  for (int i = 0; i < kKeep; ++i) {
    types[i] = get_fn_expr_argtype(call->flinfo, i);
    values[i] = call->args[i].value;
    nulls[i] = call->args[i].isnull ? 'n' : ' ';
  }
  const char* const table = name_of_table(call->flinfo->fn_oid);
  change_table(
      psprintf("INSERT INTO %s SELECT $1, $2, $3, %s, $5, $6, %s EXCEPT SELECT * FROM %s", table,
               listed(kVectors + 1, types[kVectors]), listed(kBoxes + 1, types[kBoxes]), table),
      kKeep, types, values, nulls);
  if (!is_preloaded())
    ereport(NOTICE,
            (errmsg("after a restart of the server the rows come back with the first session that "
                    "uses gpujoin"),
             errhint("They come back at once with gpujoin in shared_preload_libraries.")));
}

void forget_prewarmed(Oid function, Oid relation) {
  const char* const table = name_of_table(function);
  if (table == nullptr) return;
  Oid type = REGCLASSOID;
  Datum value = ObjectIdGetDatum(relation);
  change_table(psprintf("DELETE FROM %s WHERE relation OPERATOR(pg_catalog.=) $1", table), 1, &type,
               &value, " ");
}

}  // namespace gpujoin

#include "pg/types/extension_object.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_language.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

/// `catalog` is the OID of pg_type or pg_proc.
bool belongs_to(Oid catalog, Oid object, const char* extension) {
  const Oid owner = getExtensionOfObject(catalog, object);
  const char* const name = OidIsValid(owner) ? get_extension_name(owner) : nullptr;
  return name != nullptr && strcmp(name, extension) == 0;
}

}  // namespace

bool is_base_type_of(Oid type, const char* extension, const char* name, std::int16_t length) {
  if (type < FirstNormalObjectId) return false;  // PostgreSQL's own, as most columns' are
  const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* const form = reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple));
  const bool candidate = form->typtype == TYPTYPE_BASE && form->typisdefined &&
                         form->typlen == length && !form->typbyval && !IsTrueArrayType(form) &&
                         strcmp(NameStr(form->typname), name) == 0;
  ReleaseSysCache(tuple);
  return candidate && belongs_to(TypeRelationId, type, extension);
}

bool is_compiled_function_of(Oid function, const char* extension) {
  const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return false;
  const Oid language = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->prolang;
  ReleaseSysCache(tuple);
  return (language == ClanguageId || language == INTERNALlanguageId) &&
         belongs_to(ProcedureRelationId, function, extension);
}

bool is_sql_function_of(Oid function, const char* extension) {
  const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* const form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  const bool candidate = form->prolang == SQLlanguageId && superuser_arg(form->proowner);
  ReleaseSysCache(tuple);
  return candidate && belongs_to(ProcedureRelationId, function, extension);
}

}  // namespace gpujoin

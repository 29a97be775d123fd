#include "pg/extension_object.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/syscache.h"
}

namespace gpujoin {

bool is_type_named(Oid type, const char* name) {
  const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool same =
      strcmp(NameStr(reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple))->typname), name) == 0;
  ReleaseSysCache(tuple);
  return same;
}

bool is_extension_object(Oid catalog, Oid object, const char* extension) {
  const Oid owner = getExtensionOfObject(catalog, object);
  const char* const name = OidIsValid(owner) ? get_extension_name(owner) : nullptr;
  return name != nullptr && strcmp(name, extension) == 0;
}

}  // namespace gpujoin

// What belongs to an extension that may be there or not. Types and functions are known by the
// extension that owns them, never by their name alone.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Whether the type has this name, whoever owns it.
bool is_type_named(Oid type, const char* name);

/// Whether the extension owns an object of `catalog`, the OID of pg_type or pg_proc.
bool is_extension_object(Oid catalog, Oid object, const char* extension);

}  // namespace gpujoin

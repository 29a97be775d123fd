// What belongs to an extension that may be there or not. Whoever owns a trusted extension, which
// takes no superuser, can add types and functions of any name to it. So a value's bytes are read
// only where both its type and the function over it are known by what only a superuser can make.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Whether the type is the extension's of that name, and a base type whose values have this length,
/// or -1: its values have the layout that the extension's library gives them. Domains, enums,
/// composites and arrays are none.
bool is_base_type_of(Oid type, const char* extension, const char* name, std::int16_t length = -1);

/// Whether the function is the extension's and compiled: it runs code of the extension's library,
/// or of the server.
bool is_compiled_function_of(Oid function, const char* extension);

/// Whether the function is the extension's, written in SQL, and a superuser's, as those are that
/// its script makes.
bool is_sql_function_of(Oid function, const char* extension);

}  // namespace gpujoin

// A datum of a number, a date or a time as a number of the machine.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/date.h"
}

namespace gpujoin {

inline bool is_integer_type(Oid type) {
  return type == INT2OID || type == INT4OID || type == INT8OID;
}

/// The number in a datum of one of the integer types, or the integer that a date, a time or a
/// boolean is.
inline std::int64_t integer_of(Oid type, Datum value) {
  switch (type) {
    case BOOLOID:
      return DatumGetBool(value) ? 1 : 0;
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    case DATEOID:
      return DatumGetDateADT(value);
    default:
      return DatumGetInt64(value);
  }
}

/// The number in a datum of one of the number types; of numeric, which is no number of the machine,
/// the datum is a float8.
inline double machine_number(Oid type, Datum value) {
  switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
      return static_cast<double>(integer_of(type, value));
    case FLOAT4OID:
      return DatumGetFloat4(value);
    default:
      return DatumGetFloat8(value);
  }
}

/// The number in a datum of any number type, rounded; a numeric beyond float8 is infinite.
inline double number_of(Oid type, Datum value) {
  return type == NUMERICOID ? DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value))
                            : machine_number(type, value);
}

}  // namespace gpujoin

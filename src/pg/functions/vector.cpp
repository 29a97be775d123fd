// gpu_vector(): the vector that a text or a JSON value lists.
#include "pg/compat.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// The array whose elements `list` names, in brackets, as JSON has them, or in braces. Writes to
/// `list`. The function for input is looked up once for a call site.
Datum parse_vector(FunctionCallInfo fcinfo, char* list) {
  FmgrInfo* input = static_cast<FmgrInfo*>(fcinfo->flinfo->fn_extra);
  if (input == nullptr) {
    input =
        static_cast<FmgrInfo*>(MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FmgrInfo)));
    fmgr_info_cxt(F_ARRAY_IN, input, fcinfo->flinfo->fn_mcxt);
    fcinfo->flinfo->fn_extra = input;
  }
  for (char* c = list; *c != '\0'; ++c) {
    if (*c == '[') *c = '{';
    if (*c == ']') *c = '}';
  }
  return InputFunctionCall(input, list, FLOAT8OID, -1);
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_vector_text);
PG_FUNCTION_INFO_V1(gpujoin_vector_jsonb);

PGDLLEXPORT Datum gpujoin_vector_text(PG_FUNCTION_ARGS) {
  return gpujoin::parse_vector(fcinfo, text_to_cstring(PG_GETARG_TEXT_PP(0)));
}

PGDLLEXPORT Datum gpujoin_vector_jsonb(PG_FUNCTION_ARGS) {
  const Datum list = DirectFunctionCall1(jsonb_out, PG_GETARG_DATUM(0));
  return gpujoin::parse_vector(fcinfo, DatumGetCString(list));
}
}

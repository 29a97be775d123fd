// The one map from StatusCode to SQLSTATE, and what kinds of SQLSTATEs mean.
#include "pg/errors.h"

#include "pg/compat.h"

namespace gpujoin {
namespace {

int sqlstate_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return ERRCODE_INVALID_PARAMETER_VALUE;
    case StatusCode::kMemoryLimit:
      return ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
    case StatusCode::kOutOfMemory:
      return ERRCODE_OUT_OF_MEMORY;
    case StatusCode::kUnavailable:
      return ERRCODE_FEATURE_NOT_SUPPORTED;
    case StatusCode::kDeviceFailure:
      return ERRCODE_IO_ERROR;
    default:
      return ERRCODE_INTERNAL_ERROR;
  }
}

}  // namespace

void raise_status(const Status& status) {
  ereport(ERROR, (errcode(sqlstate_of(status.code)), errmsg("%s", status.message),
                  status.hint[0] != '\0' ? errhint("%s", status.hint) : 0));
  pg_unreachable();
}

bool is_about_value(int code) {
  const int category = ERRCODE_TO_CATEGORY(code);
  return category == ERRCODE_DATA_EXCEPTION || category == ERRCODE_PROGRAM_LIMIT_EXCEEDED;
}

bool is_about_server(int code) {
  switch (ERRCODE_TO_CATEGORY(code)) {
    case ERRCODE_TRANSACTION_ROLLBACK:
    case ERRCODE_INSUFFICIENT_RESOURCES:
    case ERRCODE_OPERATOR_INTERVENTION:
    case ERRCODE_SYSTEM_ERROR:
      return true;
    default:
      return code == ERRCODE_LOCK_NOT_AVAILABLE || code == ERRCODE_DATA_CORRUPTED ||
             code == ERRCODE_INDEX_CORRUPTED;
  }
}

}  // namespace gpujoin

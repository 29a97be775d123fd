// gpu_ctid(): the ctid of a row that a function named by it.
#include "pg/compat.h"

extern "C" {
#include "catalog/index.h"
#include "fmgr.h"
#include "storage/itemptr.h"
}

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_ctid);

PGDLLEXPORT Datum gpujoin_ctid(PG_FUNCTION_ARGS) {
  const int64 id = PG_GETARG_INT64(0);
  const ItemPointer tid = static_cast<ItemPointer>(palloc(sizeof(ItemPointerData)));
  // A block's number and, in the last 16 bits, that of a row in it, from 1.
  if (id < 0 || id >> 48 != 0 || (id & 0xffff) == 0)
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%lld is not the id of a ctid", static_cast<long long>(id)),
                    errhint("Pass ids of a function that was called with id_column => 'ctid'.")));
  itemptr_decode(tid, id);
  PG_RETURN_POINTER(tid);
}
}

#include "pg/store/spill_file.h"

#include "pg/store/buffile.h"

extern "C" {
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "utils/guc.h"
}

namespace gpujoin {
namespace {

void seek(SpillFile* spill, std::uint64_t place) {
  if (spill->at == place) return;
  seek_exactly(spill->file, place);
  spill->at = place;
}

/// Runs body() for an engine: an error is kept, to be raised when the engine has returned.
template <class Body>
Status without_errors(void* context, const Body& body) {
  SpillFile* const spill = static_cast<SpillFile*>(context);
  const MemoryContext caller = CurrentMemoryContext;
  volatile bool failed = false;
  PG_TRY();
  { body(spill); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(spill->context);
    spill->error = CopyErrorData();
    FlushErrorState();
    failed = true;
  }
  PG_END_TRY();
  MemoryContextSwitchTo(caller);
  Status status = {};
  if (failed) status.code = StatusCode::kCallerFailed;
  return status;
}

Status write_for_engine(void* context, const void* bytes, std::uint64_t count,
                        std::uint64_t* place) {
  return without_errors(context,
                        [&](SpillFile* spill) { *place = write_spill(spill, bytes, count); });
}

Status read_for_engine(void* context, std::uint64_t place, void* bytes, std::uint64_t count) {
  return without_errors(context, [&](SpillFile* spill) { read_spill(spill, place, bytes, count); });
}

}  // namespace

void init_spill_file(SpillFile* spill, MemoryContext context) {
  *spill = {};
  spill->functions = {spill, write_for_engine, read_for_engine};
  spill->context = context;
}

std::uint64_t write_spill(SpillFile* spill, const void* bytes, std::uint64_t count) {
  if (spill->file == nullptr) {
    const MemoryContext caller = MemoryContextSwitchTo(spill->context);
    PrepareTempTablespaces();
    // It may outlive the transaction only until the memory context is reset, whatever happened.
    spill->file = BufFileCreateTemp(true);
    MemoryContextSwitchTo(caller);
  }
  const std::uint64_t place = spill->end;
  seek(spill, place);
  spill->at = ~std::uint64_t{0};  // unless all goes well
  write_exactly(spill->file, bytes, count);
  spill->at = spill->end = place + count;
  return place;
}

void read_spill(SpillFile* spill, std::uint64_t place, void* bytes, std::uint64_t count) {
  seek(spill, place);
  spill->at = ~std::uint64_t{0};
  read_exactly(spill->file, bytes, count);
  spill->at = place + count;
}

void raise_spill_error(SpillFile* spill) {
  if (spill->error != nullptr) ReThrowError(spill->error);
}

void close_spill_file(SpillFile* spill) {
  BufFile* const file = spill->file;
  spill->file = nullptr;
  spill->end = spill->at = 0;
  if (file == nullptr) return;
  // What was not written yet is not wanted any more, so a full disk does not matter, and a file
  // that temp_file_limit has stopped goes, too: closing writes its last block. An error lets in the
  // interrupts that the end of a transaction, which closes files, holds off.
  const MemoryContext caller = CurrentMemoryContext;
  const int file_limit = temp_file_limit;
  temp_file_limit = -1;
  const uint32 interrupts_held = InterruptHoldoffCount, cancels_held = QueryCancelHoldoffCount;
  PG_TRY();
  { BufFileClose(file); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(caller);
    FlushErrorState();
    InterruptHoldoffCount = interrupts_held;
    QueryCancelHoldoffCount = cancels_held;
  }
  PG_END_TRY();
  temp_file_limit = file_limit;
}

}  // namespace gpujoin

#include "pg/store/spill_file.h"

#include <algorithm>

extern "C" {
#include "commands/tablespace.h"
#include "pgstat.h"
#include "storage/fd.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 30;  // of one call of the operating system

/// Raises the error of a call that moved fewer bytes than it should.
[[noreturn]] void raise_file_error(const SpillFile* spill, const char* message) {
  if (errno == 0) errno = EIO;
  ereport(ERROR, (errcode_for_file_access(), errmsg(message, FilePathName(spill->file))));
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
  if (spill->file == 0) {
    PrepareTempTablespaces();
    // It may outlive the transaction only until the memory context is reset, whatever happened.
    spill->file = OpenTemporaryFile(true);
  }
  const std::uint64_t place = spill->end;
  for (std::uint64_t done = 0; done < count;) {
    const auto step = static_cast<int>(std::min(count - done, kMostBytes));
    const int written =
        FileWrite(spill->file, const_cast<char*>(static_cast<const char*>(bytes)) + done, step,
                  static_cast<off_t>(place + done), WAIT_EVENT_BUFFILE_WRITE);
    if (written != step) raise_file_error(spill, "could not write to file \"%s\": %m");
    done += step;
  }
  spill->end = place + count;
  return place;
}

void read_spill(SpillFile* spill, std::uint64_t place, void* bytes, std::uint64_t count) {
  for (std::uint64_t done = 0; done < count;) {
    const auto step = static_cast<int>(std::min(count - done, kMostBytes));
    errno = 0;
    const int read = FileRead(spill->file, static_cast<char*>(bytes) + done, step,
                              static_cast<off_t>(place + done), WAIT_EVENT_BUFFILE_READ);
    if (read != step) raise_file_error(spill, "could not read from file \"%s\": %m");
    done += step;
  }
}

void raise_spill_error(SpillFile* spill) {
  if (spill->error != nullptr) ReThrowError(spill->error);
}

void close_spill_file(SpillFile* spill) {
  if (spill->file != 0) FileClose(spill->file);
  spill->file = 0;
  spill->end = 0;
}

}  // namespace gpujoin

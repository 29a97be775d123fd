// The one way in which an error is dropped without a subtransaction.
#pragma once

#include "pg/compat.h"
#include "pg/errors.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/resowner.h"
}

namespace gpujoin {

/// Calls run(). Returns false if it raises an error that `drops` accepts; the error is dropped. Any
/// other error is raised again. Frames below must have no destructors.
///
/// Nothing is rolled back. So run() must hold nothing when it raises such an error: no pin, lock,
/// open relation, or reference to a cache. can_drop_errors() accepts only such expressions. The
/// caller's memory context and resource owner are current again.
template <class Run>
bool try_run(bool (*drops)(int code), const Run& run) {
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  volatile bool done = true;
  PG_TRY();
  { run(); }
  PG_CATCH();
  {
    if (!drops(geterrcode())) PG_RE_THROW();
    MemoryContextSwitchTo(caller);
    FlushErrorState();
    done = false;
  }
  PG_END_TRY();
  CurrentResourceOwner = owner;
  return done;
}

}  // namespace gpujoin

// What is to be called when a memory context ends, after an error, too.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {

inline MemoryContextCallback* make_callback(MemoryContext context,
                                            MemoryContextCallbackFunction function,
                                            void* argument) {
  MemoryContextCallback* const callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
  callback->func = function;
  callback->arg = argument;
  return callback;
}

/// Calls function(argument) at the end of the context, or when it is reset, before those that were
/// registered earlier. It raises no error.
inline void call_at_end(MemoryContext context, MemoryContextCallbackFunction function,
                        void* argument) {
  MemoryContextRegisterResetCallback(context, make_callback(context, function, argument));
}

/// The same, after all others, whenever they are registered: for memory that threads may use until
/// one of these stops them, as they use the context's own.
inline void call_last_at_end(MemoryContext context, MemoryContextCallbackFunction function,
                             void* argument) {
  MemoryContextCallback** last = &context->reset_cbs;
  while (*last != nullptr) last = &(*last)->next;
  *last = make_callback(context, function, argument);
}

}  // namespace gpujoin

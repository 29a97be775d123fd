// An open join, as an engine sees it from the inside: what the functions of an EngineTable pass on
// to, and what one kind of join is built on another with.
#pragma once

#include <functional>
#include <memory>

#include "engine/result.h"
#include "engine/status.h"

namespace gpujoin {

/// Methods are for one thread. Destruction stops the work wherever it is and waits until its
/// threads have ended.
struct Join {
  virtual ~Join() = default;
  /// See EngineTable::next_batch. May throw what the engine's table turns into a Status.
  virtual Status next_batch(ResultBatch* batch) = 0;
  /// Throws nothing.
  virtual void stats(JoinStats* stats) const = 0;
};

/// Opens a join of an engine. Throws what the engine's table turns into a Status.
using OpenJoin = std::function<std::unique_ptr<Join>(const JoinRequest&)>;

}  // namespace gpujoin

// What an OpenJoin asks for, checked, so that nothing of it can harm the service.
#pragma once

#include "engine/engine.h"
#include "service/protocol/channel.h"
#include "service/protocol/messages.h"
#include "service/region.h"

namespace gpujoin::service {

/// The rows that came with a side, in memory of the client.
struct ClientRows {
  Region coordinates, ids, scores, patches;
  std::uint64_t rows = 0;
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;

  Dataset view() const;
};

/// Takes the descriptors of a side, maps their memory and checks that it is as large as the message
/// says. Throws Failure.
ClientRows take_rows(const SideMessage& side, Descriptors* descriptors);

/// The request, with sides that have no rows yet; `threads` are all that it may use. Throws Failure
/// where a member has a value that its type does not know.
JoinRequest read_request(const OpenJoin& message, std::uint32_t threads);

}  // namespace gpujoin::service

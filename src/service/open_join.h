// Reads what an OpenJoin or a Search asks for, and checks it, so that it cannot harm the service.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "engine/request/group_sums.h"
#include "service/protocol/channel.h"
#include "service/protocol/messages.h"
#include "service/region.h"

namespace gpujoin::service {

/// The rows that came with a side, in memory of the client.
struct ClientRows {
  Region coordinates;
  Region ids;
  Region scores;  ///< none where rows have no scores
  Region patches;
  Region keys;  ///< none where rows have no keys
  std::uint64_t rows = 0;
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;
  std::uint32_t key_columns = 0;

  bool scored() const { return scores.data() != nullptr; }
  Dataset view() const;
};

/// Whether bytes that another process calls a bool are one.
bool is_bool(const bool& value);

/// What Output::kSums asks for, with columns in memory of the client.
struct ClientSums {
  PairSums sums{};
  Region columns;
  std::vector<const double*> left, right;
  std::vector<const std::int64_t*> integers;
};

/// Takes the descriptor of sums over sides of so many rows; `sums` stays where it is as long as the
/// request. Throws Failure.
void take_sums(const OpenJoin& message, std::uint64_t left_rows, std::uint64_t right_rows,
               Descriptors* descriptors, ClientSums* taken);

/// The groups of left rows, in memory of the client.
struct ClientGroups {
  std::uint64_t count = 0;  ///< 0: rows of the result are left rows
  Region of_row;            ///< none where there is one group
};

/// Takes the descriptor of groups, after those of all else. Throws Failure.
void take_groups(const OpenJoin& message, const JoinRequest& request, Descriptors* descriptors,
                 ClientGroups* taken);

/// Takes the descriptors of a side, maps their memory and checks that it is as large as the message
/// says. Throws Failure.
ClientRows take_rows(const SideMessage& side, Descriptors* descriptors);

/// Whether the keys that are whole numbers are those that the request tells of, or NaN.
bool are_known_keys(const JoinRequest& request);

/// The request in a message, sizeof(JoinRequest) bytes, with sides that have no rows yet; `threads`
/// are all that it may use. Throws Failure where a member, or the engine that is wanted, has a
/// value that its type does not know.
JoinRequest read_request(const unsigned char* request, WantedEngine engine, std::uint32_t threads);

/// The row that comes with a search, which lies in the message. Throws Failure.
Dataset row_of(const Search& message);

}  // namespace gpujoin::service

#include "pg/service/service_engine.h"

#include <fcntl.h>

#include <cstdlib>
#include <new>

#include "pg/service/shared_rows.h"

extern "C" {
#include "storage/fd.h"
}

namespace gpujoin {
namespace {

using service::Batch;
using service::SharedRegion;

/// What a Join* of this table is.
struct ServiceJoin {
  const Connection* connection;
  SharedRegion results, left_ids, right_ids;
  bool ids_are_one;
  std::uint64_t sum_words;  ///< of each row
  bool batch_out;           ///< the caller has a batch that the service was not yet given back
  ServingEngine engine;
  JoinStats stats;
};

ServiceJoin* from_join(Join* join) { return reinterpret_cast<ServiceJoin*>(join); }

constexpr const char* kLost = "the gpujoin service ended while it ran the join";

Status lost() {
  return make_status(StatusCode::kDeviceFailure, "Run the query again.", "%s", kLost);
}

Status nonsense() {
  return make_status(StatusCode::kInternal, nullptr, "the gpujoin service sent a wrong message");
}

/// Turns a place in a region, where there is one, into an address. False: the region has not so
/// many numbers there.
template <class T>
bool place(const SharedRegion& region, const T** pointer, std::uint64_t count) {
  if (*pointer == nullptr) return true;
  const auto at = reinterpret_cast<std::uintptr_t>(*pointer);
  if (at > region.bytes || at % alignof(T) != 0 || count > (region.bytes - at) / sizeof(T))
    return false;
  *pointer = reinterpret_cast<const T*>(region.base + at);
  return true;
}

/// Sets *ids to the ids of a region, null if the region is not there. False if there are fewer than
/// `count`.
bool place_ids(const SharedRegion& region, std::uint64_t count, const std::int64_t** ids) {
  const bool there = region.file >= 0;
  *ids = there ? reinterpret_cast<const std::int64_t*>(region.base) : nullptr;
  return !there || count <= region.bytes / sizeof(std::int64_t);
}

bool place_batch(const ServiceJoin* join, ResultBatch* batch) {
  const std::uint64_t rows = batch->row_count;
  if (!place(join->results, &batch->rows, rows) ||
      !place(join->results, &batch->offsets, rows + 1) ||
      !place(join->results, &batch->counts, rows) ||
      !place(join->results, &batch->sums, rows * join->sum_words))
    return false;
  const std::uint64_t entries = batch->offsets != nullptr && rows > 0 ? batch->entry(rows) : 0;
  if (!place(join->results, &batch->neighbors, entries) ||
      !place(join->results, &batch->distances, entries))
    return false;
  if (batch->left_ids != nullptr)
    return batch->right_ids != nullptr &&
           place(join->results, &batch->left_ids, batch->left_id_count) &&
           place(join->results, &batch->right_ids, batch->right_id_count);
  if (!place_ids(join->left_ids, batch->left_id_count, &batch->left_ids)) return false;
  if (!join->ids_are_one)
    return place_ids(join->right_ids, batch->right_id_count, &batch->right_ids);
  batch->right_ids = batch->left_ids;
  return batch->right_id_count <= batch->left_id_count;
}

/// Maps another region in the place of one, and takes its descriptor.
Status replace_region(SharedRegion* region, int file, std::uint64_t bytes) {
  service::close_region(region);
  return file < 0 ? nonsense() : service::map_region(file, bytes, region);
}

/// Maps what came with a batch.
Status take_regions(ServiceJoin* join, const Batch& message, service::Descriptors* descriptors) {
  Status status;
  if (message.new_results)
    status = replace_region(&join->results, descriptors->take(), message.results_bytes);
  else if (message.results_bytes > join->results.bytes)  // it has grown
    status = replace_region(&join->results, fcntl(join->results.file, F_DUPFD_CLOEXEC, 0),
                            message.results_bytes);
  if (!status.ok() || !message.new_ids) return status;
  join->ids_are_one = message.ids_are_one;
  status = replace_region(&join->left_ids, descriptors->take(), message.left_ids_bytes);
  if (status.ok() && !message.ids_are_one)
    status = replace_region(&join->right_ids, descriptors->take(), message.right_ids_bytes);
  return status;
}

/// Takes a message over.
Status take_batch(ServiceJoin* join, const Batch& message, service::Descriptors* descriptors,
                  ResultBatch* batch) {
  join->stats = message.stats;
  if (message.engine[0] != '\0')
    join->engine.name =
        strncmp(message.engine, "cuda", sizeof message.engine) == 0 ? "cuda" : "cpu";
  strlcpy(join->engine.fallback, message.fallback, sizeof join->engine.fallback);
  if (!message.status.ok()) return message.status;
  const Status status = take_regions(join, message, descriptors);
  if (!status.ok()) return status;
  join->batch_out = true;
  *batch = message.batch;
  return place_batch(join, batch) ? Status{} : nonsense();
}

/// Gives the batch that the caller had back; false when the service is gone.
bool give_back(ServiceJoin* join) {
  if (!join->batch_out) return true;
  service::Next next;
  service::start_message(&next);
  if (send_message(join->connection->socket, next) != service::ChannelState::kDone) return false;
  join->batch_out = false;
  return true;
}

Status next_batch(Join* opened, ResultBatch* batch) {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceResult");
  ServiceJoin* const join = from_join(opened);
  if (!give_back(join)) return lost();
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  service::Descriptors descriptors;
  switch (await_message(join->connection, buffer, &descriptors, -1, wait_event)) {
    case Arrival::kInterrupted:
      return make_status(StatusCode::kInterrupted, nullptr, "interrupted");
    case Arrival::kMessage:
      break;
    default:
      return lost();
  }
  const Batch* const message = service::message_as<Batch>(buffer);
  const Status status =
      message != nullptr ? take_batch(join, *message, &descriptors, batch) : nonsense();
  close_descriptors(&descriptors);
  return status;
}

void stats(const Join* join, JoinStats* stats) {
  *stats = reinterpret_cast<const ServiceJoin*>(join)->stats;
}

void close(Join* opened) {
  ServiceJoin* const join = from_join(opened);
  for (SharedRegion* const region : {&join->results, &join->left_ids, &join->right_ids}) {
    service::close_region(region);
    ReleaseExternalFD();
  }
  std::free(join);
}

Status probe(DeviceInfo*, std::uint32_t, std::uint32_t* count) {
  *count = 0;
  return make_status(StatusCode::kUnavailable, nullptr, "the service lists no devices");
}

Status open_none(const JoinRequest*, Join** join) {
  *join = nullptr;
  return make_status(StatusCode::kInternal, nullptr, "the join has no conversation");
}

constexpr EngineTable kTable = {.name = "service",
                                .probe = probe,
                                .open = open_none,
                                .next_batch = next_batch,
                                .stats = stats,
                                .close = close};

/// Sends the join. What of its rows had to be copied is the service's alone afterwards.
Status send_join(const Connection* connection, service::WantedEngine engine,
                 const JoinRequest& request, const SharedSide* sides, const SumGroups& groups) {
  service::OpenJoin message;
  service::start_message(&message);
  message.engine = engine;
  std::memcpy(message.request, &request, sizeof request);
  SentSide copies[service::kSides];
  SharedRegion sums, group_of_row;
  int files[service::kMostDescriptors], count = 0;
  Status status = send_side(request.left(), sides[0], &copies[0], &message.sides[0], files, &count);
  if (status.ok() && !request.self_join())
    status = send_side(request.right(), sides[1], &copies[1], &message.sides[1], files, &count);
  if (status.ok() && request.output() == Output::kSums)
    status = send_sums(request, &sums, &message.sums_bytes, files, &count);
  message.groups = groups.count;
  if (status.ok()) status = send_groups(groups, request.left().rows, &group_of_row, files, &count);
  if (status.ok() &&
      send_message(connection->socket, message, files, count) != service::ChannelState::kDone)
    status = lost();
  for (SentSide& side : copies) close_side(&side);
  service::close_region(&sums);
  service::close_region(&group_of_row);
  return status;
}

}  // namespace

const EngineTable* service_engine() { return &kTable; }

Status open_service_join(const Connection* connection, service::WantedEngine engine,
                         const JoinRequest& request, const SharedSide* sides,
                         const SumGroups& groups, Join** opened) {
  *opened = nullptr;
  const Status status = send_join(connection, engine, request, sides, groups);
  if (!status.ok()) return status;
  void* const memory = std::malloc(sizeof(ServiceJoin));
  if (memory == nullptr)
    return make_status(StatusCode::kOutOfMemory, nullptr, "could not get memory for a join");
  ServiceJoin* const join = new (memory) ServiceJoin{};
  join->connection = connection;
  join->engine.name = "service";
  if (request.output() == Output::kSums) join->sum_words = row_words(*request.sums());
  for (int region = 0; region < 3; ++region) ReserveExternalFD();
  *opened = reinterpret_cast<Join*>(join);
  return status;
}

bool says_service_ended(const Status& status) {
  return status.code == StatusCode::kDeviceFailure && strcmp(status.message, kLost) == 0;
}

const ServingEngine* engine_of_service_join(const Join* join) {
  return &reinterpret_cast<const ServiceJoin*>(join)->engine;
}

}  // namespace gpujoin

#include "pg/service/questions.h"

#include "pg/errors.h"
#include "service/protocol/shared_region.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// A conversation that ends with the current memory context; null where no service is running.
Connection* begin_conversation() {
  Connection* const connection = static_cast<Connection*>(palloc(sizeof(Connection)));
  *connection = {};
  close_connection_with(connection, CurrentMemoryContext);
  Status why;
  switch (connect_service(connection, kConnectMs, &why)) {
    case Connected::kYes:
      return connection;
    case Connected::kAbsent:
      return nullptr;
    default:
      raise_status(why);
  }
}

}  // namespace

bool ask_running_service(const void* question, std::size_t bytes, void* answer,
                         std::size_t answer_bytes, service::Descriptors* descriptors) {
  Connection* const connection = begin_conversation();
  if (connection == nullptr) return false;
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  const Arrival arrival = ask_service(connection, question, bytes, buffer, descriptors);
  close_connection(connection);
  const auto* const header = reinterpret_cast<const service::Header*>(buffer);
  if (arrival != Arrival::kMessage || header->bytes != answer_bytes) {
    if (arrival == Arrival::kMessage) close_descriptors(descriptors);
    raise_status(make_status(StatusCode::kDeviceFailure, "Run the query again.",
                             "the gpujoin service did not answer"));
  }
  std::memcpy(answer, buffer, answer_bytes);
  return true;
}

void* copy_listed(service::Descriptors* descriptors, std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  service::SharedRegion region;
  const Status status = service::map_region(descriptors->take(), bytes, &region);
  close_descriptors(descriptors);
  if (!status.ok()) raise_status(status);
  void* const items =
      MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
  if (items != nullptr) std::memcpy(items, region.base, bytes);
  service::close_region(&region);
  if (items == nullptr)
    ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
                    errdetail("The gpujoin service lists more than there is memory for.")));
  return items;
}

}  // namespace gpujoin

#include "pg/store/shared_points.h"

#include "pg/store/context_end.h"

namespace gpujoin {
namespace {

bool create(const char* name, std::uint64_t most, service::SharedRegion* region) {
  return service::create_region(name, most, region).ok();
}

}  // namespace

SharedPoints* create_shared_points(MemoryContext context, std::uint64_t most, bool scored) {
  SharedPoints* const points =
      static_cast<SharedPoints*>(MemoryContextAlloc(context, sizeof(SharedPoints)));
  *points = {};
  call_last_at_end(
      context, [](void* ended) { close_shared_points(static_cast<SharedPoints*>(ended)); }, points);
  if (create("gpujoin points", most, &points->coordinates) &&
      create("gpujoin ids", most, &points->ids) &&
      (!scored || create("gpujoin scores", most, &points->scores)))
    return points;
  close_shared_points(points);
  return nullptr;
}

bool grow_shared(service::SharedRegion* region, std::uint64_t bytes) {
  return service::grow_region(region, bytes).ok();
}

void close_shared_points(SharedPoints* points) {
  for (service::SharedRegion* const region : {&points->coordinates, &points->ids, &points->scores})
    service::close_region(region);
}

}  // namespace gpujoin

#include "pg/service/shared_rows.h"

namespace gpujoin {
namespace {

using service::SharedRegion;

/// Whether the region begins with an array that is elsewhere known by this address.
bool holds(const SharedRegion& region, const void* array, std::uint64_t bytes) {
  return region.file >= 0 && region.base == array && region.bytes >= bytes;
}

bool is_contiguous(const Dataset& data) {
  const std::uint64_t bytes = (std::uint64_t{1} << data.chunk_bits) * point_bytes(data);
  for (std::uint64_t number = 1; number < chunk_count(data); ++number)
    if (chunk(data, number) != chunk(data, 0) + number * bytes) return false;
  return true;
}

Status make_region(const char* name, std::uint64_t bytes, SharedRegion* region) {
  const Status status = service::create_region(name, bytes, region);
  return status.ok() ? service::grow_region(region, bytes) : status;
}

Status copy_coordinates(const Dataset& data, SharedRegion* region) {
  const Status status = make_region("gpujoin coordinates", data.rows * point_bytes(data), region);
  unsigned char* to = region->base;
  for (std::uint64_t number = 0; status.ok() && number < chunk_count(data); ++number) {
    const std::uint64_t bytes = rows_of_chunk(data, number) * point_bytes(data);
    std::memcpy(to, chunk(data, number), bytes);
    to += bytes;
  }
  return status;
}

Status copy_ids(const Dataset& data, SharedRegion* region) {
  const Status status = make_region("gpujoin ids", data.rows * sizeof(std::int64_t), region);
  if (!status.ok()) return status;
  auto* const ids = reinterpret_cast<std::int64_t*>(region->base);
  for (std::uint64_t row = 0; row < data.rows; ++row) ids[row] = id_of(data, row);
  return status;
}

Status copy_scores(const Dataset& data, SharedRegion* region) {
  const std::uint64_t bytes = data.rows * sizeof(double);
  const Status status = make_region("gpujoin scores", bytes, region);
  if (status.ok()) std::memcpy(region->base, data.scores, bytes);
  return status;
}

Status copy_keys(const Dataset& data, SharedRegion* region) {
  const std::uint64_t bytes = data.rows * data.key_columns * sizeof(double);
  const Status status = make_region("gpujoin keys", bytes, region);
  if (status.ok()) std::memcpy(region->base, data.keys, bytes);
  return status;
}

Status copy_patches(const TablePatches& table, SharedRegion* region) {
  const std::uint64_t map_bytes = table.map_pages * sizeof(std::uint64_t);
  const std::uint64_t bytes = table.count * sizeof(service::BlockPatch);
  const std::uint64_t moved_bytes = table.moved_count * sizeof(service::MovedRow);
  const Status status = make_region("gpujoin blocks", map_bytes + bytes + moved_bytes, region);
  if (!status.ok()) return status;
  unsigned char* to = region->base;
  const auto put = [&](const void* from, std::uint64_t size) {
    if (size > 0) std::memcpy(to, from, size);
    to += size;
  };
  put(table.map_lsns, map_bytes);
  put(table.patches, bytes);
  put(table.moved, moved_bytes);
  return status;
}

/// Adds the descriptor of a region to those of a message, and seals the region: the service takes
/// no memory that somebody might still write.
Status add_file(SharedRegion* region, int* files, int* count) {
  if (!service::seal_region(region))
    return make_status(StatusCode::kOutOfMemory, nullptr, "could not seal shared memory: %s",
                       strerror(errno));
  files[(*count)++] = region->file;
  return {};
}

/// Adds the descriptor of an array that lies in `shared`, or of a copy where it does not.
template <class Copy>
Status add_array(bool is_there, SharedRegion* shared, SharedRegion* region, const Copy& copy,
                 int* files, int* count) {
  if (is_there && add_file(shared, files, count).ok()) return {};
  const Status status = copy(region);
  return status.ok() ? add_file(region, files, count) : status;
}

Status send_rows(const Dataset& data, SharedPoints* shared, SentSide* copied,
                 service::SideMessage* message, int* files, int* count) {
  SharedPoints none;
  if (shared == nullptr) shared = &none;
  SharedPoints* const copies = &copied->points;
  message->rows = data.rows;
  if (data.rows == 0) return {};
  message->dims = data.dims;
  message->scalar = data.scalar;
  message->has_rows = true;
  message->has_ids = data.ids != nullptr || message->of_table;
  message->has_scores = data.scores != nullptr;
  message->key_columns = data.key_columns;
  const bool whole = is_contiguous(data) &&
                     holds(shared->coordinates, data.first_chunk, data.rows * point_bytes(data));
  const bool named = holds(shared->ids, data.ids, data.rows * sizeof(std::int64_t));
  const bool scored = holds(shared->scores, data.scores, data.rows * sizeof(double));
  Status status = add_array(
      whole, &shared->coordinates, &copies->coordinates,
      [&](SharedRegion* region) { return copy_coordinates(data, region); }, files, count);
  if (status.ok() && message->has_ids)
    status = add_array(
        named, &shared->ids, &copies->ids,
        [&](SharedRegion* region) { return copy_ids(data, region); }, files, count);
  if (status.ok() && message->has_scores)
    status = add_array(
        scored, &shared->scores, &copies->scores,
        [&](SharedRegion* region) { return copy_scores(data, region); }, files, count);
  if (status.ok() && data.key_columns > 0) {
    status = copy_keys(data, &copied->keys);
    if (status.ok()) status = add_file(&copied->keys, files, count);
  }
  return status;
}

}  // namespace

Status send_side(const Dataset& data, const SharedSide& shared, SentSide* copies,
                 service::SideMessage* message, int* files, int* count) {
  const TablePatches* const table = shared.table;
  if (table == nullptr) return send_rows(data, shared.points, copies, message, files, count);
  message->of_table = true;
  message->traits = table->traits;
  message->blocks = table->blocks;
  message->map_pages = table->map_pages;
  message->patches = table->count;
  message->moved = table->moved_count;
  message->has_patches = true;
  Status status = send_rows(table->rows, shared.points, copies, message, files, count);
  if (status.ok()) status = copy_patches(*table, &copies->patches);
  return status.ok() ? add_file(&copies->patches, files, count) : status;
}

Status send_sums(const JoinRequest& request, SharedRegion* region, std::uint64_t* bytes, int* files,
                 int* count) {
  const PairSums& sums = *request.sums();
  const std::uint64_t left_rows = request.left().rows, right_rows = request.right().rows;
  *bytes = sizeof sums + (sums.left_columns * left_rows +
                          (std::uint64_t{sums.right_columns} + sums.integer_columns) * right_rows) *
                             sizeof(double);
  const Status status = make_region("gpujoin sums", *bytes, region);
  if (!status.ok()) return status;
  unsigned char* to = region->base;
  const auto put = [&](const void* from, std::uint64_t size) {
    std::memcpy(to, from, size);
    to += size;
  };
  put(&sums, sizeof sums);
  for (std::uint32_t c = 0; c < sums.left_columns; ++c)
    put(sums.left[c], left_rows * sizeof(double));
  for (std::uint32_t c = 0; c < sums.right_columns; ++c)
    put(sums.right[c], right_rows * sizeof(double));
  for (std::uint32_t c = 0; c < sums.integer_columns; ++c)
    put(sums.integers[c], right_rows * sizeof(std::int64_t));
  return add_file(region, files, count);
}

Status send_groups(const SumGroups& groups, std::uint64_t rows, SharedRegion* region, int* files,
                   int* count) {
  if (groups.count < 2) return {};
  const std::uint64_t bytes = rows * sizeof *groups.of_row;
  const Status status = make_region("gpujoin groups", bytes, region);
  if (!status.ok()) return status;
  std::memcpy(region->base, groups.of_row, bytes);
  return add_file(region, files, count);
}

void close_side(SentSide* copies) {
  close_shared_points(&copies->points);
  service::close_region(&copies->keys);
  service::close_region(&copies->patches);
}

}  // namespace gpujoin

#include "pg/store/point_buffer.h"

#include "pg/store/buffile.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "commands/tablespace.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kFirstRows = 1024;
constexpr std::uint64_t kFirstBytes = 1 << 16;

std::uint64_t row_bytes(std::uint32_t dims, ScalarType scalar, bool scored) {
  return dims * scalar_bytes(scalar) + sizeof(std::int64_t) + (scored ? sizeof(double) : 0);
}

void resize(PointBuffer* buffer, std::uint64_t rows) {
  const MemoryContext context = buffer->context;
  resize_array(context, &buffer->coordinates, rows * buffer->dims * scalar_bytes(buffer->scalar));
  resize_array(context, &buffer->ids, rows);
  if (buffer->scored) resize_array(context, &buffer->scores, rows);
  buffer->capacity = rows;
}

/// Moves the rows to the file, as one more block.
void spill(PointBuffer* buffer) {
  const MemoryContext caller = MemoryContextSwitchTo(buffer->context);
  if (buffer->file == nullptr) {
    PrepareTempTablespaces();
    buffer->file = BufFileCreateTemp(false);
  }
  resize_array(buffer->context, &buffer->blocks,
               static_cast<std::uint64_t>(buffer->block_count) + 1);
  MemoryContextSwitchTo(caller);
  PointBlock& block = buffer->blocks[buffer->block_count++];
  block = {buffer->rows, buffer->dims, 0, 0, buffer->ids[0]};
  BufFileTell(buffer->file, &block.segment, &block.offset);
  write_exactly(buffer->file, buffer->ids, buffer->rows * sizeof(std::int64_t));
  write_exactly(buffer->file, buffer->coordinates,
                buffer->rows * buffer->dims * scalar_bytes(buffer->scalar));
  buffer->rows = 0;
}

/// Makes room for one row more.
void grow(PointBuffer* buffer) {
  constexpr std::uint64_t kLeastBlock = 64;
  if (buffer->rows == kMaxRows && !buffer->spills)
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("%s has more than %llu rows", buffer->source,
                           static_cast<unsigned long long>(kMaxRows)),
                    errhint("Join parts of it, for example through views.")));
  const std::uint64_t bytes = row_bytes(buffer->dims, buffer->scalar, buffer->scored);
  std::uint64_t wanted = 2 * buffer->capacity;
  if (wanted == 0) wanted = std::min(kFirstRows, 1 + kFirstBytes / bytes);
  if (wanted > kMaxRows) wanted = kMaxRows;
  std::uint64_t affordable = buffer->limit / bytes;
  if (buffer->spills) affordable = std::min(std::max(affordable, kLeastBlock), kMaxRows);
  if (affordable <= buffer->rows && buffer->spills) return spill(buffer);
  if (affordable <= buffer->rows)
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("the rows of %s do not fit in gpujoin.host_memory_limit", buffer->source),
             errhint("Raise gpujoin.host_memory_limit, or join a part of the rows, for example "
                     "through a view.")));
  resize(buffer, wanted < affordable ? wanted : affordable);
}

}  // namespace

char* add_point(PointBuffer* buffer, std::int64_t id) {
  if (buffer->rows == buffer->capacity) grow(buffer);
  buffer->ids[buffer->rows] = id;
  return buffer->coordinates + buffer->rows++ * buffer->dims * scalar_bytes(buffer->scalar);
}

void widen_boxes(PointBuffer* buffer, std::uint32_t dims) {
  const std::uint32_t old_dims = buffer->dims / 2;
  if (old_dims >= dims) return;
  const PointBuffer narrow = *buffer;
  buffer->dims = 2 * dims;
  if (narrow.capacity == 0) return;
  buffer->coordinates = nullptr;
  resize_array(buffer->context, &buffer->coordinates,
               narrow.capacity * buffer->dims * sizeof(double));
  const double* from = reinterpret_cast<const double*>(narrow.coordinates);
  double* to = reinterpret_cast<double*>(buffer->coordinates);
  for (std::uint64_t row = 0; row < narrow.rows; ++row, from += narrow.dims, to += buffer->dims) {
    std::fill_n(to, buffer->dims, 0.0);
    std::copy_n(from, old_dims, to);
    std::copy_n(from + old_dims, old_dims, to + dims);
  }
  pfree(narrow.coordinates);
}

Dataset finish_points(PointBuffer* buffer) {
  if (buffer->block_count > 0)
    spill(buffer);
  else if (buffer->capacity > buffer->rows && buffer->rows > 0)
    resize(buffer, buffer->rows);
  return {buffer->coordinates, buffer->ids,    buffer->rows,
          buffer->dims,        buffer->scalar, buffer->scores};
}

Dataset load_block(PointBuffer* buffer, int number) {
  const PointBlock& block = buffer->blocks[number];
  const std::uint32_t dims = buffer->dims;
  buffer->dims = block.dims;
  if (buffer->capacity < block.rows) resize(buffer, block.rows);
  seek_exactly(buffer->file, block.segment, block.offset);
  read_exactly(buffer->file, buffer->ids, block.rows * sizeof(std::int64_t));
  read_exactly(buffer->file, buffer->coordinates,
               block.rows * block.dims * scalar_bytes(buffer->scalar));
  buffer->rows = block.rows;
  if (dims > block.dims) widen_boxes(buffer, dims / 2);
  return {buffer->coordinates, buffer->ids, buffer->rows, buffer->dims, buffer->scalar, nullptr};
}

void close_points(PointBuffer* buffer) {
  if (buffer->file != nullptr) BufFileClose(buffer->file);
  *buffer = {};
}

std::uint64_t dataset_bytes(const Dataset& data) {
  return data.rows * row_bytes(data.dims, data.scalar, data.scores != nullptr);
}

}  // namespace gpujoin

#include "pg/store/point_buffer.h"

#include "pg/session_progress.h"
#include "pg/store/huge_array.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kFirstRows = 1024;
constexpr std::uint64_t kFirstBytes = 1 << 16;
constexpr std::uint64_t kMostChunkBytes = 4 << 20;
constexpr std::uint32_t kFewestChunkBits = 6;

/// Parts of the limit: a chunk, and the rows that stay in memory while the chunks do not.
constexpr std::uint64_t kChunkShare = 4, kSampleShare = 16;
constexpr std::uint64_t kFewestSampled = 256, kMostSampled = 1 << 16;

std::uint64_t coordinate_bytes(const PointBuffer& buffer) {
  return buffer.dims * scalar_bytes(buffer.scalar);
}

std::uint64_t row_bytes(const PointBuffer& buffer) {
  return coordinate_bytes(buffer) + sizeof(std::int64_t) + (buffer.scored ? sizeof(double) : 0);
}

std::uint64_t chunk_size(const PointBuffer& buffer) {
  return std::uint64_t{1} << buffer.chunk_bits;
}

std::uint64_t chunks_in_memory(const PointBuffer& buffer) {
  return (buffer.room - buffer.first + chunk_size(buffer) - 1) >> buffer.chunk_bits;
}

void choose_chunk_size(PointBuffer* buffer) {
  const std::uint64_t bytes = std::min(kMostChunkBytes, buffer->limit / kChunkShare);
  buffer->chunk_bits = kFewestChunkBits;
  while (2 * chunk_size(*buffer) * row_bytes(*buffer) <= bytes) ++buffer->chunk_bits;
}

// ---- Memory that the service can map, where it is wanted and to be had

/// Moves the rows to the context: the system has no more memory to share, or they are not for the
/// service any more.
void stop_sharing(PointBuffer* buffer) {
  SharedPoints* const shared = buffer->shared;
  const std::uint64_t chunks = buffer->room == 0 ? 0 : chunks_in_memory(*buffer);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::uint64_t first = buffer->first + (i << buffer->chunk_bits);
    const std::uint64_t room = std::min(chunk_size(*buffer), buffer->room - first);
    const std::uint64_t rows = std::min(room, buffer->rows - std::min(buffer->rows, first));
    const char* const from = buffer->chunks[i];
    buffer->chunks[i] = nullptr;
    resize_array(buffer->context, &buffer->chunks[i], room * coordinate_bytes(*buffer));
    std::memcpy(buffer->chunks[i], from, rows * coordinate_bytes(*buffer));
  }
  const std::int64_t* const ids = buffer->ids;
  const double* const scores = buffer->scores;
  const std::uint64_t rows = buffer->rows - buffer->first;
  buffer->ids = nullptr;
  buffer->scores = nullptr;
  if (buffer->named > 0) {
    resize_array(buffer->context, &buffer->ids, buffer->named);
    std::copy_n(ids, rows, buffer->ids);
  }
  if (buffer->named > 0 && buffer->scored) {
    resize_array(buffer->context, &buffer->scores, buffer->named);
    std::copy_n(scores, rows, buffer->scores);
  }
  buffer->shared = nullptr;
  close_shared_points(shared);
}

/// Whether the rows are shared and the region has room for so many bytes now.
bool shares(PointBuffer* buffer, service::SharedRegion SharedPoints::*region, std::uint64_t bytes) {
  if (buffer->shared == nullptr) return false;
  if (grow_shared(&(buffer->shared->*region), bytes)) return true;
  stop_sharing(buffer);
  return false;
}

void name_rows(PointBuffer* buffer, std::uint64_t rows) {
  if (shares(buffer, &SharedPoints::ids, rows * sizeof(std::int64_t)) &&
      (!buffer->scored || shares(buffer, &SharedPoints::scores, rows * sizeof(double)))) {
    buffer->ids = reinterpret_cast<std::int64_t*>(buffer->shared->ids.base);
    if (buffer->scored) buffer->scores = reinterpret_cast<double*>(buffer->shared->scores.base);
    buffer->named = rows;
    return;
  }
  resize_array(buffer->context, &buffer->ids, rows);
  if (buffer->scored) resize_array(buffer->context, &buffer->scores, rows);
  buffer->named = rows;
}

/// Gives a chunk room for so many rows. What it held stays.
void resize_chunk(PointBuffer* buffer, std::uint64_t number, std::uint64_t rows) {
  while (number >= buffer->chunk_room)
    reserve_next(buffer->context, &buffer->chunks, buffer->chunk_room, &buffer->chunk_room);
  if (number >= chunks_in_memory(*buffer)) buffer->chunks[number] = nullptr;
  const std::uint64_t first = (number << buffer->chunk_bits) * coordinate_bytes(*buffer);
  if (shares(buffer, &SharedPoints::coordinates, first + rows * coordinate_bytes(*buffer))) {
    buffer->chunks[number] = reinterpret_cast<char*>(buffer->shared->coordinates.base) + first;
    return;
  }
  resize_array(buffer->context, &buffer->chunks[number], rows * coordinate_bytes(*buffer));
}

// ---- The file

/// Leaves every second row, where there is no room for more.
void thin(PointBuffer* buffer) {
  RowSample& sample = buffer->sample;
  const std::uint64_t bytes = coordinate_bytes(*buffer);
  for (std::uint64_t i = 1; 2 * i < sample.rows; ++i)
    std::memcpy(sample.coordinates + i * bytes, sample.coordinates + 2 * i * bytes, bytes);
  sample.rows = (sample.rows + 1) / 2;
  sample.step *= 2;
}

void sample_rows(PointBuffer* buffer, std::uint64_t first, std::uint64_t rows, const char* chunk) {
  RowSample& sample = buffer->sample;
  const std::uint64_t bytes = coordinate_bytes(*buffer);
  if (sample.coordinates == nullptr) {
    sample.room = std::clamp(buffer->limit / kSampleShare / bytes, kFewestSampled, kMostSampled);
    sample.step = 1;
    resize_array(buffer->context, &sample.coordinates, sample.room * bytes);
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    if ((first + row) % sample.step != 0) continue;
    if (sample.rows == sample.room) thin(buffer);
    if ((first + row) % sample.step != 0) continue;
    std::memcpy(sample.coordinates + sample.rows++ * bytes, chunk + row * bytes, bytes);
  }
}

/// Writes ids, coordinates and scores and returns where.
std::uint64_t write_chunk(PointBuffer* buffer, std::uint64_t rows, const std::int64_t* ids,
                          const char* coordinates, const double* scores) {
  const std::uint64_t place = write_spill(buffer->spill, ids, rows * sizeof(std::int64_t));
  write_spill(buffer->spill, coordinates, rows * coordinate_bytes(*buffer));
  if (buffer->scored) write_spill(buffer->spill, scores, rows * sizeof(double));
  return place;
}

/// Moves the first rows in memory to the file, as one more chunk.
void spill_chunk(PointBuffer* buffer, std::uint64_t rows, const std::int64_t* ids,
                 const char* coordinates, const double* scores) {
  const std::uint64_t place = write_chunk(buffer, rows, ids, coordinates, scores);
  reserve_next(buffer->context, &buffer->written.chunks, buffer->written.count,
               &buffer->written.room);
  buffer->written.chunks[buffer->written.count++] = {place, ids[0], buffer->dims};
  sample_rows(buffer, buffer->first, rows, coordinates);
  buffer->first += rows;
}

/// Moves all full chunks to the file; the rows of another one stay, and have room for a full one.
void spill(PointBuffer* buffer) {
  if (buffer->shared != nullptr) stop_sharing(buffer);
  const std::uint64_t chunks = chunks_in_memory(*buffer), size = chunk_size(*buffer);
  const std::uint64_t full = (buffer->rows - buffer->first) >> buffer->chunk_bits;
  for (std::uint64_t i = 0; i < full; ++i)
    spill_chunk(buffer, size, buffer->ids + i * size, buffer->chunks[i],
                buffer->scored ? buffer->scores + i * size : nullptr);
  const std::uint64_t done = full * size, left = buffer->rows - buffer->first;
  std::copy(buffer->ids + done, buffer->ids + done + left, buffer->ids);
  if (buffer->scored)
    std::copy(buffer->scores + done, buffer->scores + done + left, buffer->scores);
  if (full < chunks) std::swap(buffer->chunks[0], buffer->chunks[full]);
  for (std::uint64_t i = 1; i < chunks; ++i) pfree(buffer->chunks[i]);
  buffer->room = buffer->first + size;
  resize_chunk(buffer, 0, size);
  name_rows(buffer, size);
}

// ---- Room

void raise_too_many(const PointBuffer* buffer) {
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("%s has more than %llu rows", buffer->source,
                         static_cast<unsigned long long>(kMaxRows)),
                  errhint("Join parts of it, for example through views.")));
}

void raise_too_large(const PointBuffer* buffer) {
  ereport(ERROR,
          (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
           errmsg("the rows of %s do not fit in gpujoin.host_memory_limit", buffer->source),
           errhint("Raise gpujoin.host_memory_limit, or join a part of the rows, for example "
                   "through a view.")));
}

/// Makes room for one row more: the first chunk grows, the others are as large as they get.
void grow(PointBuffer* buffer) {
  if (buffer->rows == kMaxRows) raise_too_many(buffer);
  show_reading(buffer->rows);
  if (buffer->rows == 0) {
    choose_chunk_size(buffer);
    if (buffer->shares && buffer->shared == nullptr)
      buffer->shared = create_shared_points(buffer->context, buffer->limit, buffer->scored);
  }
  const std::uint64_t affordable = affordable_rows(*buffer, buffer->limit),
                      size = chunk_size(*buffer);
  const bool fits = affordable > buffer->rows;
  if (is_spilled(*buffer) || (!fits && buffer->spill != nullptr && buffer->rows >= size))
    return spill(buffer);
  if (!fits && buffer->spill == nullptr) raise_too_large(buffer);
  const std::uint64_t most = fits ? affordable : size;
  const std::uint64_t few = std::min(kFirstRows, 1 + kFirstBytes / row_bytes(*buffer));
  std::uint64_t wanted = buffer->room == 0 ? few : 2 * buffer->room;
  if (buffer->room < size)
    wanted = std::min(wanted, size);
  else
    wanted = (buffer->room / size + 1) * size;
  wanted = std::min(wanted, most);
  const std::uint64_t number = (wanted - 1) >> buffer->chunk_bits;
  resize_chunk(buffer, number, wanted - number * size);
  if (buffer->named < wanted)
    name_rows(buffer, std::max(wanted, std::min(2 * buffer->named, most)));
  buffer->room = wanted;
}

/// The same boxes with more dimensions.
char* widened(MemoryContext context, const char* boxes, std::uint64_t rows, std::uint64_t room,
              std::uint32_t old_dims, std::uint32_t dims) {
  double* wide = nullptr;
  resize_array(context, &wide, room * 2 * dims);
  const double* from = reinterpret_cast<const double*>(boxes);
  double* to = wide;
  for (std::uint64_t row = 0; row < rows; ++row, from += 2 * old_dims, to += 2 * dims) {
    std::fill_n(to, 2 * dims, 0.0);
    std::copy_n(from, old_dims, to);
    std::copy_n(from + old_dims, old_dims, to + dims);
  }
  return reinterpret_cast<char*>(wide);
}

// ---- Chunks of a file that are read again

/// Reads a chunk into the one that is in memory.
void load_chunk(PointBuffer* buffer, std::uint64_t number) {
  const WrittenChunk& chunk = buffer->written.chunks[number];
  const std::uint64_t rows =
      std::min(chunk_size(*buffer), buffer->rows - (number << buffer->chunk_bits));
  std::uint64_t place = chunk.place;
  const auto read = [&](void* to, std::uint64_t bytes) {
    read_spill(buffer->spill, place, to, bytes);
    place += bytes;
  };
  buffer->loaded = {};
  read(buffer->ids, rows * sizeof(std::int64_t));
  read(buffer->chunks[0], rows * chunk.dims * scalar_bytes(buffer->scalar));
  if (buffer->scored) read(buffer->scores, rows * sizeof(double));
  buffer->loaded = {buffer->chunks[0], buffer->ids,    rows,
                    chunk.dims,        buffer->scalar, buffer->scored ? buffer->scores : nullptr};
  buffer->loaded_number = number;
}

/// Writes chunks of boxes anew that have fewer dimensions than the last ones.
void widen_written(PointBuffer* buffer) {
  const std::uint32_t dims = buffer->dims / 2;
  for (std::uint64_t number = 0; number < buffer->written.count; ++number) {
    WrittenChunk& chunk = buffer->written.chunks[number];
    if (chunk.dims == buffer->dims) continue;
    load_chunk(buffer, number);
    char* const wide = widened(buffer->context, buffer->chunks[0], buffer->loaded.rows,
                               buffer->loaded.rows, chunk.dims / 2, dims);
    chunk.place = write_chunk(buffer, buffer->loaded.rows, buffer->ids, wide, nullptr);
    chunk.dims = buffer->dims;
    pfree(wide);
  }
}

Dataset finish_in_file(PointBuffer* buffer) {
  if (buffer->rows > buffer->first)
    spill_chunk(buffer, buffer->rows - buffer->first, buffer->ids, buffer->chunks[0],
                buffer->scores);
  widen_written(buffer);
  resize_array(buffer->context, &buffer->written.places, buffer->written.count);
  for (std::uint64_t i = 0; i < buffer->written.count; ++i)
    buffer->written.places[i] = buffer->written.chunks[i].place;
  Dataset points = {nullptr, nullptr, buffer->rows, buffer->dims, buffer->scalar};
  points.chunk_bits = buffer->chunk_bits;
  points.file = &buffer->spill->functions;
  points.places = buffer->written.places;
  points.scores_in_file = buffer->scored;
  buffer->sample_view = {buffer->sample.coordinates, nullptr, buffer->sample.rows, buffer->dims,
                         buffer->scalar};
  points.sample = &buffer->sample_view;
  buffer->loaded = {};
  return points;
}

const Dataset* find_among(const Dataset& points, std::int64_t id, std::uint64_t* position) {
  // Ascending ids are at most as far on as they are above the first one, and just there where all
  // rows are points.
  const auto guess = static_cast<std::uint64_t>(id - points.ids[0]);
  if (id >= points.ids[0] && guess < points.rows && points.ids[guess] == id) {
    *position = guess;
    return &points;
  }
  const std::int64_t* const end = points.ids + points.rows;
  const std::int64_t* const found = std::lower_bound(points.ids, end, id);
  if (found == end || *found != id) return nullptr;
  *position = static_cast<std::uint64_t>(found - points.ids);
  return &points;
}

}  // namespace

char* add_point(PointBuffer* buffer, std::int64_t id) {
  if (buffer->rows == buffer->room) grow(buffer);
  buffer->ids[buffer->rows++ - buffer->first] = id;
  return const_cast<char*>(last_point(*buffer));
}

const char* last_point(const PointBuffer& buffer) {
  const std::uint64_t at = buffer.rows - 1 - buffer.first;
  return buffer.chunks[at >> buffer.chunk_bits] +
         (at & (chunk_size(buffer) - 1)) * coordinate_bytes(buffer);
}

void set_score(PointBuffer* buffer, double score) {
  if (buffer->scored) buffer->scores[buffer->rows - 1 - buffer->first] = score;
}

void widen_boxes(PointBuffer* buffer, std::uint32_t dims) {
  const std::uint32_t old_dims = buffer->dims / 2;
  if (old_dims >= dims) return;
  if (buffer->shared != nullptr) stop_sharing(buffer);
  const std::uint64_t chunks = buffer->room == 0 ? 0 : chunks_in_memory(*buffer);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::uint64_t first = buffer->first + (i << buffer->chunk_bits);
    const std::uint64_t size = chunk_size(*buffer);
    const std::uint64_t rows = std::min(size, buffer->rows - std::min(buffer->rows, first));
    char* const narrow = buffer->chunks[i];
    buffer->chunks[i] = widened(buffer->context, narrow, rows, std::min(size, buffer->room - first),
                                old_dims, dims);
    pfree(narrow);
  }
  if (RowSample& sample = buffer->sample; sample.coordinates != nullptr) {
    char* const narrow = sample.coordinates;
    sample.coordinates = widened(buffer->context, narrow, sample.rows, sample.room, old_dims, dims);
    pfree(narrow);
  }
  buffer->dims = 2 * dims;
}

void copy_rows(const PointBuffer& buffer, unsigned char* coordinates, std::int64_t* ids,
               double* scores) {
  const std::uint64_t size = chunk_size(buffer), bytes = coordinate_bytes(buffer);
  for (std::uint64_t row = 0; row < buffer.rows; row += size)
    std::memcpy(coordinates + row * bytes, buffer.chunks[row >> buffer.chunk_bits],
                std::min(size, buffer.rows - row) * bytes);
  std::copy_n(buffer.ids, buffer.rows, ids);
  if (buffer.scored) std::copy_n(buffer.scores, buffer.rows, scores);
}

void take_rows(PointBuffer* buffer, SharedPoints* shared, std::uint32_t dims, std::uint64_t rows) {
  if (rows == 0) return close_shared_points(shared);
  buffer->shared = shared;
  buffer->dims = dims;
  buffer->rows = buffer->room = rows;
  choose_chunk_size(buffer);
  const std::uint64_t last = (rows - 1) >> buffer->chunk_bits;
  for (std::uint64_t number = 0; number <= last; ++number)
    resize_chunk(buffer, number,
                 std::min(chunk_size(*buffer), rows - (number << buffer->chunk_bits)));
  name_rows(buffer, rows);
}

Dataset finish_points(PointBuffer* buffer) {
  if (is_spilled(*buffer)) return finish_in_file(buffer);
  Dataset points = {nullptr, buffer->ids, buffer->rows, buffer->dims, buffer->scalar};
  if (buffer->rows == 0) return points;
  const std::uint64_t last = (buffer->rows - 1) >> buffer->chunk_bits;
  if (buffer->room > buffer->rows) {
    resize_chunk(buffer, last, buffer->rows - (last << buffer->chunk_bits));
    buffer->room = buffer->rows;
  }
  name_rows(buffer, buffer->rows);
  points.first_chunk = buffer->chunks[0];
  points.ids = buffer->ids;
  points.scores = buffer->scores;
  points.chunk_bits = buffer->chunk_bits;
  points.more_chunks = reinterpret_cast<const void* const*>(buffer->chunks + 1);
  return points;
}

const Dataset* find_point(PointBuffer* buffer, const Dataset& points, std::int64_t id,
                          std::uint64_t* position) {
  if (!is_spilled(*buffer)) return points.rows == 0 ? nullptr : find_among(points, id, position);
  const WrittenChunk* const begin = buffer->written.chunks;
  const WrittenChunk* const end = begin + buffer->written.count;
  const WrittenChunk* const after = std::upper_bound(
      begin, end, id, [](std::int64_t a, const WrittenChunk& b) { return a < b.first_id; });
  if (after == begin) return nullptr;
  const auto number = static_cast<std::uint64_t>(after - begin) - 1;
  return find_among(load_points(buffer, number), id, position);
}

const Dataset& load_points(PointBuffer* buffer, std::uint64_t chunk) {
  if (buffer->loaded.rows == 0 || buffer->loaded_number != chunk) load_chunk(buffer, chunk);
  return buffer->loaded;
}

void visit_points(PointBuffer* buffer, const Dataset& points, bool changes,
                  void (*visit)(const Dataset& points, void* context), void* context) {
  if (!is_spilled(*buffer)) {
    if (points.rows > 0) visit(points, context);
    return;
  }
  for (std::uint64_t number = 0; number < buffer->written.count; ++number) {
    visit(load_points(buffer, number), context);
    if (!changes) continue;
    buffer->written.places[number] = buffer->written.chunks[number].place =
        write_chunk(buffer, buffer->loaded.rows, buffer->ids, buffer->chunks[0], buffer->scores);
  }
  if (changes) visit(buffer->sample_view, context);
}

void forget_points(PointBuffer* buffer) {
  if (buffer->shared != nullptr) {
    close_shared_points(buffer->shared);
    if (buffer->chunks != nullptr) pfree(buffer->chunks);
    *buffer = {};
    return;
  }
  const std::uint64_t chunks = buffer->room == 0 ? 0 : chunks_in_memory(*buffer);
  for (std::uint64_t i = 0; i < chunks; ++i) pfree(buffer->chunks[i]);
  for (void* const array :
       {static_cast<void*>(buffer->chunks), static_cast<void*>(buffer->ids),
        static_cast<void*>(buffer->scores), static_cast<void*>(buffer->written.chunks),
        static_cast<void*>(buffer->sample.coordinates), static_cast<void*>(buffer->written.places)})
    if (array != nullptr) pfree(array);
  *buffer = {};
}

std::uint64_t affordable_rows(const PointBuffer& buffer, std::uint64_t limit) {
  return std::min(limit / row_bytes(buffer), kMaxRows);
}

std::uint64_t held_bytes(const PointBuffer& buffer) {
  if (buffer.room == 0) return 0;
  return (buffer.room - buffer.first) * row_bytes(buffer) +
         buffer.sample.room * coordinate_bytes(buffer);
}

}  // namespace gpujoin

#include "pg/point_buffer.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kFirstRows = 1024;

std::uint64_t row_bytes(std::uint32_t dims, ScalarType scalar, bool scored) {
  return dims * scalar_bytes(scalar) + sizeof(std::int64_t) + (scored ? sizeof(double) : 0);
}

template <class T>
void resize_array(const PointBuffer* buffer, T** array, Size bytes) {
  *array = static_cast<T*>(*array == nullptr ? MemoryContextAllocHuge(buffer->context, bytes)
                                             : repalloc_huge(*array, bytes));
}

void resize(PointBuffer* buffer, std::uint64_t rows) {
  resize_array(buffer, &buffer->coordinates, rows * buffer->dims * scalar_bytes(buffer->scalar));
  resize_array(buffer, &buffer->ids, rows * sizeof(std::int64_t));
  if (buffer->scored) resize_array(buffer, &buffer->scores, rows * sizeof(double));
  buffer->capacity = rows;
}

/// Makes room for one row more.
void grow(PointBuffer* buffer) {
  if (buffer->rows == kMaxRows)
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("%s has more than %llu rows", buffer->source,
                           static_cast<unsigned long long>(kMaxRows)),
                    errhint("Join parts of it, for example through views.")));
  std::uint64_t wanted = buffer->capacity == 0 ? kFirstRows : 2 * buffer->capacity;
  if (wanted > kMaxRows) wanted = kMaxRows;
  const std::uint64_t affordable =
      buffer->limit / row_bytes(buffer->dims, buffer->scalar, buffer->scored);
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

void add_vector(PointBuffer* buffer, std::int64_t id, const VectorView& view, bool float4) {
  char* const target = add_point(buffer, id);
  if (float4 && buffer->scalar == ScalarType::kFloat64) {
    const auto* const source = reinterpret_cast<const Unaligned<float>*>(view.data);
    for (int d = 0; d < view.dims; ++d) reinterpret_cast<double*>(target)[d] = source[d];
  } else {
    std::memcpy(target, view.data, view.dims * scalar_bytes(buffer->scalar));
  }
}

void widen_boxes(PointBuffer* buffer, std::uint32_t dims) {
  const std::uint32_t old_dims = buffer->dims / 2;
  if (old_dims >= dims) return;
  PointBuffer narrow = *buffer;
  buffer->dims = 2 * dims;
  if (narrow.capacity == 0) return;
  buffer->coordinates = nullptr;
  buffer->ids = nullptr;
  buffer->rows = buffer->capacity = 0;
  const double* from = reinterpret_cast<const double*>(narrow.coordinates);
  for (std::uint64_t row = 0; row < narrow.rows; ++row, from += narrow.dims) {
    double* const to = reinterpret_cast<double*>(add_point(buffer, narrow.ids[row]));
    std::fill_n(to, buffer->dims, 0.0);
    std::copy_n(from, old_dims, to);
    std::copy_n(from + old_dims, old_dims, to + dims);
  }
  pfree(narrow.coordinates);
  pfree(narrow.ids);
}

Dataset finish_points(PointBuffer* buffer) {
  if (buffer->capacity > buffer->rows && buffer->rows > 0) resize(buffer, buffer->rows);
  return {buffer->coordinates, buffer->ids,    buffer->rows,
          buffer->dims,        buffer->scalar, buffer->scores};
}

std::uint64_t dataset_bytes(const Dataset& data) {
  return data.rows * row_bytes(data.dims, data.scalar, data.scores != nullptr);
}

}  // namespace gpujoin

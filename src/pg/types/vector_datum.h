// A float4[] or float8[] datum seen as a vector, without copying or aligning it. Detoasting is the
// callers', and so is what comes of an array that is no vector.
#pragma once

#include "pg/types/value_type.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

namespace gpujoin {

/// A number at any address: short varlenas are not aligned.
template <class T>
struct Unaligned {
  char bytes[sizeof(T)];

  operator double() const {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  }
};

struct VectorView {
  ValueProblem problem;
  int dims;          ///< number of elements; of a multidimensional array, its number of dimensions
  const char* data;  ///< dims elements, maybe unaligned
};

/// `array` is detoasted, with a header of one byte or four. An array is laid out as: varlena
/// header, ndim, dataoffset, element type, dimensions, lower bounds, null bitmap if dataoffset is
/// not 0, elements. Counted from the end of the header, all but the elements lie where a four-byte
/// header would have them less 4.
inline VectorView view_vector(const struct varlena* array) {
  const char* const after_header = VARDATA_ANY(array) - VARHDRSZ;
  ArrayType head;
  std::memcpy(reinterpret_cast<char*>(&head) + VARHDRSZ, after_header + VARHDRSZ,
              sizeof head - VARHDRSZ);
  if (head.ndim == 0) return {ValueProblem::kEmpty, 0, nullptr};
  if (head.ndim != 1) return {ValueProblem::kMultidimensional, head.ndim, nullptr};
  int dims;
  std::memcpy(&dims, after_header + sizeof head, sizeof dims);
  if (head.dataoffset == 0)
    return {ValueProblem::kNone, dims, after_header + ARR_OVERHEAD_NONULLS(1)};
  // A null bitmap may outlive its last null.
  const char* const bitmap = after_header + sizeof head + 2 * sizeof(int);
  for (int i = 0; i < dims; ++i)
    if ((bitmap[i / 8] >> (i % 8) & 1) == 0) return {ValueProblem::kNullElement, dims, nullptr};
  return {ValueProblem::kNone, dims, after_header + head.dataoffset};
}

/// Adds what `view` shows, which has no problem and as many dimensions as the buffer. float4
/// elements are widened where the buffer is of float8.
void add_vector(PointBuffer* buffer, std::int64_t id, const VectorView& view, bool float4);

/// Raises an error where an array, of so many dimensions, is no vector by its form.
void check_form(ValueProblem problem, int dims);

}  // namespace gpujoin

// What the files of types share: points and boxes on their way from a value into a buffer.
#pragma once

#include "core/box.h"
#include "pg/types/value_type.h"

namespace gpujoin {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline ValueFinding finding(ValueProblem problem, std::uint32_t dims = 0) {
  return {problem, dims};
}

/// Whether a value of so many dimensions, `most` or fewer, fits the values before it. The first one
/// settles how many numbers a row of the buffer has: `numbers` for each dimension.
inline ValueFinding fit(PointBuffer* buffer, ValueShape* shape, std::uint32_t dims,
                        std::uint32_t most, std::uint32_t numbers) {
  if (dims == 0) return finding(ValueProblem::kEmpty);
  if (dims > most) return finding(ValueProblem::kTooManyDimensions, dims);
  if (shape->dims == 0) shape->dims = dims;
  if (dims != shape->dims) return finding(ValueProblem::kMismatch, dims);
  buffer->dims = numbers * dims;
  return finding(ValueProblem::kNone, dims);
}

inline ValueFinding fit_point(PointBuffer* buffer, ValueShape* shape, std::uint32_t dims) {
  return fit(buffer, shape, dims, kMaxDimensions, 1);
}

/// Sets a number of a point or box that add_point() has made room for, in the buffer's scalar type.
inline void set_number(const PointBuffer* buffer, char* target, std::uint32_t at, double number) {
  if (buffer->scalar == ScalarType::kFloat32)
    reinterpret_cast<float*>(target)[at] = static_cast<float>(number);
  else
    reinterpret_cast<double*>(target)[at] = number;
}

inline ValueFinding add_doubles(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                const char* data, std::uint32_t dims) {
  const ValueFinding found = fit_point(buffer, shape, dims);
  if (found.problem == ValueProblem::kNone)
    std::memcpy(add_point(buffer, id), data, dims * sizeof(double));
  return found;
}

/// Adds a box. As stored it has as many dimensions as the boxes before it; as operators see it it
/// is at 0 in the dimensions that it lacks, and so are they.
inline ValueFinding add_corners(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                const double* low, const double* high, std::uint32_t dims) {
  if (shape->as_stored) {
    const ValueFinding found = fit(buffer, shape, dims, kMaxBoxDimensions, 2);
    if (found.problem != ValueProblem::kNone) return found;
  } else {
    shape->dims = std::max(shape->dims, dims);
    widen_boxes(buffer, shape->dims);
  }
  char* const target = add_point(buffer, id);
  for (std::uint32_t d = 0; d < shape->dims; ++d) {
    set_number(buffer, target, d, d < dims ? low[d] : 0);
    set_number(buffer, target, shape->dims + d, d < dims ? high[d] : 0);
  }
  return finding(ValueProblem::kNone, dims);
}

/// Whether a value lies where it is, as it is.
inline bool is_plain(const struct varlena* value) {
  return !VARATT_IS_COMPRESSED(value) && !VARATT_IS_EXTERNAL(value);
}

/// add(what the value holds), which is freed if it is a copy.
template <class Add>
ValueFinding with_detoasted(Datum value, const Add& add) {
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const detoasted = is_plain(stored) ? stored : pg_detoast_datum_packed(stored);
  const ValueFinding found = add(detoasted);
  if (detoasted != stored) pfree(detoasted);
  return found;
}

/// A few roundings in double precision, whose squares may underflow.
inline void widen_double(double eps, std::uint32_t dims, EpsBand* band) {
  const double relative = 4 * (dims + 4) * 2.3e-16;
  const double absolute = std::sqrt(static_cast<double>(dims)) * 1e-153;
  band->accept = eps * (1 - relative) - absolute;
  band->select = eps * (1 + relative) + absolute;
}

}  // namespace gpujoin

#include "pg/types/vector_datum.h"

namespace gpujoin {

void add_vector(PointBuffer* buffer, std::int64_t id, const VectorView& view, bool float4) {
  char* const target = add_point(buffer, id);
  if (float4 && buffer->scalar == ScalarType::kFloat64) {
    const auto* const source = reinterpret_cast<const Unaligned<float>*>(view.data);
    for (int d = 0; d < view.dims; ++d) reinterpret_cast<double*>(target)[d] = source[d];
  } else {
    std::memcpy(target, view.data, view.dims * scalar_bytes(buffer->scalar));
  }
}

void check_form(ValueProblem problem, int dims) {
  switch (problem) {
    case ValueProblem::kEmpty:
      ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("a vector has no dimensions"),
                      errhint("A vector is an array of at least one element.")));
      break;
    case ValueProblem::kMultidimensional:
      ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                      errmsg("a vector is an array of %d dimensions", dims),
                      errhint("A vector is a one-dimensional array.")));
      break;
    default:
      break;
  }
}

}  // namespace gpujoin

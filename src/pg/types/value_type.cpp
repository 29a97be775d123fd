#include "pg/types/value_type.h"

#include "pg/types/extension_object.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

// A new type: a file with its entry, a line in value_types.h and one here, at the end.
constexpr const ValueType* kValueTypes[] = {
    &kFloat4ArrayType, &kFloat8ArrayType, &kPointType,     &kBoxType,      &kCubeType,
    &kVectorType,      &kHalfvecType,     &kSparsevecType, &kGeometryType, &kGeographyType,
    &kColumnsType,     &kHeldColumnsType, &kDegreesType,   &kSpointType,   &kBitType,
    &kVarbitType,      &kByteaType,       &kInt8BitsType,  &kInt4BitsType, &kLonLatType};

double number_at(const PointBuffer& buffer, const char* coordinates, std::uint32_t at) {
  return buffer.scalar == ScalarType::kFloat32
             ? static_cast<double>(reinterpret_cast<const float*>(coordinates)[at])
             : reinterpret_cast<const double*>(coordinates)[at];
}

/// Whether the point that was added last is one that is wanted.
bool is_wanted(const PointBuffer& buffer, const ValueDemands& demands) {
  constexpr double kMost = 1e37;  // PostGIS has distances of single precision
  if (buffer.scalar == ScalarType::kBits) return true;
  const char* const last = last_point(buffer);
  bool directed = !demands.only_directed;
  for (std::uint32_t d = 0; d < buffer.dims; ++d) {
    const double number = number_at(buffer, last, d);
    if (demands.only_moderate && !(std::fabs(number) <= kMost)) return false;
    directed = directed || number != 0;
  }
  return directed;
}

template <class T>
void note_size_of(const T* numbers, std::uint32_t count, ValueShape* shape) {
  constexpr T kMost = 1e15F, kLeast = 1e-15F;  // whose squares single precision adds up
  bool moderate = true, directed = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    moderate &= std::fabs(numbers[i]) <= kMost;
    directed |= std::fabs(numbers[i]) >= kLeast;
  }
  shape->has_large |= !moderate;
  shape->has_zero |= !directed;
}

}  // namespace

void note_size(const PointBuffer& buffer, ValueShape* shape) {
  const char* const last = last_point(buffer);
  if (buffer.scalar == ScalarType::kFloat32)
    note_size_of(reinterpret_cast<const float*>(last), buffer.dims, shape);
  else if (buffer.scalar == ScalarType::kFloat64)
    note_size_of(reinterpret_cast<const double*>(last), buffer.dims, shape);
}

const ValueType* const* value_types() { return kValueTypes; }

int value_type_count() { return lengthof(kValueTypes); }

bool is_type(const ValueType& known, Oid type) {
  return known.extension == nullptr
             ? type == known.type
             : is_base_type_of(type, known.extension, known.name, known.length);
}

const ValueType* find_value_type(Oid type) {
  if (!OidIsValid(type)) return nullptr;
  for (const ValueType* const known : kValueTypes)
    if (is_type(*known, type)) return known;
  return nullptr;
}

ValueFinding add_value(const ValueType& type, ValueForm form, PointBuffer* buffer,
                       ValueShape* shape, std::int64_t id, Datum value) {
  ValueFinding found = type.add.of(form)(buffer, shape, id, value);
  if (found.problem != ValueProblem::kNone) return found;
  const bool demands = shape->demands.only_moderate || shape->demands.only_directed;
  if (!demands || is_wanted(*buffer, shape->demands)) {
    note_size(*buffer, shape);
    return found;
  }
  drop_last_point(buffer);
  found.problem = ValueProblem::kIncomparable;
  return found;
}

}  // namespace gpujoin

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

}  // namespace

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

}  // namespace gpujoin

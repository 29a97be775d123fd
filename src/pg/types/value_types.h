// The entries of the table, one declaration for each file that has some.
#pragma once

#include "pg/types/value_type.h"

namespace gpujoin {

extern const ValueType kFloat4ArrayType, kFloat8ArrayType, kColumnsType,
    kHeldColumnsType;                         // array_types.cpp
extern const ValueType kPointType, kBoxType;  // geometric_types.cpp
extern const ValueType kDegreesType;          // degrees_type.cpp
extern const ValueType kSpointType;           // pgsphere_type.cpp
extern const ValueType kCubeType;             // cube_type.cpp
extern const ValueType kVectorType, kHalfvecType,
    kSparsevecType;  // pgvector_types.cpp
extern const ValueType kGeometryType, kGeographyType,
    kLonLatType;                                           // postgis_type.cpp
extern const ValueType kBitType, kVarbitType, kByteaType;  // bit_types.cpp
extern const ValueType kInt8BitsType, kInt4BitsType;       // likewise

}  // namespace gpujoin

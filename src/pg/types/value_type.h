// The types whose values are points or boxes: one table of them, filled by a file for each
// extension. Functions and planner read the same entries, so a type works in both or in neither.
#pragma once

#include "core/distance.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

/// What a value becomes in a dataset.
enum class ValueForm {
  kPoint,
  kDirection,      ///< a point on a sphere about the origin
  kBox,            ///< a low corner and a high one
  kMiddle,         ///< a point, or the middle of its box, which goes to PointBuffer::plane_boxes
  kPlace,          ///< of a longitude and a latitude: a point on the Earth as a sphere, in metres
  kSpheroidPlace,  ///< likewise as a spheroid
  kProduct,        ///< a point, with room for the dimensions that lifting adds
                   ///< (pg/geometry/inner_product.h)
};

inline bool is_on_earth(ValueForm form) {
  return form == ValueForm::kPlace || form == ValueForm::kSpheroidPlace;
}

/// Why a value becomes nothing of the kind.
enum class ValueProblem {
  kNone,
  kEmpty,             ///< it has no dimensions
  kNullElement,       ///< a coordinate is NULL
  kMultidimensional,  ///< it is an array of arrays
  kMismatch,          ///< it has other dimensions than the values before it
  kTooManyDimensions,
  kNotAPoint,     ///< it has an extent
  kOtherSrid,     ///< it lies in another coordinate system than the values before it
  kNoDegrees,     ///< its coordinates are not degrees
  kIncomparable,  ///< it is a point or a box, but not to the operators of its type
};

struct ValueFinding {
  ValueProblem problem;
  std::uint32_t dims;  ///< that the value has
};

/// Which values are wanted of those that could be had. Others are ValueProblem::kIncomparable.
struct ValueDemands {
  bool only_exact;     ///< no box that is larger than the one that operators compare
  bool only_moderate;  ///< no coordinate that is not finite, or so large that distances may not be
  bool only_directed;  ///< none that is 0 in all dimensions
};

/// What the points or boxes of both sides of a join have in common. The first value settles it; of
/// boxes that operators compare the dimensions may rise.
struct ValueShape {
  std::uint32_t dims;  ///< 0: no value was seen
  std::int32_t srid;   ///< of geometries
  bool as_stored;      ///< values count as they are, not as their type's operators see them
  ValueDemands demands;
  bool has_approximate;  ///< some boxes are larger than those that operators compare.
  bool has_large;        ///< the distance of some point may overflow or be NaN.
  bool has_zero;         ///< some point is so near 0 that it may have no direction.
  double lifted_norm;    ///< norm of lifted rows (pg/types/product_test.h), or 0.
};

/// The box of a value in the space of its type's index, and its SRID.
struct ValueExtent {
  enum Kind { kUnknown, kEmpty, kBox };
  Kind kind;
  std::int32_t srid;
  double low[3], high[3];
};

/// Sets ValueShape::has_large and has_zero for the point that was added last.
void note_size(const PointBuffer& buffer, ValueShape* shape);

/// Adds a value to the buffer, or nothing where there is a problem. The buffer's dims follow the
/// shape's.
using AddValue = ValueFinding (*)(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                  Datum value);

/// How a type's values become each form; null: they have no such form.
struct FormFunctions {
  AddValue point = nullptr;
  AddValue direction = nullptr;
  AddValue box = nullptr;
  AddValue middle = nullptr;
  AddValue place = nullptr;
  AddValue spheroid_place = nullptr;
  AddValue product = nullptr;

  AddValue of(ValueForm form) const {
    switch (form) {
      case ValueForm::kPoint:
        return point;
      case ValueForm::kDirection:
        return direction;
      case ValueForm::kBox:
        return box;
      case ValueForm::kMiddle:
        return middle;
      case ValueForm::kPlace:
        return place;
      case ValueForm::kSpheroidPlace:
        return spheroid_place;
      case ValueForm::kProduct:
        return product;
    }
    return nullptr;
  }
};

/// How a condition by a function of the type reads.
enum class TestForm {
  kDistance,  ///< the function's result is compared with a radius
  kNegative,  ///< the negative of its result is
  kWithin,    ///< the function takes values and radius, and may refuse a radius
  kOverlap,   ///< it holds if and only if the values' boxes have a point in common
  kTouch,     ///< it holds for no values whose boxes have none
  kApart,     ///< it holds for all values whose boxes have none
};

/// What a condition does with a function.
enum class TestUse {
  kMeasure,  ///< it compares the function's result
  kTest,     ///< it holds where the function does
  kRefute,   ///< it holds where the function does not
};

inline TestUse use_of(TestForm form) {
  return form == TestForm::kDistance ? TestUse::kMeasure
         : form == TestForm::kApart  ? TestUse::kRefute
                                     : TestUse::kTest;
}

/// Which boxes an index of the function leaves: values whose boxes lie otherwise do not fulfil it.
enum class BoxRule {
  kNone,
  kMeet,
  kFirstContains,  ///< the first value's box contains the second one's
  kSecondContains,
  kSame,
};

/// The rule for the values in the other order.
inline BoxRule turned(BoxRule rule) {
  return rule == BoxRule::kFirstContains    ? BoxRule::kSecondContains
         : rule == BoxRule::kSecondContains ? BoxRule::kFirstContains
                                            : rule;
}

/// The distances of points that a condition accepts, in the engine's terms.
struct EpsBand {
  bool engine_serves;  ///< false: only the condition itself decides
  bool none;           ///< no pair is within
  bool all;            ///< each pair of finite points is, though the engine does not serve
  double accept;       ///< up to this distance a pair is in
  double select;       ///< and beyond this one out; between them the condition decides
};

/// Sets the band for a finite radius above 0, or at least 0 where distances may equal it.
using WidenBand = void (*)(double eps, std::uint32_t dims, EpsBand* band);

/// A function that compares two values of a type. Functions are known by the extension that owns
/// them, never by an operator's name alone: two extensions mean different things by one symbol.
struct TestFunction {
  const char* extension;  ///< null: PostgreSQL's own, known by its OID
  const char* name;
  Oid function;
  TestForm form;
  ValueForm compared;
  Metric metric;    ///< over what values become
  WidenBand widen;  ///< null: the engine's arithmetic is the function's
  /// The constant that a call ends with, in SQL's words: a metric, true or false; null: none.
  const char* last_argument = nullptr;
  bool open = false;      ///< values within the radius may not fulfil it
  bool of_empty = false;  ///< values without a place may
  BoxRule boxes = BoxRule::kNone;
};

struct ValueType {
  const char* extension;  ///< null: PostgreSQL's own, known by its OID
  const char* name;       ///< as SQL has it; of an extension's type as pg_type does
  Oid type;
  ScalarType scalar;  ///< of its points: float32 where no coordinate needs more, or bits
  ScalarType box_scalar = ScalarType::kFloat64;  ///< and of its boxes, as operators see them
  FormFunctions add;
  /// The value that a point of form kPoint was made from, bit for bit, in the current memory
  /// context; or null.
  Datum (*rebuild)(const Dataset& points, std::uint64_t position) = nullptr;
  /// Returns the extent of a value. Null for types without coordinate systems. A type that has it
  /// raises an error for two values of different SRIDs, and accepts no pair with an empty value.
  ValueExtent (*extent)(Datum value) = nullptr;
  /// Likewise of a value that was added to a dataset in this form, of its up to six numbers. In
  /// forms that refuse values of another SRID, `srid` is that of all.
  ValueExtent (*added_extent)(ValueForm form, const double* numbers, std::int32_t srid) = nullptr;
  std::uint32_t fixed_numbers;   ///< that a value becomes; 0: it depends on its length
  std::uint32_t head_bytes = 0;  ///< of a value, before its coordinates
  std::uint32_t coordinate_bytes = 0;
  bool is_in_statistics = false;  ///< they keep values, as of a type with an order
  bool casts_to_box = false;      ///< as stored its boxes are those of a cast to PostgreSQL's box
  const TestFunction* tests;
  int test_count;
  /// What its values become is no distance of anybody's: functions do not take them.
  bool only_in_conditions = false;
  std::int16_t length = -1;  ///< of an extension's values, as pg_type has it; -1: it differs
  /// Conditions compare values that are declared to have so many dimensions or fewer; 0: all.
  std::int32_t most_declared = 0;
};

/// All of them; positions do not change while the server runs.
const ValueType* const* value_types();
int value_type_count();

/// The entry of a type, domains resolved, or null.
const ValueType* find_value_type(Oid type);

/// Whether the type is the entry's.
bool is_type(const ValueType& known, Oid type);

inline bool has_form(const ValueType& type, ValueForm form) { return type.add.of(form) != nullptr; }

/// Whether its values are bits, which have distances of their own and no others.
inline bool is_of_bits(const ValueType& type) { return type.scalar == ScalarType::kBits; }

/// Whether columns of the type can be an argument of functions, of bits or of all others.
inline bool is_argument(const ValueType& type, ValueForm form, bool bits = false) {
  return has_form(type, form) && !type.only_in_conditions && is_of_bits(type) == bits;
}

/// Returns true if searches find values of the type by distance, and the service can keep them.
inline bool is_searched_type(const ValueType& type) {
  const bool has_points = has_form(type, ValueForm::kPoint) || has_form(type, ValueForm::kPlace) ||
                          has_form(type, ValueForm::kSpheroidPlace);
  return has_points && type.test_count > 0 && !is_of_bits(type);
}

/// Adds a value in this form, as AddValue does.
ValueFinding add_value(const ValueType& type, ValueForm form, PointBuffer* buffer,
                       ValueShape* shape, std::int64_t id, Datum value);

/// float32 where no coordinate of such values needs more.
inline ScalarType scalar_of(const ValueType& type, ValueForm form) {
  if (form == ValueForm::kBox) return type.box_scalar;
  const bool computed = form == ValueForm::kDirection || is_on_earth(form);
  return computed ? ScalarType::kFloat64 : type.scalar;
}

}  // namespace gpujoin

#include "pg/planner/arithmetic.h"

extern "C" {
#include "utils/fmgroids.h"
}

namespace gpujoin {

// Operators of integers and of floating-point numbers have a function for each pair of types.
#define OF_INTEGERS(operator_)                                                                  \
  F_INT2##operator_ : case F_INT4##operator_ : case F_INT8##operator_ : case F_INT24##operator_ \
      : case F_INT42##operator_ : case F_INT28##operator_ : case F_INT82##operator_             \
      : case F_INT48##operator_ : case F_INT84##operator_
#define OF_FLOATS(operator_)                                                 \
  F_FLOAT4##operator_ : case F_FLOAT8##operator_ : case F_FLOAT48##operator_ \
      : case F_FLOAT84##operator_
#define OF_EACH(operator_)                                                                       \
  F_INT2##operator_ : case F_INT4##operator_ : case F_INT8##operator_ : case F_FLOAT4##operator_ \
      : case F_FLOAT8##operator_

Arithmetic arithmetic_of(Oid function) {
  switch (function) {
    case OF_INTEGERS(PL):
    case OF_FLOATS(PL):
    case F_NUMERIC_ADD:
      return Arithmetic::kSum;
    case OF_INTEGERS(MI):
    case OF_FLOATS(MI):
    case F_NUMERIC_SUB:
      return Arithmetic::kDifference;
    case OF_INTEGERS(MUL):
    case OF_FLOATS(MUL):
    case F_NUMERIC_MUL:
      return Arithmetic::kProduct;
    case OF_INTEGERS(DIV):
    case OF_FLOATS(DIV):
    case F_NUMERIC_DIV:
      return Arithmetic::kQuotient;
    case OF_EACH(UM):
    case F_NUMERIC_UMINUS:
      return Arithmetic::kNegation;
    case OF_EACH(ABS):
    case F_ABS_INT2:
    case F_ABS_INT4:
    case F_ABS_INT8:
    case F_ABS_FLOAT4:
    case F_ABS_FLOAT8:
    case F_NUMERIC_ABS:
    case F_ABS_NUMERIC:
      return Arithmetic::kMagnitude;
    case F_DPOW:
    case F_POW_FLOAT8_FLOAT8:
    case F_POWER_FLOAT8_FLOAT8:
    case F_NUMERIC_POWER:
    case F_POW_NUMERIC_NUMERIC:
    case F_POWER_NUMERIC_NUMERIC:
      return Arithmetic::kPower;
    case F_DSQRT:
    case F_SQRT_FLOAT8:
    case F_NUMERIC_SQRT:
    case F_SQRT_NUMERIC:
      return Arithmetic::kRoot;
    case F_DEXP:
    case F_EXP_FLOAT8:
      return Arithmetic::kExponential;
    case F_SIN:
      return Arithmetic::kSine;
    case F_COS:
      return Arithmetic::kCosine;
    case F_ASIN:
      return Arithmetic::kArcSine;
    case F_ACOS:
      return Arithmetic::kArcCosine;
    case F_ATAN2:
      return Arithmetic::kArcTangent;
    case F_RADIANS:
      return Arithmetic::kRadians;
    case F_DEGREES:
      return Arithmetic::kDegrees;
    case F_PI:
      return Arithmetic::kPi;
    case F_INT4_INT2:
    case F_INT8_INT2:
    case F_INT8_INT4:
    case F_FLOAT4_INT2:
    case F_FLOAT4_INT4:
    case F_FLOAT4_INT8:
    case F_FLOAT8_INT2:
    case F_FLOAT8_INT4:
    case F_FLOAT8_INT8:
    case F_FLOAT8_FLOAT4:
    case F_NUMERIC_INT2:
    case F_NUMERIC_INT4:
    case F_NUMERIC_INT8:
      return Arithmetic::kCast;
    default:
      return Arithmetic::kNone;
  }
}

bool casts_numeric(Oid function) {
  return function == F_FLOAT8_NUMERIC || function == F_NUMERIC_FLOAT8;
}

Ordering ordering_of(Oid function) {
  switch (function) {
    case OF_INTEGERS(LT):
    case OF_FLOATS(LT):
    case F_NUMERIC_LT:
      return Ordering::kLess;
    case OF_INTEGERS(LE):
    case OF_FLOATS(LE):
    case F_NUMERIC_LE:
      return Ordering::kAtMost;
    case OF_INTEGERS(EQ):
    case OF_FLOATS(EQ):
    case F_NUMERIC_EQ:
      return Ordering::kEqual;
    case OF_INTEGERS(GE):
    case OF_FLOATS(GE):
    case F_NUMERIC_GE:
      return Ordering::kAtLeast;
    case OF_INTEGERS(GT):
    case OF_FLOATS(GT):
    case F_NUMERIC_GT:
      return Ordering::kGreater;
    default:
      return Ordering::kNone;
  }
}

#undef OF_INTEGERS
#undef OF_FLOATS
#undef OF_EACH

}  // namespace gpujoin

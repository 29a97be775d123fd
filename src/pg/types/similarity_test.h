// What a similarity condition compares, and which distances of what its values become it accepts.
#pragma once

#include "pg/types/value_type.h"

namespace gpujoin {

/// A condition on two values of a type by one of the functions that compare them.
struct SimilarityTest {
  const ValueType* type;
  const TestFunction* by;  ///< one of type->tests
  bool strict;             ///< distance < radius
  bool open = false;       ///< pairs within the radius may not fulfil the condition
  bool of_nan = false;     ///< pairs whose distance is NaN may
  bool of_null = false;    ///< and those that have none, or a value that is NULL
};

inline bool tests_boxes(const SimilarityTest& test) {
  return test.by->form == TestForm::kOverlap || test.by->form == TestForm::kTouch ||
         test.by->form == TestForm::kApart;
}

/// Whether the engine's arithmetic is that of the condition, so that accept equals select.
inline bool is_exact(const SimilarityTest& test) { return test.by->widen == nullptr && !test.open; }

/// Sets *test to what a call of the function compares, used in this way. The call has two values of
/// the type and `extra` further arguments. `last` is the last of these if it is a constant text or
/// boolean, else null. Returns false for a function that is not in the tables of types.
bool find_test(Oid function, Oid type, int extra, const char* last, TestUse use,
               SimilarityTest* test);

/// The test's place in the table of types, for plans, and the test that has it.
int test_number(const SimilarityTest& test);
SimilarityTest numbered_test(int number);

/// The test of the bare distance that the test compares with its radius.
SimilarityTest distance_test(const SimilarityTest& test);

/// Which values the engine can compare, so that the test itself need not be asked about more than
/// pairs within a radius.
ValueDemands demands_of(const SimilarityTest& test);

/// Returns the band of distances of points with `dims` dimensions.
EpsBand eps_band(const SimilarityTest& test, double eps, std::uint32_t dims);

/// Returns a distance of the engine such that every pair beyond it is farther apart, by the test's
/// own function, than every pair at `distance` or nearer; of an open test by enough for arithmetic
/// that rounds away a billionth. INFINITY if no radius tells them apart.
double surely_beyond(const SimilarityTest& test, double distance, std::uint32_t dims);

}  // namespace gpujoin

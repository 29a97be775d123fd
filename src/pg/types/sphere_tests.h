// Tests of places on a sphere that no single function stands for: a query, or the body of a
// function that PostgreSQL has put in the place of its call, writes them out.
#pragma once

#include "pg/types/similarity_test.h"

namespace gpujoin {

/// Whether the test compares squares of sines of half the angle, as q3c_join() does.
bool tests_haversines(const SimilarityTest& test);

/// Columns of degrees are within a radius in degrees, by the square of the sine of its half.
SimilarityTest radius_test();

/// The angle between columns of degrees as a share of half the circle, never exactly.
SimilarityTest half_turns_test();

/// The same by a formula that a query computes by hand, which rounds.
SimilarityTest great_circle_test();

/// A place lies in the box around another one, which is larger by a share of the Earth's diameter,
/// never exactly.
SimilarityTest earth_box_test();

/// One of pgsphere's points lies within a circle around the other one.
SimilarityTest circle_test();

/// The length of a chord between earthdistance's values, points of type cube, never exactly.
SimilarityTest earth_chord_test();

}  // namespace gpujoin

// Radii that rows have of their own.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Takes in what the next row of the side adds to the radius. False: it is NULL, and the row's
/// value of no use.
bool keep_radius(JoinNode* node, Side* side, TupleTableSlot* slot);

/// Whether the row's radius is one that only the condition can compare with.
bool has_odd_radius(const JoinNode* node, const Side& side, std::uint64_t row);

/// The radius of a pair, whatever its rows' radii are.
double pair_radius(const JoinNode* node, std::uint64_t left, std::uint64_t right);

/// Notes that a row with this radius is among those that the engine joins.
void note_radius(Side* side, std::uint64_t row);

/// The band of distances that the largest radii of both sides leave.
EpsBand widest_band(JoinNode* node, double eps);

/// Where many rows have much smaller radii than others, decides on classes of them.
void find_radius_classes(JoinNode* node);

/// Prepares the join of the next class. False: there is none.
bool next_radius_class(JoinNode* node);

/// Leaves the pairs of this class and of those after it to the condition.
void set_classes_aside(JoinNode* node);

/// What the radii of both rows say about a pair that the engine found at this distance.
enum class Verdict { kWithin, kBeyond, kOpen };
Verdict compare_radii(const JoinNode* node, std::uint64_t left, std::uint64_t right,
                      double distance);

}  // namespace gpujoin

// Boxes and SRIDs of compared values.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Returns the extent of an input's value. Unknown for types without SRIDs.
ValueExtent extent_of_value(const JoinNode* node, Datum value);

/// Likewise of a row that is one of these points or boxes.
ValueExtent extent_of_point(const JoinNode* node, const Side& side, const Dataset& points,
                            std::uint64_t position, std::int32_t srid);

/// Notes the SRID of the rows that are not odd, after both sides are read.
void note_srid(JoinNode* node, std::int32_t srid);

/// Returns the distance of the boxes of two rows with different SRIDs. INFINITY where one row's
/// value is NULL or empty, so that no condition holds. -INFINITY where nothing is known, or the
/// SRIDs are the same.
double gap_between_srids(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// True if the boxes of two rows lie otherwise than JoinPlanData::boxes has it, so that some
/// condition holds for no such pair. An index of PostGIS leaves it out; the condition may raise an
/// error for it.
bool breaks_box_rule(JoinNode* node, std::uint64_t left, std::uint64_t right);

/// True if gap_between_srids() exceeds the radius, or anything at all where boxes are to meet:
/// likewise.
bool are_srids_apart(JoinNode* node, std::uint64_t left, std::uint64_t right, double radius);

}  // namespace gpujoin

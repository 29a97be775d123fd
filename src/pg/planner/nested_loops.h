// PostgreSQL's nested loops over all pairs of rows, and when the node is the safer plan; and its
// loops with lookups in an index, and when these are the better one.
#pragma once

#include "pg/planner/pair_path.h"

namespace gpujoin {

/// Adds `node` to the join's paths. If a join of PostgreSQL's beats it only by doubtful estimates,
/// lowers the node's cost below that of the join. If the rows of such a join are sorted, adds the
/// node below a Sort as well. See "Plans that are no traps" on the architecture page. `info`: the
/// engine's condition. `sides`: of the join, for selectivities. `seen`: number of pairs expected
/// from samples; 0 if the number is a guess. `of_pair`: cost of detoasting the values of a pair,
/// which PostgreSQL does not price.
void add_below_doubtful_joins(PlannerInfo* root, PairPath* node, const RestrictInfo* info,
                              SpecialJoinInfo* sides, double seen, Cost of_pair);

/// Whether a loop over the outer rows that looks the condition up in an index of the inner ones
/// costs less than `node`, if the condition leaves this share of pairs.
bool are_lookups_cheaper(PlannerInfo* root, const Path* node, const RelOptInfo* outer,
                         const RelOptInfo* inner, const RestrictInfo* info, Selectivity share);

/// Whether the condition can be looked up in an index of the inner rows.
bool has_lookups(const RelOptInfo* outer, const RelOptInfo* inner, const RestrictInfo* info);

/// Whether a loop over all pairs that ends with the first match of each outer row, as one of a
/// semijoin or an anti join does, costs less than `node`, which finds all pairs within the radius
/// before it asks them about other conditions: so where most rows have many matches. `matching` is
/// the share of all pairs that meet all conditions.
bool are_first_matches_cheaper(PlannerInfo* root, const Path* node, const Path* outer,
                               const Path* inner, List* conditions, Selectivity matching);

/// Whether a condition on the inner rows is about the outer row, too, and no radius.
using IsOfBothRows = bool (*)(const RestrictInfo* info, const void* context);

/// Returns true if one of `lookups`, paths of the inner rows, looks up a condition of both rows
/// that leaves few rows: a range, or what an index without an order serves, as GiST. PostgreSQL
/// assumes a fixed share of the table there. A node takes the longer the fewer rows meet the
/// condition. A path of a partitioned table looks up so if the partitions with most of its rows do.
bool look_few_up(const List* lookups, IsOfBothRows is_of_both, const void* context);

}  // namespace gpujoin

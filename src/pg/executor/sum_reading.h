// Inputs of which nothing but sums is wanted.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// RowSource::kSummed: the same as read_inputs() where the engine can add up the pairs of what is
/// read, and of no row more is wanted than that. False: the inputs have to be read, from their
/// beginnings.
bool read_summed_inputs(JoinNode* node);

/// From now on rows are kept, and the inputs begin again.
void keep_summed_rows(JoinNode* node);

}  // namespace gpujoin

// Pairs whose rows lie in files.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Forgets the rows that were read from files together. Returns how many bytes the next ones may
/// take.
Size begin_wanting(JoinNode* node);

/// Asks for what is kept of a row, with `tested` for the condition too, and returns how much memory
/// it will take; 0 where it is in memory.
Size want_rows(const Side* side, std::uint64_t row, bool tested);

/// Reads what was asked for, each row once and in the order of its file.
void read_wanted(JoinNode* node);

/// The next pair of the source, whose rows are in memory. Of one source all pairs are taken before
/// another one's, or forget_pairs() is called.
bool next_pair(JoinNode* node, PairSource source, std::uint64_t* left, std::uint64_t* right);

/// Forgets pairs that the engine emitted and nobody has taken.
void forget_pairs(JoinNode* node);

}  // namespace gpujoin

// The pairs of a join, by an engine or a loop.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// The row that the engine names: by its number, or in a self-join by the point's position or rank.
std::uint64_t row_of(const JoinNode* node, const Side& side, std::int64_t id);

/// Whether conditions other than the engine's have to be evaluated for its pairs.
bool has_filter(const JoinNode* node);

/// Whether no condition but the engine's decides, nor that about any pair.
bool decides_pairs(const JoinNode* node);

/// From the first pair, with the inputs that were read; for results of pairs. Sets EngineRun's
/// `exhausted` where the rows have to be read first.
void start_join(JoinNode* node);

/// What the engine is to do where pairs, or numbers of them, are rows.
Mode mode_of_rows(const JoinNode* node);

/// Prepares the engine for what was read, and sets the mode. Finds no pair yet.
void start_pairs(JoinNode* node);

/// Begins with the next pairs: starts the engine, or a loop. Where the engine counts,
/// takes its counts. False when there are no more pairs.
bool start_work(JoinNode* node);

/// The next pair that matches, in the scan tuple; in a semi or anti join one for each left row.
bool next_match(JoinNode* node);

/// The same, among the pairs that the engine emits.
bool next_engine_match(JoinNode* node);

/// The next batch of the engine's.
bool next_batch(JoinNode* node);

/// The next pair that the engine found, as numbers of rows.
bool next_found(JoinNode* node, std::uint64_t* left, std::uint64_t* right);

/// Whether a pair of the engine's, which the scan tuple shows, fulfils the other conditions.
bool passes(JoinNode* node, std::uint64_t left, std::uint64_t right);

}  // namespace gpujoin

// The choice of how to run a join: by which index, which columns it rests on, which one is sorted,
// which cells are visited, in what order distances are summed, and why. Shared by the engines;
// choosing never changes the result.
#pragma once

#include <cstdint>

#include "engine/request/strategy.h"

namespace gpujoin {

/// Up to this many dimensions distances are summed in column order, as the definition has it.
/// Beyond it they are screened in an order of our choosing, with a short circuit, and rechecked.
inline constexpr std::uint32_t kMaxDirectDimensions = 8;

/// What the parts of a walk cost an engine, in nanoseconds.
struct WalkCosts {
  double neighbor;        ///< of a point, each of the 3^k cells around it, empty or not
  double window;          ///< of a point, its window in a neighbouring cell that holds points
  double lookup;          ///< of a cell, finding one of its neighbours
  double candidate;       ///< besides its dimensions
  double dimension;       ///< of a candidate
  double tile_pair;       ///< of a pair of points in two tiles; 0: no tiles
  double tile_dimension;  ///< of such a pair
  double tile_boxes;      ///< of a pair of tiles, whether their boxes come near each other
  double tile_match;      ///< of a pair within eps that tiles found, where it is written
  double writing;         ///< a walk of cells that writes pairs, relative to one that counts
};

/// Measured on one core of a current server processor, a vector of candidates at a time.
inline constexpr WalkCosts kCoreWalkCosts{.neighbor = 0,
                                          .window = 8,
                                          .lookup = 12,
                                          .candidate = 0.25,
                                          .dimension = 0.12,
                                          .tile_pair = 0.03,
                                          .tile_dimension = 0.008,
                                          .tile_boxes = 8,
                                          .tile_match = 6,
                                          .writing = 1};

/// What building an index takes one core a row, in nanoseconds.
inline constexpr double kCoreIndexNs = 130;

/// Which cells, or tiles, a join visits. It is of each join of parts, unlike the rest of a
/// strategy.
AccessPattern pattern_of(const JoinRequest& request, IndexMethod index);

/// Chooses from a sample of the data. Knobs that are set are followed as far as the data has the
/// dimensions. Deterministic for the same request. Throws std::bad_alloc.
Strategy choose_strategy(const JoinRequest& request, const WalkCosts& costs = kCoreWalkCosts);

/// Whether a join with keys is expected to be quicker than one without, after which each pair
/// within eps is looked at for so long. Throws nothing.
bool are_keys_worth(const JoinRequest& request, double pair_ns);

/// Whether cores leave out most pairs, which a device would compare: of bits, where segments do.
/// Throws nothing.
bool is_for_cores(const JoinRequest& request);

/// About how long one core takes to build the index and walk it, in milliseconds; 0 for a request
/// that check_request() refuses. Where even brute force takes less than `enough_ms` that bound is
/// returned, and the data is not read. The best pairs by threshold are taken to cost an index of
/// all rows, however many pairs there are. Throws nothing.
double estimate_core_ms(const JoinRequest& request, double enough_ms);

}  // namespace gpujoin

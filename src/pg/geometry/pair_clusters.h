// Clusters by density (core/cluster.h) of rows that are known by pairs alone: candidates come in
// any order, each pair of two rows once a round, and the caller decides which of them are
// neighbours. Three rounds over the candidates, so that none is kept: how many each row has, how
// many of these are neighbours, and which rows are together. A pair is decided only where that may
// change something: among rows that are together already, none is. For the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/disjoint_sets.h"

namespace gpujoin {

/// Border rows follow the first of their core neighbours, BorderRule::kFirst. Plain data.
class PairClusters {
 public:
  /// In place of a number: the row is noise.
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// `links` and `states`, [rows] each, are the caller's, and rows are fewer than 2^31.
  /// `min_points`, at least 1, counts the row itself. Of 1 the first two rounds are left out.
  PairClusters(std::uint32_t* links, std::uint32_t* states, std::uint32_t rows,
               std::uint32_t min_points)
      : links_(links), states_(states), rows_(rows), full_(std::min(min_points, kCore - 1)) {
    for (std::uint32_t row = 0; row < rows; ++row) links_[row] = row;
    std::fill_n(states_, rows, full_ == 1 ? kCore : 1);
  }

  /// Before the first round: the row is noise, and has no neighbours.
  void leave_out(std::uint32_t row) { states_[row] = kNone; }

  /// The first round.
  void take_candidate(std::uint32_t p, std::uint32_t q) {
    for (const std::uint32_t row : {p, q})
      if (states_[row] < full_) ++states_[row];
  }

  /// Between them. Returns how many rows may be core rows, for those that have enough candidates.
  std::uint32_t begin_counting() {
    open_ = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      const bool open = states_[row] == full_;
      states_[row] = open ? 1 : kNone;
      open_ += open;
    }
    return open_;
  }

  /// The second round.
  template <class AreNear>
  void count(std::uint32_t p, std::uint32_t q, const AreNear& are_near) {
    if (!(is_open(p) || is_open(q)) || !are_near(p, q)) return;
    for (const std::uint32_t row : {p, q}) {
      if (!is_open(row) || ++states_[row] < full_) continue;
      states_[row] = kCore;
      --open_;
    }
    if (is_core(p) && is_core(q)) unite(p, q);
  }

  /// Rows of which the rest of the second round may find that they are core rows.
  std::uint32_t open() const { return open_; }

  /// Between them: other rows than core rows look for the first of these. Returns how many there
  /// are.
  std::uint32_t begin_connecting() {
    std::uint32_t cores = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (!is_core(row)) states_[row] = kNone;
      cores += is_core(row);
    }
    return cores;
  }

  /// The third round.
  template <class AreNear>
  void connect(std::uint32_t p, std::uint32_t q, const AreNear& are_near) {
    const bool p_core = is_core(p), q_core = is_core(q);
    if (p_core && q_core) {
      if (sets().root(p) != sets().root(q) && are_near(p, q)) unite(p, q);
    } else if (p_core || q_core) {
      const std::uint32_t core = p_core ? p : q;
      std::uint32_t& first = states_[p_core ? q : p];
      if (core < first && are_near(p, q)) first = core;
    }
  }

  /// At the end: each link becomes the number of the row's cluster, or kNone. Clusters are numbered
  /// from 0 by their first rows.
  void number() {
    for (std::uint32_t row = 0; row < rows_; ++row)
      if (is_core(row)) links_[row] = sets().root(row);
    std::uint32_t count = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      const bool core = is_core(row);
      const std::uint32_t followed = core ? row : states_[row];
      if (followed == kNone)
        links_[row] = kNone;
      else if (followed < row)
        links_[row] = links_[followed];
      else
        links_[row] = number_of(links_[followed], &count);
    }
  }

 private:
  /// States of core rows: this, and in number() of the first one of a cluster 1 + its number more.
  /// Those of others are their neighbours so far, up to full_, or later the first core row among
  /// these, or kNone.
  static constexpr std::uint32_t kCore = std::uint32_t{1} << 31;

  bool is_open(std::uint32_t row) const { return states_[row] < full_; }
  bool is_core(std::uint32_t row) const { return states_[row] >= kCore && states_[row] != kNone; }
  DisjointSets sets() const { return DisjointSets(links_); }
  void unite(std::uint32_t p, std::uint32_t q) { sets().unite(p, q); }

  std::uint32_t number_of(std::uint32_t root, std::uint32_t* count) {
    if (states_[root] == kCore) states_[root] += ++*count;
    return states_[root] - kCore - 1;
  }

  std::uint32_t *links_, *states_;
  std::uint32_t rows_;
  std::uint32_t full_;  ///< neighbours that make a core row
  std::uint32_t open_ = 0;
};

}  // namespace gpujoin

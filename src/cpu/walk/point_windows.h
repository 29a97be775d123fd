// Where a left point's candidates are: windows of the right index in the neighbouring cells that
// can hold points within eps (SORTIDU [GPU-Join, section 4.3]). Geometry only; what is found in the
// windows is walker's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/walk/join_plan.h"

namespace gpujoin::cpu {

/// The windows of one left point after another, in ascending order of positions.
class PointWindows {
 public:
  /// The most candidates in a piece, so that a walk checks the stop flag often enough.
  static constexpr std::uint64_t kMaxPiece = 1 << 16;

  explicit PointWindows(const JoinPlan& plan);

  /// Before the point at `first`, to which move_to() goes next.
  void start(std::uint32_t first);
  /// Finds the windows of the point at `position`, the one after the last.
  void move_to(std::uint32_t position);

  /// How many candidates the windows hold.
  std::uint64_t candidates() const { return candidates_; }
  /// The most candidates of a piece: they fit in a batch.
  std::uint64_t max_piece() const { return std::min(plan_.batch_entries, kMaxPiece); }
  /// Calls visit(windows, count, candidates) for runs of windows with max_piece() candidates at
  /// most.
  template <class Visit>
  void for_pieces(const Visit& visit) const {
    for (std::size_t first = 0; first < windows_.size();) {
      std::size_t end = first;
      std::uint64_t total = 0;
      for (; end < windows_.size(); ++end) {
        const std::uint64_t size = windows_[end].end - windows_[end].begin;
        if (total + size > max_piece()) break;
        total += size;
      }
      visit(windows_.data() + first, end - first, total);
      first = end;
    }
  }

 private:
  /// A neighbouring cell on the right, and the part of it that the current point's sort value
  /// reaches.
  struct NeighborCell {
    std::uint32_t begin, end;
    std::uint32_t low, high;
    bool own;  ///< the cell that the point itself lies in
  };

  void enter_cell();
  void place_window(NeighborCell& neighbor, double x) const;
  void slide_window(NeighborCell& neighbor, double x) const;
  void find_windows(std::uint32_t position, bool entered);
  void add_window(std::uint32_t begin, std::uint32_t end);

  const JoinPlan& plan_;
  std::size_t cell_ = 0;  ///< that the current point lies in
  bool started_ = false;
  std::vector<NeighborCell> neighbors_;
  std::vector<std::size_t> cursors_;  ///< per neighbour number, where its cell was last found
  std::vector<Window> windows_;
  std::uint64_t candidates_ = 0;
};

}  // namespace gpujoin::cpu
